"""Terms of a spreadsheet: the text of a formula and, beside it, its value by the same rules, for programs that show a
workbook without computing it."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real


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
