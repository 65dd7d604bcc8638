"""The matrix of an experiment as a workbook for editing (`write_sheets`), and its conversion back to a file
(`convert_to_text`).

One sheet has a row for each combination, with lists of names to choose from, and the column `keep`. Another sheet has
the rest of the file as text. For real machines each row also has its node-hours, as formulas of `keep`, the size and
the waves. These assume that the time of a sample is linear in the message size, and that the samples of a case end at a
time limit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from xlsxwriter.utility import xl_col_to_name

from commodel.errors import UserError, locate_mistakes, make_printable
from commodel.files.typed_records import make_user_error
from commodel.files.yaml import parse_yaml, read_yaml
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.operations import list_operations
from commodel.patterns.points import make_point
from commodel.plan.config import load_experiment, load_named_platform
from commodel.plan.duration import Durations
from commodel.plan.experiments import AXES, Experiment
from commodel.plan.matrix import count_combinations, list_with_excluded, parse_combination
from commodel.plan.planning import load_resources, make_resources
from commodel.records import Measure, Plan, Point
from commodel.registry import discover

MATRIX_SHEET, EXPERIMENT_SHEET, NAMES_SHEET = "Matrix", "Experiment", "Names"
PLATFORM_COLUMN, KEEP_COLUMN, YES_OR_NO = "platform", "keep", ["yes", "no"]
COLUMNS = (PLATFORM_COLUMN, *AXES, KEEP_COLUMN)
NODES_COLUMN, SAMPLE_TIME, NODE_HOURS = COST_COLUMNS = ("nodes used", "a sample [µs]", "node-hours")
COLUMN_LETTER = {title: xl_col_to_name(place) for place, title in enumerate((*COLUMNS, *COST_COLUMNS))}
HEADER_ROWS = 3  # rows above the first combination
MAX_ROWS = 100_000  # of a matrix that can be edited
SPARE_ROWS = 200  # empty rows with formulas and lists, below the combinations
NUMBER_COLUMNS = ("ranks", "nodes", "ranks_per_node", "bytes", "waves")
NAMED_AXES = ("operation", "algorithm", "topology", "layout")
SIZE_STEP = 1024  # bytes
SHEET_NOTE = (
    "Node-hours depend on keep, bytes and waves. If another cell changes, a row keeps its nodes and time. A new row "
    "has the average of the others. `commodel plan` computes them exactly."
)


def is_editable(file: Path) -> bool:
    """Return whether the matrix is small enough to be edited by hand."""
    return sum(map(count_combinations, load_experiment(file).matrix)) <= MAX_ROWS


def write_sheets(book, file: Path, root: Path, plan: Plan) -> None:
    """Write the sheets of an experiment's file into an open workbook."""
    experiment = load_experiment(file)
    rows = [
        {PLATFORM_COLUMN: block.platform or "", **values, KEEP_COLUMN: "yes" if is_kept else "no"}
        for block in experiment.matrix
        for values, _, is_kept in list_with_excluded(block)
    ]
    names = _list_names(root)
    for title in NAMED_AXES:  # names in the file come first; the others are forms that show how arguments are written
        names_in_file = (str(row[title]) for row in rows if row.get(title))
        names[title] = list(dict.fromkeys([*names_in_file, *names[title]]))
    sheet = _write_matrix(book, rows, names)
    _write_costs(book, sheet, rows, _estimate_costs(plan, rows, experiment.platform, root), plan)
    data: Any = read_yaml(file).data
    without_matrix = {key: value for key, value in data.items() if key != "matrix"}
    sheet = book.add_worksheet(EXPERIMENT_SHEET)
    sheet.write_string(0, 0, "The rest of the file, one line per row. The matrix is on the sheet before.")
    for number, line in enumerate(_write_yaml(without_matrix).splitlines(), 1):
        sheet.write_string(number, 0, line)
    sheet.set_column(0, 0, 120)
    hidden = book.add_worksheet(NAMES_SHEET)
    for column, choices_of_column in enumerate(names.values()):
        hidden.write_column(0, column, choices_of_column)
    hidden.hide()


def _list_names(root: Path) -> dict[str, list[str]]:
    """Return the names to choose from in each column. Topologies and layouts are listed as forms that show their
    arguments."""
    return {
        PLATFORM_COLUMN: sorted(path.stem for path in (root / "params" / "platforms").glob("*.yaml")),
        "operation": list(list_operations()),
        "algorithm": sorted({spec for name in list_operations() for spec in find_algorithms(name)}),
        "topology": [entry.form for entry in discover("patterns.trees.topologies", "TOPOLOGY").values()],
        "layout": [entry.form for entry in discover("patterns.layouts", "LAYOUT").values()],
    }


