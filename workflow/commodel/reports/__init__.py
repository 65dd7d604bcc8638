"""Reports: one `Report` value built from the comparison, rendered as a workbook and as a page. Nothing is
measured or fitted here."""

from pathlib import Path

from commodel.reports.elements import Report
from commodel.reports.html.page import write_html
from commodel.reports.pictures.render import write_pictures
from commodel.reports.report_builder import build_report
from commodel.reports.report_inputs import ReportInputs
from commodel.reports.stored_results import build_stored_report, list_anomalies
from commodel.reports.xlsx.workbook import write_xlsx

__all__ = [
    "ReportInputs",
    "build_report",
    "build_stored_report",
    "list_anomalies",
    "write_html",
    "write_pictures",
    "write_report",
    "write_xlsx",
]


def write_report(report: Report, out: Path) -> list[Path]:
    """Write the workbook and the page into a folder and return the paths of all files written."""
    out.mkdir(parents=True, exist_ok=True)
    written = [*write_xlsx(report, out / f"{report.experiment}.xlsx"), out / "index.html"]
    write_html(report, out / "index.html")
    return written
