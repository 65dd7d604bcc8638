"""Search for the values of a model whose predictions of given schedules are nearest to given times. Values are
positive. Their logarithms are searched, many rows at once.

The loss of a residual r = ln(predicted/time) is 2s²(u − 1) with u = √(1 + (r/s)²) and a bend s: quadratic below s,
linear above. Times that the model does not explain therefore have a bounded influence. The minimum is that of squares
with the weights 1/u, which are updated in turn with the values (iteratively reweighted least squares).

`find_protocol_changes` allows functions of the message size to have several pieces. Sizes of the largest messages are
tried as edges, one after the other. An edge is kept if the fit improves by more than the Bayesian information criterion
demands for the values of a piece.
"""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import Family
from commodel.models.fitting.numerics import SMALL, Residuals, descend, exp, log, products, solve
from commodel.models.keys import key
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.progress import report_step
from commodel.stats import MAD_TO_SIGMA
from commodel.units import format_bytes

MAX_CELLS = 500_000  # of one array: sizes × draws × messages
START_RANGE = 4.6  # how far starts lie from a guess, either way: a factor of 100
MAX_LOG_VALUE = 13.8  # how far a value may go: a factor of a million
DIFFERENCE_STEP = 1e-4  # of a logarithm, for difference quotients
STEPPING = {"move": DIFFERENCE_STEP, "longest": 1.5}
MIN_GAIN_OF_DRAW, MIN_GAIN_OF_BEST = (
    1e-4,
    1e-10,
)  # relative gain below which a step was the last: of a draw, and of the best
MIN_SQUARED_RESIDUAL = 1e-10  # mean squared misfit: of points that lie on the model, rounding is all there is
STEPS_OF_BEST, STEPS_FROM_AFAR, STEPS_FROM_NEAR, STEPS_AT_FIRST = 120, 30, 10, 5  # of Gauss and Newton
LARGE_TABLE_MESSAGES = 20_000  # messages of all points
BEND_SD = 1.5  # standard deviations: 95 % as good as a sum of squares where errors are normal
MIN_BEND = 0.005  # of a logarithm: rounding and small effects outside of the model are no reason to reduce a weight
PROFILE_OFFSETS = np.round(
    np.geomspace(0.02, MAX_LOG_VALUE, 16), 6
)  # from the best: where a value is put to see what others make up for


