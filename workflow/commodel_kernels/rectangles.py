"""Rectangles that tile a square of N×N units, one for each rank: x to the right, y downwards, in
whole units (`Rectangles`).

A rank without work has a rectangle of 0×0. A file is a CSV `rank,x,y,width,height` with a line for
each rank in any order. An optional column `speed` has the units per second that each rank computes.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import StringIO

import numpy as np

from commodel.errors import UserError
from commodel.files.cache import find_input
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import cache_reads
from commodel.files.tables import add_line_to_errors, parse_cell, stream_rows
from commodel.patterns.arguments import parse_whole_number
from commodel.patterns.phases import divide_evenly
from commodel.patterns.rank_tables import order_by_rank, read_rank
from commodel.units import parse_number, show_value

MAX_SIDE = 1 << 20  # units


@dataclass(frozen=True, eq=False)
class Rectangles:
    """The rectangles of all ranks, which tile the square exactly."""

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    side: int  # N
    speed: np.ndarray | None = None  # units per second of every rank, if known

    @property
    def ranks(self) -> int:
        return len(self.x)

    @property
    def table(self) -> tuple[np.ndarray, ...]:
        return self.x, self.y, self.width, self.height

    @property
    def area(self) -> np.ndarray:
        return self.width * self.height

    @property
    def seconds(self) -> np.ndarray:
        """Seconds of one iteration of each rank, NaN if its speed is unknown."""
        return np.where(
            self.area > 0, self.area / (np.nan if self.speed is None else self.speed), 0.0
        )

    @property
    def right(self) -> np.ndarray:
        return self.x + self.width

    @property
    def bottom(self) -> np.ndarray:
        return self.y + self.height

    @cached_property
    def columns(self) -> tuple[np.ndarray, ...]:
        """The ranks with work of every column, columns from left to right, ranks from top to
        bottom.

        Raise an error if rectangles with the same x have different widths.
        """
        working = np.flatnonzero(self.area)
        order = working[np.lexsort((self.y[working], self.x[working]))]
        columns = np.split(order, 1 + np.flatnonzero(np.diff(self.x[order])))
        for column in columns:
            if (different := column[self.width[column] != self.width[column[0]]]).size:
                first, other = column[0], different[0]
                widths = f"{self.width[first]} of rank {first}, {self.width[other]} of rank {other}"
                raise UserError(
                    f"found different widths at x={self.x[first]}: {widths}; wanted columns"
                )
        return tuple(columns)

    @classmethod
    def of(
        cls, x: Iterable, y: Iterable, width: Iterable, height: Iterable, side: int | None = None
    ) -> "Rectangles":
        """Return rectangles that tile the square, or raise an error. `side` is by default the
        extent of the rectangles."""
        x, y, width, height = (
            np.asarray(column, dtype=np.int64) for column in (x, y, width, height)
        )
        extent = int(max((x + width).max(initial=0), (y + height).max(initial=0)))
        tiling = cls(x, y, width, height, extent if side is None else side)
        mistake = find_tiling_error(tiling)
        if mistake:
            raise UserError(mistake[0])
        return tiling


def make_even_grid(side: int, grid: tuple[int, int]) -> Rectangles:
    """Return a grid of ranks, numbered row by row, with rectangles of nearly equal size, the larger
    ones first."""
    rows, columns = grid
    rank = np.arange(rows * columns)
    heights, widths = divide_evenly(side, rows), divide_evenly(side, columns)
    bottoms, rights = np.cumsum(heights), np.cumsum(widths)
    row, column = rank // columns, rank % columns
    width, height = widths[column], heights[row]
    working = (width > 0) & (height > 0)
    table = rights[column] - width, bottoms[row] - height, width, height
    x, y, width, height = (np.where(working, values, 0) for values in table)
    return Rectangles(x, y, width, height, side)


def find_tiling_error(tiling: Rectangles) -> tuple[str, int] | None:
    """Return why rectangles do not tile their square, and one of the ranks; None if they do.

    Each rectangle has a signed unit at each corner, so the number of rectangles over a point is the
    sum of the units above and to the left of it. Rectangles tile the square if their units add up
    to those of the square. At the first point, column by column, where the sums differ, there are
    too many or too few rectangles.
    """
    x, y, right, bottom, side = tiling.x, tiling.y, tiling.right, tiling.bottom, tiling.side
    outside = (right > side) | (bottom > side) | (np.minimum(x, y) < 0)
    has_no_area = (tiling.width > 0) != (tiling.height > 0)
    for wrong, mistake in (
        (outside, f"is not within {side}×{side}"),
        (has_no_area, "has no area, wanted 0×0 without work"),
    ):
        if wrong.any():
            rank = int(wrong.argmax())
            return f"rank {rank} {mistake}: {_describe(tiling, rank)}", rank
    corners = [(x, y, 1), (right, y, -1), (x, bottom, -1), (right, bottom, 1)]
    square = [(0, 0, -1), (side, 0, 1), (0, side, 1), (side, side, -1)]
    code = np.concatenate([np.ravel(left * (side + 1) + top) for left, top, _ in corners + square])
    signs = np.concatenate([np.full(np.size(left), sign) for left, _, sign in corners + square])
    points, point = np.unique(code, return_inverse=True)
    surplus = np.bincount(point, signs)
    if not surplus.any():
        return None
    first = int(np.flatnonzero(surplus)[0])
    left, top = divmod(int(points[first]), side + 1)
    if surplus[first] > 0:
        over = np.flatnonzero((x <= left) & (left < right) & (y <= top) & (top < bottom))
        both = f"rank {over[0]} and rank {over[1]} overlap"
        return (
            f"{both} at x={left}, y={top}: {_describe(tiling, over[0])} and {_describe(tiling, over[1])}",
            int(over[1]),
        )
    nearest = int(np.argmin(np.hypot(x - left, y - top)))
    return (
        f"found a gap at x={left}, y={top}: no rectangle is there; wanted {side}×{side} tiled",
        nearest,
    )


@dataclass(frozen=True, eq=False)
class SharedSides:
    """The common sides of rectangles as messages, sorted by sender and receiver. Common corners do
    not count."""

    src: np.ndarray
    dst: np.ndarray
    side: np.ndarray  # of the sender: 0 left, 1 right, 2 top, 3 bottom
    first: np.ndarray  # distance from the sender's corner to the shared part
    length: np.ndarray


def find_neighbours(tiling: Rectangles) -> SharedSides:
    """Return the common sides of all pairs of neighbours, once in each direction."""
    sides = []
    for start_side, end_side, edges, low, high in (
        (0, 1, (tiling.right, tiling.x), tiling.y, tiling.bottom),
        (2, 3, (tiling.bottom, tiling.y), tiling.x, tiling.right),
    ):
        before, after, first, length = _find_touching_pairs(tiling, *edges, low, high)
        sides.append((before, after, np.full(len(before), end_side), first - low[before], length))
        sides.append((after, before, np.full(len(before), start_side), first - low[after], length))
    columns = [np.concatenate(column) for column in zip(*sides, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return SharedSides(*(column[order] for column in columns))


def _find_touching_pairs(
    tiling: Rectangles, end: np.ndarray, start: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return pairs of rectangles that touch at a line, and start and length of their common side.

    The first of a pair ends at the line, the second begins there. Every line is cut where a
    rectangle begins along it, so between two cuts exactly one rectangle ends at the line and one
    begins there.
    """
    working = np.flatnonzero(tiling.area)
    ending = working[end[working] < tiling.side]
    starting = working[start[working] > 0]
    codes = [
        line[rows] * (tiling.side + 1) + low[rows]
        for line, rows in ((end, ending), (start, starting))
    ]
    cuts = np.unique(np.concatenate(codes))
    pair = []
    for rows, code in zip((ending, starting), codes, strict=True):
        order = np.argsort(code)
        pair.append(
            rows[order][np.searchsorted(code[order], cuts, "right") - 1] if len(rows) else rows
        )
    before, after = pair
    first = cuts % (tiling.side + 1)
    return before, after, first, np.minimum(high[before], high[after]) - first


