"""How far off a family fitted to collectives is at those that its fit has not seen: of sizes, ranks, nodes, operations
one is left out in turn, or a part of them where there are many; the rest is fitted again, and what was left out priced.
Without draws, and from the best values: that costs little beside the fit itself.
"""

from collections.abc import Callable, Sequence

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.families import Family
from commodel.parameters import Errors
from commodel.patterns.schedule import Schedule
from commodel.price.bands import errors
from commodel.price.model import Model
from commodel.price.residuals import AXES, Residuals, operation_class
from commodel.records import Point

FOLDS = 6  # parts that sizes, ranks or operations are left out in, where there are more of them
Again = Callable[[np.ndarray], Array]  # fitted to the points that each row marks: ln(measured/price) of all


def errors_unseen(points: Sequence[Point], seconds: Array, again: Again) -> dict[str, Errors]:
    """What the set is to carry. A table does not say in which allocations it was measured: they count as one."""
    labels = {
        "bytes": np.array([float(point.bytes) for point in points]),
        "ranks": np.array([float(point.leaves or point.ranks) for point in points]),
        "nodes": np.array([float(point.nodes) for point in points]),
        "operation": np.array([operation_class(point.operation) for point in points]),
    }
    folds = {name: np.unique(values, return_inverse=True)[1] % FOLDS for name, values in labels.items()}
    masks = {name: [fold == number for number in range(fold.max() + 1)] for name, fold in folds.items() if fold.any()}
    if not masks:
        return {}
    alike = np.array_equal(folds["nodes"], folds["ranks"])  # with one rank a node both are the same folds
    apart = {name: outs for name, outs in masks.items() if not (alike and name == "nodes")}
    answers = iter(again(~np.array([out for outs in apart.values() for out in outs])))
    left = {name: np.sum([np.where(out, next(answers), 0.0) for out in outs], axis=0) for name, outs in apart.items()}
    left |= {"nodes": left["ranks"]} if alike and "ranks" in left else {}
    first = next(iter(left.values()))
    groups = np.array([point.group for point in points])
    axes = {name: labels[name] for name in AXES}
    residuals = Residuals(first, labels["operation"], groups, np.full(len(points), ""), axes, left, seconds=seconds)
    return errors(residuals.only(np.all([np.isfinite(logs) for logs in left.values()], axis=0)))


def refitted(entry: Family, schedules: Sequence[Schedule], seconds: Array) -> Again:
    """Of a family that has a way of its own to be fitted."""

    def again(masks: np.ndarray) -> Array:
        return np.array([of_those(np.flatnonzero(seen)) for seen in masks])

    def of_those(kept: np.ndarray) -> Array:
        try:
            fitted = entry.fit_points([schedules[number] for number in kept], seconds[kept])
        except UserError:  # too little is left to fit to
            return np.full(len(seconds), np.nan)
        model = Model.of_fit(entry, fitted)
        prices = np.array([float(np.ravel(model.cost(pattern))[0]) for pattern in schedules])
        return np.log(seconds / np.where(prices > 0, prices, np.nan))

    return again
