"""Verification of a workbook against its results: the digests of the files from which it was made, and every cell of
every sheet, which may have been edited. The entry point is `verify_workbook`."""

import filecmp
import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from operator import itemgetter
from pathlib import Path

from openpyxl.utils import get_column_letter

from commodel.errors import UserError, make_printable
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath
from commodel.plan.planning import load_plan
from commodel.reports.elements import select_columns
from commodel.reports.received_workbooks import Formula, open_received, read_sheet_rows
from commodel.reports.sections.provenance_tables import (
    PROVENANCE_SHEET,
)
from commodel.reports.stored_results import ANONYMOUS_KEY, SAMPLES_KEY, build_stored_report
from commodel.reports.xlsx.calculator.sheet import CALCULATOR_SHEET
from commodel.reports.xlsx.workbook import write_xlsx
from commodel.results.provenance import compute_code_digest, compute_digests

SAME, DIFFERS, MISSING, SKIPPED = "same", "differs", "missing", "skipped"
MAX_PROVENANCE_ROWS, MAX_PROVENANCE_COLUMNS = 100_000, 40
MARGIN_CELLS = 200  # rows and columns beyond the expected cells that are searched for added values
COMPARISON_SHEET = "Comparison"
OTHER_VERSION = "written by another version of commodel"
NOT_COMPARED = (
    "The file differs in bytes from a report of the results; its charts, formats and links were not compared."
)


@dataclass(frozen=True)
class Finding:
    verdict: str
    name: str
    detail: str = ""


def verify_workbook(path: Path, folder: AnyPath) -> tuple[list[Finding], str]:
    """Return the findings (same, differs, missing or skipped), and a remark on the parts that were not compared."""
    with open_received(path) as book:
        files = read_provenance_table(book, path, "Files")
        provenance = read_provenance_table(book, path, "Tools")  # versions of programs, and options of the report
        if not files:
            raise UserError("found no digests in it, wanted a report's workbook", file=path)
        findings = list(compare_files(files, folder))
        try:
            report = build_stored_report(
                folder, anonymous=ANONYMOUS_KEY in provenance, tools=provenance, samples=SAMPLES_KEY in provenance
            )
        except UserError as error:
            return [*findings, Finding(SKIPPED, "sheets", error.message)], ""
        with tempfile.TemporaryDirectory() as folder_name:
            wanted = Path(folder_name) / "wanted.xlsx"
            write_xlsx(report, wanted)
            if filecmp.cmp(wanted, path, shallow=False):
                return [*findings, *(Finding(SAME, f"sheet {name}") for name in book.sheetnames)], ""
            same_version = provenance.get("code_digest") == compute_code_digest()
            with open_received(wanted) as wanted_book:
                findings += compare_sheets(book, wanted_book, path, same_version)
            return findings, NOT_COMPARED if same_version else f"The workbook was {OTHER_VERSION}."


def read_provenance_table(book, path: Path, name: str) -> dict[str, str]:
    """Return two adjacent columns of the provenance sheet as a mapping, from their headers down to a blank."""
    if PROVENANCE_SHEET not in book.sheetnames:
        return {}
    headers = tuple(column.header for column in select_columns(name))
    rows = read_sheet_rows(book[PROVENANCE_SHEET], MAX_PROVENANCE_ROWS, MAX_PROVENANCE_COLUMNS, path)
    next((row for row in rows if row[:2] == headers), None)
    return {str(row[0]): str(row[1]) for row in takewhile(itemgetter(0), rows)}


def compare_files(recorded: Mapping[str, str], folder: AnyPath) -> Iterator[Finding]:
    """Yield a finding for each file by comparing digests. No file is opened by a name from the workbook, which may be
    any path."""
    digests = compute_digests(load_plan(Results.of(folder).plan), folder)
    for name in dict.fromkeys([*digests, *recorded]):
        if name not in digests:
            yield Finding(MISSING, make_printable(name, 200), "not in the results")
        elif name not in recorded:
            yield Finding(MISSING, name, "not in the workbook")
        else:
            yield Finding(SAME if recorded[name] == digests[name] else DIFFERS, name)


def compare_sheets(book, wanted, path: Path, same_version: bool) -> Iterator[Finding]:
    """Yield a finding for each sheet. If another version of the code wrote the workbook, only the comparison is
    checked, by the headers of its columns: other sheets may have another layout."""
    for name in wanted.sheetnames:
        label = f"sheet {name}"
        if name not in book.sheetnames:
            yield Finding(MISSING, label, "not in the workbook")
            continue
        if not same_version and not name.startswith(COMPARISON_SHEET):
            yield Finding(SKIPPED, label, OTHER_VERSION)
            continue
        # This workbook was written by commodel just now, so it needs no column limit.
        expected = list(read_sheet_rows(wanted[name], 1 << 20, None, path))
        width = max((len(row) for row in expected), default=0)
        found_rows = list(read_sheet_rows(book[name], len(expected) + MARGIN_CELLS, width + MARGIN_CELLS, path))
        if not same_version:
            expected, found_rows = sort_by_header(expected), sort_by_header(found_rows)
        different = list(find_differences(expected, found_rows))
        formulas = any(isinstance(value, Formula) for cell in different for value in cell)
        if different and name.startswith(CALCULATOR_SHEET) and not formulas:
            yield Finding(SAME, label, f"formulas unchanged; input cells edited: {len(different)}")
        else:
            yield Finding(DIFFERS, label, describe_differences(different)) if different else Finding(SAME, label)
    for name in book.sheetnames:
        if name not in wanted.sheetnames:
            yield Finding(DIFFERS, f"sheet {make_printable(name, 40)}", "not a sheet of the report")


def find_differences(expected: list[tuple], found_rows: list[tuple]) -> Iterator[tuple[int, int, object, object]]:
    """Yield (row, column, found, wanted) of every cell that differs."""
    for row, (expected_row, found_row) in enumerate(zip_longest(expected, found_rows, fillvalue=())):
        if expected_row != found_row:
            for column, (wanted, value) in enumerate(zip_longest(expected_row, found_row)):
                if not are_equal(wanted, value):
                    yield row, column, value, wanted


def are_equal(wanted: object, value: object) -> bool:
    """Return whether two values are equal. The last digit of a number may differ, and a blank equals an empty text,
    because programs that save a workbook may change both."""
    if isinstance(wanted, int | float) and isinstance(value, int | float):
        return math.isclose(wanted, value, rel_tol=1e-12)
    return wanted == value or (wanted in (None, "") and value in (None, ""))


def describe_differences(different: list[tuple[int, int, object, object]]) -> str:
    row, column, value, wanted = different[0]
    cell = f"{get_column_letter(column + 1)}{row + 1}"
    text = f"found {format_cell(value)}, the results give {format_cell(wanted)}, in {cell}"
    return text + (f" (and {len(different) - 1} more)" if len(different) > 1 else "")


def format_cell(value: object) -> str:
    if value is None:
        return "nothing"
    return f"{'the formula ' if isinstance(value, Formula) else ''}{make_printable(value, 60)!r}"


def sort_by_header(table: list[tuple]) -> list[tuple]:
    """Return the rows from the headers on, with columns in the order of their names; all rows if there are no
    headers."""
    at = next((index for index, row in enumerate(table) if "point" in row and {"model", "family"} & set(row)), None)
    if at is None:
        return table
    order = sorted((str(name), index) for index, name in enumerate(table[at]) if name)
    padded = [row + (None,) * (len(table[at]) - len(row)) for row in table[at:]]
    return [tuple(row[index] for _, index in order) for row in padded]
