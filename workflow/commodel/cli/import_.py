"""commodel import: what other tools measured or fitted, as files of commodel."""

from pathlib import Path

import click

from commodel.errors import UserError
from commodel.interchange import taulop
from commodel.tables import write_parameters


@click.group(name="import")
def import_() -> None:
    """Read files of other tools."""


@import_.command(name="taulop")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--network", default="", help="Which network's table: IB, TCP, …; default IB, else the first there is.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Parameter set (YAML) to write.")
def tau_lop(folder: Path, network: str, out: Path) -> None:
    """The parameter tables of the τ–Lop tools: SHM.txt, IB.txt or TCP.txt, gamma.txt."""
    if not folder.is_dir():
        raise UserError("wanted a folder with SHM.txt, IB.txt, …", file=folder)
    found = taulop.read(folder, network)
    write_parameters(out, found)
    click.echo(f"{out}: {len(found.values)} values of {found.platform}, {found.source}")
