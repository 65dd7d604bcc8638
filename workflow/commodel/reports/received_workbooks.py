"""Workbooks from untrusted sources (`open_received`): formulas are not computed, links are not followed, and the
sizes of the parts are limited.

`read_changed_sets` returns the parameter sets of a report's workbook, with the changes that a reader made on its
calculators: a factor, or a value in place of the fitted one. A workbook has no curves and draws, so predictions by
these sets have no intervals."""

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import IO

from commodel.errors import UserError, make_printable, suggest_name
from commodel.files.parameter_sets import format_parameters, parse_parameters
from commodel.files.safe_reading import open_bounded
from commodel.files.yaml import Document, parse_yaml
from commodel.models.families import find_family, find_unit, list_family_names
from commodel.models.keys import make_key
from commodel.models.parameter_sets import BY_HAND_KEY, parse_set
from commodel.parameters import Estimate, ParameterSet
from commodel.reports.xlsx.calculator.cells import find_shown_unit
from commodel.reports.xlsx.calculator.sheet import CALCULATOR_SHEET, PLATFORM_HEADER, SAMPLES_TITLE, VALUE_HEADERS

MAX_PARTS = 1000
MAX_PART_BYTES = {"xl/worksheets/": 600 << 20, "": 64 << 20}  # of one uncompressed part, by the prefix of its name
MAX_TOTAL_BYTES = {"xl/worksheets/": 2048 << 20, "": 256 << 20}  # of all parts with the prefix
MAX_STRINGS = 1_000_000  # shared by cells; openpyxl stores all of them in memory
MAX_COMPRESSED_BYTES = 1024 << 20
CHUNK_BYTES = 1 << 20
# openpyxl's parser expands entities, which no workbook needs. Zero bytes are removed before searching, for UTF-16.
STRING_ELEMENT = re.compile(rb"<(?:[\w.-]+:)?si[\s/>]")
DOCTYPE_OR_ENTITY = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)
OTHER_ENCODING = re.compile(rb"""^\W{0,4}<\?xml[^>]*encoding\s*=\s*["'](?!utf-8["'])""", re.IGNORECASE)


@contextmanager
def open_received(path: Path) -> Iterator:
    """Yield the open workbook, to be read row by row; raise UserError with one line if it cannot be read."""
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
    """Refuse an archive with too many or too large parts. The archive states the sizes, and zipfile unpacks no part
    beyond its stated size."""
    with zipfile.ZipFile(stream) as archive:
        parts = archive.infolist()
        if len(parts) > MAX_PARTS:
            raise UserError(f"found {len(parts)} parts in it, wanted a workbook, at most {MAX_PARTS}", file=path)
        total, strings = dict.fromkeys(MAX_TOTAL_BYTES, 0), 0
        for part in parts:
            kind = next(prefix for prefix in MAX_PART_BYTES if part.filename.startswith(prefix))
            total[kind] += part.file_size
            for size, limit, subject in (
                (part.file_size, MAX_PART_BYTES[kind], "a part"),
                (total[kind], MAX_TOTAL_BYTES[kind], "parts"),
            ):
                if size > limit:
                    message = f"found {subject} of {size >> 20} MiB in it, wanted at most {limit >> 20} MiB"
                    raise UserError(message, file=path)
        for part in parts:
            with archive.open(part) as content:
                strings += _count_strings(content, path)
            if strings > MAX_STRINGS:
                raise UserError(f"found more than {MAX_STRINGS:,} strings in it, wanted a report", file=path)


def _count_strings(stream: IO[bytes], path: Path) -> int:
    """Return the number of shared strings in a part; refuse one with entities."""
    overlap, is_first, count = b"", True, 0
    while chunk := stream.read(CHUNK_BYTES):
        text = overlap + chunk.replace(b"\0", b"")
        count += len(STRING_ELEMENT.findall(text))
        if DOCTYPE_OR_ENTITY.search(text) or (is_first and OTHER_ENCODING.search(text[:500])):
            raise UserError(
                "found a document type or an encoding other than UTF-8 in it, wanted a plain workbook", file=path
            )
        overlap, is_first = text[-16:], False
    return count


def read_sheet_rows(sheet, max_rows: int, max_columns: int | None, path: Path) -> Iterator[tuple]:
    """Yield the values of a sheet, a tuple a row, up to these bounds, because the size that a sheet states may be
    wrong. Formulas are returned as `Formula`."""
    try:
        sheet.reset_dimensions()
        for row in sheet.iter_rows(max_row=max_rows, max_col=max_columns):
            yield tuple(Formula(cell.value) if cell.data_type == "f" else cell.value for cell in row)
    except Exception as error:
        raise _refuse_workbook(path, error) from None