def _write_matrix(book, rows: Sequence[Mapping[str, Any]], names: Mapping[str, list[str]]):
    sheet, last = book.add_worksheet(MATRIX_SHEET), HEADER_ROWS + len(rows) + SPARE_ROWS
    bold, head = book.add_format({"bold": True}), book.add_format({"bold": True, "bottom": 1})
    grey = book.add_format({"font_color": "#9A9A9A", "font_strikeout": True})
    keep, operation = (
        f"${COLUMN_LETTER[title]}${HEADER_ROWS + 1}:${COLUMN_LETTER[title]}${last}"
        for title in (KEEP_COLUMN, "operation")
    )
    kept_count = sum(row[KEEP_COLUMN] == "yes" for row in rows)
    sheet.write_string(0, 0, "combinations kept", bold)
    sheet.write_formula(0, 2, f'=COUNTIFS({keep},"<>no",{operation},"<>")', bold, kept_count)
    sheet.write_string(
        1, 0, "Change a row, add one below, or set keep to no. An empty platform is that of the experiment."
    )
    whole_number = {"validate": "integer", "criteria": ">=", "value": 0, "error_type": "warning"}
    allowed = dict.fromkeys(NUMBER_COLUMNS, whole_number | {"error_message": "wanted a whole number"})
    allowed[KEEP_COLUMN] = {"validate": "list", "source": YES_OR_NO}
    for index, (title, choices) in enumerate(names.items()):
        source = f"={NAMES_SHEET}!${xl_col_to_name(index)}$1:${xl_col_to_name(index)}${len(choices)}"
        if choices:  # arguments are free: chain:4KiB
            allowed[title] = {"validate": "list", "source": source, "show_error": False}
    for column, title in enumerate(COLUMNS):
        sheet.write_string(HEADER_ROWS - 1, column, title, head)
        sheet.set_column(column, column, 18 if title in NAMED_AXES else 14)
        if title in allowed:
            sheet.data_validation(HEADER_ROWS, column, last - 1, column, allowed[title])
        for number, row in enumerate(rows, HEADER_ROWS):
            if isinstance(value := row.get(title), str) and value:
                sheet.write_string(number, column, value)
            elif isinstance(value, int):
                sheet.write_number(number, column, value)
    rule = {"type": "formula", "criteria": f'=${COLUMN_LETTER[KEEP_COLUMN]}{HEADER_ROWS + 1}="no"', "format": grey}
    sheet.conditional_format(HEADER_ROWS, 0, last - 1, len(COLUMNS) - 1, rule)
    sheet.autofilter(HEADER_ROWS - 1, 0, HEADER_ROWS - 1 + len(rows), len(COLUMNS) - 1)
    sheet.freeze_panes(HEADER_ROWS, 0)
    return sheet


@dataclass(frozen=True, slots=True)
class RowCost:
    """The cost of a combination on a real machine: the nodes of its Slurm job, the seconds of a sample at these bytes
    and waves, the additional seconds for each byte, and the seconds of all samples with their overhead."""

    nodes: int
    bytes: int
    waves: int
    seconds: float
    per_byte: float
    all_seconds: float


def _estimate_costs(
    plan: Plan, rows: Sequence[Mapping[str, Any]], default_platform: str, root: Path
) -> list[RowCost | None]:
    """Return the cost of each row; None if it is simulated, impossible, or equal to an earlier row."""
    nodes = {replace(point, pattern=""): batch.nodes for batch in plan.batches for point in batch.points}
    estimated: set[Point] = set()

    @cache
    def load_real_platform(name: str):
        platform = load_named_platform(name, root)
        durations = Durations(platform.launcher, plan.measure, platform.overlay)
        return None if platform.simulated else (make_resources(platform), durations)

    def estimate_cost(row: Mapping[str, Any]) -> RowCost | None:
        if (loaded := load_real_platform(row[PLATFORM_COLUMN] or default_platform)) is None:
            return None
        resources, durations = loaded
        try:
            point = make_point(resources, {name: row[name] for name in AXES if name in row})
        except UserError:  # an excluded combination may be impossible
            return None
        if point in estimated:
            return None
        estimated.add(point)
        seconds, seconds_of_larger = (
            durations.estimate_sample(replace(point, bytes=point.bytes + added)) for added in (0, SIZE_STEP)
        )
        all_seconds = durations.estimate_point(point)
        per_byte = (seconds_of_larger - seconds) / SIZE_STEP
        return RowCost(nodes.get(point, point.nodes), point.bytes, point.waves, seconds, per_byte, all_seconds)

    return [estimate_cost(row) for row in rows]


