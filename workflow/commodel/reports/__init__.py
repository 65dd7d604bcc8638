"""Reports: one `Report` value built from the comparison, rendered as a workbook and as a page. Nothing is
measured or fitted here."""

from commodel.reports.content import build
from commodel.reports.html.page import write_html
from commodel.reports.pictures.render import write_pictures
from commodel.reports.stored import odd_conditions, stored
from commodel.reports.xlsx.workbook import write_xlsx

__all__ = ["build", "odd_conditions", "stored", "write_html", "write_pictures", "write_xlsx"]
