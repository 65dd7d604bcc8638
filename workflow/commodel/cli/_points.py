"""The options that name patterns, shared by predict and schedule, and the points that they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from commodel.errors import UserError
from commodel.units import expand, parse_bytes, parse_count

if TYPE_CHECKING:
    from commodel.patterns.points import Setting
    from commodel.patterns.schedule import Schedule
    from commodel.records import Point


def pattern_options(command: Callable) -> Callable:
    from commodel.patterns.operations import OPERATIONS

    options = (
        click.option("--operation", help=f"{', '.join(OPERATIONS)}, or file:PATH."),
        click.option("--algorithm", multiple=True, help="How it is done; may be repeated. Left out: every algorithm."),
        click.option("--topology", multiple=True, help="Over which tree, e.g. balanced:4x4; may be repeated."),
        click.option("--ranks", help="Number of ranks: 16, or 2,4,8, or 2:64:*2. A topology brings its own."),
        click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4."),
        click.option("--layout", help="Such as cyclic:2, 2 ranks a node; default one rank a node."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def points(operation, algorithm, topology, ranks, sizes, layout, setting: Setting | None = None) -> list[Point]:
    """Every combination of what the options give, as points."""
    from commodel.patterns.algorithms import choices
    from commodel.patterns.operations import operation as operation_named
    from commodel.patterns.points import Setting, make_point
    from commodel.patterns.written import is_written
    from commodel.plan.matrix import MAX_COMBINATIONS

    if not operation:
        raise UserError("--operation is missing")
    if is_written(operation):
        given = {"algorithm": algorithm, "topology": topology, "ranks": ranks, "bytes": sizes}
        if wrong := [key for key, value in given.items() if value]:
            raise UserError(f"--{wrong[0]}: '{operation}' says what is sent; leave it out")
        return [make_point(setting or Setting.unlimited(), {"operation": operation, "layout": layout})]
    name = operation_named(operation)
    if algorithm and topology:
        raise UserError("give --algorithm or --topology, not both")
    if topology and ranks:
        raise UserError("a topology brings its own ranks; leave --ranks out")
    if not topology and not ranks:
        raise UserError("--ranks is missing")
    if name != "barrier" and sizes is None:
        raise UserError(f"--bytes is missing; {name} needs a message size")
    named = [{"topology": spec} for spec in topology]
    every = [spec for spec, entry in choices(name).items() if not entry.needs_argument]
    named = named or [{"algorithm": spec} for spec in algorithm or every]
    counts = [{"ranks": count} for count in expand(ranks, parse_count)] if ranks else [{}]
    lengths = expand(sizes, parse_bytes) if name != "barrier" else [0]
    if (asked := len(named) * len(counts) * len(lengths)) > MAX_COMBINATIONS:
        raise UserError(f"these options mean {asked} patterns, wanted at most {MAX_COMBINATIONS}")
    setting = setting or Setting.unlimited()
    return [
        make_point(
            setting, {"operation": name, **way, **count, "bytes": length} | ({"layout": layout} if layout else {})
        )
        for way in named
        for count in counts
        for length in lengths
    ]


def one_schedule(**pattern) -> Schedule:
    """The messages of the one pattern that the options mean."""
    from commodel.patterns.build import schedule

    chosen = points(**pattern)
    if len(chosen) != 1:
        raise click.UsageError(f"these options mean {len(chosen)} patterns; name one algorithm or topology, one size")
    return schedule(chosen[0])