class Formula(str):
    """The text of a formula. It differs from a plain text with the same characters."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


SETS_SHEET = "Sets"
MAX_SHEET_ROWS, MAX_CALCULATOR_COLUMNS = 20_000, 12


def list_set_lines(sets: tuple[ParameterSet, ...]) -> Iterator[tuple[int, str]]:
    """Yield the number of each set with the lines of its file."""
    for number, parameters in enumerate(sets, 1):
        small_set = replace(parameters, curves=(), draws={}, provenance={})
        yield from ((number, line) for line in format_parameters(small_set).splitlines())


def read_changed_sets(path: Path, platform: str = "") -> list[ParameterSet]:
    """Return the parameter sets of `platform`; empty is accepted if the workbook has a single platform."""
    with open_received(path) as book:
        if SETS_SHEET not in book.sheetnames:
            raise UserError("found no parameter sets in it, wanted a report's workbook", file=path)
        sets = [parse_set(document) for document in _read_documents(book, path)]
        platforms = sorted({parameters.platform for parameters in sets})
        if platform and platform not in platforms:
            raise UserError(f"no platform '{platform}'; {suggest_name(platform, platforms)}", file=path)
        if not platform and len(platforms) > 1:
            raise UserError(f"has {', '.join(platforms)}: name one of them, as {path.name}#{platforms[0]}", file=path)
        chosen = [entry for entry in sets if entry.platform == (platform or entry.platform) and entry.values]
        if not chosen:
            raise UserError("found no values in it", file=path)
        changes: dict[tuple[str, str], Change] = {}
        for name in book.sheetnames:
            if name.startswith(CALCULATOR_SHEET):
                changes |= _read_changes(
                    list(read_sheet_rows(book[name], MAX_SHEET_ROWS, MAX_CALCULATOR_COLUMNS, path)), name, chosen, path
                )
    return [_apply_changes(parameters, changes) for parameters in chosen]


def read_stored_sets(book, path: Path) -> list[ParameterSet]:
    """Return the parameter sets of all platforms, as their files have them."""
    return [parse_parameters(document) for document in _read_documents(book, path)]


def _read_documents(book, path: Path) -> Iterator[Document]:
    texts: dict[int, list[str]] = {}
    for row in read_sheet_rows(book[SETS_SHEET], MAX_SHEET_ROWS, 2, path) if SETS_SHEET in book.sheetnames else ():
        if len(row) > 1 and isinstance(row[0], int) and row[1] is not None:
            texts.setdefault(row[0], []).append(str(row[1]))
    for number, text in texts.items():
        yield parse_yaml("\n".join(text), f"{path}!{SETS_SHEET}, set {number}")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a value, in the unit that the sheet shows."""

    value: float | None = None
    factor: float = 1.0


def _read_changes(
    cells: list[tuple], sheet: str, sets: list[ParameterSet], path: Path
) -> dict[tuple[str, str], Change]:
    """Return the reader's changes by model and value; none if the sheet belongs to another platform."""
    header_index = next(
        (number for number, row in enumerate(cells) if row[:2] == VALUE_HEADERS[:2] and len(row) > 8), None
    )
    if header_index is None or cells[header_index][8] != f"{PLATFORM_HEADER}{sets[0].platform}":
        return {}
    titles = {find_family(name).title: name for name in list_family_names()}
    changes: dict[tuple[str, str], Change] = {}
    sampled_function: tuple[str, str] | None = None
    levels: list[float] = []
    for number, row in enumerate(cells[header_index + 1 :], header_index + 2):
        if row and row[0] in titles and isinstance(row[1], str):
            name = titles[row[0]]
            sampled_function = (name, row[1].removesuffix(SAMPLES_TITLE)) if row[1].endswith(SAMPLES_TITLE) else None
            levels = []
            if sampled_function is None and len(row) > 5:
                factor, value = _parse_number(row, 4, sheet, number, path), _parse_number(row, 5, sheet, number, path)
                if value is not None or factor not in (None, 1.0):
                    changes[name, row[1]] = Change(value, 1.0 if factor is None else factor)
        elif sampled_function and not levels:
            levels = [level for level in row[2:] if isinstance(level, int | float)]
        elif sampled_function and len(row) > 1 and isinstance(row[1], int):
            for column, level in enumerate(levels, 2):
                sample = make_key(sampled_function[1], f"{row[1]}x{int(level)}")
                changes[sampled_function[0], sample] = Change(_parse_number(row, column, sheet, number, path))
        else:
            sampled_function = None
    return changes


def _parse_number(row: tuple, column: int, sheet: str, number: int, path: Path) -> float | None:
    value = row[column] if column < len(row) else None
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        cell = f"{sheet}!{chr(ord('A') + column)}{number}"
        raise UserError(f"found {make_printable(value, 40)!r}, wanted a number", file=path, key=cell)
    return float(value)


def _apply_changes(parameters: ParameterSet, changes: dict[tuple[str, str], Change]) -> ParameterSet:
    entry, values, notes = find_family(parameters.family), dict(parameters.values), []
    for (name, value_name), change in changes.items():
        if name != parameters.family or value_name not in values:
            continue
        original = values[value_name]
        factor = find_shown_unit(find_unit(entry, value_name, parameters.forms))[1]
        value = original.value * change.factor if change.value is None else change.value / factor
        if abs(value - original.value) > 1e-9 * abs(original.value):  # a sheet shows rounded numbers
            values[value_name] = Estimate(value, original.unit, value, value, note="changed in the workbook")
            notes.append(f"{value_name}={value:.6g} {original.unit} in place of {original.value:.6g}")
    if not notes:
        return parameters
    return replace(parameters, values=values, provenance={**parameters.provenance, BY_HAND_KEY: ", ".join(notes)})
