"""commodel export: write schedules, trees, measurements and parameters for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from commodel.cli._help import VerbGroup, make_option_group
from commodel.cli._options import (
    PATH,
    commutative_option,
    out_option,
    pattern_options,
    same_types_option,
)
from commodel.cli._output import print_exported, show_waiting

OUT = make_option_group("Output", out_option("File to write.  [default: the screen]"))


@click.group(
    cls=VerbGroup,
    examples=(
        "commodel export goal --operation bcast --algorithm binomial --ranks 16 --bytes 1KiB",
        "commodel export mrnet kary:4^2",
    ),
)
def export() -> None:
    """Write files for other tools."""


@export.command(
    name="goal",
    examples=(
        "commodel export goal --operation bcast --algorithm binomial --ranks 16 --bytes 1KiB",
        (
            "commodel export goal --params results/sample/validated/fast-ethernet-32/loggp.yaml "
            "--operation allreduce --algorithm ring --ranks 8 --bytes 64KiB -o ring.goal"
        ),
    ),
)
@pattern_options
@make_option_group(
    "Times",
    click.option(
        "--params", type=PATH, help="Set of LogGP or LogGOPS: its gamma, and LogGOPSim's arguments."
    ),
    click.option("--gamma", help="Time per byte of reduce and copy work, e.g. 0.3ns."),
    click.option(
        "--unit",
        type=click.Choice(["ns", "ps"]),
        default="ns",
        show_default=True,
        help="Unit of time.",
    ),
)
@OUT
def to_goal(params: Path | None, gamma: str | None, unit: str, out: Path | None, **pattern) -> None:
    """Write one pattern in GOAL, for LogGOPSim."""
    from commodel.api.exports import export_goal

    operation, sizes = pattern.pop("operation"), pattern.pop("sizes")
    with show_waiting("writing"):
        result = export_goal(
            operation, out, bytes=sizes, parameters=params, gamma=gamma, unit=unit, **pattern
        )
    print_exported(result)


@export.command(
    name="mrnet",
    examples=(
        "commodel export mrnet kary:4^2",
        "commodel export mrnet flat:3 --hosts hosts.txt -o tree.top",
    ),
)
@click.argument("spec")
@make_option_group(
    "Hosts",
    click.option("--hosts", type=PATH, help="Names of hosts, one a line, one for each node."),
)
@OUT
def to_mrnet(spec: str, hosts: Path | None, out: Path | None) -> None:
    """Write the tree SPEC as a topology of MRNet."""
    from commodel.api.exports import export_mrnet

    print_exported(export_mrnet(spec, out, hosts=hosts))


@export.command(
    name="rules",
    examples=(
        "commodel export rules choices.csv -o rules.conf",
        "commodel export rules choices.csv --commutative --same-types",
    ),
)
@click.argument("table", type=PATH)
@make_option_group("Assumptions", commutative_option, same_types_option)
@OUT
def to_rules(table: Path, out: Path | None, commutative: bool, same_types: bool) -> None:
    """Write Open MPI's rules from a table of operation, ranks, bytes and algorithm."""
    from commodel.api.exports import export_rules

    print_exported(export_rules(table, out, commutative=commutative, same_types=same_types))
