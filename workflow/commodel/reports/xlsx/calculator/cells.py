"""Cells of the calculator: terms of a formula with their values, rows of intermediate values, and a model's values as
cells.

A `Term` is the text of a formula and its value, for programs that show a workbook without computing it. A `Row` has
named columns, each of which may use those to its left."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell

from commodel.errors import UserError
from commodel.models.evaluation.values import PIECEWISE, TABLE, Values
from commodel.models.families import Family, find_unit
from commodel.models.keys import make_key, make_sample_key, parse_key
from commodel.reports.xlsx.layout import HEADER_COLOUR, RULE_COLOUR


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A part of a formula and its value: NaN if a spreadsheet would show an error; true and false are 1 and 0."""

    text: str
    value: float

    def __add__(self, other: "Number") -> "Term":
        return _make_infix("+", operator.add, self, other)

    def __radd__(self, other: "Number") -> "Term":
        return _make_infix("+", operator.add, other, self)

    def __sub__(self, other: "Number") -> "Term":
        return _make_infix("-", operator.sub, self, other)

    def __mul__(self, other: "Number") -> "Term":
        return _make_infix("*", operator.mul, self, other)

    def __rmul__(self, other: "Number") -> "Term":
        return _make_infix("*", operator.mul, other, self)

    def __truediv__(self, other: "Number") -> "Term":
        return _make_infix("/", lambda one, two: one / two if two else math.nan, self, other)

    def __rtruediv__(self, other: "Number") -> "Term":
        return make_term(other) / self

    def __rpow__(self, other: "Number") -> "Term":
        return _make_infix("^", operator.pow, other, self)

    def __lt__(self, other: "Number") -> "Term":
        return _make_infix("<", operator.lt, self, other)

    def __le__(self, other: "Number") -> "Term":
        return _make_infix("<=", operator.le, self, other)

    def __gt__(self, other: "Number") -> "Term":
        return _make_infix(">", operator.gt, self, other)

    def equals(self, other: "Number") -> "Term":
        return _make_infix("=", operator.eq, self, other)


Number = Term | float


def make_term(number: Number) -> Term:
    """Return a number as the text of a formula, with all its digits."""
    if isinstance(number, Term):
        return number
    value = float(number)
    text = f"{Decimal(repr(value)):f}".removesuffix(
        ".0"
    )  # the form in which all spreadsheet programs save a number in a formula
    return Term(f"({text})" if value < 0 else text, value)


def _make_infix(sign: str, compute: Callable[[float, float], float], left: Number, right: Number) -> Term:
    left_term, right_term = make_term(left), make_term(right)
    return Term(f"({left_term.text}{sign}{right_term.text})", float(compute(left_term.value, right_term.value)))


def _call_function(name: str, compute: Callable[..., float], *terms: Number) -> Term:
    arguments = [make_term(entry) for entry in terms]
    values = [entry.value for entry in arguments]
    value = math.nan if any(map(math.isnan, values)) else float(compute(*values))
    return Term(f"{name}({','.join(entry.text for entry in arguments)})", value)


def largest(*terms: Number) -> Term:
    return _call_function("MAX", max, *terms)


def smallest(*terms: Number) -> Term:
    return _call_function("MIN", min, *terms)


def add_terms(terms: list[Term]) -> Term:
    return _call_function("SUM", lambda *values: sum(values), *terms)


def round_up(number: Number) -> Term:
    """Return the next whole number; `number` is not below 0."""
    return _call_function("ROUNDUP", lambda value, _: math.ceil(value), number, 0)


def round_down(number: Number) -> Term:
    return _call_function("INT", math.floor, number)


def logarithm(number: Number) -> Term:
    return _call_function("LN", lambda value: math.log(value) if value > 0 else math.nan, number)


def exponential(number: Number) -> Term:
    return _call_function("EXP", lambda value: math.exp(value) if value < 700 else math.inf, number)


def choose_if(condition: Term, if_true: Number, if_false: Number) -> Term:
    if_true, if_false = make_term(if_true), make_term(if_false)
    value = if_true.value if condition.value else if_false.value
    return Term(f"IF({condition.text},{if_true.text},{if_false.text})", value)


