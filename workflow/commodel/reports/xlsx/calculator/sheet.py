"""The sheet Calculator: predictions by formulas for values that the reader types. `Sheet.write` writes it.

From top to bottom: inputs and a chart, predicted times, the parameters of the models, and intermediate values, one row
for each message size of the chart. The first of these rows is for the reader's own size.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xlsxwriter.utility import xl_range_abs, xl_rowcol_to_cell

from commodel.errors import UserError
from commodel.models.families import find_family
from commodel.models.keys import describe_piece, parse_key
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model
from commodel.predictions.validity import MIN_COUNTED_BYTES
from commodel.reports.charts import PALETTE
from commodel.reports.elements import Axis, choose_number_format, to_plain_value
from commodel.reports.xlsx.calculator.cells import (
    CALCULATED_COLOUR,
    MAX_RANKS,
    MAX_TREE_LEVELS,
    Area,
    Cells,
    ModelTerms,
    Pattern,
    Row,
    Term,
    largest,
    make_term,
)
from commodel.reports.xlsx.calculator.families import (
    ALTERNATIVES,
    FORMULAS,
    MAX_KARY_HEIGHT,
    OPERATIONS,
    PredictedTimes,
    find_bounds,
    is_of_one_node,
)
from commodel.reports.xlsx.charts import format_axis
from commodel.reports.xlsx.layout import NOTE_COLOUR
from commodel.units import format_bytes

START_VALUES = {"ranks": 16, "bytes": 1024, "segment": 8192, "fan_out": 4, "height": 2}
START_FAN_OUTS = (4, 4, *(0,) * (MAX_TREE_LEVELS - 2))
CHARTED_PREDICTIONS = tuple(f"{operation} {alternative}" for operation in OPERATIONS for alternative in ALTERNATIVES)
BOUND_TITLES = {
    "fewest": "fewest senders that keep the receiver busy (eq. 5)",
    "most": "most senders without packet loss (eq. 6)",
    "window": "window: senders to admit at once (eq. 7)",
    "arriving_share": "share of packets that arrive if all send [%] (eq. 4)",
    "fill_time": "time until all senders fill the buffer [µs] (eq. 3; 0: never)",
}


@dataclass(frozen=True)
class Calculable:
    """A parameter set of a model that has formulas."""

    parameters: ParameterSet
    values: ModelTerms

    @property
    def name(self) -> str:
        return self.parameters.family

    @property
    def requested(self) -> list[str]:
        """The names of the values that formulas use, in the model's order."""
        order = list(self.values.entry.by_name)
        return sorted(self.values.requested, key=lambda name: order.index(parse_key(name).parameter))


def select_calculable(sets: Sequence[ParameterSet]) -> tuple[list[Calculable], dict[str, str]]:
    """Return the parameter sets of one platform that the formulas can use. For each other model with formulas, return
    why the formulas cannot use its set."""
    calculable, refused = [], {}
    for parameters in sets:
        if parameters.family not in FORMULAS:
            continue
        try:
            values = ModelTerms(find_family(parameters.family), Model.of_set(parameters).values)
            predict_pattern(values, Row(1), _make_start_pattern())
        except UserError as error:
            refused[parameters.family] = error.message
        else:
            calculable.append(Calculable(parameters, values))
    return calculable, refused


def predict_pattern(values: ModelTerms, row: Row, pattern: Pattern) -> PredictedTimes:
    if values.values.classes:
        raise UserError("its values differ by distance class, and this sheet has no placement of ranks")
    return FORMULAS[values.entry.name](row, values, pattern)


def _make_start_pattern() -> Pattern:
    return Pattern(
        **{name: make_term(number) for name, number in START_VALUES.items()},
        fan_outs=tuple(map(make_term, START_FAN_OUTS)),
    )


@dataclass(frozen=True)
class ComputedRow:
    """A row of intermediate values, with the predictions of each model. The row of the reader's message size also has
    the bounds of a gather."""

    line: Row
    predictions: dict[str, PredictedTimes]
    bounds: list[tuple[str, Term]]


