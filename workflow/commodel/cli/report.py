"""commodel report: the workbook and the page, or whether a workbook is what the results say."""

from pathlib import Path

import click

from commodel.cli._progress import waiting
from commodel.errors import UserError


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the report.  [default: reports/<experiment>]")
@click.option("--verify", "workbook", type=click.Path(path_type=Path), help="A workbook to lay beside the results.")
@click.option("--anonymous", is_flag=True, help="Numbers instead of the names of machines.")
def report(folder: Path | None, out: Path | None, workbook: Path | None, anonymous: bool) -> None:
    """Write the Excel workbook and the HTML page from a comparison.

    With --verify FILE.xlsx, say for every file that the workbook was made from, and for every
    sheet, whether it is the same as in the results; the exit code is 1 where anything is not.
    """
    if workbook:
        _verify(workbook, folder)
        return
    if folder is None:
        raise UserError("found neither --in nor --verify, wanted one of the two")
    out = out or Path("reports") / folder.absolute().name
    with waiting("writing the report"):
        from commodel.report import stored, write_html, write_xlsx  # Bokeh takes a second to load: not for --help

        made = stored(folder, anonymous, beside=out)
        out.mkdir(parents=True, exist_ok=True)
        write_xlsx(made, out / f"{made.experiment}.xlsx")
        write_html(made, out / "index.html")
    click.echo(out / f"{made.experiment}.xlsx")
    click.echo(out / "index.html")


def _verify(workbook: Path, folder: Path | None) -> None:
    from commodel.report.verify import SAME, SKIPPED, verify

    results = folder or Path("results") / workbook.stem
    if folder is None and workbook.exists() and not results.exists():
        raise UserError(f"found no folder {results}, wanted --in FOLDER with the results behind it", file=workbook)
    findings, remark = verify(workbook, results)
    for finding in findings:
        click.echo(f"{finding.verdict:<8} {finding.name}" + (f": {finding.detail}" if finding.detail else ""))
    if remark:
        click.echo(remark)
    if any(finding.verdict not in (SAME, SKIPPED) for finding in findings):
        raise SystemExit(1)
