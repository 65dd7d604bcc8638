"""The matrix as a workbook that people edit, with the cost of each row in node-hours.

What each combination of a matrix adds to a plan's node-hours, in a form that a workbook can compute: a sample's time
is a line over the message size, and the samples of a case are cut off at a time.

Node-hours beside the rows of an editable matrix, by formulas that follow what is kept, sizes and waves.

An experiment as a workbook that people edit, and back: a row for each combination of the matrix, with names to
choose from and a mark whether it is kept, and the rest of the file as text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from pydantic import ValidationError

from commodel.errors import UserError, one_line
from commodel.files.typed_records import as_user_error
from commodel.files.yaml import parse
from commodel.files.yaml import read as read_yaml
from commodel.patterns.algorithms import choices
from commodel.patterns.operations import operations
from commodel.patterns.points import Setting, make_point
from commodel.plan.config import find, load_experiment, load_platform
from commodel.plan.duration import START, Durations
from commodel.plan.experiments import AXES, Experiment
from commodel.plan.matrix import combination, every, size
from commodel.plan.planning import setting_of, setting_on
from commodel.records import Measure, Plan, Point
from commodel.registry import discover

SIZE_STEP = 1024  # bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one combination on a real machine: nodes of its job, seconds of a sample at so many bytes and waves, and how
    many a byte more; `once` is what it takes beside its samples."""

    nodes: int
    bytes: int
    waves: int
    seconds: float
    per_byte: float
    once: float
    samples: int
    warmup: int
    limit: float

    @property
    def node_hours(self) -> float:
        about = min(self.seconds * self.samples, self.limit) + self.seconds * self.warmup + self.once
        return about * self.nodes / 3600


def costs(
    plan: Plan, rows: Sequence[tuple[str, Mapping[str, object], bool]], root: Path
) -> tuple[list[Cost | None], float]:
    """Of every combination, given with its platform and whether it is kept; None where it is simulated, or the same as
    one before it. And the node-hours of all else in the plan: probes, the library's own points, and starts of jobs."""
    nodes = {replace(point, pattern=""): batch.nodes for batch in plan.batches for point in batch.points}
    platforms: dict[str, tuple[Setting, Durations] | None] = {}
    costed: list[Cost | None] = []
    seen: set[Point] = set()
    kept_hours = 0.0
    for platform, written, kept in rows:
        if platform not in platforms:
            platforms[platform] = _real(plan, platform, root)
        cost = None
        if (real := platforms[platform]) is not None:
            point = _point(real[0], written)
            if point is not None and point not in seen:
                cost = _cost(plan, real[1], point, nodes.get(point, point.nodes))
                seen.add(point)
        costed.append(cost)
        kept_hours += cost.node_hours if cost is not None and kept else 0.0
    batches = [batch for batch in plan.batches if not plan.platforms[batch.platform].simulated]
    return costed, sum(batch.seconds * batch.nodes for batch in batches) / 3600 - kept_hours


def _real(plan: Plan, name: str, root: Path) -> tuple[Setting, Durations] | None:
    platform = load_platform(find("platform", name, root))
    if platform.simulated:
        return None
    return setting_of(platform), Durations(platform.launcher, plan.measure, platform.overlay)


def _point(setting: Setting, combination: Mapping[str, object]) -> Point | None:
    try:
        return make_point(setting, combination)
    except UserError:  # what is excluded may be impossible
        return None


def _cost(plan: Plan, durations: Durations, point: Point, nodes: int) -> Cost:
    seconds, larger = (durations.of_sample(replace(point, bytes=point.bytes + more)) for more in (0, SIZE_STEP))
    measure = plan.measure
    return Cost(
        nodes,
        point.bytes,
        point.waves,
        seconds,
        (larger - seconds) / SIZE_STEP,
        durations.of_points((point,)) - START - _samples(measure, seconds),
        min(3 * measure.min_samples, measure.max_samples),
        measure.warmup,
        measure.seconds,
    )


