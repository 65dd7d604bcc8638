"""Times of kernels: computation under functional performance models, and closed forms of the τ–Lop paper.

`computation` is the time that every process computes in one iteration: its share of the matrix over its speed.
`by_sums` adds messages up as section 4 of the τ–Lop paper does for LogGP's heterogeneous relatives. In SUMMA (4.1), the
sums of the messages of every sender of the block column have a maximum, and the sums of every column of ranks have
another; both are added. In the wave equation (4.2), the maximum over processes of the sum of their messages counts. A
message costs T(m) as if alone: no gap, no overlap, no wait for a late rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commodel.models import Array
from commodel.models.speeds import Speed
from commodel.patterns.rectangles import Rectangles
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model


@dataclass(frozen=True, eq=False)
class Computation:
    """Seconds of one iteration of each rank, with the ends of their intervals; 0 without work."""

    speed: np.ndarray  # units a second with the rank's share
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def slowest(self) -> float:
        return float(self.seconds.max())

    @property
    def imbalance(self) -> float:
        """How much longer the slowest rank takes than the mean, as a share; 0 if all end together."""
        return float(self.seconds.max() / self.seconds.mean() - 1)


def computation(tiling: Rectangles, curves: Sequence[Speed]) -> Computation:
    area = tiling.area.astype(float)
    speed, low, high = np.zeros((3, tiling.ranks))
    for curve, ranks in _group_ranks(curves).items():
        speed[ranks] = curve.at(area[ranks])
        low[ranks], high[ranks] = curve.interval(area[ranks])
    return Computation(speed, area / speed, area / high, area / low)


def _group_ranks(curves: Sequence[Speed]) -> dict[Speed, list[int]]:
    """Return the ranks of each speed curve."""
    ranks: dict[Speed, list[int]] = {}
    for rank, curve in enumerate(curves):
        ranks.setdefault(curve, []).append(rank)
    return ranks


def iterations(kernel: str, tiling: Rectangles) -> int:
    """Return the number of iterations of the kernel: SUMMA has one for each block of the matrix's side; a wave has
    one."""
    return tiling.side if kernel == "gemm" else 1


RULED = ("hloggp", "loggph", "mlognp")  # families that the rules are for


def predict_by_sums(model: Model, pattern: Schedule) -> Array:
    """Return the sums of messages, (rows,), or (sizes, rows) of a stack. A column of ranks has one sender, so all sums
    are over senders. The first step posts the block column."""
    if not len(pattern.src):
        return np.zeros(model.values.lead[0])
    late = pattern.step > pattern.step[0]
    sender = late * pattern.ranks + pattern.src
    order = np.argsort(sender, kind="stable")
    first = np.flatnonzero(np.diff(sender[order], prepend=-1))
    sums = np.add.reduceat(predict_single_messages(model, pattern)[..., order], first, axis=-1)
    of_row = sender[order][first] >= pattern.ranks
    return sum(sums[..., phase].max(axis=-1, initial=0.0) for phase in (~of_row, of_row))


def predict_single_messages(model: Model, pattern: Schedule) -> Array:
    """Return the time of each message without contention: each is sent between two ranks of its own."""
    count = len(pattern.src)
    own = np.arange(count)
    apart = Schedule.of(2 * count, 0, 2 * own, 2 * own + 1, 0)
    apart = apart.placed(pattern.node[np.stack([pattern.src, pattern.dst], axis=1).ravel()])
    none = np.empty((*pattern.bytes.shape[:-1], 0))
    return model.entry.predict(apart.resized(pattern.bytes, none), model.values)[..., 1::2]
