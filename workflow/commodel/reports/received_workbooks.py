"""Workbooks from untrusted sources (`open_received`): formulas are not computed, links are not
followed, and the sizes of the parts are limited.

`read_platform_sets` returns the parameter sets of a report's workbook, from the tables of its sheet
Models. A workbook has no curves and draws, so predictions by these sets have no intervals."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import IO, Any

from commodel.errors import UserError, make_printable, suggest_name
from commodel.files.parameter_sets import parse_parameters
from commodel.files.safe_reading import open_bounded
from commodel.files.yaml import Document
from commodel.models.keys import make_key
from commodel.models.parameter_sets import parse_set
from commodel.parameters import ParameterSet
from commodel.reports.elements import format_simulated, select_columns
from commodel.reports.sections.evidence import FORMS_KEYS, SHOWN_UNITS

MAX_PARTS = 1000
# of one uncompressed part, by the prefix of its name
MAX_PART_BYTES = {"xl/worksheets/": 600 << 20, "": 64 << 20}
MAX_TOTAL_BYTES = {"xl/worksheets/": 2048 << 20, "": 256 << 20}  # of all parts with the prefix
MAX_STRINGS = 1_000_000  # shared by cells; openpyxl stores all of them in memory
MAX_COMPRESSED_BYTES = 1024 << 20
CHUNK_BYTES = 1 << 20
# openpyxl's parser expands entities, which no workbook needs. Zero bytes are removed before
# searching, for UTF-16.
STRING_ELEMENT = re.compile(rb"<(?:[\w.-]+:)?si[\s/>]")
DOCTYPE_OR_ENTITY = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
OTHER_ENCODING = re.compile(
    rb"""^\W{0,4}<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE
)


@contextmanager
def open_received(path: Path) -> Iterator:
    """Yield the open workbook, to be read row by row; raise UserError with one line if it cannot be
    read."""
    import openpyxl  # here, because writers of workbooks need none of it

    with open_bounded(path, MAX_COMPRESSED_BYTES, "a workbook") as stream:
        try:
            _check_archive(stream, path)
            book = openpyxl.load_workbook(stream, read_only=True, keep_links=False)
        except UserError:
            raise
        except Exception as error:  # an untrusted file can break a parser in any way
            raise _refuse_workbook(path, error) from None
        try:
            yield book
        finally:
            book.close()


def _refuse_workbook(path: Path, error: Exception) -> UserError:
    words = make_printable(error, 150) if str(error) else type(error).__name__
    return UserError(f"cannot be read as a workbook (.xlsx): {words}", file=path)


def _check_archive(stream: IO[bytes], path: Path) -> None:
    """Refuse an archive with too many or too large parts. The archive states the sizes, and zipfile
    unpacks no part beyond its stated size."""
    with zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
        if len(parts) > MAX_PARTS:
            raise UserError(
                f"found {len(parts)} parts in it, wanted a workbook, at most {MAX_PARTS}", file=path
            )
        total = dict.fromkeys(MAX_TOTAL_BYTES, 0)
        strings = 0
        for part in parts:
            kind = next(prefix for prefix in MAX_PART_BYTES if part.filename.startswith(prefix))
            total[kind] += part.file_size
            for size, limit, subject in (
                (part.file_size, MAX_PART_BYTES[kind], "a part"),
                (total[kind], MAX_TOTAL_BYTES[kind], "parts"),
            ):
                if size > limit:
                    message = (
                        f"found {subject} of {size >> 20} MiB in it, wanted at most {limit >> 20} "
                        "MiB"
                    )
                    raise UserError(message, file=path)
        for part in parts:
            with archive.open(part) as content:
                strings += _count_strings(content, path)
            if strings > MAX_STRINGS:
                raise UserError(
                    f"found more than {MAX_STRINGS:,} strings in it, wanted a report", file=path
                )


def _count_strings(stream: IO[bytes], path: Path) -> int:
    """Return the number of shared strings in a part; refuse one with entities."""
    overlap = b""
    is_first = True
    count = 0
    while chunk := stream.read(CHUNK_BYTES):
        text = overlap + chunk.replace(b"\0", b"")
        count += len(STRING_ELEMENT.findall(text))
        if DOCTYPE_OR_ENTITY.search(text) or (is_first and OTHER_ENCODING.search(text[:500])):
            raise UserError(
                "found a document type or an encoding other than UTF-8 in it, wanted a plain workbook",
                file=path,
            )
        overlap = text[-16:]
        is_first = False
    return count


def read_sheet_rows(sheet, max_rows: int, max_columns: int | None, path: Path) -> Iterator[tuple]:
    """Yield the values of a sheet, a tuple a row, up to these bounds, because the size that a sheet
    states may be wrong. Formulas are returned as `Formula`."""
    try:
        sheet.reset_dimensions()
        for row in sheet.iter_rows(max_row=max_rows, max_col=max_columns):
            yield tuple(
                Formula(cell.value) if cell.data_type == "f" else cell.value for cell in row
            )
    except Exception as error:
        raise _refuse_workbook(path, error) from None


