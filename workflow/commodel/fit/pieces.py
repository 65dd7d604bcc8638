"""Values by message size: where a protocol changes, a family's functions of the size do, as its probes show.

In a fit to collectives the sizes at which they do are tried one after the other, among those of the largest messages of
the points, and kept where the fit gains more by one than two values and an edge more cost (Bayesian information
criterion).
"""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from commodel.fit.search import LEAST_NOISE, STEPS_AT_FIRST, STEPS_FROM_AFAR, STEPS_FROM_NEAR, Task
from commodel.models import Array
from commodel.models.fitting.descent import SMALL
from commodel.models.fitting.portable import log
from commodel.models.keys import key
from commodel.progress import at
from commodel.units import format_bytes

MOST_EDGES = 2
TRIED = 8  # sizes, spread over all that there are
APART = 8  # points on either side of an edge
COST = 3  # values of a piece more, with its edge


def by_size(task: Task, best: Array) -> tuple[Task, Array]:
    """The task with as many pieces as the points tell apart, and its best logarithms."""
    count, largest = len(task.seconds), _largest(task)
    for _ in range(MOST_EDGES if task.family.by_size else 0):
        trials = []
        for edge in _candidates(largest, task.edges):
            at(f"whether values change at {format_bytes(int(edge))}")
            trial, start = _with_edge(task, best, edge)
            ends, losses = trial.nearest(
                start[None], np.zeros((1, count)), STEPS_AT_FIRST if task.large else STEPS_FROM_NEAR
            )
            trials.append((float(losses[0]), edge, trial, ends[0]))
        least, _, trial, end = min(trials, key=lambda entry: entry[:2], default=(np.inf, 0.0, task, best))
        loss = max(task.loss(task.misfit(best[None])[0]), count * LEAST_NOISE)
        if count * float(log(loss / max(least, SMALL))) <= COST * float(log(float(count))):
            break
        task = trial.weighed(end)
        best = task.nearest(end[None], np.zeros((1, count)), STEPS_FROM_AFAR)[0][0]
    return task, best


def _largest(task: Task) -> Array:
    """Message of each point."""
    largest = np.zeros(len(task.seconds))
    for numbers, pattern, _ in task.stacks:
        if pattern.messages:
            largest[numbers] = np.maximum(largest[numbers], pattern.extremes()[1])
    return largest


def _candidates(largest: Array, edges: tuple[float, ...]) -> Iterator[float]:
    """Up to and including an edge the piece before it holds; each must have points enough."""
    fit = []
    for edge in np.unique(largest[largest > 0]):
        ends = np.array(sorted({*edges, float(edge)}))
        points = np.bincount(np.searchsorted(ends, largest), minlength=len(ends) + 1)
        if edge not in edges and points.min() >= APART:
            fit.append(float(edge))
    yield from (fit[number] for number in np.unique(np.linspace(0, len(fit) - 1, min(TRIED, len(fit))).astype(int)))


def _with_edge(task: Task, best: Array, edge: float) -> tuple[Task, Array]:
    """The piece that the edge lies in becomes two of the same values."""
    logs, place = dict(zip(task.names, best, strict=True)), bisect(task.edges, edge)
    pieces = {}
    for function in task.family.by_size:
        column = [logs.pop(key(function, f"a{number or ''}")) for number in range(len(task.edges) + 1)]
        column.insert(place, column[place])
        pieces |= {key(function, f"a{number or ''}"): value for number, value in enumerate(column)}
    logs = pieces | logs
    edges = tuple(sorted((*task.edges, edge)))
    forms = dict(task.forms) | dict.fromkeys(task.family.by_size, "piecewise")
    return replace(task, names=tuple(logs), edges=edges, forms=forms), np.array(list(logs.values()))
