"""Reports: one `Report` value built from the comparison, rendered as a workbook and as a page. Nothing is
measured or fitted here."""

from commodel.report.content import build
from commodel.report.html.page import write_html
from commodel.report.pictures.files import write_pictures
from commodel.report.stored import odd_conditions, stored
from commodel.report.xlsx.workbook import write_xlsx

__all__ = ["build", "odd_conditions", "stored", "write_html", "write_pictures", "write_xlsx"]
