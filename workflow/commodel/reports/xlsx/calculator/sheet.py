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
from commodel.models.keys import parse_key
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model
from commodel.predictions.validity import MIN_COUNTED_BYTES
from commodel.reports.charts import PALETTE
from commodel.reports.elements import Axis, choose_number_format, to_plain_value
from commodel.reports.xlsx.calculator.cells import (
    CALCULATED,
    LEVELS,
    MOST_RANKS,
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
    MOST_HEIGHT,
    OPERATIONS,
    PredictedTimes,
    find_bounds,
    is_of_one_node,
)
from commodel.reports.xlsx.charts import format_axis
from commodel.units import format_bytes

START = {"ranks": 16, "bytes": 1024, "segment": 8192, "fan_out": 4, "height": 2}
FAN_OUTS = (4, 4, *(0,) * (LEVELS - 2))
DRAWN = tuple(f"{operation} {way}" for operation in OPERATIONS for way in ALTERNATIVES)
BOUNDS = {
    "fewest": "fewest senders that keep the receiver busy (eq. 5)",
    "most": "most senders without packet loss (eq. 6)",
    "window": "window: senders to admit at once (eq. 7)",
    "through": "share of packets that arrive if all send [%] (eq. 4)",
    "full": "time until all senders fill the buffer [µs] (eq. 3; 0: never)",
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
    """Return the sets of one platform that formulas can predict; and for each other model with formulas, why its set
    cannot."""
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
        **{name: make_term(number) for name, number in START.items()}, fan_outs=tuple(map(make_term, FAN_OUTS))
    )


@dataclass(frozen=True)
class ComputedRow:
    """A row of intermediate values, with the predictions of each model; for the reader's own size also the bounds of a
    gather."""

    line: Row
    predictions: dict[str, PredictedTimes]
    bounds: list[tuple[str, Term]]


def compute_row(
    number: int, pattern: Pattern, values_of_model: dict[str, ModelTerms], draw: Term, own: bool
) -> ComputedRow:
    line = Row(number)
    pattern = replace(pattern, bytes=line.put("bytes", pattern.bytes))
    drawn = line.put("drawn", draw)
    predictions: dict[str, PredictedTimes] = {}
    for name, values in values_of_model.items():
        terms = predict_pattern(values, line, pattern)
        predictions[name] = {key: line.put(f"{name} {' '.join(key)}", value) for key, value in terms.items()}
    for name, places in predictions.items():
        line.put(f"draw {name}", _choose_drawn(drawn, places))
    bounds = []
    if own and "cluster" in values_of_model:
        terms = find_bounds(line, values_of_model["cluster"], pattern)
        terms |= {"through": 100 * terms["through"]} if "through" in terms else {}
        bounds = [(BOUNDS[name], value) for name, value in terms.items()]
    return ComputedRow(line, predictions, bounds)


def _choose_drawn(drawn: Term, predictions: PredictedTimes) -> Term:
    cells = [predictions.get(tuple(name.split(" "))) for name in DRAWN]
    text = f"CHOOSE({drawn.text},{','.join(cell.text if cell else 'NA()' for cell in cells)})"
    cell = cells[int(drawn.value) - 1]
    value = cell.value if cell is not None and cell.value > 0 else math.nan
    return Term(f"IFERROR(IF({text}>0,{text},NA()),NA())", value)


SHEET = "Calculator"
SIZES = tuple(4**power for power in range(13))  # bytes, of the chart
INPUTS = (
    ("ranks", "ranks", 2, MOST_RANKS, "for linear, binomial and chain"),
    ("bytes", "message [B]", 0, 1 << 40, "to or from each rank"),
    ("segment", "segment of a chain [B]", 1, 1 << 40, "for bcast; chains of reductions are not segmented"),
    ("fan_out", "k of the k-ary tree", 1, 100_000, "children of every node"),
    ("height", "height of the k-ary tree", 1, MOST_HEIGHT, "levels below the root"),
)
CHART_ROWS = 22
VALUES = ("model", "parameter", "fitted", "unit", "× factor", "your value", "used")
FITTED_ON = "meaning; fitted on "  # and the platform, in the head of the last column
LATENCIES = ("L", "L_0", "alpha", "alpha.a")
TABLE = " [µs] over bytes, τ at once"
TIMES = "[>=1000]#,##0;[>=10]#,##0.0;0.000"
PROBED = {"fan_in": "fan-in probed up to", "partners": "partners probed up to"}