def _write_costs(book, sheet, rows: Sequence[Mapping[str, Any]], costs: Sequence[RowCost | None], plan: Plan) -> None:
    bold, head = book.add_format({"bold": True}), book.add_format({"bold": True, "bottom": 1})
    hours = book.add_format({"num_format": "0.000000", "bg_color": "#F3F6F8"})
    total = book.add_format({"num_format": "0.000000", "bold": True})
    first, last, first_column = HEADER_ROWS, HEADER_ROWS + len(costs), len(COLUMNS)
    real_cost = next((cost for cost in costs if cost), None)
    if not real_cost:
        sheet.write_string(0, 4, "simulated: no node-hours", bold)
        return
    for column, title in enumerate(COST_COLUMNS, first_column):
        sheet.write_string(first - 1, column, title, head)
        sheet.set_column(column, column, 14)
    kept_hours = 0.0
    for number, (cost, row) in enumerate(zip(costs, rows, strict=True), first):
        if cost is not None:
            node_hours = cost.all_seconds * cost.nodes / 3600 if row[KEEP_COLUMN] == "yes" else 0
            kept_hours += node_hours
            sheet.write_number(number, first_column, cost.nodes)
            sheet.write_formula(number, first_column + 1, _make_sample_formula(number, cost), None, cost.seconds * 1e6)
            formula = _make_hours_formula(number, cost, plan.measure)
            sheet.write_formula(number, first_column + 2, formula, hours, node_hours)
    nodes, sample = (
        f"AVERAGE({COLUMN_LETTER[title]}${first + 1}:{COLUMN_LETTER[title]}${last})"
        for title in (NODES_COLUMN, SAMPLE_TIME)
    )
    for number in range(last, last + SPARE_ROWS):
        for column, mean in ((first_column, f"ROUND({nodes},0)"), (first_column + 1, sample)):
            sheet.write_formula(number, column, f'=IF({COLUMN_LETTER["operation"]}{number + 1}="","",{mean})', None, "")
        sheet.write_formula(number, first_column + 2, _make_hours_formula(number, real_cost, plan.measure), hours, 0)
    real = [batch for batch in plan.batches if not plan.platforms[batch.platform].simulated]
    other_hours = sum(batch.seconds * batch.nodes for batch in real) / 3600 - kept_hours
    column = COLUMN_LETTER[NODE_HOURS]
    sheet.write_string(0, 4, "node-hours on real machines, about", bold)
    sums = f"=SUM({column}{first + 1}:{column}{last + SPARE_ROWS})+{column}1"
    sheet.write_formula(0, 7, sums, total, kept_hours + other_hours)
    sheet.write_string(0, 8, "including probes, library, starts of Slurm jobs", bold)
    sheet.write_number(0, first_column + 2, other_hours, total)
    sheet.write_string(1, 6, SHEET_NOTE)


def _make_sample_formula(row: int, cost: RowCost) -> str:
    size, waves = (f"{COLUMN_LETTER[name]}{row + 1}" for name in ("bytes", "waves"))
    size = f"IF(ISNUMBER({size}),{size},{cost.bytes})"
    waves = f"IF(ISNUMBER({waves}),{waves},{cost.waves})/{cost.waves}"
    return f"=({cost.seconds * 1e6!r}+{cost.per_byte * 1e6!r}*({size}-{cost.bytes}))*{waves}"


def _make_hours_formula(row: int, cost: RowCost, measure: Measure) -> str:
    nodes, sample, operation, keep = (
        f"{COLUMN_LETTER[name]}{row + 1}" for name in (NODES_COLUMN, SAMPLE_TIME, "operation", KEEP_COLUMN)
    )
    samples = min(3 * measure.min_samples, measure.max_samples)
    fixed = cost.all_seconds - (min(cost.seconds * samples, measure.seconds) + cost.seconds * measure.warmup)
    seconds = f"(MIN({sample}*{samples}/1E6,{measure.seconds!r})+{sample}*{measure.warmup}/1E6+{fixed!r})"
    return f'=IF(OR({operation}="",{keep}="no"),0,{seconds}*{nodes}/3600)'


