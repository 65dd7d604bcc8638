"""How far sizes are from each other. The time of a short message mostly is what an empty one takes, that of a long one
what its bytes take, and how far off the price of the one is says little of the other. So two sizes are as far apart as
the empty message's part of the time differs, whatever the bytes: hardly at all where both are short. The whole way from
none of it to all of it counts for SPAN doublings, and a size is never nearer than its doublings.
"""

import numpy as np

from commodel.models import Array
from commodel.price.residuals import BYTES, NODES, RANKS, Residuals, numbered

SPAN = 20


def half_size(part: Residuals) -> float:
    """The size at which a message takes twice as long as an empty one (Hockney's n½), by the times that were measured
    of an operation at several sizes, on as many ranks and nodes; the median of these. 0: no two sizes tell."""
    some = part.axes[BYTES] > 0
    if part.seconds is None or not some.any():
        return 0.0
    size, logs, curve = part.axes[BYTES][some], np.log(part.seconds[some]), numbered(part.operation)[some]
    for name in (name for name in (RANKS, NODES) if name in part.axes):
        curve = numbered(curve + 1j * part.axes[name][some])
    cells, place = np.unique(curve + 1j * size, return_inverse=True)
    times = np.exp(np.bincount(place, logs) / np.bincount(place))
    curve, size = cells.real.astype(int), cells.imag
    halves = _half_sizes(curve, size, times)[np.bincount(curve) > 1]
    half = float(np.median(halves)) if len(halves) else 0.0
    return half if np.isfinite(half) else 0.0


def _half_sizes(curve: np.ndarray, size: Array, times: Array) -> Array:
    """Of each curve what an empty message takes over what a byte takes, by the line that is off least in parts of the
    times."""
    start, bytes = 1 / times, size / times
    a, b, c, d, e = (np.bincount(curve, row) for row in (start**2, start * bytes, bytes**2, start, bytes))
    empty, per_byte = np.maximum(d * c - e * b, 0), np.maximum(a * e - b * d, 0)
    return np.divide(empty, per_byte, out=np.full(len(a), np.inf), where=per_byte > 0)


def of_empty(sizes: Array, half: float) -> Array:
    """The part of its time that a message would take without its bytes; the same of all where no half is known."""
    return half / (half + sizes) if half > 0 else np.zeros(np.shape(sizes))


def apart(doublings: Array, one: Array, other: Array) -> Array:
    """How far sizes are, so many doublings apart, of whose times these parts are an empty message's. Less than a
    doubling counts as one."""
    return np.maximum(np.maximum(doublings, 1), SPAN * np.abs(one - other))
