"""An experiment as a workbook that people edit, and back: a row for each combination of the matrix, with names to
choose from and a mark whether it is kept, and the rest of the file as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError

from commodel.errors import UserError, one_line
from commodel.files.typed import as_user_error
from commodel.files.yaml import parse
from commodel.files.yaml import read as read_yaml
from commodel.patterns.algorithms import choices
from commodel.patterns.operations import operations
from commodel.patterns.points import Setting, make_point
from commodel.plan.config import load_experiment
from commodel.plan.costs import costs
from commodel.plan.experiments import AXES, Experiment
from commodel.plan.matrix import every, size
from commodel.plan.matrixcosts import Costs
from commodel.plan.rows import combination
from commodel.plan.setting import setting_on
from commodel.records import Plan
from commodel.registry import discover

MATRIX, EXPERIMENT, NAMES = "Matrix", "Experiment", "Names"
PLATFORM, KEEP = "platform", "keep"
COLUMNS = (PLATFORM, *AXES, KEEP)
HEAD = 3  # rows above the first combination
MOST_ROWS = 100_000
MORE = 200  # rows below them that are ready for more
NUMBERS = ("ranks", "nodes", "ranks_per_node", "bytes", "waves")
NAMED_AXES = ("operation", "algorithm", "topology", "layout")


def writable(file: Path) -> bool:
    """Whether the matrix is small enough to be edited by hand."""
    return sum(map(size, load_experiment(file).matrix)) <= MOST_ROWS


def write(book, file: Path, root: Path, plan: Plan) -> None:
    """The sheets of an experiment's file in an open workbook."""
    experiment = load_experiment(file)
    rows = [
        {PLATFORM: block.platform or "", **combination, KEEP: "yes" if kept else "no"}
        for block in experiment.matrix
        for combination, kept in every(block)
    ]
    names = _names(root)
    for title in NAMED_AXES:  # the file's own first: a form only says how its arguments are written
        own = dict.fromkeys(str(row[title]) for row in rows if row.get(title))
        names[title] = list(dict.fromkeys([*own, *names[title]]))
    sheet, kept = _write_matrix(book, rows, names), [row[KEEP] == "yes" for row in rows]
    asked = [(row[PLATFORM] or experiment.platform, {name: row[name] for name in AXES if name in row}) for row in rows]
    known, others = costs(plan, [(*combination, keep) for combination, keep in zip(asked, kept, strict=True)], root)
    Costs(book, sheet, HEAD, COLUMNS).write(known, kept, others, MORE)
    without_matrix = {key: value for key, value in read_yaml(file).data.items() if key != "matrix"}
    sheet = book.add_worksheet(EXPERIMENT)
    sheet.write_string(0, 0, "The rest of the file. A line a row; the matrix is on the sheet before.")
    for number, line in enumerate(_text(without_matrix).splitlines(), 1):
        sheet.write_string(number, 0, line)
    sheet.set_column(0, 0, 120)
    hidden = book.add_worksheet(NAMES)
    for column, choices_of_column in enumerate(names.values()):
        hidden.write_column(0, column, choices_of_column)
    hidden.hide()


def _names(root: Path) -> dict[str, list[str]]:
    """What one may choose from, by column; forms with arguments say which."""
    algorithms = {spec for name in operations() for spec in choices(name)}
    platforms = sorted(path.stem for path in (root / "params" / "platforms").glob("*.yaml"))
    return {
        PLATFORM: platforms,
        "operation": list(operations()),
        "algorithm": sorted(algorithms),
        "topology": [entry.form for entry in discover("patterns.trees.topologies", "TOPOLOGY").values()],
        "layout": [entry.form for entry in discover("patterns.layouts", "LAYOUT").values()],
    }


def _write_matrix(book, rows: Sequence[Mapping[str, object]], names: Mapping[str, list[str]]):
    sheet = book.add_worksheet(MATRIX)
    bold, grey = book.add_format({"bold": True}), book.add_format({"font_color": "#9A9A9A", "font_strikeout": True})
    head, last = book.add_format({"bold": True, "bottom": 1}), HEAD + len(rows) + MORE
    kept = chr(ord("A") + COLUMNS.index(KEEP))
    operation = chr(ord("A") + COLUMNS.index("operation"))
    sheet.write_string(0, 0, "combinations kept", bold)
    area = "${0}${1}:${0}${2}"
    cells = [area.format(column, HEAD + 1, last) for column in (kept, operation)]
    count = f'=COUNTIFS({cells[0]},"<>no",{cells[1]},"<>")'
    sheet.write_formula(0, 2, count, bold, sum(row[KEEP] == "yes" for row in rows))
    sheet.write_string(
        1, 0, "Change a row, add one below, or keep it no more. An empty platform: that of the experiment."
    )
    for column, title in enumerate(COLUMNS):
        sheet.write_string(HEAD - 1, column, title, head)
        sheet.set_column(column, column, 18 if title in NAMED_AXES else 14)
        if names.get(title):
            place = chr(ord("A") + list(names).index(title))
            source = f"={NAMES}!${place}$1:${place}${len(names[title])}"
            choice = {"validate": "list", "source": source, "show_error": False}  # arguments are free: chain:4KiB
            sheet.data_validation(HEAD, column, last - 1, column, choice)
        elif title in NUMBERS:
            whole = {"validate": "integer", "criteria": ">=", "value": 0, "error_type": "warning"}
            sheet.data_validation(HEAD, column, last - 1, column, whole | {"error_message": "wanted a whole number"})
    sheet.data_validation(HEAD, len(COLUMNS) - 1, last - 1, len(COLUMNS) - 1, {"validate": "list", "source": YES_OR_NO})
    for number, row in enumerate(rows, HEAD):
        for column, title in enumerate(COLUMNS):
            value = row.get(title)
            if isinstance(value, str) and value:
                sheet.write_string(number, column, value)
            elif isinstance(value, int):
                sheet.write_number(number, column, value)
    rule = {"type": "formula", "criteria": f'=${kept}{HEAD + 1}="no"', "format": grey}
    sheet.conditional_format(HEAD, 0, last - 1, len(COLUMNS) - 1, rule)
    sheet.autofilter(HEAD - 1, 0, HEAD - 1 + len(rows), len(COLUMNS) - 1)
    sheet.freeze_panes(HEAD, 0)
    return sheet


