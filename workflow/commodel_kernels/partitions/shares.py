"""Shares of processes in whole blocks: three algorithms that partition a matrix, and
`even_out_times`, which moves rows and columns of blocks between rectangles.

`partition_constant` divides in proportion to the speeds at equal shares, the baseline of functional
performance models. `partition_geometric` finds shares of equal time (Lastovetsky and Reddy, IJHPCA
21(1), 2007): on the plot of speed over size they lie on a line through the origin, whose slope is
found by bisection. `partition_dynamic` balances while speeds are measured (Lastovetsky and Reddy,
HeteroPar 2009). It starts from equal shares, and repeats the partition with speed curves through
all measurements, so that only sizes near the solution are measured. `even_out_times` takes a row or
a column of blocks from the slowest process: rounding each width and height to the nearest block
ignores speeds, and a row of a rectangle that is 15 blocks high is 7 % of its work.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np

from commodel.errors import UserError
from commodel_kernels.rectangles import Rectangles


def round_shares(quotas: np.ndarray, total: int, least: int = 0) -> np.ndarray:
    """Return integers with the sum `total`, none below `least`, by largest remainder.

    If no quota is below `least`, each differs by less than 1 from its quota. The quotas add up to
    `total`.
    """
    counts = np.maximum(np.floor(quotas), least).astype(np.int64)
    while remaining := total - int(counts.sum()):
        missing = quotas - counts
        if remaining > 0:
            counts[np.argsort(-missing, kind="stable")[:remaining]] += 1
        else:  # raising counts to `least` has exceeded the total
            above = np.flatnonzero(counts > least)
            counts[above[np.argsort(missing[above], kind="stable")[:-remaining]]] -= 1
    return counts


MAX_BISECTIONS = 100


class SpeedCurve(Protocol):
    """The speed of a process over the size of its share."""

    def seconds(self, size: float) -> float | np.ndarray: ...

    def largest_share(self, seconds: float) -> float:
        """Return the largest share that takes at most `seconds`; it grows with the time, without
        bound."""


def partition_geometric(curves: Sequence[SpeedCurve], total: int) -> np.ndarray:
    """Return n_i blocks for each process, with equal n_i / s_i(n_i) up to rounding to whole blocks.

    Shares of processes with the same curve are computed once.
    """
    check_blocks(len(curves), total)
    first_process = {id(curve): process for process, curve in reversed(list(enumerate(curves)))}
    kinds, kind = np.unique([first_process[id(curve)] for curve in curves], return_inverse=True)
    processes = np.bincount(kind)

    def shares(seconds: float) -> np.ndarray:
        return np.array([float(curves[process].largest_share(seconds)) for process in kinds])

    even_seconds = [float(curves[process].seconds(total / len(curves))) for process in kinds]
    # times at which all shares are at most even, and at least even
    low, high = min(even_seconds), max(even_seconds)
    while processes @ shares(low) > total:
        low /= 2
    while processes @ shares(high) < total:
        high *= 2
    for _ in range(MAX_BISECTIONS):
        middle = sqrt(low) * sqrt(high) if high > 2 * low else (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if processes @ shares(middle) < total else (low, middle)
    # If a share jumps at this time, the jumps are divided in proportion to their sizes.
    below, above = shares(low), shares(high)
    gap = processes @ above - processes @ below
    size = below + (above - below) * ((total - processes @ below) / gap if gap > 0 else 0)
    return round_shares((size * (total / (processes @ size)))[kind], total)


def check_blocks(processes: int, blocks: int) -> None:
    if processes > blocks:
        raise UserError(
            f"found {processes} processes for {blocks} blocks, wanted at least a block for each"
        )


def partition_constant(curves: Sequence[SpeedCurve], total: int) -> np.ndarray:
    check_blocks(len(curves), total)
    even_share = total / len(curves)
    speeds = {curve: even_share / float(curve.seconds(even_share)) for curve in curves}
    speed = np.array([speeds[curve] for curve in curves])
    return round_shares(total * speed / speed.sum(), total)


Rows = tuple[tuple[float, float], ...]  # size and speed


@dataclass(frozen=True, eq=False)
class Balance:
    """The shares of the balanced round, else of the fastest; their times, and all rows measured."""

    shares: np.ndarray
    seconds: np.ndarray
    rows: tuple[Rows, ...]
    rounds: int
    balanced: bool  # within the tolerance; if not, whole blocks or noise prevent it

    @property
    def spread(self) -> float:
        return find_spread(self.shares, self.seconds)


def partition_dynamic(
    processes: int,
    total: int,
    measure: Callable[[np.ndarray], Sequence[float] | np.ndarray],
    curve: Callable[[Any], SpeedCurve],
    tolerance: float = 0.05,
    rounds: int = 20,
) -> Balance:
    """Return balanced shares.

    `measure` returns the time of each process for its share while all compute; `curve` makes a
    speed curve from rows. The search ends when times differ by at most the relative `tolerance`,
    when shares repeat, or after `rounds`.
    """
    check_blocks(processes, total)
    shares = round_shares(np.full(processes, total / processes), total)
    speeds: list[dict[float, float]] = [{} for _ in range(processes)]
    tried: set[bytes] = set()
    best: tuple[np.ndarray, np.ndarray] | None = None
    while shares.tobytes() not in tried and len(tried) < rounds:
        tried.add(shares.tobytes())
        seconds = np.asarray(measure(shares), dtype=float)
        for rank in np.flatnonzero(shares):
            speeds[rank][float(shares[rank])] = float(shares[rank] / seconds[rank])
        if best is None or seconds.max() < best[1].max():
            best = shares, seconds
        if find_spread(shares, seconds) <= tolerance:
            best = shares, seconds
            break
        shares = partition_geometric([curve(tuple(sorted(rows.items()))) for rows in speeds], total)
    assert best is not None, "no round"
    shares, seconds = best
    rows = tuple(tuple(sorted(rows.items())) for rows in speeds)
    return Balance(shares, seconds, rows, len(tried), find_spread(shares, seconds) <= tolerance)


def find_spread(shares: np.ndarray, seconds: np.ndarray) -> float:
    """Return max |t_i − t_j| / t_i over the processes with work."""
    times = seconds[shares > 0]
    return float(times.max() / times.min() - 1)


MAX_TRIALS = 500_000  # computed times of processes; a step needs one for each


def even_out_times(tiling: Rectangles, curves: Sequence[SpeedCurve]) -> Rectangles:
    """Return the tiling with the same columns, but widths and heights that reduce the time of the
    slowest process.

    Each step moves a row or a column of blocks, and reduces the longest time of the ranks that it
    changes.
    """
    columns = [list(column) for column in tiling.columns]
    width = {rank: int(tiling.width[rank]) for column in columns for rank in column}
    height = {rank: int(tiling.height[rank]) for column in columns for rank in column}

    def seconds(rank: int, columns: int = 0, rows: int = 0) -> float:
        return float(curves[rank].seconds((width[rank] + columns) * (height[rank] + rows)))

    def list_steps(column: list[int], slowest: int) -> Iterator[tuple[float, list[int], list[int]]]:
        """Yield possible steps: the longest time of the changed ranks, and the ranks that lose and
        gain a row or a column."""
        if height[slowest] > 1:
            for other in column:
                if other != slowest:
                    yield max(seconds(slowest, rows=-1), seconds(other, rows=1)), [slowest], [other]
        if width[slowest] > 1:
            for other_column in columns:
                if other_column is not column:
                    yield (
                        max(seconds(rank, columns=1) for rank in other_column),
                        column,
                        other_column,
                    )

    times = {rank: seconds(rank) for rank in width}
    for _ in range(MAX_TRIALS // max(len(times), 1)):
        slowest = max(times, key=times.__getitem__)
        column = next(column for column in columns if slowest in column)
        best = min(list_steps(column, slowest), key=lambda step: step[0], default=None)
        if best is None or best[0] >= times[slowest] * (1 - 1e-12):
            break
        _, losing, gaining = best
        changed = width if losing is column else height
        for ranks, change in ((losing, -1), (gaining, 1)):
            for rank in ranks:
                changed[rank] += change
        times |= {rank: seconds(rank) for rank in (*losing, *gaining)}
    return _make_rectangles(tiling, columns, width, height)


def _make_rectangles(
    tiling: Rectangles, columns: list[list[int]], width: dict[int, int], height: dict[int, int]
) -> Rectangles:
    x, y, widths, heights = np.zeros((4, tiling.ranks), dtype=np.int64)
    x_edge = 0
    for column in columns:
        heights[column] = [height[rank] for rank in column]
        x[column], widths[column] = x_edge, width[column[0]]
        y[column] = np.cumsum(heights[column]) - heights[column]
        x_edge += width[column[0]]
    return Rectangles(x, y, widths, heights, tiling.side)