def compute_row(
    number: int, pattern: Pattern, values_of_model: dict[str, ModelTerms], chart_choice: Term, with_bounds: bool
) -> ComputedRow:
    line = Row(number)
    pattern = replace(pattern, bytes=line.put("bytes", pattern.bytes))
    charted = line.put("charted", chart_choice)
    predictions: dict[str, PredictedTimes] = {}
    for name, values in values_of_model.items():
        terms = predict_pattern(values, line, pattern)
        predictions[name] = {key: line.put(f"{name} {' '.join(key)}", value) for key, value in terms.items()}
    for name, times in predictions.items():
        line.put(f"chart {name}", _select_charted(charted, times))
    bounds = []
    if with_bounds and "cluster" in values_of_model:
        found = find_bounds(line, values_of_model["cluster"], pattern)
        found |= {"arriving_share": 100 * found["arriving_share"]} if "arriving_share" in found else {}
        bounds = [(BOUND_TITLES[name], value) for name, value in found.items()]
    return ComputedRow(line, predictions, bounds)


def _select_charted(charted: Term, predictions: PredictedTimes) -> Term:
    keys = [name.split(" ") for name in CHARTED_PREDICTIONS]
    cells = [predictions.get((operation, alternative)) for operation, alternative in keys]
    text = f"CHOOSE({charted.text},{','.join(cell.text if cell else 'NA()' for cell in cells)})"
    cell = cells[int(charted.value) - 1]
    value = cell.value if cell is not None and cell.value > 0 else math.nan
    return Term(f"IFERROR(IF({text}>0,{text},NA()),NA())", value)


CALCULATOR_SHEET = "Calculator"
CHART_SIZES = tuple(4**power for power in range(13))  # message sizes of the chart, in bytes
INPUTS = (
    ("ranks", "ranks", 2, MAX_RANKS, "for linear, binomial and chain"),
    ("bytes", "message [B]", 0, 1 << 40, "to or from each rank"),
    ("segment", "segment of a chain [B]", 1, 1 << 40, "for bcast; chains of reductions are not segmented"),
    ("fan_out", "k of the k-ary tree", 1, 100_000, "children of every node"),
    ("height", "height of the k-ary tree", 1, MAX_KARY_HEIGHT, "levels below the root"),
)
CHART_HEIGHT_ROWS = 22
VALUE_HEADERS = ("model", "parameter", "fitted", "unit", "× factor", "your value", "used")
PLATFORM_HEADER = "meaning; fitted on "  # header of the last column, followed by the platform
LATENCY_PARAMETERS = ("L", "L_0", "alpha", "alpha.a")
SAMPLES_TITLE = " [µs] over bytes, τ at once"
TIME_FORMAT = "[>=1000]#,##0;[>=10]#,##0.0;0.000"
PROBED_LIMITS = {"fan_in": "fan-in probed up to", "partners": "partners probed up to"}


