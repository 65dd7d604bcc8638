"""Search for the values of a model whose predictions of given schedules are nearest to given times.

Values are positive, and their logarithms are searched. Arrays of logarithms have one row for each
start or draw.

The loss of a misfit r = ln(predicted/measured) is 2s²(u − 1) with u = √(1 + (r/s)²) and a bend s:
quadratic below s, linear above. Times that the model does not explain therefore have a bounded
influence. The loss is minimised by iteratively reweighted least squares: values and the weights 1/u
of the squares are updated in turn.

`find_protocol_changes` splits functions of the message size into pieces. The sizes of the points'
largest messages are candidates for an edge between two pieces. An edge is kept if the fit improves
by more than the Bayesian information criterion requires for the additional values.
"""

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import Family
from commodel.models.fitting.numerics import (
    MIN_DIVISOR,
    Residuals,
    exp,
    log,
    minimize_rows,
    multiply_columns,
    solve,
)
from commodel.models.keys import make_key
from commodel.patterns.build import ScheduleSum, stack_points
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.progress import report_step
from commodel.records import Point
from commodel.stats import MAD_TO_SIGMA
from commodel.units import format_bytes

MAX_CELLS = 500_000  # of one array: sizes × draws × messages
# largest distance of a start from the first guess, as a logarithm: a factor of 100
START_RANGE = 4.6
# largest distance of a value from its start, as a logarithm: a factor of a million
MAX_LOG_VALUE = 13.8
DIFFERENCE_STEP = 1e-4  # step of a logarithm in difference quotients
SEARCH_STEPS = {"difference_step": DIFFERENCE_STEP, "max_change": 1.5}
# relative gain at which a search stops: of a draw, and of the best values
MIN_GAIN_OF_DRAW = 1e-4
MIN_GAIN_OF_BEST = 1e-10
MIN_SQUARED_RESIDUAL = 1e-10  # mean squared misfit of points that lie on the model: rounding errors
# Gauss-Newton steps: of the best values, from a start far from them or near them, and of a rough
# search in large tables
MAX_STEPS_OF_BEST, MAX_STEPS_FROM_FAR, MAX_STEPS_FROM_NEAR, MAX_ROUGH_STEPS = 120, 30, 10, 5
LARGE_TABLE_MESSAGES = 20_000  # messages of all points, above which fewer predictions are evaluated
# of linearised fits: ridge of the covariance, and largest offset of a value
DRAW_RIDGE, MAX_LINEAR_STEP = 1e-4, 1.0
# standard deviations; for normal errors the estimate has 95 % of the efficiency of least squares
HUBER_SD = 1.5
# of a logarithm; residuals from rounding and small effects outside of the model keep full weight
MIN_BEND = 0.005
# 95 % quantile of χ² with one degree of freedom; a smaller increase of the loss is insignificant
CHI_SQUARED_95 = 3.84
# distances from the best logarithm at which the profile likelihood is evaluated
PROFILE_OFFSETS = np.round(np.geomspace(0.02, MAX_LOG_VALUE, 16), 6)


def stack_parts(points: Sequence[Point]) -> Iterator[tuple[list[int], Schedule, int]]:
    """Yield points stacked by shape: their numbers, their schedules, and a repeat count. A sum is
    split into its parts."""
    for numbers, pattern in stack_points(points, many_sizes=True):
        counted = pattern.iterate_parts() if isinstance(pattern, ScheduleSum) else [(1, pattern)]
        yield from ((numbers, part, count) for count, part in counted)


