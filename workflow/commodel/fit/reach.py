"""How far the values of a fit to collectives may lie from the best, and which of them the points do not tell."""

from collections.abc import Mapping

import numpy as np

from commodel.fit.search import BOUND, Task
from commodel.models import Array
from commodel.models.fitting.portable import exp
from commodel.progress import at

TOO_WIDE = 0.5  # half of an interval of a logarithm, from which on a value counts as not told apart
ONE_MORE = 3.84  # 95 % of χ² with one degree of freedom: how much worse a fit may be and still be as good


def intervals(task: Task, logs: Array, as_good: Array) -> dict[str, tuple[float, float]]:
    """The 95 % interval of every value: what holds its draws, what is as good as the best, and how far it can go from
    there until the loss grows by that of one more free value; in large tables as if prices were straight lines."""
    best, low, high = logs[0], *np.percentile(logs[1:], [2.5, 97.5], axis=0)
    misfit = task.misfit(best[None])[0]
    least, allowed = task.loss(misfit), ONE_MORE * task.noise(misfit)
    reach, spread = {}, task.spread(best, misfit)[1] if task.large else None
    for number, name in enumerate(task.names):
        at(f"the interval of {name}, value {number + 1} of {len(task.names)}")
        if spread is None:
            offsets, loss = task.profiled(best, number)
            ends = best[number] + _crossings(offsets, (loss - least) / allowed)
        else:
            ends = best[number] + np.clip(np.sqrt(allowed * spread[number, number]), 0, BOUND) * np.array([-1.0, 1.0])
        logarithms = [low[number], high[number], *as_good[:, number], *ends]
        reach[name] = tuple(float(end) for end in exp(np.array([min(logarithms), max(logarithms)])))
    return reach


def _crossings(offsets: Array, growth: Array) -> Array:
    """From where on, below and above, `growth` stays above 1. It grows about as the square of the offset; at an offset
    of 0 it is 0."""
    half = len(offsets) // 2
    crossings = []
    for side in (slice(half - 1, None, -1), slice(half, None)):
        far, root = np.abs([0.0, *offsets[side]]), np.sqrt(np.maximum([0.0, *growth[side]], 0))
        last = int(np.flatnonzero(root <= 1)[-1])
        share = (1 - root[last]) / (root[last + 1] - root[last]) if last + 1 < len(far) else 0.0
        crossings.append(far[last] + share * (far[min(last + 1, len(far) - 1)] - far[last]))
    return np.array([-crossings[0], crossings[1]])


def not_told_apart(reach: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Values that differ by orders of magnitude while the prices of the points stay the same."""
    return {
        name: f"not told apart by these points: anything from {low:.2g} to {high:.2g} does"
        for name, (low, high) in reach.items()
        if high > low * np.exp(2 * TOO_WIDE)
    }
