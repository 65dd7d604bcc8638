"""Subcommands of `commodel import` that read parameter sets."""

from pathlib import Path

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import PATH
from commodel.cli.import_ import FILE_ARGUMENT, SET_OPTION, write_set


@click.command(
    name="taulop",
    cls=Verb,
    examples=(
        "commodel import taulop taulop-tables -o taulop.yaml",
        "commodel import taulop taulop-tables --network IB -o taulop.yaml",
    ),
)
@click.argument("folder", type=PATH)
@make_option_group(
    "Network", click.option("--network", default="", help="Network, e.g. TCP.  [default: IB, else the first table]")
)
@SET_OPTION
def import_taulop(folder: Path, network: str, out: Path) -> None:
    """Read parameter tables of the τ–Lop tools: SHM.txt, IB.txt or TCP.txt, gamma.txt."""
    from commodel_formats import taulop

    write_set(out, taulop.read_tables(folder, network))


@click.command(
    name="netgauge",
    cls=Verb,
    examples=(
        "commodel import netgauge netgauge.txt -o loggp.yaml",
        "commodel import netgauge node-1.txt -o node-1.yaml",
    ),
)
@FILE_ARGUMENT
@SET_OPTION
def import_netgauge(file: Path, out: Path) -> None:
    """Read LogGP parameters that Netgauge printed or wrote."""
    from commodel_formats import netgauge

    write_set(out, netgauge.read_parameters(file))
