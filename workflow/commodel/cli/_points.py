"""The options that name patterns, shared by predict and schedule, and the points that they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from commodel.cli._output import stems
from commodel.errors import UserError
from commodel.files.quantities import expand
from commodel.units import parse_bytes, parse_count, parse_waves

if TYPE_CHECKING:
    from commodel.patterns.points import Setting
    from commodel.patterns.schedule import Schedule
    from commodel.records import Point


def pattern_options(command: Callable) -> Callable:
    options = (
        click.option("--operation", help=f"{', '.join(sorted(stems('patterns/operations')))}, or file:PATH."),
        click.option("--algorithm", multiple=True, help="How it is done; may be repeated. Left out: every algorithm."),
        click.option("--topology", multiple=True, help="Over which tree, e.g. balanced:4x4; may be repeated."),
        click.option("--ranks", help="Number of ranks: 16, or 2,4,8, or 2:64:*2. A topology brings its own."),
        click.option("--bytes", "sizes", help="Message size: 1KiB, or 8,1KiB, or 1:1MiB:*4."),
        click.option("--layout", help="Such as cyclic:2, 2 ranks a node; default one rank a node."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def points(
    operation, algorithm, topology, ranks, sizes, layout, setting: Setting | None = None, waves: str | None = None
) -> list[Point]:
    """Every combination of what the options give, as points."""
    from commodel.patterns.algorithms import choices
    from commodel.patterns.operations import own_spelling, ranks_of, sized
    from commodel.patterns.points import Setting, make_point
    from commodel.patterns.written import is_written
    from commodel.plan.matrix import MAX_COMBINATIONS

    if not operation:
        raise UserError("--operation is missing")
    repeats = [{"waves": count} for count in expand(waves, parse_waves)] if waves is not None else [{}]
    if is_written(operation):
        given = {"algorithm": algorithm, "topology": topology, "ranks": ranks, "bytes": sizes}
        if wrong := [key for key, value in given.items() if value]:
            raise UserError(f"--{wrong[0]}: '{operation}' says what is sent; leave it out")
        combination = {"operation": operation, "layout": layout}
        return [make_point(setting or Setting.unlimited(), combination | count) for count in repeats]
    name = own_spelling(operation)
    if algorithm and topology:
        raise UserError("give --algorithm or --topology, not both")
    if topology and ranks:
        raise UserError("a topology brings its own ranks; leave --ranks out")
    if not topology and not ranks and not ranks_of(name):
        raise UserError("--ranks is missing")
    if sized(name) and sizes is None:
        raise UserError(f"--bytes is missing; {name} needs a message size")
    named = [{"topology": spec} for spec in topology]
    every = [spec for spec, entry in choices(name).items() if not entry.needs_argument]
    named = named or [{"algorithm": spec} for spec in algorithm or every]
    counts = [{"ranks": count} for count in expand(ranks, parse_count)] if ranks else [{}]
    lengths = expand(sizes, parse_bytes) if sized(name) else [0]
    if (asked := len(named) * len(counts) * len(lengths) * len(repeats)) > MAX_COMBINATIONS:
        raise UserError(f"these options mean {asked} patterns, wanted at most {MAX_COMBINATIONS}")
    setting = setting or Setting.unlimited()
    common = {"operation": name} | ({"layout": layout} if layout else {})
    return [
        make_point(setting, common | way | count | {"bytes": length} | repeat)
        for way in named
        for count in counts
        for length in lengths
        for repeat in repeats
    ]


def one_schedule(**pattern) -> Schedule:
    """The messages of the one pattern that the options mean."""
    from commodel.patterns.build import schedule

    chosen = points(**pattern)
    if len(chosen) != 1:
        raise click.UsageError(f"these options mean {len(chosen)} patterns; name one algorithm or topology, one size")
    return schedule(chosen[0])
