"""commodel export: write schedules, trees, measurements and parameters for other tools, and join tables."""

from pathlib import Path

import click

from commodel.cli._help import VerbGroup, make_option_group
from commodel.cli._options import (
    PATH,
    commutative_option,
    format_option,
    out_option,
    pattern_options,
    same_types_option,
)
from commodel.cli._output import show_waiting, write_or_print
from commodel.units import parse_count, parse_seconds

OUT = make_option_group("Output", out_option("File to write.  [default: the screen]"))


@click.group(
    cls=VerbGroup,
    examples=(
        "commodel export goal --operation bcast --algorithm binomial --ranks 16 --bytes 1KiB",
        "commodel export mrnet kary:4^2",
    ),
)
def export() -> None:
    """Write files for other tools, or join tables."""


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
    click.option("--params", type=PATH, help="Set of LogGP or LogGOPS: its gamma, and LogGOPSim's arguments."),
    click.option("--gamma", help="Time per byte of reduce and copy work, e.g. 0.3ns."),
    click.option("--unit", type=click.Choice(["ns", "ps"]), default="ns", show_default=True, help="Unit of time."),
)
@OUT
def to_goal(params: Path | None, gamma: str | None, unit: str, out: Path | None, **pattern) -> None:
    """Write one pattern in GOAL, for LogGOPSim."""
    from commodel.api.predictions import build_one_schedule
    from commodel.interchange import goal
    from commodel.models.parameter_sets import read_set

    schedule = build_one_schedule(**pattern)
    set_gamma, arguments = goal.convert_parameters(read_set(params), unit) if params else (None, "")
    per_byte = parse_seconds(gamma) if gamma else set_gamma
    if goal.has_untimed_work(schedule, per_byte):
        click.echo("commodel: reduce and copy work takes no time in this file; give --gamma or --params", err=True)
    with show_waiting("writing"):
        text = goal.format_goal(schedule, per_byte, unit, arguments)
    write_or_print(text, out)


@export.command(
    name="matrix",
    examples=(
        "commodel export matrix 1.parquet 2.parquet --out matrix.csv",
        "commodel export matrix parts/*.parquet --out matrix.parquet",
    ),
)
@click.argument("parts", nargs=-1, required=True, type=PATH)
@make_option_group("Output", out_option("Table to write: .parquet or .csv.", required=True))
def to_matrix(parts: tuple[Path, ...], out: Path) -> None:
    """Join parts of a predicted matrix, made by predict matrix --part, into one table."""
    from commodel.files.streamed_tables import read_stream, write_stream

    with show_waiting("joining"):
        write_stream(out, *read_stream(parts))


@export.command(
    name="mrnet",
    examples=("commodel export mrnet kary:4^2", "commodel export mrnet flat:3 --hosts hosts.txt -o tree.top"),
)
@click.argument("spec")
@make_option_group("Hosts", click.option("--hosts", type=PATH, help="Names of hosts, one a line, one for each node."))
@OUT
def to_mrnet(spec: str, hosts: Path | None, out: Path | None) -> None:
    """Write the tree SPEC as a topology of MRNet."""
    from commodel.interchange import mrnet
    from commodel.patterns.trees.files import format_mrnet
    from commodel.patterns.trees.topologies import make_tree

    write_or_print(format_mrnet(mrnet.name_hosts(make_tree(spec), hosts) if hosts else make_tree(spec)), out)


@export.command(
    name="extrap",
    examples=(
        "commodel export extrap results/sample/observations.csv -o sample.txt",
        "commodel export extrap results/sample/comparison.csv --format jsonl -o sample.jsonl",
    ),
)
@click.argument("table", type=PATH)
@make_option_group(
    "Output",
    format_option("text", "jsonl", help_text="Write Extra-P's text format, or JSON lines."),
    out_option("File to write; NAME-1, NAME-2 and so on for several sets of points.", required=True),
)
def to_extrap(table: Path, style: str, out: Path) -> None:
    """Write the measurements of observations.csv or comparison.csv for Extra-P."""
    from commodel.interchange import extrap

    regions = extrap.group_times(extrap.read_measurements(table), table)
    click.echo("\n".join(str(name) for name in extrap.write_files(regions, style, out)))


@export.command(
    name="simgrid",
    examples=(
        (
            "commodel export simgrid results/sample/fitted/fast-ethernet-32/hockney.yaml --nodes 64 "
            "-o params/platforms/model.yaml"
        ),
        "commodel export simgrid loggp.yaml --nodes 8 -o params/platforms/loggp-8.yaml",
    ),
)
@click.argument("params", type=PATH)
@make_option_group("Platform", click.option("--nodes", required=True, help="Number of nodes of the platform."))
@make_option_group(
    "Output",
    out_option("Platform (YAML) to write; its XML goes beside it.", required=True),
)
def to_simgrid(params: Path, nodes: str, out: Path) -> None:
    """Write a simulated platform from a parameter set of LogGP or Hockney."""
    from commodel.interchange import simgrid
    from commodel.models.parameter_sets import read_set

    if note := simgrid.write_platform(read_set(params), parse_count(nodes, 2), out):
        click.echo(f"commodel: {note}", err=True)
    for path in (out, out.with_suffix(".xml")):
        click.echo(path)


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
    from commodel.interchange import rules

    write_or_print(
        rules.format_rules(rules.read_choices(table), rules.Assumptions(commutative, same_types)).rstrip("\n"), out
    )
