"""Subcommands of `commodel import` that read parameter sets, and subcommands of `commodel
export`."""

from pathlib import Path

import click

from commodel.cli.verb_parts import (
    PATH,
    VerbCommand,
    format_option,
    make_option_group,
    out_option,
    print_exported,
    write_set,
)

SET_OPTION = make_option_group(
    "Output", out_option("Parameter set (YAML) to write.", required=True)
)


@click.command(
    name="taulop",
    cls=VerbCommand,
    examples=(
        "commodel import taulop taulop-tables -o taulop.yaml",
        "commodel import taulop taulop-tables --network IB -o taulop.yaml",
    ),
)
@click.argument("folder", type=PATH)
@make_option_group(
    "Network",
    click.option(
        "--network", default="", help="Network, e.g. TCP.  [default: IB, else the first table]"
    ),
)
@SET_OPTION
def import_taulop(folder: Path, network: str, out: Path) -> None:
    """Read parameter tables of the τ–Lop tools: SHM.txt, IB.txt or TCP.txt, gamma.txt."""
    from commodel_formats import taulop

    write_set(out, taulop.read_tables(folder, network))


@click.command(
    name="netgauge",
    cls=VerbCommand,
    examples=(
        "commodel import netgauge netgauge.txt -o loggp.yaml",
        "commodel import netgauge node-1.txt -o node-1.yaml",
    ),
)
@click.argument("file", type=PATH)
@SET_OPTION
def import_netgauge(file: Path, out: Path) -> None:
    """Read LogGP parameters that Netgauge printed or wrote."""
    from commodel_formats import netgauge

    write_set(out, netgauge.read_parameters(file))


@click.command(
    name="extrap",
    cls=VerbCommand,
    examples=(
        "commodel export extrap results/sample/observations.csv -o sample.txt",
        "commodel export extrap results/sample/comparison.csv --format jsonl -o sample.jsonl",
    ),
)
@click.argument("table", type=PATH)
@make_option_group(
    "Output",
    format_option("text", "jsonl", help_text="Write Extra-P's text format, or JSON lines."),
    out_option(
        "File to write; NAME-1, NAME-2 and so on for several sets of points.", required=True
    ),
)
def export_extrap(table: Path, style: str, out: Path) -> None:
    """Write the measurements of observations.csv or comparison.csv for Extra-P."""
    from commodel_formats import exporters

    print_exported(exporters.export_extrap(table, out, style=style))


@click.command(
    name="simgrid",
    cls=VerbCommand,
    examples=(
        (
            "commodel export simgrid results/sample/fitted/fast-ethernet-32/hockney.yaml --nodes 64 "
            "-o params/platforms/model.yaml"
        ),
        "commodel export simgrid loggp.yaml --nodes 8 -o params/platforms/loggp-8.yaml",
    ),
)
@click.argument("params", type=PATH)
@make_option_group(
    "Platform", click.option("--nodes", required=True, help="Number of nodes of the platform.")
)
@make_option_group(
    "Output",
    out_option("Platform (YAML) to write; its XML goes beside it.", required=True),
)
def export_simgrid(params: Path, nodes: str, out: Path) -> None:
    """Write a simulated platform from a parameter set of LogGP or Hockney."""
    from commodel_formats import exporters

    print_exported(exporters.export_simgrid(params, out, nodes=nodes))
