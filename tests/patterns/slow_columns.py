"""All ways to put rectangles of given areas into columns, one after the other: the fast code must be as good."""

from collections.abc import Iterator

import numpy as np

from commodel.patterns.partitions.arrangement import Columns


def arrangements(ranks: int) -> Iterator[Columns]:
    """Every partition of the set of ranks."""
    if not ranks:
        yield []
        return
    for columns in arrangements(ranks - 1):
        last = ranks - 1
        yield [*columns, [last]]
        for place, column in enumerate(columns):
            yield [*columns[:place], [*column, last], *columns[place + 1 :]]


def half_perimeters(columns: Columns, areas: np.ndarray) -> float:
    """Their sum in sides of the square, before anything is rounded."""
    shares = np.asarray(areas, dtype=float) / np.sum(areas)
    return len(columns) + sum(len(column) * float(shares[column].sum()) for column in columns)


def smallest(areas: np.ndarray) -> float:
    """The sum of half perimeters of the best of them."""
    return min(half_perimeters(columns, areas) for columns in arrangements(len(areas)))
