"""Read workbooks and pages."""

import re
import zipfile
from html.parser import HTMLParser

import openpyxl

from commodel.reports import ReportInputs, build_report, write_xlsx


def make_report(comparison, parameter_sets=(), **outputs):
    """Return the report of a comparison and of other outputs of the stages."""
    return build_report(ReportInputs(comparison, parameter_sets=parameter_sets, **outputs))


def written(report, path):
    write_xlsx(report, path)
    return openpyxl.load_workbook(path)


def rows_of(sheet, name):
    """Return header and rows of an Excel table."""
    area = sheet[sheet.tables[name].ref]
    return [cell.value for cell in area[0]], [[cell.value for cell in row] for row in area[1:]]


def parts(path, pattern):
    with zipfile.ZipFile(path) as archive:
        return {
            name: archive.read(name).decode()
            for name in archive.namelist()
            if re.search(pattern, name)
        }


VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A parsed page: checks that tags are balanced, and keeps attributes and the text of every
    table cell; `numbers` are the tables below charts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.links, self.ids, self.text, self.cell = (
            [],
            [],
            [],
            [],
            [],
            None,
        )
        self.numbers, self.table = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attributes:
            assert not key.startswith("on"), "no inline handlers"
            if key in ("src", "href"):
                self.links.append(value)
            if key == "id":
                self.ids.append(value)
        if tag == "table":
            below = (dict(attributes).get("class") or "") == "numbers"
            (self.numbers if below else self.tables).append([])
            self.table = (self.numbers if below else self.tables)[-1]
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.table[-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)