class Formula(str):
    """The text of a formula. It differs from a plain text with the same characters."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


SETS_SHEET = "Models"
MAX_SHEET_ROWS, MAX_SHEET_COLUMNS = 250_000, 16
SI_UNITS = {shown: (unit, factor) for unit, (shown, factor) in reversed(SHOWN_UNITS.items())}


def read_platform_sets(path: Path, platform: str = "") -> list[ParameterSet]:
    """Return the parameter sets of `platform`; empty is accepted if the workbook has a single
    platform."""
    with open_received(path) as book:
        sets = [parse_set(document) for document in _read_documents(book, path)]
    if not sets:
        raise UserError("found no parameter sets in it, wanted a report's workbook", file=path)
    platforms = sorted({parameters.platform for parameters in sets})
    if platform and platform not in platforms:
        raise UserError(f"no platform '{platform}'; {suggest_name(platform, platforms)}", file=path)
    if not platform and len(platforms) > 1:
        raise UserError(
            f"has {', '.join(platforms)}: name one of them, as {path.name}#{platforms[0]}",
            file=path,
        )
    chosen = [
        fitted
        for fitted in sets
        if fitted.platform == (platform or fitted.platform) and fitted.values
    ]
    if not chosen:
        raise UserError("found no values in it", file=path)
    return chosen


def read_stored_sets(book, path: Path) -> list[ParameterSet]:
    """Return the parameter sets of all platforms, as their files have them."""
    return [parse_parameters(document) for document in _read_documents(book, path)]


def _read_documents(book, path: Path) -> Iterator[Document]:
    """Yield a document for each row of the table Sources, with its values from the other tables."""
    if SETS_SHEET not in book.sheetnames:
        return
    rows = list(read_sheet_rows(book[SETS_SHEET], MAX_SHEET_ROWS, MAX_SHEET_COLUMNS, path))
    values: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    missing: dict[tuple[str, str], dict[str, str]] = {}
    for name in ("Parameters", "Sampled functions"):
        for at, row in _read_table(rows, name, path):
            owner = _read_owner(row)
            if "at" in row:
                sample = str(row["at"]) + ("" if row["level"] is None else f"x{row['level']}")
                row["name"] = make_key(str(row["name"]), sample)
            if row["value"] == "n/a":
                missing.setdefault(owner, {})[str(row["name"])] = str(row["note"])
            else:
                values.setdefault(owner, {})[str(row["name"])] = _parse_estimate(row, at, path)
    for at, row in _read_table(rows, "Sources", path):
        owner = _read_owner(row)
        found = values.get(owner, {})
        if row["values"] != len(found):
            message = (
                f"found {len(found):,} values of {' on '.join(reversed(owner))}, wanted "
                f"{row['values']}"
            )
            raise UserError(message, file=path, key=SETS_SHEET)
        range_ends = [row["low"], row["high"]]
        data = {
            "model": str(row["model"]),
            "platform": str(row["platform"] or ""),
            "simulated": row["simulated"] == format_simulated(True),
            "source": str(row["source"] or ""),
            "bytes_range": None if None in range_ends else range_ends,
            **_parse_forms(row["forms"], at, path),
            "parameters": found,
            "missing": missing.get(owner, {}),
        }
        filled = {key: value for key, value in data.items() if value not in (None, {})}
        yield Document(Path(f"{path}!{SETS_SHEET}, row {at}"), filled, {})


def _read_owner(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["platform"] or ""), str(row["model"])


def _read_table(
    rows: Sequence[tuple], name: str, path: Path
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and values of each row of a table, by the keys of its columns; none if the table
    is empty."""
    headers = {
        column.header: column.key for column in select_columns(name, without=("definition",))
    }
    head = next((number for number, cells in enumerate(rows) if set(headers) <= set(cells)), None)
    if head is None:
        return
    columns = {key: rows[head].index(header) for header, key in headers.items()}
    for number, row in enumerate(rows[head + 1 :], head + 2):
        found = {key: row[column] if column < len(row) else None for key, column in columns.items()}
        if any(isinstance(value, Formula) for value in found.values()):
            raise UserError(
                "found a formula, wanted a value", file=path, key=f"{SETS_SHEET}, row {number}"
            )
        if found["model"] is None:
            return
        yield number, found


def _parse_estimate(row: Mapping[str, Any], at: int, path: Path) -> dict[str, Any]:
    unit, factor = SI_UNITS.get(str(row["unit"]), (str(row["unit"] or ""), 1.0))
    fields: dict[str, Any] = {
        "unit": unit,
        "known": row["known"] != "no",
        "note": str(row["note"] or ""),
    }
    for key in ("value", "low", "high"):
        value = row[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            key_text = f"{SETS_SHEET}, row {at}, {key}"
            raise UserError(
                f"found {make_printable(value, 40)!r}, wanted a number", file=path, key=key_text
            )
        fields[key] = value / factor
    return fields


def _parse_forms(text: object, at: int, path: Path) -> dict[str, Any]:
    """Return forms and settings of a set, which its row has as JSON."""
    try:
        forms = json.loads(str(text))
    except (ValueError, RecursionError):
        forms = None
    if not isinstance(forms, dict) or not set(forms) <= set(FORMS_KEYS):
        raise UserError(
            "found no forms and settings as JSON", file=path, key=f"{SETS_SHEET}, row {at}"
        )
    return forms