@dataclass(frozen=True, eq=False)
class Task:
    """Schedules with their times, stacked by shape once, and the names of the values to search."""

    family: Family
    names: Sequence[str]
    forms: Mapping[str, str]
    stacks: Sequence[tuple[list[int], Schedule, int]]  # the points of each, and how often they have it
    seconds: Array
    weights: Array | float = 1.0  # of the squares, a number a point
    edges: tuple[float, ...] = ()  # message sizes at which the model's values by size change

    @property
    def fixed(self) -> dict[str, float]:
        """The edges: values that are not searched."""
        functions = self.family.by_size if self.edges else ()
        return {key(name, f"x{number}"): edge for name in functions for number, edge in enumerate(self.edges, 1)}

    @cached_property
    def messages(self) -> int:
        return sum(pattern.sizes * pattern.width for _, pattern, _ in self.stacks)

    @property
    def large(self) -> bool:
        """Whether predicting all points once is so slow that the search must use few evaluations."""
        return self.messages > LARGE_TABLE_MESSAGES

    def spread(self, best: Array, misfit: Array, held: float = 1e-9) -> tuple[Array, Array]:
        """Return how much the misfit of each point moves each value, (points, values), and the covariance of the values
        for misfits of variance 1, both from predictions linearised at the best logarithms. Values on which predictions
        depend less than the share `held` of the mean do not move."""
        slopes = (self.misfit(best + DIFFERENCE_STEP * np.eye(len(best))) - misfit) / DIFFERENCE_STEP
        normal = products(self.residuals(slopes)[None])[0]
        ridge = held * np.trace(normal) / len(normal) + SMALL
        covariance = solve(np.tile(normal + ridge * np.eye(len(normal)), (len(normal), 1, 1)), np.eye(len(normal)))
        return (slopes * self.weights).T @ covariance, covariance

    def weighed(self, best: Array) -> "Task":
        """Return the task with the weights that follow from the misfits at these logarithms."""
        misfit = self.misfit(best[None])[0]
        free = len(misfit) / max(len(misfit) - len(self.names), 1)
        bend = BEND_SD * max(MAD_TO_SIGMA * float(np.median(np.abs(misfit))) * np.sqrt(free), MIN_BEND)
        return replace(self, weights=1 / np.sqrt(1 + np.square(misfit / bend)))

    def residuals(self, misfit: Array) -> Array:
        return misfit * np.sqrt(self.weights)

    def loss(self, misfit: Array) -> float:
        return float(np.sum(np.square(self.residuals(misfit))))

    @property
    def held_back(self) -> float:
        """The factor by which values move less with fixed weights than with updated ones: from u⁻¹ to u⁻³, the
        slope."""
        return float(np.mean(self.weights) / np.mean(self.weights**3))

    def noise(self, misfit: Array) -> float:
        """Return how much one more value reduces the loss if only noise is left; for squares, their mean."""
        squares = np.sum(np.square(self.weights * misfit)) / (len(misfit) - len(self.names))
        return max(float(squares * self.held_back**2 / np.mean(self.weights)), MIN_SQUARED_RESIDUAL)

    def predictions(self, logs: Array) -> Array:
        """Return predicted times (draws, points) of logarithms (draws, values)."""
        predictions, columns = np.zeros((len(logs), len(self.seconds))), exp(logs).T[..., None]
        values = dict(zip(self.names, columns, strict=True)) | {name: np.array([[x]]) for name, x in self.fixed.items()}
        model = Model.of(self.family, Values(values, self.forms))
        for numbers, pattern, count in self.stacks:
            most = max(1, MAX_CELLS // max(pattern.sizes * pattern.width, 1))
            for first in range(0, len(logs), most):
                stop = min(first + most, len(logs))
                cost = model.some(first, stop).cost(pattern)
                predictions[first:stop, numbers] += count * np.broadcast_to(cost, (len(numbers), stop - first)).T
        return predictions

    def misfit(self, logs: Array) -> Array:
        return log(np.maximum(self.predictions(logs), 1e-300) / self.seconds)

    def nearest(self, start: Array, target: Array, steps: int) -> tuple[Array, Array]:
        """Return, from each row of `start`, the logarithms whose misfits are nearest to that row of `target`, and their
        losses."""
        return _descended(
            lambda rows, logs: self.residuals(self.misfit(logs) - target[rows]), start, steps, MIN_GAIN_OF_DRAW
        )

    def without(self, seen: np.ndarray, best: Array) -> Array:
        """Return ln(time/predicted) of all points for each row of flags: fitted near `best` to the flagged points
        only."""
        start = np.tile(best, (len(seen), 1))
        logs, _ = _descended(
            lambda rows, logs: self.residuals(self.misfit(logs)) * seen[rows],
            start,
            STEPS_AT_FIRST if self.large else STEPS_FROM_NEAR,
            MIN_GAIN_OF_DRAW,
        )
        return -self.misfit(logs)

    def settled(self, start: Array, guess: Array, pull: float) -> tuple[Array, Array]:
        """Return the minimum from each row of `start`. A distance of START_RANGE from the first guess adds `pull` to
        the loss."""
        share = np.sqrt(pull)
        return _descended(
            lambda _, logs: np.hstack([self.residuals(self.misfit(logs)), share * (logs - guess) / START_RANGE]),
            start,
            STEPS_OF_BEST,
            MIN_GAIN_OF_BEST,
        )

    def profiled(self, best: Array, number: int) -> tuple[Array, Array]:
        """Return the profile likelihood of one value: offsets `PROFILE_OFFSETS` below and above its best, and the loss
        after the other values have been fitted again."""
        offsets = np.concatenate([-PROFILE_OFFSETS[::-1], PROFILE_OFFSETS])
        start = np.tile(best, (len(offsets), 1))
        start[:, number] += offsets

        def residuals(rows: np.ndarray, logs: Array) -> Array:
            logs[:, number] = start[rows, number]
            return self.residuals(self.misfit(logs))

        bounds = best - 2 * MAX_LOG_VALUE, best + 2 * MAX_LOG_VALUE
        return offsets, descend(residuals, start, bounds, STEPS_FROM_AFAR, rests=MIN_GAIN_OF_DRAW, **STEPPING)[1]


def _descended(residuals: Residuals, start: Array, steps: int, rests: float) -> tuple[Array, Array]:
    bounds = start.min(axis=0) - MAX_LOG_VALUE, start.max(axis=0) + MAX_LOG_VALUE
    return descend(residuals, start, bounds, steps, rests=rests, **STEPPING)


MAX_EDGES = 2
MAX_EDGE_CANDIDATES = 8  # sizes, spread over all that there are
MIN_POINTS_OF_PIECE = 8  # points on either side of an edge
VALUES_OF_EDGE = 3  # values of a piece more, with its edge


def find_protocol_changes(task: Task, best: Array) -> tuple[Task, Array]:
    """Return the task with as many pieces as the points can distinguish, and its best logarithms."""
    count, largest = len(task.seconds), _find_largest_messages(task)
    for _ in range(MAX_EDGES if task.family.by_size else 0):
        trials = []
        for edge in _list_candidate_edges(largest, task.edges):
            report_step(f"whether values change at {format_bytes(int(edge))}")
            trial, start = _add_edge(task, best, edge)
            ends, losses = trial.nearest(
                start[None], np.zeros((1, count)), STEPS_AT_FIRST if task.large else STEPS_FROM_NEAR
            )
            trials.append((float(losses[0]), edge, trial, ends[0]))
        least, _, trial, end = min(trials, key=lambda entry: entry[:2], default=(np.inf, 0.0, task, best))
        loss = max(task.loss(task.misfit(best[None])[0]), count * MIN_SQUARED_RESIDUAL)
        if count * float(log(loss / max(least, SMALL))) <= VALUES_OF_EDGE * float(log(float(count))):
            break
        task = trial.weighed(end)
        best = task.nearest(end[None], np.zeros((1, count)), STEPS_FROM_AFAR)[0][0]
    return task, best


def _find_largest_messages(task: Task) -> Array:
    """Return the largest message of each point."""
    largest = np.zeros(len(task.seconds))
    for numbers, pattern, _ in task.stacks:
        if pattern.messages:
            largest[numbers] = np.maximum(largest[numbers], pattern.extremes()[1])
    return largest


def _list_candidate_edges(largest: Array, edges: tuple[float, ...]) -> Iterator[float]:
    """Return the sizes that can be an edge. The piece before the edge includes it; each piece needs enough points."""
    fit = []
    for edge in np.unique(largest[largest > 0]):
        ends = np.array(sorted({*edges, float(edge)}))
        points = np.bincount(np.searchsorted(ends, largest), minlength=len(ends) + 1)
        if edge not in edges and points.min() >= MIN_POINTS_OF_PIECE:
            fit.append(float(edge))
    yield from (
        fit[number]
        for number in np.unique(np.linspace(0, len(fit) - 1, min(MAX_EDGE_CANDIDATES, len(fit))).astype(int))
    )


def _add_edge(task: Task, best: Array, edge: float) -> tuple[Task, Array]:
    """Return the task with the piece at the edge split into two pieces of equal values."""
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