def _samples(measure: Measure, seconds: float) -> float:
    fewest = min(3 * measure.min_samples, measure.max_samples)
    return min(seconds * fewest, measure.seconds) + seconds * measure.warmup


TITLES = ("nodes used", "a sample [µs]", "node-hours")
NOTE = (
    "Node-hours follow keep, bytes and waves. With other ranks or another choice a row keeps its nodes and time, and a "
    "new row has the average of the others: `commodel plan` knows exactly."
)


class Costs:
    """`first` is the row of the first combination, from 0; letters are those of the columns that formulas look at."""

    def __init__(self, book, sheet, first: int, columns: Sequence[str]):
        self.sheet, self.first = sheet, first
        self.at = {name: chr(ord("A") + place) for place, name in enumerate((*columns, *TITLES))}
        self.place = len(columns)
        self.bold, self.head = book.add_format({"bold": True}), book.add_format({"bold": True, "bottom": 1})
        self.hours = book.add_format({"num_format": "0.000000", "bg_color": "#F3F6F8"})
        self.total = book.add_format({"num_format": "0.000000", "bold": True})

    def write(self, costs: Sequence[Cost | None], kept: Sequence[bool], rest: float, more: int) -> None:
        """`rest`: node-hours of what is no combination; `more`: rows that wait for new ones."""
        known = [cost for cost in costs if cost is not None]
        if not known:
            self.sheet.write_string(0, 4, "simulated: no node-hours", self.bold)
            return
        for place, title in enumerate(TITLES, self.place):
            self.sheet.write_string(self.first - 1, place, title, self.head)
            self.sheet.set_column(place, place, 14)
        for row, cost in enumerate(costs, self.first):
            if cost is not None:
                counted = kept[row - self.first]
                self.sheet.write_number(row, self.place, cost.nodes)
                self.sheet.write_formula(row, self.place + 1, self._sample(row, cost), None, cost.seconds * 1e6)
                self._row(row, cost, cost.node_hours if counted else 0)
        last = self.first + len(costs)
        for row in range(last, last + more):
            for place, title in enumerate(TITLES[:2], self.place):
                mean = f"AVERAGE({self.at[title]}${self.first + 1}:{self.at[title]}${last})"
                mean = f"ROUND({mean},0)" if place == self.place else mean
                self.sheet.write_formula(row, place, f'=IF({self.at["operation"]}{row + 1}="","",{mean})', None, "")
            self._row(row, known[0], 0)
        total = sum(cost.node_hours for cost, counted in zip(costs, kept, strict=True) if cost and counted) + rest
        hours = self.at["node-hours"]
        self.sheet.write_string(0, 4, "node-hours on real machines, about", self.bold)
        self.sheet.write_formula(
            0, 7, f"=SUM({hours}{self.first + 1}:{hours}{last + more})+{hours}1", self.total, total
        )
        self.sheet.write_string(0, 8, "of them probes, library, starts of jobs", self.bold)
        self.sheet.write_number(0, self.place + 2, rest, self.total)
        self.sheet.write_string(1, 6, NOTE)

    def _sample(self, row: int, cost: Cost) -> str:
        size, waves = (f"{self.at[name]}{row + 1}" for name in ("bytes", "waves"))
        size = f"IF(ISNUMBER({size}),{size},{cost.bytes})"
        waves = f"IF(ISNUMBER({waves}),{waves},{cost.waves})/{cost.waves}"
        return f"=({cost.seconds * 1e6!r}+{cost.per_byte * 1e6!r}*({size}-{cost.bytes}))*{waves}"

    def _row(self, row: int, cost: Cost, hours: float) -> None:
        nodes, sample, operation, keep = (f"{self.at[name]}{row + 1}" for name in (*TITLES[:2], "operation", "keep"))
        seconds = f"(MIN({sample}*{cost.samples}/1E6,{cost.limit!r})+{sample}*{cost.warmup}/1E6+{cost.once!r})"
        formula = f'=IF(OR({operation}="",{keep}="no"),0,{seconds}*{nodes}/3600)'
        self.sheet.write_formula(row, self.place + 2, formula, self.hours, hours)


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
