"""Lines with change points: where a line changes is found in the data."""

from itertools import pairwise

import numpy as np

from commodel.models import Array
from commodel.models.fitting.regression import BETTER, aicc, line
from commodel.models.keys import key

FEWEST_SIZES = 3  # sizes of a piece
FEW_SIZES = 8  # sizes: of so many a cut costs what its values do
ROUNDING = 1e-24  # of the squares of all that was measured: smaller misfits mean nothing
TIED = 1e-7  # of a misfit: by how much a later cut must be better


def segments(x: Array, y: Array, weights: Array, most: int = 3) -> list[Array]:
    """Where a line changes: the cases of each piece, so that straight lines through them have the smallest AICc. A
    piece has at least three sizes; the change points count as parameters, and as more where there are many places for
    them. Of equally good cuts the first is taken."""
    places, squares = np.unique(x), weights * y[0] ** 2
    misses = _misses(places, x, y[0], weights)
    misses[misses < ROUNDING * squares.sum()] = 0.0
    chosen_among = 2 * np.log(
        max(len(places) / FEW_SIZES, 1)
    )  # of more places to cut at, one is good by chance more often
    best, chosen = np.inf, [np.argsort(x, kind="stable")]
    for cuts, misfit in _cuts(misses, most):
        score = aicc(misfit / len(x), len(x), 3 * (len(cuts) + 1), np.mean(squares)) + chosen_among * len(cuts)
        if score < best - BETTER:
            edges = [places[0], *places[cuts], np.inf]
            best, chosen = score, [np.flatnonzero((x >= low) & (x < high)) for low, high in pairwise(edges)]
    return chosen


def _misses(places: Array, x: Array, y: Array, weights: Array) -> Array:
    """What the best line (see `line`) through the sizes from one place up to another leaves of the weighed squares; inf
    where these are too few."""
    count = len(places)
    missed = np.full((count, count + 1), np.inf)
    if count < FEWEST_SIZES:
        missed[0, count] = 0.0
        return missed
    first, last = np.triu_indices(count - FEWEST_SIZES + 1)
    last = last + FEWEST_SIZES
    place = np.searchsorted(places, x)
    weight = weights * ((place >= first[:, None]) & (place < last[:, None]))

    def of(column: Array) -> Array:
        return np.sum(weight * column, axis=1, keepdims=True)

    total = of(np.ones(len(x)))
    middle, level = of(x) / total, of(y) / total
    slope = of((x - middle) * (y - level)) / of((x - middle) ** 2)
    below = level < slope * middle
    slope = np.where(below, of(x * y) / of(x * x), slope)
    intercept = np.where(below, 0.0, level - slope * middle)
    flat = slope < 0
    slope, intercept = np.where(flat, 0.0, slope), np.where(flat, level, intercept)
    missed[first, last] = of((y - intercept - slope * x) ** 2)[:, 0]
    return missed


def _cuts(misses: Array, most: int) -> list[tuple[list[int], float]]:
    """The best places to cut at, and what is missed then, of one piece, of two, and so on up to `most`."""
    count = len(misses)
    left = misses[:, count]  # from each place on, in so many pieces
    following: list[np.ndarray] = []  # where the piece that begins at each place ends then
    best = [([], float(left[0]))]
    for _ in range(1, most):
        several = misses[:, :count] + left
        left = several.min(axis=1)
        with np.errstate(invalid="ignore"):
            following.insert(0, (several <= left[:, None] * (1 + TIED)).argmax(axis=1))
        if np.isinf(left[0]):
            break
        cuts = [0]
        for ends in following:
            cuts.append(int(ends[cuts[-1]]))
        best.append((cuts[1:], float(left[0])))
    return best


def piecewise(name: str, x: Array, y: Array, weights: Array, most: int = 3) -> tuple[str, dict[str, Array]]:
    """A line through the cases, or several with the change points found: the form and its coefficients. A piece never
    begins below the end of the piece before it."""
    pieces = segments(x, y, weights, most)
    values: dict[str, Array] = {}
    before = None
    for number, piece in enumerate(pieces):
        a, b = line(x[piece], y[:, piece], weights[piece])
        tail = str(number) if number else ""
        if before is not None:
            edge = float(x[pieces[number - 1]].max())
            a = np.maximum(a, before[0] + before[1] * edge - b * edge)
            values[key(name, f"x{number}")] = np.full(len(y), edge)
        values |= {key(name, f"a{tail}"): a, key(name, f"b{tail}"): b}
        before = (a, b)
    return ("piecewise" if len(pieces) > 1 else "linear"), values
