"""The parameter sets of a report's workbook, with what a reader has changed on its calculators: a factor, or a value in
the place of the fitted one. Curves and draws stay with the results, so that prices have no intervals."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from commodel.errors import UserError, one_line, suggest
from commodel.files.sets import checked, parameters_text
from commodel.files.yaml import Document, parse
from commodel.models.byhand import BY_HAND
from commodel.models.families import family, family_names, unit
from commodel.models.keys import key
from commodel.models.sets import set_of
from commodel.parameters import Estimate, ParameterSet
from commodel.report.received import received, rows
from commodel.report.xlsx.calculator.known import shown
from commodel.report.xlsx.calculator.sheet import SHEET, TABLE, VALUES

SETS = "Sets"
MOST_ROWS, COLUMNS = 20_000, 12


def lines(sets: tuple[ParameterSet, ...]) -> Iterator[tuple[int, str]]:
    """The number of each set with the lines of its file."""
    for number, parameters in enumerate(sets, 1):
        bare = replace(parameters, curves=(), draws={}, provenance={})
        yield from ((number, line) for line in parameters_text(bare).splitlines())


def sets_of(path: Path, platform: str = "") -> list[ParameterSet]:
    """Those of one platform, which has to be said where the workbook has several."""
    with received(path) as book:
        if SETS not in book.sheetnames:
            raise UserError("found no parameter sets in it, wanted a report's workbook", file=path)
        sets = [set_of(document) for document in _documents(book, path)]
        platforms = sorted({parameters.platform for parameters in sets})
        if platform and platform not in platforms:
            raise UserError(f"no platform '{platform}'; {suggest(platform, platforms)}", file=path)
        if not platform and len(platforms) > 1:
            raise UserError(f"is of {', '.join(platforms)}: say which, as {path.name}#{platforms[0]}", file=path)
        chosen = [entry for entry in sets if entry.platform == (platform or entry.platform) and entry.values]
        if not chosen:
            raise UserError("found no values in it", file=path)
        changes: dict[tuple[str, str], Change] = {}
        for name in book.sheetnames:
            if name.startswith(SHEET):
                changes |= _changes(list(rows(book[name], MOST_ROWS, COLUMNS, path)), name, chosen, path)
    return [_changed(parameters, changes) for parameters in chosen]


def written_sets(book, path: Path) -> list[ParameterSet]:
    """Of all platforms, as their files say them."""
    return [checked(document) for document in _documents(book, path)]


def _documents(book, path: Path) -> Iterator[Document]:
    texts: dict[int, list[str]] = {}
    for row in rows(book[SETS], MOST_ROWS, 2, path) if SETS in book.sheetnames else ():
        if len(row) > 1 and isinstance(row[0], int) and row[1] is not None:
            texts.setdefault(row[0], []).append(str(row[1]))
    for number, text in texts.items():
        yield parse("\n".join(text), f"{path}!{SETS}, set {number}")


@dataclass(frozen=True, slots=True)
class Change:
    """In the unit that the sheet shows."""

    value: float | None = None
    factor: float = 1.0


def _changes(cells: list[tuple], sheet: str, sets: list[ParameterSet], path: Path) -> dict[tuple[str, str], Change]:
    """By family and value, if the sheet is that of the sets' platform."""
    platform = next((str(row[8]) for row in cells if row[:2] == VALUES[:2] and len(row) > 8), "")
    if platform != f"of {sets[0].platform}":
        return {}
    titles = {family(name).title: name for name in family_names()}
    changes: dict[tuple[str, str], Change] = {}
    start = next(number for number, row in enumerate(cells) if row[:2] == VALUES[:2])
    table: tuple[str, str] | None = None
    levels: list[float] = []
    for number, row in enumerate(cells[start + 1 :], start + 2):
        if row and row[0] in titles and isinstance(row[1], str):
            name = titles[row[0]]
            table = (name, row[1].removesuffix(TABLE)) if row[1].endswith(TABLE) else None
            levels = []
            if table is None and len(row) > 5:
                factor, value = _number(row, 4, sheet, number, path), _number(row, 5, sheet, number, path)
                if value is not None or factor not in (None, 1.0):
                    changes[name, row[1]] = Change(value, 1.0 if factor is None else factor)
        elif table and not levels:
            levels = [level for level in row[2:] if isinstance(level, int | float)]
        elif table and len(row) > 1 and isinstance(row[1], int):
            for column, level in enumerate(levels, 2):
                sample = key(table[1], f"{row[1]}x{int(level)}")
                changes[table[0], sample] = Change(_number(row, column, sheet, number, path))
        else:
            table = None
    return changes


def _number(row: tuple, column: int, sheet: str, number: int, path: Path) -> float | None:
    value = row[column] if column < len(row) else None
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        cell = f"{sheet}!{chr(ord('A') + column)}{number}"
        raise UserError(f"found {one_line(value, 40)!r}, wanted a number", file=path, key=cell)
    return float(value)


def _changed(parameters: ParameterSet, changes: dict[tuple[str, str], Change]) -> ParameterSet:
    entry, values, notes = family(parameters.family), dict(parameters.values), []
    for (name, called), change in changes.items():
        if name != parameters.family or called not in values:
            continue
        before = values[called]
        factor = shown(unit(entry, called, parameters.forms))[1]
        value = before.value * change.factor if change.value is None else change.value / factor
        if abs(value - before.value) > 1e-9 * abs(before.value):  # a table's numbers were rounded when they were shown
            values[called] = Estimate(value, before.unit, value, value, note="changed in the workbook")
            notes.append(f"{called}={value:.6g} {before.unit} in place of {before.value:.6g}")
    if not notes:
        return parameters
    return replace(parameters, values=values, provenance={**parameters.provenance, BY_HAND: ", ".join(notes)})
