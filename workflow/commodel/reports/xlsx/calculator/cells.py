"""Cells of the workbook's calculator: formulas with their values.

Terms of a spreadsheet: the text of a formula and, beside it, its value by the same rules, for programs that show a
workbook without computing it.

Cells of the calculator's sheet: how they look, which have names, what may be typed into them, and formulas with the
values that show where nothing computes.

A row of workings: named columns, of which each may use those to its left, and what they are about: a pattern.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real

from xlsxwriter.utility import xl_col_to_name, xl_rowcol_to_cell


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A part of a formula; `value` is NaN where a spreadsheet would show an error. True and false count 1 and 0."""

    text: str
    value: float

    def __add__(self, other: "Number") -> "Term":
        return _infix("+", operator.add, self, other)

    def __radd__(self, other: "Number") -> "Term":
        return _infix("+", operator.add, other, self)

    def __sub__(self, other: "Number") -> "Term":
        return _infix("-", operator.sub, self, other)

    def __mul__(self, other: "Number") -> "Term":
        return _infix("*", operator.mul, self, other)

    def __rmul__(self, other: "Number") -> "Term":
        return _infix("*", operator.mul, other, self)

    def __truediv__(self, other: "Number") -> "Term":
        return _infix("/", lambda one, two: one / two if two else math.nan, self, other)

    def __rtruediv__(self, other: "Number") -> "Term":
        return term(other) / self

    def __rpow__(self, other: "Number") -> "Term":
        return _infix("^", operator.pow, other, self)

    def __lt__(self, other: "Number") -> "Term":
        return _infix("<", operator.lt, self, other)

    def __le__(self, other: "Number") -> "Term":
        return _infix("<=", operator.le, self, other)

    def __gt__(self, other: "Number") -> "Term":
        return _infix(">", operator.gt, self, other)

    def same(self, other: "Number") -> "Term":
        return _infix("=", operator.eq, self, other)


Number = Term | Real


def term(number: Number) -> Term:
    """A number as a formula has it, in all its digits."""
    if isinstance(number, Term):
        return number
    value = float(number)
    text = f"{Decimal(repr(value)):f}".removesuffix(".0")  # as all programs write it when they save a formula again
    return Term(f"({text})" if value < 0 else text, value)


def _infix(sign: str, compute: Callable[[float, float], float], one: Number, two: Number) -> Term:
    left, right = term(one), term(two)
    return Term(f"({left.text}{sign}{right.text})", float(compute(left.value, right.value)))


def _called(name: str, compute: Callable[..., float], *terms: Number) -> Term:
    arguments = [term(entry) for entry in terms]
    values = [entry.value for entry in arguments]
    value = math.nan if any(map(math.isnan, values)) else float(compute(*values))
    return Term(f"{name}({','.join(entry.text for entry in arguments)})", value)


def largest(*terms: Number) -> Term:
    return _called("MAX", max, *terms)


def smallest(*terms: Number) -> Term:
    return _called("MIN", min, *terms)


def total(terms: list[Term]) -> Term:
    return _called("SUM", lambda *values: sum(values), *terms)


def up(number: Number) -> Term:
    """To the next whole number; of numbers that are not below 0."""
    return _called("ROUNDUP", lambda value, _: math.ceil(value), number, 0)


def down(number: Number) -> Term:
    return _called("INT", math.floor, number)


def logarithm(number: Number) -> Term:
    return _called("LN", lambda value: math.log(value) if value > 0 else math.nan, number)


def exponential(number: Number) -> Term:
    return _called("EXP", lambda value: math.exp(value) if value < 700 else math.inf, number)


def when(condition: Term, one: Number, other: Number) -> Term:
    one, other = term(one), term(other)
    value = one.value if condition.value else other.value
    return Term(f"IF({condition.text},{one.text},{other.text})", value)


def rounds(ranks: Term) -> Term:
    """⌈log₂ P⌉. A logarithm of a power of two may be off in its last digit; the next whole P is 10⁻⁶ away."""
    return _called("ROUNDUP", lambda value, _: math.ceil(value), _logarithm2(ranks) - 1e-9, 0)


def _logarithm2(ranks: Term) -> Term:
    return _called("LOG", lambda value, _: math.log2(value) if value > 0 else math.nan, ranks, 2)