def convert_to_text(sheets: Mapping[str, Sequence[tuple]], file: Path, root: Path) -> str:
    """Return the text of the experiment file from the cells of an edited workbook. An error names sheet and cell."""
    lines = ["" if not row or row[0] is None else str(row[0]) for row in sheets[EXPERIMENT_SHEET]]
    sheet_name = f"{file}!{EXPERIMENT_SHEET}"  # an error's line number is a row
    document = parse_yaml("\n".join(["", *lines[1:]]), sheet_name)
    keys = document.data
    if not isinstance(keys, dict) or "matrix" in keys:
        raise UserError("wanted the keys of an experiment but for its matrix", file=sheet_name)
    try:
        Experiment.model_validate(keys)
    except ValidationError as errors:
        raise make_user_error(errors, document) from None
    rows = list(_read_rows(sheets[MATRIX_SHEET], file, root, str(keys.get("platform", ""))))
    if not rows:
        raise UserError("found no row to keep", file=file, key=MATRIX_SHEET)
    return _write_yaml(keys) + "\n" + _write_yaml({"matrix": join_to_blocks(rows)})


def _read_rows(cells: Sequence[tuple], file: Path, root: Path, default_platform: str) -> Iterator[dict[str, Any]]:
    """Yield the combinations of rows to keep, after checking that each can be a point."""
    if len(cells) < HEADER_ROWS or tuple(cells[HEADER_ROWS - 1][: len(COLUMNS)]) != COLUMNS:
        raise UserError(f"wanted the columns {', '.join(COLUMNS)}", file=file, key=f"{MATRIX_SHEET}!A{HEADER_ROWS}")
    load_cached = cache(lambda name: load_resources(name, root))
    for number, values in enumerate(cells[HEADER_ROWS:], HEADER_ROWS + 1):
        row = {title: value for title, value in zip(COLUMNS, values, strict=False) if value not in (None, "")}
        if not row or row.get(KEEP_COLUMN) == "no" or row.keys() == {KEEP_COLUMN}:
            continue
        try:
            row = _read_row(row)
            with locate_mistakes(key=PLATFORM_COLUMN):
                resources = load_cached(row[PLATFORM_COLUMN] or default_platform)
            row_values = {name: value for name, value in row.items() if name != PLATFORM_COLUMN}
            make_point(resources, parse_combination(row_values).model_dump(exclude_unset=True))
        except UserError as error:
            cell = f"{MATRIX_SHEET}!{COLUMN_LETTER.get(error.key, 'A')}{number}"
            raise UserError(error.found, file=file, key=cell) from None
        yield row


def _read_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return the names and numbers of a row. An error has the column as its key."""
    if (keep_text := row.pop(KEEP_COLUMN, "yes")) not in YES_OR_NO:
        raise UserError(f"found {make_printable(keep_text, 40)!r}, wanted yes or no", key=KEEP_COLUMN)
    for name, value in row.items():
        if type(value) not in (str, int, float):  # a formula has a subclass of str
            raise UserError(f"found {make_printable(value, 40)!r}, wanted a name or a number", key=name)
        if isinstance(value, float) and value.is_integer():
            row[name] = int(value)
    return {PLATFORM_COLUMN: str(row.pop(PLATFORM_COLUMN, "")), **row}


def join_to_blocks(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return combinations as a few blocks of axes. For one axis after the other, blocks that differ only in it are
    joined."""
    parts: list[tuple[tuple[str, Any], ...]] = list(
        dict.fromkeys(tuple((name, (row[name],)) for name in COLUMNS if name in row) for row in rows)
    )
    for axis in (*NUMBER_COLUMNS[::-1], *NAMED_AXES[:0:-1]):
        groups: dict[tuple[tuple[str, Any], ...], dict[object, None]] = {}  # by the other axes: the values of this one
        for block in parts:
            other_axes = dict(block)
            axis_values = other_axes.pop(axis, ())
            groups.setdefault(tuple(other_axes.items()), {}).update(dict.fromkeys(axis_values))
        parts = []
        for axes, values in groups.items():
            merged = dict(axes) | ({axis: tuple(values)} if values else {})
            parts.append(tuple((name, merged[name]) for name in COLUMNS if name in merged))
    return [_make_block(dict(block)) for block in parts]


def _make_block(values: dict[str, tuple]) -> dict[str, Any]:
    (platform,) = values.pop(PLATFORM_COLUMN)
    axes = {name: axis[0] if len(axis) == 1 else list(axis) for name, axis in values.items()}
    return ({PLATFORM_COLUMN: platform} if platform else {}) | {"axes": axes}


def _write_yaml(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110).rstrip("\n")