class Sheet(Cells):
    """The sheet of one platform. `row` is the first free row, counted from 0; `refused` has the reason by model."""

    def __init__(self, writer, sheet, row: int, models: Sequence[Calculable], refused: Mapping[str, str]):
        super().__init__(writer, sheet)
        self.top, self.models, self.refused = row, models, refused
        self.latency: tuple[int, int] | None = None  # the cell of the first model's factor

    def write(self) -> None:
        for first, last, width in ((0, 0, 24), (1, 1, 12), (2, 6, 11), (7, 7, 2), (8, 8, 40)):
            self.sheet.set_column(first, last, width)
        pattern, chart_choice, predictions_at = self._write_inputs(self.top)
        values_at = (
            max(predictions_at + 2 + 2 * len(self.models) + self._count_bounds(), self.top + CHART_HEIGHT_ROWS) + 2
        )
        values_of_model, intermediate_at = self._write_values(values_at)
        rows = self._write_intermediate_values(intermediate_at, pattern, values_of_model, chart_choice)
        self._write_predictions(predictions_at, rows[0])
        self._insert_chart(rows[1].line.number - 1)
        self.sheet.print_area(0, 0, intermediate_at - 2, 18)
        self.sheet.fit_to_pages(1, 1)
        self.sheet.protect("", {"format_columns": True, "format_rows": True})

    def _write_inputs(self, row: int) -> tuple[Pattern, Term, int]:
        row = self.write_heading(row, "What to predict")
        terms: dict[str, Term] = {}
        for name, title, smallest, maximum, note in INPUTS:
            self.sheet.write_string(row, 0, title, self.make_format())
            self.sheet.write_number(row, 1, START_VALUES[name], self.make_editable_format("#,##0"))
            self.sheet.write_string(row, 2, note, self.make_format(italic=True, font_color=NOTE_COLOUR, bottom=0))
            self.require_whole_number(row, 1, 1, title, smallest, maximum)
            terms[name] = self.name_cell(name, row, 1, START_VALUES[name])
            row += 1
        self.sheet.write_string(row, 0, "children, level by level", self.make_format())
        fan_outs = []
        for number, count in enumerate(START_FAN_OUTS, 1):
            self.sheet.write_number(row, number, count, self.make_editable_format("#,##0"))
            fan_outs.append(self.name_cell(f"fan_out_{number}", row, number, count))
        self.require_whole_number(row, 1, MAX_TREE_LEVELS, "children of every node of a level", 0, 100_000)
        pattern = Pattern(**terms, fan_outs=tuple(fan_outs))
        leaves = make_term(1)
        for fan_out in fan_outs:
            leaves = leaves * largest(fan_out, 1)
        self.sheet.write_string(row + 1, 0, "leaves of that tree", self.make_format())
        self.write_formula(row + 1, 1, leaves, self.make_format("#,##0", bg_color=CALCULATED_COLOUR, align="right"))
        self.sheet.write_string(row + 2, 0, "shown in the chart", self.make_format())
        self.sheet.write_string(row + 2, 1, CHARTED_PREDICTIONS[1], self.make_editable_format())
        self.sheet.data_validation(row + 2, 1, row + 2, 1, {"validate": "list", "source": list(CHARTED_PREDICTIONS)})
        cell = xl_rowcol_to_cell(row + 2, 1, row_abs=True, col_abs=True)
        choices = ",".join(f'"{name}"' for name in CHARTED_PREDICTIONS)
        chart_choice = Term(f"MATCH({cell},{{{choices}}},0)", 2.0)
        return pattern, chart_choice, row + 4

    def _write_predictions(self, row: int, computed_row: ComputedRow) -> None:
        row = self.write_heading(row, "Predicted time [µs]")
        self.write_head(row, ("model", "operation", *ALTERNATIVES, "", "remark"))
        for entry in self.models:
            for operation in OPERATIONS:
                predictions = computed_row.predictions[entry.name]
                if not any(key[0] == operation for key in predictions):
                    continue
                row += 1
                self.sheet.write_string(row, 0, entry.values.entry.title, self.make_format())
                self.sheet.write_string(row, 1, operation, self.make_format())
                for column, alternative in enumerate(ALTERNATIVES, 2):
                    cell_format = self.make_format(TIME_FORMAT, bg_color=CALCULATED_COLOUR, align="right")
                    if (operation, alternative) not in predictions:
                        self.sheet.write_string(row, column, "", cell_format)
                        continue
                    cell = predictions[operation, alternative]
                    shown = f'IFERROR(IF({cell.text}<0,"below 0",{cell.text}),"n/a")'
                    value = "n/a" if math.isnan(cell.value) else "below 0" if cell.value < 0 else cell.value
                    self.write_formula(row, column, (shown, value), cell_format)
                best = {"type": "bottom", "value": 1, "format": self.writer.book.add_format({"bold": True})}
                self.sheet.conditional_format(row, 2, row, 1 + len(ALTERNATIVES), best)
                self.write_formula(row, 8, _describe_limits(entry), self.make_format(italic=True, bottom=0))
        for text, cell in computed_row.bounds:
            row += 1
            self.sheet.write_string(row, 0, "gather, cluster", self.make_format())
            self.write_formula(row, 2, cell, self.make_format(TIME_FORMAT, bg_color=CALCULATED_COLOUR, align="right"))
            self.sheet.write_string(row, 3, text, self.make_format(bottom=0))

    def _count_bounds(self) -> int:
        return len(BOUND_TITLES) if any(entry.name == "cluster" for entry in self.models) else 0

    def _write_values(self, row: int) -> tuple[dict[str, ModelTerms], int]:
        """Write the fitted value of each parameter, a factor, the reader's value, and the value that formulas use.
        Return the cells of the used values and the next free row."""
        row = self.write_heading(
            row, "Parameter values", "Type a factor (2 doubles the value) or your own value into a yellow cell."
        )
        self.write_head(
            row, (*VALUE_HEADERS, "", f"{PLATFORM_HEADER}{to_plain_value(self.models[0].parameters.platform)}")
        )
        values_of_model = {}
        for entry in self.models:
            cells: dict[str, Term] = {}
            for name in entry.requested:
                row += 1
                cells[name] = self._write_value(row, entry, name)
            areas, row = self._write_tables(row, entry)
            values_of_model[entry.name] = ModelTerms(entry.values.entry, entry.values.values, cells, areas)
        for name, reason in self.refused.items():
            row += 1
            self.sheet.write_string(row, 0, find_family(name).title, self.make_format())
            self.sheet.write_string(row, 1, f"left out: {reason}"[:300], self.make_format(italic=True, bottom=0))
        return values_of_model, row + 2

    def _write_value(self, row: int, entry: Calculable, name: str) -> Term:
        value, unit = entry.values.convert_to_shown_unit(name)
        numbers = choose_number_format("number", value)
        self.sheet.write_string(row, 0, entry.values.entry.title, self.make_format())
        self.sheet.write_string(row, 1, name, self.make_format())
        self.sheet.write_number(row, 2, value, self.make_format(numbers))
        self.sheet.write_string(row, 3, unit, self.make_format())
        self.sheet.write_number(row, 4, 1, self.make_editable_format("General"))
        if name in LATENCY_PARAMETERS and self.latency is None:
            self.latency = row, 4
        self.sheet.write_blank(row, 5, None, self.make_editable_format("General"))
        message = {"error_title": "value", "error_message": "wanted a number"}
        any_number = {"validate": "decimal", "criteria": "between", "minimum": -1e15, "maximum": 1e15}
        self.sheet.data_validation(row, 4, row, 5, any_number | message)
        fitted, factor, own_value = (xl_rowcol_to_cell(row, column) for column in (2, 4, 5))
        used_value = (f"IF(ISNUMBER({own_value}),{own_value},{fitted}*{factor})", value)
        self.write_formula(row, 6, used_value, self.make_format(numbers, bg_color=CALCULATED_COLOUR, bold=True))
        key = parse_key(name)
        meaning = describe_piece(key, entry.values.entry.by_name[key.parameter].meaning)
        self.sheet.write_string(row, 8, meaning, self.make_format(bottom=0, font_color=NOTE_COLOUR))
        return self.name_cell(re.sub(r"\W", "_", f"{entry.name}_{name}", flags=re.ASCII), row, 6, value)

    def _write_tables(self, row: int, entry: Calculable) -> tuple[dict[str, Area], int]:
        """Write sampled functions: a row for each message size, a column for each number of concurrent messages. Return
        their cells and the next free row."""
        areas: dict[str, Area] = {}
        for function in dict.fromkeys(name.partition(" ")[0] for name in entry.values.areas):
            of_function = {name: area for name, area in entry.values.areas.items() if name.startswith(f"{function} ")}
            columns = [name for name in of_function if not name.endswith("at once")]
            levels = of_function[f"{function} at once"]
            row += 1
            self.sheet.write_string(row, 0, entry.values.entry.title, self.make_format())
            self.sheet.write_string(row, 1, f"{function}{SAMPLES_TITLE}", self.make_format(bottom=0))
            row += 1
            self.sheet.write_row(row, 2, levels.values, self.make_format("#,##0", bold=True))
            areas[f"{function} at once"] = Area(xl_range_abs(row, 2, row, 1 + len(levels.values)), levels.values)
            for column, name in enumerate(columns, 1):
                cell_format = (
                    self.make_format("#,##0", bold=True) if column == 1 else self.make_editable_format("#,##0.000")
                )
                self.sheet.write_column(row + 1, column, of_function[name].values, cell_format)
                last = row + len(of_function[name].values)
                areas[name] = Area(xl_range_abs(row + 1, column, last, column), of_function[name].values)
            row += len(of_function[columns[0]].values)
        return areas, row

    def _write_intermediate_values(
        self, row: int, pattern: Pattern, values_of_model: dict[str, ModelTerms], chart_choice: Term
    ) -> list[ComputedRow]:
        note = "Times in µs. The first row is for the message size above, the other rows are for the chart."
        row = self.write_heading(row, "Intermediate values", note)
        sizes = [pattern.bytes, *map(make_term, CHART_SIZES)]
        calculable = [
            compute_row(number, replace(pattern, bytes=size), values_of_model, chart_choice, size is pattern.bytes)
            for number, size in enumerate(sizes, row + 2)
        ]
        self.write_head(row, list(calculable[0].line.terms))
        for entry in calculable:
            for column, value in enumerate(entry.line.terms.values()):
                shown = (value.text, "#N/A") if math.isnan(value.value) else value
                self.write_formula(
                    entry.line.number - 1, column, shown, self.make_format("General", font_color=NOTE_COLOUR)
                )
        self.charted_column = list(calculable[0].line.terms).index(f"chart {self.models[0].name}")
        return calculable

    def _insert_chart(self, first: int) -> None:
        chart = self.writer.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        name, last = self.sheet.get_name(), first + len(CHART_SIZES) - 1
        for number, entry in enumerate(self.models):
            colour = PALETTE[number % len(PALETTE)]
            chart.add_series(
                {
                    "name": entry.values.entry.title,
                    "categories": [name, first, 0, last, 0],
                    "values": [name, first, self.charted_column + number, last, self.charted_column + number],
                    "line": {"color": colour, "width": 1.5},
                    "marker": {"type": "circle", "size": 4, "fill": {"color": colour}, "border": {"color": colour}},
                }
            )
        chart.set_title({"name": "Predicted time over message size", "name_font": {"size": 12}, "overlay": False})
        chart.set_x_axis(format_axis(Axis("message size [B]", bytes=True)))
        chart.set_y_axis(format_axis(Axis("time [µs]")))
        chart.set_legend({"position": "bottom", "font": {"size": 9}})
        chart.set_size({"width": 620, "height": 20 * (CHART_HEIGHT_ROWS - 2)})
        chart.show_na_as_empty_cell()
        alt = "Predicted time over message size, by model; it is computed from the yellow cells."
        self.sheet.insert_chart(self.top, 9, chart, {"description": alt, "object_position": 3})


