"""commodel report: the workbook and the page, pictures, or whether a workbook is what the results say."""

from pathlib import Path

import click

from commodel.cli._options import PATH
from commodel.cli._output import show_waiting
from commodel.errors import UserError


@click.command()
@click.option("--in", "folder", type=PATH, help="results/<experiment>.")
@click.option("--out", type=PATH, help="Folder for the report.  [default: reports/<experiment>]")
@click.option("--verify", "workbook", type=PATH, help="A workbook to lay beside the results.")
@click.option("--anonymous", is_flag=True, help="Numbers instead of the names of machines.")
@click.option("--samples", is_flag=True, help="Every single sample in the workbook, on a sheet of its own.")
@click.option("--pictures", type=PATH, help="Folder for pictures of the first screen.")
@click.option("--every-chart", is_flag=True, help="With --pictures: the page's other charts as well.")
def report(
    folder: Path | None,
    out: Path | None,
    workbook: Path | None,
    anonymous: bool,
    samples: bool,
    pictures: Path | None,
    every_chart: bool,
) -> None:
    """Write the Excel workbook and the HTML page from a comparison.

    With --pictures FOLDER, write the charts for slides instead, each as SVG and PNG: what to
    use, whom to trust, predicted over measured and time over size, of each platform. With
    --out as well, write both.

    With --verify FILE.xlsx, say for every file that the workbook was made from, and for every
    sheet, whether it is the same as in the results; the exit code is 1 where anything is not.
    """
    if workbook:
        _verify(workbook, folder)
        return
    if folder is None:
        raise UserError("found neither --in nor --verify, wanted one of the two")
    if every_chart and not pictures:
        raise UserError("found --every-chart without --pictures, wanted --pictures FOLDER with it")
    if out is None and pictures is None:
        out = Path("reports") / folder.absolute().name
    written = []
    with show_waiting("writing the report"):
        from commodel.reports import stored, write_pictures, write_report  # slow to load: not for --help
        from commodel.reports.pictures.render import find_obstacle

        made = stored(folder, anonymous, beside=out, samples=samples)
        if out:
            written = write_report(made, out)
        if pictures:
            written += write_pictures(made, pictures, every_chart)
    for path in written:
        click.echo(path)
    if out and (obstacle := find_obstacle()):
        click.echo(f"static pictures were not drawn: {obstacle}", err=True)


def _verify(workbook: Path, folder: Path | None) -> None:
    from commodel.reports.verify import SAME, SKIPPED, verify

    results = folder or Path("results") / workbook.stem
    if folder is None and workbook.exists() and not results.exists():
        raise UserError(f"found no folder {results}, wanted --in FOLDER with the results behind it", file=workbook)
    with show_waiting("reading the workbook"):
        findings, remark = verify(workbook, results)
    for finding in findings:
        click.echo(f"{finding.verdict:<8} {finding.name}" + (f": {finding.detail}" if finding.detail else ""))
    if remark:
        click.echo(remark)
    if any(finding.verdict not in (SAME, SKIPPED) for finding in findings):
        raise SystemExit(1)
