"""Reports: one `Report` value built from the comparison, rendered as a workbook and as a page.
Nothing is measured or fitted here."""

from collections.abc import Sequence
from pathlib import Path

from commodel.reports.elements import Chart, Report
from commodel.reports.html.page import list_specifications, make_chart_picture, write_html
from commodel.reports.pictures.render import draw_early, list_drawings, write_pictures
from commodel.reports.report_builder import build_report
from commodel.reports.report_inputs import ReportInputs
from commodel.reports.stored_results import build_stored_report, list_anomalies
from commodel.reports.xlsx.workbook import write_xlsx

__all__ = [
    "ReportInputs",
    "build_report",
    "build_stored_report",
    "draw_charts_early",
    "list_anomalies",
    "write_html",
    "write_pictures",
    "write_report",
    "write_xlsx",
]


def draw_charts_early(charts: Sequence[Chart]) -> None:
    """Let another process draw charts of the page, while the rest of the report is built."""
    draw_early([("svg", make_chart_picture(chart, "").specification) for chart in charts])


def write_report(
    report: Report, out: Path | None, pictures: Path | None = None, every_chart: bool = False
) -> list[Path]:
    """Write the workbook and the page into a folder, and the pictures into another one; None omits
    either. Return the paths of all files written."""
    drawings = (
        [("svg", specification) for specification in list_specifications(report)] if out else []
    )
    drawings += list_drawings(report, every_chart) if pictures else []
    draw_early(drawings)  # while this process writes the workbook
    written: list[Path] = []
    if out:
        out.mkdir(parents=True, exist_ok=True)
        written += [*write_xlsx(report, out / f"{report.experiment}.xlsx"), out / "index.html"]
        write_html(report, out / "index.html")
    if pictures:
        written += write_pictures(report, pictures, every_chart)
    return written
