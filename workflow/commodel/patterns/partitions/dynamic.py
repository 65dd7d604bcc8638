"""Shares that are balanced while speeds are found out (Lastovetsky and Reddy, HeteroPar 2009).

Starts from even shares, measures what they take, and shares out anew under curves through all that was measured so far:
only sizes near the answer are ever measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.patterns.partitions.geometric import Curve, check_blocks, geometric
from commodel.patterns.partitions.rounding import whole

Rows = tuple[tuple[float, float], ...]  # size and speed


@dataclass(frozen=True, eq=False)
class Balance:
    """The shares of the shortest round, what they took, and all rows measured on the way to them."""

    shares: np.ndarray
    seconds: np.ndarray
    rows: tuple[Rows, ...]
    rounds: int
    balanced: bool  # within what was asked; if not, whole blocks or noise allow nothing nearer

    @property
    def spread(self) -> float:
        return spread(self.shares, self.seconds)


def dynamic(
    processes: int,
    total: int,
    measure: Callable[[np.ndarray], Sequence[float]],
    curve: Callable[[Rows], Curve],
    within: float = 0.05,
    rounds: int = 20,
) -> Balance:
    """`measure` says how long each process takes for its share, all at work at once; `curve` makes a speed of rows.
    Ends when no two times differ by more than `within` of the shorter, when shares come again, or after `rounds`."""
    check_blocks(processes, total)
    shares = whole(np.full(processes, total / processes), total)
    known: list[dict[float, float]] = [{} for _ in range(processes)]
    tried: set[bytes] = set()
    best = None
    while shares.tobytes() not in tried and len(tried) < rounds:
        tried.add(shares.tobytes())
        seconds = np.asarray(measure(shares), dtype=float)
        for rank in np.flatnonzero(shares):
            known[rank][float(shares[rank])] = float(shares[rank] / seconds[rank])
        if best is None or seconds.max() < best[1].max():
            best = shares, seconds
        if spread(shares, seconds) <= within:
            best = shares, seconds
            break
        shares = geometric([curve(tuple(sorted(rows.items()))) for rows in known], total)
    rows = tuple(tuple(sorted(rows.items())) for rows in known)
    return Balance(*best, rows, len(tried), spread(*best) <= within)


def spread(shares: np.ndarray, seconds: np.ndarray) -> float:
    """max |t_i − t_j| / t_i over the processes that have work."""
    times = seconds[shares > 0]
    return float(times.max() / times.min() - 1)
