"""The sheet Calculator: predictions by the formulas of `closed_forms`, for inputs and values that
the reader types.

From top to bottom: inputs and a chart, predicted times, the parameters of the models, and the times
over message size that the chart draws. The first row of each model there is for the reader's own
size."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from xlsxwriter.utility import xl_rowcol_to_cell

from commodel.errors import UserError
from commodel.models.families import find_family, find_unit
from commodel.models.keys import describe_piece, parse_key
from commodel.parameters import ParameterSet
from commodel.predictions.validity import MIN_COUNTED_BYTES
from commodel.reports.charts import PALETTE
from commodel.reports.elements import (
    MICRO,
    Axis,
    choose_number_format,
    format_simulated,
    to_plain_value,
)
from commodel.reports.sections.evidence import SHOWN_UNITS
from commodel.reports.xlsx.charts import format_axis
from commodel.reports.xlsx.closed_forms import (
    ALTERNATIVES,
    BCAST,
    MAX_TREE_LEVELS,
    MESSAGE_TIMES,
    MODELS,
    PREDICTIONS,
    REDUCE,
    ROUNDS,
    ClosedForms,
    evaluate,
    make_closed_forms,
    make_identifier,
    substitute,
)
from commodel.reports.xlsx.layout import HEADER_COLOUR, NOTE_COLOUR, RULE_COLOUR
from commodel.units import format_bytes

CALCULATOR_SHEET = "Calculator"
MAX_RANKS = 1_000_000
MAX_KARY_HEIGHT = 24
MAX_CHILDREN = 100_000
INPUTS = (
    ("ranks", "ranks", 2, MAX_RANKS, 16, "for linear, binomial and chain"),
    ("bytes", "message [B]", 0, 1 << 40, 1024, "to or from each rank"),
    ("fan_out", "k of the k-ary tree", 1, MAX_CHILDREN, 4, "children of every node"),
    ("height", "height of the k-ary tree", 1, MAX_KARY_HEIGHT, 2, "levels below the root"),
)
START_FAN_OUTS = (4, 4, *(0,) * (MAX_TREE_LEVELS - 2))
CHARTED = tuple(" ".join(prediction) for prediction in PREDICTIONS)
START_CHARTED = 2  # the position in CHARTED, from 1
CHART_SIZES = tuple(4**power for power in range(13))  # message sizes of the chart, in bytes
MAX_CHARTED_SETS = 8  # lines of the chart
CHART_HEIGHT_ROWS = 21
LATENCY_PARAMETERS = ("L", "alpha.a")
SET_HEADERS = ("platform", "simulated", "model")
TIME_FORMAT = "[>=1000]#,##0;[>=10]#,##0.0;0.000"
EDITABLE_COLOUR, CALCULATED_COLOUR = "#FFF4CC", "#F3F6F8"


def select_calculable(
    sets: Sequence[ParameterSet],
) -> tuple[list[ClosedForms], list[tuple[ParameterSet, str]]]:
    """Return the closed forms of the sets that have some, and the other sets of these models, with
    the reasons."""
    calculable: list[ClosedForms] = []
    refused: list[tuple[ParameterSet, str]] = []
    for parameters in sets:
        if parameters.model in MODELS and parameters.values:
            try:
                calculable.append(make_closed_forms(parameters))
            except UserError as error:
                refused.append((parameters, error.message))
    return calculable, refused


@dataclass(frozen=True)
class Number:
    """The text of a cell in a formula, and its value in the units of formulas: microseconds and
    bytes."""

    text: str
    value: float


def convert_to_shown_unit(forms: ClosedForms, name: str) -> tuple[float, str, float]:
    """Return the value of a parameter in the shown unit, this unit, and the factor from it to that
    of formulas."""
    parameters = forms.parameters
    unit = find_unit(find_family(parameters.model), name, forms.values.forms)
    shown_unit, factor = SHOWN_UNITS.get(unit, (unit, 1.0))
    value = float(forms.values.numbers[name][0, 0]) * factor
    return (
        value,
        "" if shown_unit == "1" else shown_unit,
        (MICRO if unit.startswith("s") else 1.0) / factor,
    )


class Calculator:
    """Writes the sheet. `row` is the first free row, counted from 0. Afterwards, `latencies` has
    the cell of a factor of latency for each platform."""

    def __init__(self, writer, sheet, row: int, models: Sequence[ClosedForms]):
        self.writer = writer
        self.sheet = sheet
        self.row = row
        self.models = models
        self.inputs: dict[str, Number] = {}
        self.latencies: dict[str, tuple[int, int]] = {}
        self.names: set[str] = set()

    def write(self, refused: Sequence[tuple[ParameterSet, str]]) -> tuple[int, int]:
        """Write the sheet, and return the numbers of rows and columns to print."""
        for column, width in enumerate((18, 11, 12, 14, 11, 11, 11, 11, 11, 40)):
            self.sheet.set_column(column, column, width)
        self.sheet.set_column(10, 18, 11)
        chart_row = self.row
        self._write_inputs()
        predicted_at = max(self.row, chart_row + CHART_HEIGHT_ROWS)
        values_at = predicted_at + 4 + sum(len(_list_operations(forms)) for forms in self.models)
        self.row = values_at
        cells = self._write_values()
        for parameters, reason in refused:
            text = (
                f"{to_plain_value(parameters.platform)}, {find_family(parameters.model).title}: "
                f"left out, {reason}."
            )
            self.sheet.write_string(self.row, 0, text[:300], self._make_note_format())
            self.row += 1
        end = self.row
        rows = self._write_times(cells)
        self._write_predictions(predicted_at, rows)
        self._insert_chart(chart_row, [row for row, _ in rows])
        self.sheet.protect("", {"format_columns": True, "format_rows": True, "autofilter": True})
        return end, 10

    def _describe_measured(self, name: str) -> str:
        """Return the largest measured value of an input, such as `; measured up to 16, beyond:
        extrapolated`."""
        tables = [table for table in self.writer.report.tables if table.name == "Comparison"]
        if not tables or name not in ("ranks", "bytes"):
            return ""
        values = [value for value in tables[0].column(name) if value is not None]
        if not values:
            return ""
        text = format_bytes(int(max(values))) if name == "bytes" else f"{int(max(values)):,}"
        return f"; measured up to {text}, beyond: extrapolated"

    def _write_inputs(self) -> None:
        row = self.writer.write_heading(self.sheet, self.row, "What to predict")
        for name, title, smallest, largest, start, note in INPUTS:
            self.sheet.write_string(row, 0, title, self._make_format())
            self.sheet.write_number(row, 1, start, self._make_editable_format("#,##0"))
            measured = self._describe_measured(name)
            self.sheet.write_string(row, 2, f"{note}{measured}", self._make_note_format())
            self._require_whole_number(row, 1, 1, title, smallest, largest)
            self.inputs[name] = self._name_cell(name, row, 1, start)
            row += 1
        self.sheet.write_string(row, 0, "children, by level", self._make_format())
        for number, count in enumerate(START_FAN_OUTS, 1):
            self.sheet.write_number(row, number, count, self._make_editable_format("#,##0"))
            self.inputs[f"fan_out_{number}"] = self._name_cell(
                f"fan_out_{number}", row, number, count
            )
        self._require_whole_number(
            row, 1, MAX_TREE_LEVELS, "children of every node of a level", 0, MAX_CHILDREN
        )
        row += 1
        leaves = "*".join(f"MAX(fan_out_{number},1)" for number in range(1, MAX_TREE_LEVELS + 1))
        for title, name, expression in (
            ("leaves of that tree", "leaves", leaves),
            ("⌈log₂ ranks⌉", "rounds", ROUNDS),
        ):
            self.sheet.write_string(row, 0, title, self._make_format())
            value = evaluate(expression, {key: number.value for key, number in self.inputs.items()})
            self._write_formula(row, 1, expression, value, self._make_calculated_format("#,##0"))
            self.inputs[name] = self._name_cell(name, row, 1, value)
            row += 1
        self.sheet.write_string(row, 0, "shown in the chart", self._make_format())
        self.sheet.write_string(row, 1, CHARTED[START_CHARTED - 1], self._make_editable_format())
        self.sheet.data_validation(row, 1, row, 1, {"validate": "list", "source": list(CHARTED)})
        cell = xl_rowcol_to_cell(row, 1, row_abs=True, col_abs=True)
        choices = ",".join(f'"{name}"' for name in CHARTED)
        self.charted = f"MATCH({cell},{{{choices}}},0)"
        self.row = row + 2

    def _write_values(self) -> list[dict[str, Number]]:
        """Write the fitted value of each parameter, a factor, the reader's value, and the value
        that formulas use. Return the cells of these, of each model."""
        note = "Type a factor (2 doubles the value) or your own value into a yellow cell."
        headers = (
            *SET_HEADERS,
            "parameter",
            "fitted",
            "unit",
            "× factor",
            "your value",
            "used",
            "meaning",
        )
        count = sum(len(forms.names) for forms in self.models)
        row = self._write_head("Parameter values", note, headers, count)
        cells: list[dict[str, Number]] = []
        platforms = list(dict.fromkeys(forms.parameters.platform for forms in self.models))
        for forms in self.models:
            number = platforms.index(forms.parameters.platform)
            suffix = f"_{number + 1}" if len(platforms) > 1 else ""
            cells.append({})
            for name in forms.names:
                cells[-1][make_identifier(name)] = self._write_value(row, forms, name, suffix)
                row += 1
        self.row = row + 1
        return cells

    def _write_value(self, row: int, forms: ClosedForms, name: str, suffix: str) -> Number:
        value, unit, factor_to_formulas = convert_to_shown_unit(forms, name)
        numbers = choose_number_format("number", value)
        key = parse_key(name)
        family = find_family(forms.parameters.model)
        self._write_set(row, forms)
        self.sheet.write_string(row, 3, name, self._make_format())
        self.sheet.write_number(row, 4, value, self._make_format(numbers))
        self.sheet.write_string(row, 5, unit, self._make_format())
        self.sheet.write_number(row, 6, 1, self._make_editable_format("General"))
        self.sheet.write_blank(row, 7, None, self._make_editable_format("General"))
        if name in LATENCY_PARAMETERS:
            self.latencies.setdefault(to_plain_value(forms.parameters.platform), (row, 6))
        any_number = {
            "validate": "decimal",
            "criteria": "between",
            "minimum": -1e15,
            "maximum": 1e15,
        }
        message = {"error_title": "value", "error_message": "wanted a number"}
        self.sheet.data_validation(row, 6, row, 7, any_number | message)
        fitted, factor, own_value = (xl_rowcol_to_cell(row, column) for column in (4, 6, 7))
        used_value = f"IF(ISNUMBER({own_value}),{own_value},{fitted}*{factor})"
        self._write_formula(
            row, 8, used_value, value, self._make_calculated_format(numbers, bold=True)
        )
        meaning = describe_piece(key, family.by_name[key.parameter].meaning)
        self.sheet.write_string(row, 9, meaning, self._make_format(font_color=NOTE_COLOUR))
        cell = self._name_cell(f"{family.name}_{make_identifier(name)}{suffix}", row, 8, value)
        text = cell.text if factor_to_formulas == 1 else f"({cell.text}*{factor_to_formulas:.12g})"
        return Number(text, value * factor_to_formulas)

    def _write_times(
        self, cells: Sequence[Mapping[str, Number]]
    ) -> list[tuple[int, dict[tuple[str, str], Number]]]:
        """Write the times of each model over the message size. Return, for each model, the first
        row and the cells of its predictions there."""
        note = (
            "All in µs. The first row of a model is for the message size above, the other rows "
            "are for the chart."
        )
        headers = (*SET_HEADERS, "bytes [B]", *MESSAGE_TIMES, *CHARTED, "charted")
        row = self._write_head(
            "Times over message size", note, headers, len(self.models) * (1 + len(CHART_SIZES))
        )
        written = []
        for forms, numbers in zip(self.models, cells, strict=True):
            first: dict[tuple[str, str], Number] = {}
            for offset, size in enumerate((None, *CHART_SIZES)):
                predicted = self._write_times_at(row + offset, forms, numbers, size)
                first = first or predicted
            written.append((row, first))
            row += 1 + len(CHART_SIZES)
        self.row = row + 1
        return written

    def _write_times_at(
        self, row: int, forms: ClosedForms, numbers: Mapping[str, Number], size: int | None
    ) -> dict[tuple[str, str], Number]:
        """Write the times at a message size, or at that of the inputs. Return the cells of the
        predictions."""
        self._write_set(row, forms)
        form = self._make_format("General", font_color=NOTE_COLOUR)
        numbers_by_name = {**self.inputs, **numbers}
        if size is None:
            self._write_formula(row, 3, "bytes", numbers_by_name["bytes"].value, form)
        else:
            self.sheet.write_number(row, 3, size, form)
            numbers_by_name["bytes"] = Number("", float(size))
        numbers_by_name["bytes"] = Number(
            xl_rowcol_to_cell(row, 3, col_abs=True), numbers_by_name["bytes"].value
        )
        predicted: dict[tuple[str, str], Number] = {}
        expressions: list[tuple[str | tuple[str, str], str | None]]
        expressions = [(name, forms.message.get(name)) for name in MESSAGE_TIMES]
        expressions += [(key, forms.predictions.get(key)) for key in PREDICTIONS]
        for column, (name, expression) in enumerate(expressions, 4):
            if expression is None:
                self._write_formula(row, column, "NA()", math.nan, form)
                continue
            value = evaluate(
                expression, {key: number.value for key, number in numbers_by_name.items()}
            )
            text = substitute(
                expression, {key: number.text for key, number in numbers_by_name.items()}
            )
            self._write_formula(row, column, text, value, form)
            cell = Number(xl_rowcol_to_cell(row, column, col_abs=True), value)
            if isinstance(name, tuple):
                predicted[name] = cell
            else:
                numbers_by_name[name] = cell
        first, last = (
            xl_rowcol_to_cell(row, column, col_abs=True) for column in (8, 7 + len(PREDICTIONS))
        )
        shown = f"INDEX({first}:{last},{self.charted})"
        charted = predicted.get(PREDICTIONS[START_CHARTED - 1], Number("", math.nan))
        value = charted.value if charted.value > 0 else math.nan
        column = 8 + len(PREDICTIONS)
        self._write_formula(row, column, f"IFERROR(IF({shown}>0,{shown},NA()),NA())", value, form)
        return predicted

    def _write_predictions(
        self, row: int, rows: Sequence[tuple[int, dict[tuple[str, str], Number]]]
    ) -> None:
        """Write the predictions for the inputs, which are in the first row of each model."""
        self.row = row
        count = sum(len(_list_operations(forms)) for forms in self.models)
        row = self._write_head(
            "Predicted time [µs]", "", (*SET_HEADERS, "operation", *ALTERNATIVES, "remark"), count
        )
        best = {"type": "bottom", "value": 1, "format": self.writer.book.add_format({"bold": True})}
        for forms, (_, predicted) in zip(self.models, rows, strict=True):
            for operation in _list_operations(forms):
                self._write_set(row, forms)
                self.sheet.write_string(row, 3, operation, self._make_format())
                for column, alternative in enumerate(ALTERNATIVES, 4):
                    form = self._make_calculated_format(TIME_FORMAT)
                    cell = predicted.get((operation, alternative))
                    if cell is None:
                        self.sheet.write_string(row, column, "n/a", form)
                        continue
                    value = (
                        "n/a"
                        if math.isnan(cell.value)
                        else "below 0"
                        if cell.value < 0
                        else cell.value
                    )
                    shown = f'IFERROR(IF({cell.text}<0,"below 0",{cell.text}),"n/a")'
                    self._write_formula(row, column, shown, value, form)
                self.sheet.conditional_format(row, 4, row, 3 + len(ALTERNATIVES), best)
                self._write_formula(row, 9, *_describe_limits(forms), self._make_note_format())
                row += 1

    def _insert_chart(self, row: int, first_rows: Sequence[int]) -> None:
        chart = self.writer.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        name = self.sheet.get_name()
        column = 8 + len(PREDICTIONS)
        for number, (forms, first) in enumerate(
            zip(self.models[:MAX_CHARTED_SETS], first_rows, strict=False)
        ):
            colour = PALETTE[number % len(PALETTE)]
            last = first + len(CHART_SIZES)
            chart.add_series(
                {
                    "name": _label_set(forms, self.models),
                    "categories": [name, first + 1, 3, last, 3],
                    "values": [name, first + 1, column, last, column],
                    "line": {"color": colour, "width": 1.5},
                    "marker": {
                        "type": "circle",
                        "size": 4,
                        "fill": {"color": colour},
                        "border": {"color": colour},
                    },
                }
            )
        chart.set_title(
            {
                "name": "Predicted time over message size",
                "name_font": {"size": 12},
                "overlay": False,
            }
        )
        chart.set_x_axis(format_axis(Axis("message size [B]", bytes=True)))
        chart.set_y_axis(format_axis(Axis("time [µs]")))
        chart.set_legend({"position": "bottom", "font": {"size": 9}})
        chart.set_size({"width": 620, "height": 20 * (CHART_HEIGHT_ROWS - 1)})
        chart.show_na_as_empty_cell()
        alt = "Predicted time over message size, by model; it is computed from the yellow cells."
        self.sheet.insert_chart(row, 7, chart, {"description": alt, "object_position": 3})

    def _write_head(self, title: str, note: str, headers: Sequence[str], rows: int) -> int:
        """Write heading and head of an Excel table with so many rows, and return the first of
        these."""
        row = self.writer.write_heading(self.sheet, self.row, title, note)
        form = self.writer.make_format(
            bold=True, bg_color=HEADER_COLOUR, font_color="#FFFFFF", text_wrap=True
        )
        columns = [{"header": header, "header_format": form} for header in headers]
        name = re.sub(r"\W", "_", f"T_Calculator_{title}", flags=re.ASCII)
        options = {"name": name, "style": "Table Style Light 1", "columns": columns}
        self.sheet.add_table(row, 0, row + rows, len(headers) - 1, options)
        self.sheet.set_row(row, 30)
        return row + 1

    def _write_set(self, row: int, forms: ClosedForms) -> None:
        parameters = forms.parameters
        form = self._make_format()
        self.sheet.write_string(row, 0, to_plain_value(parameters.platform), form)
        self.sheet.write_string(row, 1, format_simulated(parameters.simulated), form)
        self.sheet.write_string(row, 2, parameters.model, form)

    def _make_format(self, numbers: str = "", **properties):
        cell_format = {"bottom": 4, "bottom_color": RULE_COLOUR} | properties
        return self.writer.make_format(
            **cell_format, **({"num_format": numbers} if numbers else {})
        )

    def _make_note_format(self):
        return self.writer.make_format(italic=True, font_color=NOTE_COLOUR)

    def _make_editable_format(self, numbers: str = ""):
        return self._make_format(numbers, bg_color=EDITABLE_COLOUR, locked=False, align="right")

    def _make_calculated_format(self, numbers: str, **properties):
        return self._make_format(numbers, bg_color=CALCULATED_COLOUR, align="right", **properties)

    def _name_cell(self, name: str, row: int, column: int, value: float) -> Number:
        """Name a cell of this sheet and return it. Names that differ only in case get a suffix."""
        while name.lower() in self.names:
            name += "_"
        self.names.add(name.lower())
        cell = xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)
        self.writer.book.define_name(
            f"'{self.sheet.get_name()}'!{name}", f"='{self.sheet.get_name()}'!{cell}"
        )
        return Number(name, value)

    def _write_formula(
        self, row: int, column: int, expression: str, value: float | str, cell_format
    ) -> None:
        shown = "#N/A" if isinstance(value, float) and not math.isfinite(value) else value
        self.sheet.write_formula(row, column, f"={expression}", cell_format, shown)

    def _require_whole_number(
        self, row: int, first: int, last: int, title: str, smallest: int, largest: int
    ) -> None:
        message = f"wanted a whole number from {smallest:,} to {largest:,}"
        limits = {
            "validate": "integer",
            "criteria": "between",
            "minimum": smallest,
            "maximum": largest,
        }
        messages = {"input_title": title[:32], "input_message": message, "error_title": title[:32]}
        self.sheet.data_validation(
            row, first, row, last, limits | messages | {"error_message": message}
        )


def _list_operations(forms: ClosedForms) -> list[str]:
    predicted = {operation for operation, _ in forms.predictions}
    return [operation for operation in (BCAST, REDUCE) if operation in predicted]


def _label_set(forms: ClosedForms, models: Sequence[ClosedForms]) -> str:
    """Return the name of a line of the chart: model, and platform if there are several."""
    platforms = [platform for platform, _ in groupby(models, key=attrgetter("parameters.platform"))]
    title = find_family(forms.parameters.model).title
    return f"{title}, {to_plain_value(forms.parameters.platform)}" if len(platforms) > 1 else title


def _describe_limits(forms: ClosedForms) -> tuple[str, str]:
    """Return a formula with the limits of the fitted values, and its text at the initial message
    size."""
    family = find_family(forms.parameters.model)
    probed = forms.parameters.bytes_range
    fan_in = str(forms.parameters.settings.get("fan_in", ""))
    fixed_text = f"fan-in probed up to {int(fan_in)}" if fan_in.isdecimal() else ""
    if not probed:
        return f'"{fixed_text}"', fixed_text
    low, high = (int(end) for end in probed)
    lower_limit = low if low > MIN_COUNTED_BYTES or not family.uses_bytes else 0
    label = "extrapolated; probed" if family.uses_bytes else "size not modelled, valid for"
    extrapolated_text = f"{label}: {format_bytes(low)} to {format_bytes(high)}" + (
        f"; {fixed_text}" if fixed_text else ""
    )
    start_bytes = next(start for name, _, _, _, start, _ in INPUTS if name == "bytes")
    text = fixed_text if lower_limit <= start_bytes <= high else extrapolated_text
    return f'IF(OR(bytes<{lower_limit},bytes>{high}),"{extrapolated_text}","{fixed_text}")', text
