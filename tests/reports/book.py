"""Workbooks read back in tests."""

import re
import zipfile

import openpyxl

from commodel.reports import write_xlsx


def written(report, path):
    write_xlsx(report, path)
    return openpyxl.load_workbook(path)


def rows_of(sheet, name):
    """Header and rows of one Excel table."""
    area = sheet[sheet.tables[name].ref]
    return [cell.value for cell in area[0]], [[cell.value for cell in row] for row in area[1:]]


def parts(path, pattern):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if re.search(pattern, name)}