def _describe_limits(entry: Calculable) -> tuple[str, str]:
    """Return the limits of the fitted values, as a formula and as the text at the initial message size."""
    probed, settings = entry.parameters.bytes_range, entry.parameters.settings
    fixed_limits = [
        f"{text} {int(settings[key])}" for key, text in PROBED_LIMITS.items() if str(settings.get(key, "")).isdecimal()
    ]
    if entry.name == "taulop" and is_of_one_node(entry.values):
        fixed_limits.append(f"one node; measured up to {max(entry.values.list_samples('L_0')[1])} messages at once")
    fixed_text = "; ".join(fixed_limits)
    if not probed:
        return f'"{fixed_text}"', fixed_text
    low, high = (int(end) for end in probed)
    ends = f"{format_bytes(low)} to {format_bytes(high)}"
    lower_limit = low if low > MIN_COUNTED_BYTES or not entry.values.entry.uses_bytes else 0
    label = "extrapolated; probed" if entry.values.entry.uses_bytes else "size not modelled, valid for"
    extrapolated = "; ".join(filter(None, (f"{label}: {ends}", fixed_text)))
    is_within = lower_limit <= START_VALUES["bytes"] <= high
    return (
        f'IF(OR(bytes<{lower_limit},bytes>{high}),"{extrapolated}","{fixed_text}")',
        fixed_text if is_within else extrapolated,
    )
