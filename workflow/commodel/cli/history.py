"""commodel history: several results, comparisons or parameter sets in a row, each beside the first."""

from pathlib import Path

import click

from commodel.cli._progress import waiting
from commodel.errors import UserError


@click.command()
@click.argument("several", metavar="FIRST NEXT…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The workbook (.xlsx): a table and charts.")
def history(several: tuple[Path, ...], out: Path) -> None:
    """Draw how the network changed over several results, from the oldest on.

    Each is laid beside the first, as of `commodel diff`; the workbook has the average ratio of the points of each
    operation, and that of every parameter.
    """
    if len(several) < 2:
        raise UserError(f"found {len(several)} of them, wanted two or more to lay beside each other")
    if out.suffix != ".xlsx":
        raise UserError(f"--out: found {out.name}, wanted a name that ends with .xlsx")
    from commodel.compare.snapshot import read
    from commodel.report.difference import write_history

    with waiting("comparing"):
        write_history([read(path) for path in several], out)
    click.echo(out)
