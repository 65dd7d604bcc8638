"""Times of kernels: computation under functional performance models, and closed forms of the τ–Lop
paper.

`predict_computation` returns the time that each process computes in one iteration: its share of the
matrix over its speed. `predict_by_sums` adds up messages as section 4 of the τ–Lop paper does for
LogGP's heterogeneous relatives. For SUMMA (4.1), it adds two maxima: of the sums over each sender's
messages in the block column, and of the sums over each column of ranks. For the wave equation
(4.2), it is the maximum over processes of the sum of their messages. Each message takes T(m) as if
it were sent alone, without gap, overlap, or wait for a late rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commodel.models import Array
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel_kernels.rectangles import Rectangles
from commodel_kernels.speeds import Speed


@dataclass(frozen=True, eq=False)
class Computation:
    """Seconds of one iteration of each rank, with the ends of their intervals; 0 without work."""

    speed: np.ndarray  # blocks (SUMMA) or cells (wave) per second at the rank's share
    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def slowest(self) -> float:
        return float(self.seconds.max())

    @property
    def imbalance(self) -> float:
        """How much longer the slowest rank takes than the mean, as a share; 0 if all end
        together."""
        return float(self.seconds.max() / self.seconds.mean() - 1)


def predict_computation(tiling: Rectangles, curves: Sequence[Speed]) -> Computation:
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


def count_iterations(kernel: str, tiling: Rectangles) -> int:
    """Return the number of iterations of the kernel: SUMMA has one for each block of the matrix's
    side; a wave has one."""
    return tiling.side if kernel == "gemm" else 1


SUMMED_FAMILIES = ("hloggp", "loggph", "mlognp")  # families for which the τ–Lop paper sums messages


def predict_by_sums(model: Model, pattern: Schedule) -> Array:
    """Return the predicted time by sums of messages: (rows,), or (sizes, rows) of a stack. Each
    column of ranks has one sender, so all sums are over senders. The first step sends the block
    column."""
    if not len(pattern.src):
        return np.zeros(model.values.draw_shape[0])
    after_first_step = pattern.step > pattern.step[0]
    sender = after_first_step * pattern.ranks + pattern.src
    order = np.argsort(sender, kind="stable")
    first = np.flatnonzero(np.diff(sender[order], prepend=-1))
    sums = np.add.reduceat(predict_single_messages(model, pattern)[..., order], first, axis=-1)
    is_row_sender = sender[order][first] >= pattern.ranks
    return sum(
        sums[..., phase].max(axis=-1, initial=0.0) for phase in (~is_row_sender, is_row_sender)
    )


def predict_single_messages(model: Model, pattern: Schedule) -> Array:
    """Return the time of each message without contention: each has two ranks that send and receive
    nothing else."""
    count = len(pattern.src)
    numbers = np.arange(count)
    separate = Schedule.of(2 * count, 0, 2 * numbers, 2 * numbers + 1, 0)
    separate = separate.place(pattern.node[np.stack([pattern.src, pattern.dst], axis=1).ravel()])
    no_work = np.empty((*pattern.bytes.shape[:-1], 0))
    return model.family.predict(separate.resize(pattern.bytes, no_work), model.values)[..., 1::2]