class Sheet(Cells):
    """`row` is the first free one, from 0."""

    def __init__(self, writer, sheet, row: int, models: Sequence[Calculable], refused: Mapping[str, str]):
        super().__init__(writer, sheet)
        self.top, self.models, self.refused = row, models, refused
        self.latency: tuple[int, int] | None = None  # the cell of the first model's factor

    def write(self) -> None:
        for first, last, width in ((0, 0, 24), (1, 1, 12), (2, 6, 11), (7, 7, 2), (8, 8, 40)):
            self.sheet.set_column(first, last, width)
        pattern, draw, predictions_at = self._write_inputs(self.top)
        values_at = max(predictions_at + 2 + 2 * len(self.models) + self._count_bounds(), self.top + CHART_ROWS) + 2
        values_of_model, intermediate_at = self._write_values(values_at)
        rows = self._write_intermediate_values(intermediate_at, pattern, values_of_model, draw)
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
            self.sheet.write_number(row, 1, START[name], self.make_editable_format("#,##0"))
            self.sheet.write_string(row, 2, note, self.make_format(italic=True, font_color="#555555", bottom=0))
            self.require_whole_number(row, 1, row, 1, title, smallest, maximum)
            terms[name] = self.name_cell(name, row, 1, START[name])
            row += 1
        self.sheet.write_string(row, 0, "children, level by level", self.make_format())
        fan_outs = []
        for number, count in enumerate(FAN_OUTS, 1):
            self.sheet.write_number(row, number, count, self.make_editable_format("#,##0"))
            fan_outs.append(self.name_cell(f"fan_out_{number}", row, number, count))
        self.require_whole_number(row, 1, row, LEVELS, "children of every node of a level", 0, 100_000)
        pattern = Pattern(**terms, fan_outs=tuple(fan_outs))
        leaves = make_term(1)
        for count in fan_outs:
            leaves = leaves * largest(count, 1)
        self.sheet.write_string(row + 1, 0, "leaves of that tree", self.make_format())
        self.write_formula(row + 1, 1, leaves, self.make_format("#,##0", bg_color=CALCULATED, align="right"))
        self.sheet.write_string(row + 2, 0, "shown in the chart", self.make_format())
        self.sheet.write_string(row + 2, 1, DRAWN[1], self.make_editable_format())
        self.sheet.data_validation(row + 2, 1, row + 2, 1, {"validate": "list", "source": list(DRAWN)})
        cell = xl_rowcol_to_cell(row + 2, 1, row_abs=True, col_abs=True)
        choices = ",".join(f'"{name}"' for name in DRAWN)
        draw = Term(f"MATCH({cell},{{{choices}}},0)", 2.0)
        return pattern, draw, row + 4

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
                    cell_format = self.make_format(TIMES, bg_color=CALCULATED, align="right")
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
            self.write_formula(row, 2, cell, self.make_format(TIMES, bg_color=CALCULATED, align="right"))
            self.sheet.write_string(row, 3, text, self.make_format(bottom=0))

    def _count_bounds(self) -> int:
        return len(BOUNDS) if any(entry.name == "cluster" for entry in self.models) else 0

    def _write_values(self, row: int) -> tuple[dict[str, ModelTerms], int]:
        """Write the fitted value of each parameter, a factor, the reader's value and the one used; return these cells
        and the next free row."""
        row = self.write_heading(
            row, "Parameter values", "Type a factor (2 doubles the value) or your own value into a yellow cell."
        )
        self.write_head(row, (*VALUES, "", f"{FITTED_ON}{to_plain_value(self.models[0].parameters.platform)}"))
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
        if name in LATENCIES and self.latency is None:
            self.latency = row, 4
        self.sheet.write_blank(row, 5, None, self.make_editable_format("General"))
        message = {"error_title": "value", "error_message": "wanted a number"}
        anything = {"validate": "decimal", "criteria": "between", "minimum": -1e15, "maximum": 1e15}
        self.sheet.data_validation(row, 4, row, 5, anything | message)
        fitted, factor, instead = (xl_rowcol_to_cell(row, column) for column in (2, 4, 5))
        used = (f"IF(ISNUMBER({instead}),{instead},{fitted}*{factor})", value)
        self.write_formula(row, 6, used, self.make_format(numbers, bg_color=CALCULATED, bold=True))
        meaning = entry.values.entry.by_name[parse_key(name).parameter].meaning
        self.sheet.write_string(row, 8, meaning, self.make_format(bottom=0, font_color="#555555"))
        return self.name_cell(re.sub(r"\W", "_", f"{entry.name}_{name}", flags=re.ASCII), row, 6, value)

    def _write_tables(self, row: int, entry: Calculable) -> tuple[dict[str, Area], int]:
        """Write functions by samples, message sizes down and numbers at once across. Return their cells and the next
        free row."""
        areas: dict[str, Area] = {}
        for function in dict.fromkeys(name.partition(" ")[0] for name in entry.values.areas):
            of_function = {name: area for name, area in entry.values.areas.items() if name.startswith(f"{function} ")}
            columns = [name for name in of_function if not name.endswith("at once")]
            levels = of_function[f"{function} at once"]
            row += 1
            self.sheet.write_string(row, 0, entry.values.entry.title, self.make_format())
            self.sheet.write_string(row, 1, f"{function}{TABLE}", self.make_format(bottom=0))
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
        self, row: int, pattern: Pattern, values_of_model: dict[str, ModelTerms], draw: Term
    ) -> list[ComputedRow]:
        note = "Times in µs. The first row is for the message size above, the other rows are for the chart."
        row = self.write_heading(row, "Intermediate values", note)
        sizes = [pattern.bytes, *map(make_term, SIZES)]
        calculable = [
            compute_row(number, replace(pattern, bytes=size), values_of_model, draw, size is pattern.bytes)
            for number, size in enumerate(sizes, row + 2)
        ]
        self.write_head(row, list(calculable[0].line.terms))
        for entry in calculable:
            for column, value in enumerate(entry.line.terms.values()):
                shown = (value.text, "#N/A") if math.isnan(value.value) else value
                self.write_formula(
                    entry.line.number - 1, column, shown, self.make_format("General", font_color="#555555")
                )
        self.drawn_at = list(calculable[0].line.terms).index(f"draw {self.models[0].name}")
        return calculable

    def _insert_chart(self, first: int) -> None:
        chart = self.writer.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        name, last = self.sheet.get_name(), first + len(SIZES) - 1
        for number, entry in enumerate(self.models):
            colour = PALETTE[number % len(PALETTE)]
            chart.add_series(
                {
                    "name": entry.values.entry.title,
                    "categories": [name, first, 0, last, 0],
                    "values": [name, first, self.drawn_at + number, last, self.drawn_at + number],
                    "line": {"color": colour, "width": 1.5},
                    "marker": {"type": "circle", "size": 4, "fill": {"color": colour}, "border": {"color": colour}},
                }
            )
        chart.set_title({"name": "Predicted time over message size", "name_font": {"size": 12}, "overlay": False})
        chart.set_x_axis(format_axis(Axis("message size [B]", bytes=True)))
        chart.set_y_axis(format_axis(Axis("time [µs]")))
        chart.set_legend({"position": "bottom", "font": {"size": 9}})
        chart.set_size({"width": 620, "height": 20 * (CHART_ROWS - 2)})
        chart.show_na_as_empty_cell()
        alt = "Predicted time over message size, by model; it is computed from the yellow cells."
        self.sheet.insert_chart(self.top, 9, chart, {"description": alt, "object_position": 3})


def _describe_limits(entry: Calculable) -> tuple[str, str]:
    """Return the limits of the fitted values, as a formula and its present text."""
    probed, settings = entry.parameters.bytes_range, entry.parameters.settings
    permanent = [
        f"{text} {int(settings[key])}" for key, text in PROBED.items() if str(settings.get(key, "")).isdecimal()
    ]
    if entry.name == "taulop" and is_of_one_node(entry.values):
        permanent.append(f"one node; measured up to {max(entry.values.list_samples('L_0')[1])} messages at once")
    always = "; ".join(permanent)
    if not probed:
        return f'"{always}"', always
    low, high = (int(end) for end in probed)
    ends = f"{format_bytes(low)} to {format_bytes(high)}"
    least = low if low > MIN_COUNTED_BYTES or not entry.values.entry.uses_bytes else 0
    wanted = "beyond what was probed" if entry.values.entry.uses_bytes else "size not modelled, valid for"
    extrapolated = "; ".join(filter(None, (f"{wanted}: {ends}", always)))
    inside = least <= START["bytes"] <= high
    return f'IF(OR(bytes<{least},bytes>{high}),"{extrapolated}","{always}")', always if inside else extrapolated