INK, EDITABLE, CALCULATED = "#1F3A4D", "#FFF4CC", "#F3F6F8"


class Cells:
    """`writer` is the workbook's own, for its formats."""

    def __init__(self, writer, sheet):
        self.writer, self.sheet = writer, sheet
        self.names: set[str] = set()

    def heading(self, row: int, title: str, note: str = "") -> int:
        return self.writer.heading(self.sheet, row, title, note)

    def look(self, numbers: str = "", **more):
        look = {"bottom": 4, "bottom_color": "#D5DBE0"} | more
        return self.writer.form(**look, **({"num_format": numbers} if numbers else {}))

    def editable(self, numbers: str = ""):
        return self.look(numbers, bg_color=EDITABLE, locked=False, align="right")

    def head(self, row: int, titles: Sequence[str]) -> None:
        for place, title in enumerate(titles):
            side = "left" if place < 2 or place > 7 else "right"
            look = self.writer.form(bold=True, bg_color=INK, font_color="#FFFFFF", align=side)
            self.sheet.write_string(row, place, title, look)

    def name(self, name: str, row: int, column: int, value: float) -> Term:
        """A cell of this sheet by a name that differs from others not only in its case."""
        while name.lower() in self.names:
            name += "_"
        self.names.add(name.lower())
        place = xl_rowcol_to_cell(row, column, row_abs=True, col_abs=True)
        self.writer.book.define_name(f"'{self.sheet.get_name()}'!{name}", f"='{self.sheet.get_name()}'!{place}")
        return Term(name, value)

    def formula(self, row: int, column: int, formula: Term | tuple[str, object], look) -> None:
        text, value = (formula.text, formula.value) if isinstance(formula, Term) else formula
        if isinstance(value, float) and not math.isfinite(value):
            value = "#NUM!"
        self.sheet.write_formula(row, column, f"={text}", look, value)

    def whole(self, first: int, left: int, last: int, right: int, title: str, least: int, most: int) -> None:
        message = f"wanted a whole number from {least:,} to {most:,}"
        limits = {"validate": "integer", "criteria": "between", "minimum": least, "maximum": most}
        about = {"input_title": title[:32], "input_message": message, "error_title": title[:32]}
        self.sheet.data_validation(first, left, last, right, limits | about | {"error_message": message})


LEVELS = 6  # of a tree by its fan-outs
BITS = 20
MOST_RANKS = 1_000_000  # fewer than 2^BITS


@dataclass(frozen=True, slots=True)
class Area:
    """Cells beside or below each other."""

    text: str
    values: tuple[float, ...]

    def at(self, position: Term) -> Term:
        """Counted from 1."""
        return Term(f"INDEX({self.text},{position.text})", self.values[int(position.value) - 1])

    def up_to(self, number: Term) -> Term:
        """How many are at most so large."""
        count = sum(value <= number.value for value in self.values)
        return Term(f"SUMPRODUCT(({self.text}<={number.text})*1)", float(count))


class Row:
    """`number` counts from 1, `first` is its first column, from 0."""

    def __init__(self, number: int, first: int = 0):
        self.number, self.first = number, first
        self.terms: dict[str, Term] = {}
        self.places: dict[str, str] = {}

    def put(self, name: str, value: Number) -> Term:
        """A cell, and how others refer to it."""
        if name not in self.places:
            self.places[name] = f"${xl_col_to_name(self.first + len(self.places))}{self.number}"
        self.terms[name] = term(value)
        return self.again(name)

    def again(self, name: str) -> Term:
        """A cell that was put before."""
        return Term(self.places[name], self.terms[name].value)

    def area(self, names: list[str]) -> Area:
        """Columns that were put one after the other."""
        values = tuple(self.terms[name].value for name in names)
        return Area(f"{self.places[names[0]]}:{self.places[names[-1]]}", values)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is to be predicted, as terms: a row's own message size, and what all rows share."""

    ranks: Term
    bytes: Term
    segment: Term  # of a chain
    fan_out: Term  # of a k-ary tree
    height: Term
    fan_outs: tuple[Term, ...]  # of any tree, from the root down; 0: no such level
