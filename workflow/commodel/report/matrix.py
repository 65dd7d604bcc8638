"""A matrix of numbers between things of one kind, as a picture: near ones are green, far ones orange, by the logarithm.
How a value is coloured and written, the same in every writer."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from commodel.report.shape import COLOURS
from commodel.report.values import finite

SHADES = 24  # a workbook has a format of each
EMPTY = "#F1F3F4"
PALE = 0.35  # of the colour, where nothing was measured
LEAST_SPAN = 2.0  # from the best to the worst colour: what differs by a few percent looks alike


@dataclass(frozen=True)
class Matrix:
    name: str
    title: str
    labels: tuple[str, ...]  # of rows and columns alike
    groups: tuple[int, ...]  # of every label; those of one group lie beside each other
    values: tuple[tuple[float, ...], ...]  # NaN: not measured
    unit: str
    high_is_good: bool = False
    note: str = ""
    marks: frozenset[int] = frozenset()  # labels to stand out
    alt: str = ""  # what the picture shows, in words
    expected: tuple[tuple[float, ...], ...] = ()  # between groups, in their order: for pairs that were not measured

    @cached_property
    def ends(self) -> tuple[float, float]:
        known = [value for row in self.values for value in row if finite(value) and value > 0]
        return (min(known), max(known)) if known else (1.0, 1.0)

    @property
    def borders(self) -> tuple[int, ...]:
        """Places of the first labels of the groups but the first."""
        return tuple(place for place in range(1, len(self.groups)) if self.groups[place] != self.groups[place - 1])

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The first place of every group, and the one behind its last."""
        edges = (0, *self.borders, len(self.groups))
        return tuple(pairwise(edges))

    def colour(self, value: float, pale: bool = False) -> str:
        if not (finite(value) and value > 0):
            return EMPTY
        worse = self.ends[1] / value if self.high_is_good else value / self.ends[0]
        return shade(math.log(worse) / math.log(max(self.ends[1] / self.ends[0], LEAST_SPAN)), pale)


def shade(share: float, pale: bool = False) -> str:
    """From good, 0, over the middle to bad, 1."""
    share = round(min(max(share, 0.0), 1.0) * SHADES) / SHADES
    first, second = ("good", "middle") if share < 0.5 else ("middle", "bad")
    part = 2 * share if share < 0.5 else 2 * share - 1
    parts = zip(_parts(COLOURS[first]), _parts(COLOURS[second]), strict=True)
    mixed = (one + (two - one) * part for one, two in parts)
    return "#" + "".join(f"{round(255 - (255 - tone) * (PALE if pale else 1)):02X}" for tone in mixed)


def _parts(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def digits(value: float) -> str:
    """Three significant digits, or n/a."""
    if not finite(value):
        return "n/a"
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{places}f}"