def count_rounds(ranks: Term) -> Term:
    """Return ⌈log₂ P⌉. The logarithm of a power of two may be wrong in its last digit; that of the next P differs by
    10⁻⁶."""
    return _call_function("ROUNDUP", lambda value, _: math.ceil(value), _logarithm2(ranks) - 1e-9, 0)


def _logarithm2(ranks: Term) -> Term:
    return _call_function("LOG", lambda value, _: math.log2(value) if value > 0 else math.nan, ranks, 2)


EDITABLE_COLOUR, CALCULATED_COLOUR = "#FFF4CC", "#F3F6F8"


class Cells:
    """Cells of a sheet; `writer` is the workbook, which has the formats."""

    def __init__(self, writer, sheet):
        self.writer, self.sheet = writer, sheet
        self.names: set[str] = set()

    def write_heading(self, row: int, title: str, note: str = "") -> int:
        return self.writer.write_heading(self.sheet, row, title, note)

    def make_format(self, numbers: str = "", **properties):
        cell_format = {"bottom": 4, "bottom_color": RULE_COLOUR} | properties
        return self.writer.make_format(**cell_format, **({"num_format": numbers} if numbers else {}))

    def make_editable_format(self, numbers: str = ""):
        return self.make_format(numbers, bg_color=EDITABLE_COLOUR, locked=False, align="right")

    def write_head(self, row: int, titles: Sequence[str]) -> None:
        for index, title in enumerate(titles):
            alignment = "left" if index < 2 or index > 7 else "right"
            cell_format = self.writer.make_format(
                bold=True, bg_color=HEADER_COLOUR, font_color="#FFFFFF", align=alignment
            )
            self.sheet.write_string(row, index, title, cell_format)

    def name_cell(self, name: str, row: int, column: int, value: float) -> Term:
        """Name a cell of this sheet and return it. Names that differ only in case get a suffix."""
        while name.lower() in self.names:
            name += "_"
        self.names.add(name.lower())
        cell = xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)
        self.writer.book.define_name(f"'{self.sheet.get_name()}'!{name}", f"='{self.sheet.get_name()}'!{cell}")
        return Term(name, value)

    def write_formula(self, row: int, column: int, formula: Term | tuple[str, object], cell_format) -> None:
        text, value = (formula.text, formula.value) if isinstance(formula, Term) else formula
        if isinstance(value, float) and not math.isfinite(value):
            value = "#NUM!"
        self.sheet.write_formula(row, column, f"={text}", cell_format, value)

    def require_whole_number(self, row: int, first: int, last: int, title: str, smallest: int, largest: int) -> None:
        message = f"wanted a whole number from {smallest:,} to {largest:,}"
        limits = {"validate": "integer", "criteria": "between", "minimum": smallest, "maximum": largest}
        messages = {"input_title": title[:32], "input_message": message, "error_title": title[:32]}
        self.sheet.data_validation(row, first, row, last, limits | messages | {"error_message": message})


MAX_TREE_LEVELS = 6  # levels of the general tree, whose fan-outs the reader types
MAX_RANK_BITS = 20  # columns of a binomial tree, one for each bit of the number of ranks
MAX_RANKS = 1_000_000  # below 2^MAX_RANK_BITS


@dataclass(frozen=True, slots=True)
class Area:
    """Adjacent cells of a row or a column."""

    text: str
    values: tuple[float, ...]

    def at(self, position: Term) -> Term:
        """Return the cell at a position, counted from 1."""
        return Term(f"INDEX({self.text},{position.text})", self.values[int(position.value) - 1])

    def count_up_to(self, number: Term) -> Term:
        """Return the number of cells with a value up to this number."""
        count = sum(value <= number.value for value in self.values)
        return Term(f"SUMPRODUCT(({self.text}<={number.text})*1)", float(count))