def _describe(tiling: Rectangles, rank: int) -> str:
    width, height, x, y = (
        column[rank] for column in (tiling.width, tiling.height, tiling.x, tiling.y)
    )
    return f"{width}×{height} at x={x}, y={y}"


COLUMNS = ("rank", "x", "y", "width", "height")
ALL_COLUMNS = (*COLUMNS, "speed")
MIN_SPEED, MAX_SPEED = 1e-30, 1e30  # units per second, so that no time overflows


def format_rectangles(tiling: Rectangles) -> str:
    """Return the CSV of rectangles."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [column.tolist() for column in tiling.table]
    if tiling.speed is not None:
        columns.append([f"{speed:.9g}" for speed in tiling.speed])
    writer.writerow(COLUMNS if tiling.speed is None else ALL_COLUMNS)
    writer.writerows(zip(range(tiling.ranks), *columns, strict=True))
    return text.getvalue()


def read_rectangles(name: str | AnyPath) -> Rectangles:
    """Return the rectangles of a file, or of its copy in the results."""
    return _read(find_input(name) if isinstance(name, str) else name)


@cache_reads(files=64)
def _read(path: AnyPath) -> Rectangles:
    rows = order_by_rank(path, _read_rows(path))
    x, y, width, height, speed = (
        np.array(column) for column in zip(*(row for _, row in rows), strict=True)
    )
    side = int(max((x + width).max(), (y + height).max()))
    if side > MAX_SIDE:
        raise UserError(
            f"found a square of {side}×{side}, wanted a side of at most {MAX_SIDE}", file=path
        )
    tiling = Rectangles(x, y, width, height, side, None if np.isnan(speed).any() else speed)
    mistake = find_tiling_error(tiling)
    if mistake:
        raise UserError(mistake[0], file=path, line=rows[mistake[1]][0])
    return tiling


def _read_rows(path: AnyPath) -> Iterator[tuple[int, int, tuple[float, ...]]]:
    for line, row in stream_rows(path, COLUMNS, unique_columns=True):
        with add_line_to_errors(path, line):
            unknown = [name for name in row if name not in ALL_COLUMNS]
            if unknown:
                raise UserError(
                    f"found the column {show_value(unknown[0])}, wanted {','.join(ALL_COLUMNS)}"
                )
            table = [
                parse_cell(row, name, lambda text: parse_whole_number(text, least=0))
                for name in COLUMNS[1:]
            ]
            speed = parse_cell(row, "speed", _read_speed) if "speed" in row else np.nan
            yield line, parse_cell(row, "rank", read_rank), (*table, speed)


def _read_speed(text: str) -> float:
    speed = parse_number(text)
    if not MIN_SPEED <= speed <= MAX_SPEED:
        raise UserError(
            f"found {show_value(text)}, wanted a number from {MIN_SPEED:g} to {MAX_SPEED:g}, units per second"
        )
    return speed
