"""commodel export: schedules, trees, measurements and parameters as files of other tools."""

from pathlib import Path

import click

from commodel.cli._options import (
    PATH,
    ForgivingGroup,
    commutative_option,
    format_option,
    pattern_options,
    same_types_option,
)
from commodel.cli._output import emit, show_waiting
from commodel.units import parse_count, parse_seconds

OUT = click.option("-o", "--out", type=PATH, help="File to write; left out: the screen.")


@click.group(cls=ForgivingGroup)
def export() -> None:
    """Write files for other tools."""


@export.command(name="goal")
@pattern_options
@click.option("--params", type=PATH, help="Set of LogGP or LogGOPS: gamma, and the simulator's arguments as a comment.")
@click.option("--gamma", help="Time per byte of reduce and copy work, e.g. 0.3ns.")
@click.option("--unit", type=click.Choice(["ns", "ps"]), default="ns", help="Unit of time; default ns.")
@OUT
def to_goal(params: Path | None, gamma: str | None, unit: str, out: Path | None, **pattern) -> None:
    """One pattern in GOAL, for LogGOPSim: txt2bin -i FILE -o BINARY, then LogGOPSim -f BINARY with its
    parameters, which a comment of the file has if --params is given.

    It gives the price of LogGP to the unit where g is at least o and no message comes before its receiver is ready for
    it. Elsewhere its conventions are others than those of `commodel predict`, which takes them over with
    --family loggops --set convention=loggopsim:

    \b
    - One o for both ends, and whole numbers only: what is below 1 ns per byte needs --unit ps.
    - A message keeps its receiver's processor for o + (m-1)·G. LogGP: o_r, and the (m-1)·G before it on the way.
    - A message is taken when it comes, also before its receive is posted: a rank that waits for another one has
      it for free later, one that is about to send or to compute is held up. LogGP takes it in its step.
    - A send that waits for g lets what comes meanwhile be received first. LogGP posts it, and goes on.
    - Messages that come at the same time are taken as they were sent. Of more than 16 operations that become ready
      at once, equals are in no order: sends are chained here, so that nothing depends on it.
    - Messages above S wait for their receive without any latency of their own: -S has to be above all sizes.
    - A message of 0 bytes is written as one of 1, which costs the same under LogGP.
    - The iterations of summa follow each other without a barrier. Here all ranks begin each at once, and times add up.
    """
    from commodel.api.predictions import build_one_schedule
    from commodel.interchange import goal
    from commodel.models.parameter_sets import read_set

    schedule = build_one_schedule(**pattern)
    of_set, arguments = goal.from_set(read_set(params), unit) if params else (None, "")
    per_byte = parse_seconds(gamma) if gamma else of_set
    if goal.untimed(schedule, per_byte):
        click.echo("commodel: reduce and copy work takes no time in this file; give --gamma or --params", err=True)
    with show_waiting("writing"):
        text = goal.goal(schedule, per_byte, unit, arguments)
    emit(text, out)


@export.command(name="mrnet")
@click.argument("spec")
@click.option("--hosts", type=PATH, help="Names of hosts, one a line, one a node of the tree.")
@OUT
def to_mrnet(spec: str, hosts: Path | None, out: Path | None) -> None:
    """The tree that SPEC names as a topology of MRNet."""
    from commodel.interchange import mrnet
    from commodel.patterns.trees.files import mrnet as mrnet_text
    from commodel.patterns.trees.topologies import tree

    emit(mrnet_text(mrnet.on_hosts(tree(spec), hosts) if hosts else tree(spec)), out)


@export.command(name="extrap")
@click.argument("table", type=PATH)
@format_option("text", "jsonl")
@click.option("-o", "--out", type=PATH, required=True, help="File to write; where points differ: NAME-1, NAME-2, …")
def to_extrap(table: Path, style: str, out: Path) -> None:
    """What observations.csv or comparison.csv measured, for Extra-P."""
    from commodel.interchange import extrap

    regions = extrap.regions(extrap.read(table), table)
    click.echo("\n".join(str(name) for name in extrap.write(regions, style, out)))


@export.command(name="simgrid")
@click.argument("params", type=PATH)
@click.option("--nodes", required=True, help="How many nodes the platform has.")
@click.option("-o", "--out", type=PATH, required=True, help="Platform (YAML) to write; its XML goes beside it.")
def to_simgrid(params: Path, nodes: str, out: Path) -> None:
    """A simulated platform, from a parameter set of LogGP or Hockney.

    Round trips and bursts on it take what the set says, so that a fit there gives the set's values again. A set of
    LogGP is refused if its g is above its L and above one of its overheads: SimGrid has no port that is busy longer
    than its messages are on their way.
    """
    from commodel.interchange import simgrid
    from commodel.models.parameter_sets import read_set

    if note := simgrid.write(read_set(params), parse_count(nodes, 2), out):
        click.echo(f"commodel: {note}", err=True)


@export.command(name="rules")
@click.argument("table", type=PATH)
@OUT
@commutative_option
@same_types_option
def to_rules(table: Path, out: Path | None, commutative: bool, same_types: bool) -> None:
    """Open MPI's rules, from a table of operation, ranks, bytes, algorithm."""
    from commodel.interchange import rules

    emit(rules.rules(rules.read_table(table), rules.Assumptions(commutative, same_types)).rstrip("\n"), out)
