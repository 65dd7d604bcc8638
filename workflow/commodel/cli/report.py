"""commodel report: the workbook and the page."""

from pathlib import Path

import click

from commodel.plan import load_plan
from commodel.report import write_report


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), required=True, help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the report.")
def report(folder: Path, out: Path) -> None:
    """Write the Excel workbook and the HTML page from a comparison."""
    for path in write_report(load_plan(folder / "plan.json"), folder, out):
        click.echo(path)
