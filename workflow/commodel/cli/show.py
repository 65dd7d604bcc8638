"""commodel show: list catalogues, and draw one entry.

The catalogues are operations, algorithms, topologies, layouts, models and extensions. The drawings
are trees, placements of ranks, messages of a pattern, and the network of an allocation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._help import VerbGroup, make_option_group
from commodel.cli._options import (
    PATH,
    format_option,
    pattern_options,
    platform_option,
    style_option,
)
from commodel.cli._output import show_waiting

if TYPE_CHECKING:
    from commodel.api.catalogues import Shown

OUTPUT = make_option_group("Output", style_option)


def print_shown(shown: Shown, style: str) -> None:
    """Print the text of an answer, or its rows as JSON or CSV."""
    if style in ("json", "csv"):
        click.echo(shown.to_json() if style == "json" else shown.to_csv())
    else:
        click.echo(shown.text())


@click.group(
    cls=VerbGroup,
    examples=("commodel show algorithms bcast", "commodel show topology kary:2^3 --format text"),
)
def show() -> None:
    """List algorithms, models and more, or draw one of them."""


@show.command(examples=("commodel show operations", "commodel show operations halo"))
@click.argument("name", required=False)
@OUTPUT
def operations(name: str | None, style: str) -> None:
    """List the operations, the meaning of `bytes` in each, and their parameters."""
    from commodel.api.catalogues import show_operations

    print_shown(show_operations(name), style)


@show.command(
    examples=("commodel show algorithms bcast", "commodel show algorithms allreduce --libraries")
)
@click.argument("operation", required=False)
@make_option_group(
    "MPI libraries",
    click.option(
        "--libraries",
        is_flag=True,
        help="List functions of Open MPI and MPICH that send the same messages.",
    ),
)
@OUTPUT
def algorithms(operation: str | None, libraries: bool, style: str) -> None:
    """List the algorithms of all operations, or of one."""
    from commodel.api.catalogues import show_algorithms

    print_shown(show_algorithms(operation, libraries), style)


@show.command(examples=("commodel show topologies", "commodel show topologies knomial"))
@click.argument("name", required=False)
@OUTPUT
def topologies(name: str | None, style: str) -> None:
    """List the forms of tree that --topology takes."""
    from commodel.api.catalogues import show_topologies

    print_shown(show_topologies(name), style)


@show.command(examples=("commodel show layouts", "commodel show layouts block-cyclic"))
@click.argument("name", required=False)
@OUTPUT
def layouts(name: str | None, style: str) -> None:
    """List the layouts that --layout takes; Q is the number of ranks a node."""
    from commodel.api.catalogues import show_layouts

    print_shown(show_layouts(name), style)


@show.command(examples=("commodel show models", "commodel show models loggp"))
@click.argument("name", required=False)
@OUTPUT
def models(name: str | None, style: str) -> None:
    """List the models, or show one: equation, parameters, probes, citation, published sets."""
    from commodel.api.catalogues import show_models

    print_shown(show_models(name), style)


@show.command(examples=("commodel show extensions", "commodel show extensions --format json"))
@click.argument("name", required=False)
@OUTPUT
def extensions(name: str | None, style: str) -> None:
    """List installed extensions: their packages, versions and everything that they bring."""
    from commodel.api.catalogues import show_extensions

    print_shown(show_extensions(name), style)


@show.command(
    examples=(
        "commodel show topology kary:2^3 --format text",
        (
            "commodel show topology kary:2^3 --operation reduce "
            "--params results/sample/validated/fast-ethernet-32/loggp.yaml"
        ),
    ),
    arguments={"SPEC": "A form of `commodel show topologies` with its values."},
)
@click.argument("spec")
@make_option_group(
    "Critical path",
    click.option(
        "--params",
        type=PATH,
        help="Parameter set (YAML): show the critical path of its prediction.",
    ),
    click.option("--operation", default="bcast", show_default=True, help="Operation to predict."),
    click.option("--bytes", "size", default="1KiB", show_default=True, help="Message size."),
)
@make_option_group(
    "Output",
    format_option(
        "summary",
        "text",
        "mrnet",
        "csv",
        "dot",
        "svg",
        help_text="Print key numbers (summary), a drawing (text, dot, svg), MRNet's file format, or node,parent (csv).",
    ),
)
def topology(spec: str, style: str, params: Path | None, operation: str, size: str) -> None:
    """Show the tree SPEC, such as kary:2^4 or groups:6,6,5."""
    from commodel.api.catalogues import show_topology

    click.echo(show_topology(spec, style, params, operation, size).text())


@show.command(
    examples=(
        "commodel show layout cyclic:2 --ranks 6",
        "commodel show layout block --ranks 16 --platform fast-ethernet-32",
    ),
    arguments={"SPEC": "A form of `commodel show layouts` with its values."},
)
@click.argument("spec")
@make_option_group(
    "Ranks and platform",
    click.option(
        "--ranks",
        type=click.IntRange(1, 1 << 20),
        help="Number of ranks.  [default: those of a file]",
    ),
    platform_option,
)
@make_option_group(
    "Output",
    format_option(
        "line",
        "file",
        "json",
        "csv",
        help_text="Print the ranks of each node, a file for file:PATH, or a row for each rank.",
    ),
)
def layout(spec: str, ranks: int | None, platform: str | None, style: str) -> None:
    """Show the node of every rank under the layout SPEC, such as cyclic:2."""
    from commodel.api.catalogues import show_layout

    print_shown(show_layout(spec, ranks, platform, style), style)


@show.command(
    examples=(
        "commodel show schedule --operation bcast --algorithm binomial --ranks 8 --bytes 1KiB",
        "commodel show schedule --operation reduce --topology flat:4 --bytes 1KiB --format dot",
    )
)
@pattern_options
@make_option_group("Platform", platform_option)
@make_option_group(
    "Output",
    format_option("csv", "dot", help_text="Print the table that file:PATH reads, or a drawing."),
)
def schedule(style: str, **pattern) -> None:
    """Show the messages and the local work of one pattern."""
    from commodel.api.catalogues import show_schedule

    operation, sizes = pattern.pop("operation"), pattern.pop("sizes")
    click.echo(show_schedule(operation, bytes=sizes, style=style, **pattern).text())


@show.command(
    examples=("commodel show network mine", "commodel show network mycluster --levels"),
    arguments={
        "NAME": "Experiment with results, or platform (name or file). `probes: auto` times pairs of nodes."
    },
)
@click.argument("name")
@make_option_group(
    "Platform",
    click.option("--platform", help="Platform to show.  [default: all of the experiment]"),
)
@make_option_group(
    "Output",
    click.option(
        "--levels",
        is_flag=True,
        help="Print `levels` for the platform file, from Slurm or learned.",
    ),
    style_option,
)
def network(name: str, platform: str | None, levels: bool, style: str) -> None:
    """Show distance classes, groups of nodes and slow nodes, from times between pairs of nodes."""
    from commodel.api.catalogues import show_network

    with show_waiting("grouping the nodes by latency"):
        shown = show_network(name, platform, levels)
    print_shown(shown, "table" if levels else style)