class Row:
    """A row of named cells. `number` counts from 1, `first` is its first column, from 0."""

    def __init__(self, number: int, first: int = 0):
        self.number, self.first = number, first
        self.terms: dict[str, Term] = {}
        self.references: dict[str, str] = {}

    def put(self, name: str, value: Number) -> Term:
        """Put a value into the cell of this name, and return the reference to the cell."""
        if name not in self.references:
            self.references[name] = f"${xl_col_to_name(self.first + len(self.references))}{self.number}"
        self.terms[name] = make_term(value)
        return self.refer_to(name)

    def refer_to(self, name: str) -> Term:
        """Return the reference to a cell that was put before."""
        return Term(self.references[name], self.terms[name].value)

    def make_area(self, names: list[str]) -> Area:
        """Return adjacent cells by their names."""
        values = tuple(self.terms[name].value for name in names)
        return Area(f"{self.references[names[0]]}:{self.references[names[-1]]}", values)


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pattern to predict, as terms: the message size of a row, and inputs that all rows share."""

    ranks: Term
    bytes: Term
    segment: Term  # of a chain
    fan_out: Term  # of a k-ary tree
    height: Term
    fan_outs: tuple[Term, ...]  # of the general tree, from the root down; 0: the tree has fewer levels


# Shown units, the factor from SI to them, and the factor from them to the units of formulas: microseconds and bytes.
SHOWN_UNITS = {
    "s": ("µs", 1e6, 1),
    "s/B": ("ns/B", 1e9, 1e-3),
    "s/B²": ("ps/B²", 1e12, 1e-6),
    "s·B": ("µs·B", 1e6, 1),
    "B/s": ("MB/s", 1e-6, 1),
}


def find_shown_unit(unit: str) -> tuple[str, float, float]:
    """Return the shown unit of a value, the factor to that unit, and the factor from it to the unit of formulas."""
    if unit in SHOWN_UNITS:
        return SHOWN_UNITS[unit]
    return (f"µ{unit}", 1e6, 1) if unit.startswith("s") else ("" if unit == "1" else unit, 1, 1)


@dataclass
class ModelTerms:
    """The values of a parameter set as terms. `cells` hold numbers; without cells terms are numbers, and `requested`
    collects the names that formulas use."""

    entry: Family
    values: Values
    cells: dict[str, Term] = field(default_factory=dict)
    areas: dict[str, Area] = field(default_factory=dict)
    requested: dict[str, None] = field(default_factory=dict)

    def find_setting(self, name: str) -> Any:
        return self.values.settings.get(name, (self.entry.settings or {name: ("",)})[name][0])

    def convert_to_shown_unit(self, name: str) -> tuple[float, str]:
        text, factor, _ = find_shown_unit(find_unit(self.entry, name, self.values.forms))
        return self.number(name) * factor, text

    def number(self, name: str) -> float:
        if name not in self:
            raise UserError(f"no {name} in this set")
        return float(self.values.numbers[name][0, 0])

    def __contains__(self, name: str) -> bool:
        return name in self.values.numbers

    def __getitem__(self, name: str) -> Term:
        """Return a value in microseconds and bytes."""
        self.requested[name] = None
        factor = find_shown_unit(find_unit(self.entry, name, self.values.forms))[2]
        cell = self.cells[name] if name in self.cells else make_term(self.convert_to_shown_unit(name)[0])
        return cell if factor == 1 else cell * factor

    def at(self, function: str, x: Number) -> Term:
        form = self.values.forms.get(function, "constant")
        if form == PIECEWISE:
            return self._pieces(function, x)
        if form not in COEFFICIENTS:
            raise UserError(f"{function} is given by samples")
        a, *coefficients = (self[make_key(function, letter)] for letter in ("a", *COEFFICIENTS[form]))
        return a + CURVES[form](x, *coefficients) if coefficients else a

    def _pieces(self, function: str, x: Number) -> Term:
        """Return a piecewise function at `x`. At an edge, the piece below the edge applies."""
        result, number = self._piece(function, "", x), 1
        while (edge := make_key(function, f"x{number}")) in self:
            result = choose_if(make_term(x) > self[edge], self._piece(function, str(number), x), result)
            number += 1
        return result

    def _piece(self, function: str, number: str, x: Number) -> Term:
        slope = make_key(function, f"b{number}")
        height = self[make_key(function, f"a{number}")]
        return height + self[slope] * x if slope in self else height

    def list_samples(self, function: str) -> tuple[list[int], list[int]]:
        """Return the message sizes and the levels of a surface."""
        sizes_and_levels = [
            parse_key(name).sample for name in self.values.numbers if parse_key(name).function == function
        ]
        sizes = sorted({entry[0] for entry in sizes_and_levels if entry})
        levels = sorted({entry[1] for entry in sizes_and_levels if entry and entry[1] is not None})
        return sizes, levels

    def put_surface(self, row: Row, function: str, x: Term) -> "Surface":
        """Put the values of a sampled function at `x` into columns of the row, one for each level, and return them.
        Between samples the function is linear, below the first it is constant. Beyond the last it continues the last
        slope, or is constant if that slope is negative."""
        if self.values.forms.get(function) != TABLE:
            raise UserError(f"{function} is no table of samples")
        sizes, levels = self.list_samples(function)
        if not levels or len(sizes) < 2:
            raise UserError(f"{function} has too few samples, or no levels")
        if any(make_sample_key(function, size, level) not in self for level in levels for size in sizes):
            raise UserError(f"{function} lacks a sample")
        sizes_area = self.make_area(f"{function} bytes", sizes)
        index = row.put(f"{function} interval", largest(1, smallest(len(sizes) - 1, sizes_area.count_up_to(x))))
        lower_size, upper_size = sizes_area.at(index), sizes_area.at(index + 1)
        position = row.put(f"{function} position", largest(0, (x - lower_size) / (upper_size - lower_size)))
        names = [f"{function} of {level}" for level in levels]
        for level, name in zip(levels, names, strict=True):
            level_samples = self.make_area(
                f"{function} {level}", [self.number(make_sample_key(function, p, level)) * 1e6 for p in sizes]
            )
            low, high = level_samples.at(index), level_samples.at(index + 1)
            extrapolated = high + (position - 1) * largest(high - low, 0)
            row.put(name, choose_if(position > 1, extrapolated, low + position * (high - low)))
        return Surface(self.make_area(f"{function} at once", levels), row.make_area(names), levels[-1])

    def make_area(self, name: str, values: Sequence[float]) -> Area:
        """Return a column of numbers on the sheet."""
        return self.areas.setdefault(name, Area("", tuple(map(float, values))))


@dataclass(frozen=True, slots=True)
class Surface:
    levels: Area
    values: Area
    highest: int

    def at(self, level: Term) -> Term:
        """Return the value at a level: linear between levels, proportional beyond the highest."""
        if len(self.values.values) == 1:
            return self.values.at(make_term(1)) * largest(level / self.highest, 1)
        index = largest(1, smallest(len(self.values.values) - 1, self.levels.count_up_to(level)))
        lower_level, upper_level = self.levels.at(index), self.levels.at(index + 1)
        position = largest(0, smallest(1, (level - lower_level) / (upper_level - lower_level)))
        low, high = self.values.at(index), self.values.at(index + 1)
        return (low + position * (high - low)) * largest(level / self.highest, 1)


COEFFICIENTS = {
    "constant": "",
    "linear": "b",
    "logarithmic": "b",
    "quadratic": "bc",
    "exponential": "bc",
    "pipeline": "bc",
    "saturating": "bcdef",
}
CURVES: dict[str, Callable[..., Term]] = {
    "linear": lambda x, b: b * x,
    "logarithmic": lambda x, b: b * logarithm(x),
    "quadratic": lambda x, b, c: b * x + c * (x * x),
    "exponential": lambda x, b, c: b * (exponential(c * x) - 1),
    "pipeline": lambda x, b, c: b / (c + x),
    "saturating": lambda x, b, c, d, e, f: b / (c + x) - d * (exponential(e * (x - f)) - 1),
}