@dataclass(frozen=True, eq=False)
class SearchTask:
    """Schedules with their measured times, and the names of the values to search. The misfit is
    ln(predicted/measured)."""

    model: Family
    names: Sequence[str]
    forms: Mapping[str, str]  # form of each function of the message size, such as `piecewise`
    # numbers of points, their schedules stacked, and a repeat count
    stacks: Sequence[tuple[list[int], Schedule, int]]
    seconds: Array
    weights: Array | float = 1.0  # of the squared misfits, one for each point
    edges: tuple[float, ...] = ()  # message sizes at which the model's values by size change
    is_rough: bool = False  # whether the points are only some of a large table

    @property
    def by_size(self) -> tuple[str, ...]:
        """The functions of the model that change at the same message sizes."""
        return self.model.table_fit.by_size if self.model.table_fit else ()

    @property
    def fixed(self) -> dict[str, float]:
        """The edges as values of the model, which are not searched."""
        functions = self.by_size if self.edges else ()
        return {
            make_key(name, f"x{number}"): edge
            for name in functions
            for number, edge in enumerate(self.edges, 1)
        }

    @cached_property
    def messages(self) -> int:
        return sum(pattern.sizes * pattern.width for _, pattern, _ in self.stacks)

    @property
    def large(self) -> bool:
        """Whether predicting all points once is so slow that the search must use few
        evaluations."""
        return self.is_rough or self.messages > LARGE_TABLE_MESSAGES

    @property
    def steps_from_near(self) -> int:
        """The number of steps of a search from near the best values."""
        return MAX_ROUGH_STEPS if self.large else MAX_STEPS_FROM_NEAR

    def linearise(
        self, best: Array, misfit: Array, ridge_share: float = 1e-9
    ) -> tuple[Array, Array]:
        """Return the change of each value per misfit of each point, (points, values), and the
        covariance of the values for misfits of variance 1. Both are from predictions linearised at
        the best logarithms. A ridge of `ridge_share` of the mean keeps values fixed that hardly
        influence predictions."""
        slopes = (
            self.misfit(best + DIFFERENCE_STEP * np.eye(len(best))) - misfit
        ) / DIFFERENCE_STEP
        normal = multiply_columns(self.weigh_misfit(slopes)[None])[0]
        ridge = ridge_share * np.trace(normal) / len(normal) + MIN_DIVISOR
        covariance = solve(
            np.tile(normal + ridge * np.eye(len(normal)), (len(normal), 1, 1)), np.eye(len(normal))
        )
        return (slopes * self.weights).T @ covariance, covariance

    def update_weights(self, best: Array) -> "SearchTask":
        """Return the task with the weights that follow from the misfits at these logarithms."""
        misfit = self.misfit(best[None])[0]
        free = len(misfit) / max(len(misfit) - len(self.names), 1)
        bend = HUBER_SD * max(
            MAD_TO_SIGMA * float(np.median(np.abs(misfit))) * np.sqrt(free), MIN_BEND
        )
        return replace(self, weights=1 / np.sqrt(1 + np.square(misfit / bend)))

    def weigh_misfit(self, misfit: Array) -> Array:
        """Return the misfits times the roots of their weights; their squares add up to the loss."""
        return misfit * np.sqrt(self.weights)

    def loss(self, misfit: Array) -> float:
        return float(np.sum(np.square(self.weigh_misfit(misfit))))

    @property
    def damping_factor(self) -> float:
        """The factor by which values change less with fixed weights (u⁻¹) than with updated weights
        (u⁻³)."""
        return float(np.mean(self.weights) / np.mean(self.weights**3))

    def noise(self, misfit: Array) -> float:
        """Return by how much one more value reduces the loss if only noise remains: for least
        squares, the mean square."""
        squares = np.sum(np.square(self.weights * misfit)) / (len(misfit) - len(self.names))
        return max(
            float(squares * self.damping_factor**2 / np.mean(self.weights)), MIN_SQUARED_RESIDUAL
        )

    def predictions(self, logs: Array) -> Array:
        """Return predicted times (draws, points) of logarithms (draws, values)."""
        predictions, columns = np.zeros((len(logs), len(self.seconds))), exp(logs).T[..., None]
        values = dict(zip(self.names, columns, strict=True)) | {
            name: np.array([[x]]) for name, x in self.fixed.items()
        }
        model = Model.of(self.model, Values(values, self.forms))
        for numbers, pattern, count in self.stacks:
            batch_size = max(1, MAX_CELLS // max(pattern.sizes * pattern.width, 1))
            for first in range(0, len(logs), batch_size):
                stop = min(first + batch_size, len(logs))
                cost = model.select_rows(first, stop).cost(pattern)
                predictions[first:stop, numbers] += (
                    count * np.broadcast_to(cost, (len(numbers), stop - first)).T
                )
        return predictions

    def misfit(self, logs: Array) -> Array:
        return log(np.maximum(self.predictions(logs), 1e-300) / self.seconds)

    def fit_targets(self, start: Array, target: Array, steps: int) -> tuple[Array, Array]:
        """Return, for each row of `start`, the logarithms whose misfits are nearest to the same row
        of `target`, and their losses."""
        return _minimize_rows(
            lambda rows, logs: self.weigh_misfit(self.misfit(logs) - target[rows]),
            start,
            steps,
            MIN_GAIN_OF_DRAW,
        )

    def refit_without(self, included: np.ndarray, best: Array) -> Array:
        """Return ln(measured/predicted) of all points for each row of flags, after a fit near
        `best` to only the flagged points; in a large table after one linearised step."""
        if self.large:
            return self._step_without(included, best)
        start = np.tile(best, (len(included), 1))
        logs, _ = _minimize_rows(
            lambda rows, logs: self.weigh_misfit(self.misfit(logs)) * included[rows],
            start,
            self.steps_from_near,
            MIN_GAIN_OF_DRAW,
        )
        return -self.misfit(logs)

    def _step_without(self, included: np.ndarray, best: Array) -> Array:
        """Return what `refit_without` returns, without predictions other than those near `best`."""
        misfit, slopes = self._find_slopes(best)
        weights = self.weights * included
        weighted = slopes * np.sqrt(weights)[:, None, :]
        normal = multiply_columns(weighted)
        ridge = DRAW_RIDGE * np.trace(normal, axis1=1, axis2=2) / len(best) + MIN_DIVISOR
        normal = normal + ridge[:, None, None] * np.eye(len(best))
        steps = -solve(normal, np.sum(slopes * (weights * misfit)[:, None, :], axis=-1))
        steps = np.clip(steps, -MAX_LINEAR_STEP, MAX_LINEAR_STEP)
        return -(misfit + np.sum(steps[:, :, None] * slopes, axis=1))

    def _find_slopes(self, best: Array) -> tuple[Array, Array]:
        """Return the misfit of each point, and its slopes in the logarithms: (values, points)."""
        misfit = self.misfit(np.vstack([best, best + DIFFERENCE_STEP * np.eye(len(best))]))
        return misfit[0], (misfit[1:] - misfit[0]) / DIFFERENCE_STEP

    def find_minimum(self, start: Array, guess: Array, pull: float) -> tuple[Array, Array]:
        """Return the minimum found from each row of `start`, and its loss. A distance of
        START_RANGE from the first guess adds `pull` to the loss."""
        root_of_pull = np.sqrt(pull)
        return _minimize_rows(
            lambda _, logs: np.hstack(
                [self.weigh_misfit(self.misfit(logs)), root_of_pull * (logs - guess) / START_RANGE]
            ),
            start,
            MAX_STEPS_FROM_NEAR if self.large and not self.is_rough else MAX_STEPS_OF_BEST,
            MIN_GAIN_OF_BEST,
        )

    def profile_values(self, best: Array) -> tuple[Array, Array]:
        """Return the profile likelihood of every value: offsets below and above its best logarithm,
        and the loss of each value at each offset after a fit of the other values."""
        offsets = np.concatenate([-PROFILE_OFFSETS[::-1], PROFILE_OFFSETS])
        number = np.repeat(np.arange(len(best)), len(offsets))  # the value that a row moves
        start = np.tile(best, (len(number), 1))
        start[np.arange(len(number)), number] += np.tile(offsets, len(best))

        def residuals(rows: np.ndarray, logs: Array) -> Array:
            logs[np.arange(len(rows)), number[rows]] = start[rows, number[rows]]
            return self.weigh_misfit(self.misfit(logs))

        bounds = best - 2 * MAX_LOG_VALUE, best + 2 * MAX_LOG_VALUE
        loss = minimize_rows(
            residuals, start, bounds, MAX_STEPS_FROM_FAR, min_gain=MIN_GAIN_OF_DRAW, **SEARCH_STEPS
        )[1]
        return offsets, loss.reshape(len(best), -1)


def _minimize_rows(
    residuals: Residuals, start: Array, steps: int, min_gain: float
) -> tuple[Array, Array]:
    bounds = start.min(axis=0) - MAX_LOG_VALUE, start.max(axis=0) + MAX_LOG_VALUE
    return minimize_rows(residuals, start, bounds, steps, min_gain=min_gain, **SEARCH_STEPS)


MAX_EDGES = 2
MAX_EDGE_CANDIDATES = 8  # sizes that are tried, evenly chosen from all possible ones
MIN_POINTS_OF_PIECE = 8  # points on either side of an edge
VALUES_PER_EDGE = 3  # values that an edge adds: itself and two of the new piece


def find_protocol_changes(task: SearchTask, best: Array) -> tuple[SearchTask, Array]:
    """Return the task with as many pieces as the points justify, and its best logarithms."""
    count, largest = len(task.seconds), _find_largest_messages(task)
    for _ in range(MAX_EDGES if task.by_size else 0):
        trials = []
        for edge in _list_candidate_edges(largest, task.edges):
            report_step(f"whether values change at {format_bytes(int(edge))}")
            trial, start = _add_edge(task, best, edge)
            ends, losses = trial.fit_targets(
                start[None], np.zeros((1, count)), trial.steps_from_near
            )
            trials.append((float(losses[0]), edge, trial, ends[0]))
        least, _, trial, end = min(
            trials, key=lambda entry: entry[:2], default=(np.inf, 0.0, task, best)
        )
        loss = max(task.loss(task.misfit(best[None])[0]), count * MIN_SQUARED_RESIDUAL)
        if count * float(log(loss / max(least, MIN_DIVISOR))) <= VALUES_PER_EDGE * float(
            log(float(count))
        ):
            break
        task = trial.update_weights(end)
        best = task.fit_targets(end[None], np.zeros((1, count)), MAX_STEPS_FROM_FAR)[0][0]
    return task, best


def _find_largest_messages(task: SearchTask) -> Array:
    largest = np.zeros(len(task.seconds))
    for numbers, pattern, _ in task.stacks:
        if pattern.messages:
            largest[numbers] = np.maximum(largest[numbers], pattern.extremes()[1])
    return largest


def _list_candidate_edges(largest: Array, edges: tuple[float, ...]) -> Iterator[float]:
    """Return the sizes that can be an edge. The piece before the edge includes it; each piece needs
    enough points."""
    candidates = []
    for edge in np.unique(largest[largest > 0]):
        ends = np.array(sorted({*edges, float(edge)}))
        points = np.bincount(np.searchsorted(ends, largest), minlength=len(ends) + 1)
        if edge not in edges and points.min() >= MIN_POINTS_OF_PIECE:
            candidates.append(float(edge))
    indices = np.linspace(0, len(candidates) - 1, min(MAX_EDGE_CANDIDATES, len(candidates))).astype(
        int
    )
    yield from (candidates[index] for index in np.unique(indices))


def _add_edge(task: SearchTask, best: Array, edge: float) -> tuple[SearchTask, Array]:
    """Return the task with the piece at the edge split into two pieces of equal values."""
    logs, piece = dict(zip(task.names, best, strict=True)), bisect(task.edges, edge)
    pieces: dict[str, float] = {}
    for function in task.by_size:
        values_of_pieces = [
            logs.pop(make_key(function, f"a{number or ''}"))
            for number in range(len(task.edges) + 1)
        ]
        values_of_pieces.insert(piece, values_of_pieces[piece])
        pieces |= {
            make_key(function, f"a{number or ''}"): value
            for number, value in enumerate(values_of_pieces)
        }
    logs = pieces | logs
    edges = tuple(sorted((*task.edges, edge)))
    forms = dict(task.forms) | dict.fromkeys(task.by_size, "piecewise")
    return replace(task, names=tuple(logs), edges=edges, forms=forms), np.array(list(logs.values()))
