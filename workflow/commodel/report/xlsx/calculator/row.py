"""A row of workings: named columns, of which each may use those to its left, and what they are about: a pattern."""

from dataclasses import dataclass

from xlsxwriter.utility import xl_col_to_name

from commodel.report.xlsx.calculator.terms import Number, Term, term

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