YES_OR_NO = ["yes", "no"]


@dataclass(frozen=True)
class Edited:
    """The cells of the sheets of an edited workbook."""

    matrix: Iterable[tuple]
    experiment: Iterable[tuple]


def text_of(edited: Edited, file: Path, root: Path) -> str:
    """The experiment's file that an edited workbook means; a mistake in it names sheet and cell."""
    lines = ["" if not row or row[0] is None else str(row[0]) for row in edited.experiment]
    place = f"{file}!{EXPERIMENT}"  # a line of it is a row
    document = parse("\n".join(["", *lines[1:]]), place)
    if not isinstance(document.data, dict) or "matrix" in document.data:
        raise UserError("wanted the keys of an experiment but for its matrix", file=place)
    try:
        Experiment.model_validate(document.data)
    except ValidationError as errors:
        raise as_user_error(errors, document) from None
    keys = document.data
    rows = list(_rows(edited.matrix, file, root, str(keys.get("platform", ""))))
    if not rows:
        raise UserError("found no combination that is kept", file=file, key=MATRIX)
    return _text(keys) + "\n" + _text({"matrix": blocks(rows)})


def _rows(cells: Iterable[tuple], file: Path, root: Path, usual: str) -> Iterator[dict[str, object]]:
    """The combinations that are kept, each of which can be a point."""
    rows, settings = list(cells), {}
    if len(rows) < HEAD or tuple(rows[HEAD - 1][: len(COLUMNS)]) != COLUMNS:
        raise UserError(f"wanted the columns {', '.join(COLUMNS)}", file=file, key=f"{MATRIX}!A{HEAD}")
    for number, values in enumerate(rows[HEAD:], HEAD + 1):
        row = {title: value for title, value in zip(COLUMNS, values, strict=False) if value not in (None, "")}
        if not row or row.get(KEEP) == "no" or row.keys() == {KEEP}:
            continue
        yield _combination(row, number, file, root, usual, settings)


def _combination(
    row: dict[str, object], number: int, file: Path, root: Path, usual: str, settings: dict[str, Setting]
) -> dict[str, object]:
    def refused(column: str, message: str) -> UserError:
        where = chr(ord("A") + COLUMNS.index(column)) if column in COLUMNS else "A"
        return UserError(message, file=file, key=f"{MATRIX}!{where}{number}")

    if (kept := row.pop(KEEP, "yes")) not in YES_OR_NO:
        raise refused(KEEP, f"found {one_line(kept, 40)!r}, wanted yes or no")
    for name, value in row.items():
        if type(value) not in (str, int, float):  # a formula is a kind of text
            raise refused(name, f"found {one_line(value, 40)!r}, wanted a name or a number")
    row = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in row.items()
    }
    platform = str(row.pop(PLATFORM, ""))
    where = platform or usual
    try:
        if where not in settings:
            settings[where] = setting_on(where, root)
    except UserError as error:
        raise refused(PLATFORM, error.message) from None
    try:
        make_point(settings[where], combination(row).model_dump(exclude_unset=True))
    except UserError as error:
        raise refused(error.key, error.found) from None
    return {PLATFORM: platform, **row}


def blocks(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Combinations as few blocks of axes: those that differ in one axis only are one block, axis after axis."""
    joined = list(dict.fromkeys(tuple((name, (row[name],)) for name in COLUMNS if name in row) for row in rows))
    for axis in (*NUMBERS[::-1], *NAMED_AXES[:0:-1]):
        groups: dict[tuple, dict[object, None]] = {}
        for block in joined:
            values = dict(block)
            own = values.pop(axis, ())
            groups.setdefault(tuple(values.items()), {}).update(dict.fromkeys((axis, value) for value in own))
        joined = []
        for alike, own in groups.items():
            merged = dict(alike) | ({axis: tuple(value for _, value in own)} if own else {})
            joined.append(tuple((name, merged[name]) for name in COLUMNS if name in merged))
    return [_block(dict(block)) for block in joined]


def _block(values: dict[str, tuple]) -> dict[str, object]:
    (platform,) = values.pop(PLATFORM)
    axes = {name: axis[0] if len(axis) == 1 else list(axis) for name, axis in values.items()}
    return ({PLATFORM: platform} if platform else {}) | {"axes": axes}


def _text(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110).rstrip("\n")
