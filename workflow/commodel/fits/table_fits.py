"""Fits of a model to a table of measured collectives (`fit_measured`, `fit_points`), their residuals at held-out points
(`cross_validate_points`), and remarks about a fit (`describe_fit`).

`fit_points` finds the values whose predictions of the measured schedules are nearest to the times. Points of the fit
are not held out, and are marked so. For residuals of held-out points, one size, number of ranks, number of nodes or
operation is left out in turn (or a part of them if there are many), the rest is fitted again without draws, from the
best values, and the points left out are predicted.

    >>> points = [Point("", "bcast", "linear", "", "", ranks=2, bytes=size) for size in (0, 1000, 2000, 4000)]
    >>> fitted = fit_points(family("hockney"), points, [1e-5 + 1e-9 * point.bytes for point in points])
    >>> {name: f"{draws[0]:.3g}" for name, draws in fitted.values.items()}
    {'alpha.a': '1e-05', 'beta.a': '1e-09'}

Loss: the sum of squares of ln(predicted/measured), the relative error for small errors, in which a factor of 2 counts
the same in both directions. Large residuals count less than their square (see `parameter_search.py`), so that a few
unexplained times do not change the values for all others.

Search: all values are positive, so their logarithms are searched, from many starts. If several sets of values fit
equally well, the one nearest to the model's first guess is used. The search turns at kinks of the predictions, so its
result could depend on a single bit. It therefore has the same input bits on all machines: points in one order, times of
ten digits, and arithmetic with defined rounding.

Draws: the residuals are multiplied by random factors and added again (wild bootstrap). Each draw is fitted anew, from
values up to a hundred times smaller or larger than the best; if this fit is worse, one from the best values is used.

Intervals also include the profile likelihood: how far each value can move while the others compensate for it. The
interval of a value that the points do not determine, or only together with another, is therefore wide; the intervals of
predictions are not. If several values compete for one effect, such as a gap with smaller overheads, the best fit takes
from each what suits the noise. On synthetic LogGP machines, the 95 % interval of g covered the true value in 92 % of
the cases, that of gamma in 87 %.

Remarks name the rows that a fit cannot explain, and a LogGP that is equal to Hockney.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace

import numpy as np

from commodel.errors import UserError
from commodel.fits.measured_tables import Measured
from commodel.fits.parameter_search import (
    DIFFERENCE_STEP,
    MAX_LOG_VALUE,
    START_RANGE,
    STEPS_AT_FIRST,
    STEPS_FROM_AFAR,
    STEPS_FROM_NEAR,
    Task,
    find_protocol_changes,
)
from commodel.fits.probe_fits import make_parameter_set
from commodel.hierarchy import FLAT
from commodel.models import Array
from commodel.models.families import Family, family, family_names, infer_forms
from commodel.models.fitting.numerics import SMALL, exp, log, normals, products, solve
from commodel.models.fitting.observed import DRAWS, Fitted
from commodel.models.fitting.regression import curve
from commodel.parameters import Errors, Estimate, ParameterSet
from commodel.patterns.build import Sum, schedule, shapes, stack_points
from commodel.patterns.layouts import place
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.predictions.prediction_intervals import fit_bands
from commodel.predictions.predictions import predict
from commodel.predictions.residuals import AXES, Residuals, operation_class
from commodel.predictions.validity import SHORT_MESSAGE
from commodel.progress import report_step
from commodel.records import Point
from commodel.stats import MAD_TO_SIGMA
from commodel.units import format_bytes, format_seconds


def in_parts(points: Sequence[Point]) -> Iterator[tuple[list[int], Schedule, int]]:
    """Yield points stacked by shape: their numbers, the schedules, and a count. A sum is split into its parts."""
    for numbers, pattern in stack_points(points, many=True):
        counted = pattern.counted() if isinstance(pattern, Sum) else [(1, pattern)]
        yield from ((numbers, part, count) for count, part in counted)


def select_observable_points(entry: Family, points: list[Point], seconds: Array) -> tuple[list[Point], Array]:
    """Return the points to which a model is fitted, and their times.

    A model that ignores message size is fitted to the smallest size of each pattern, as from probes, and of these to
    messages as short as the shortest: values of all sizes together would hold for none of them.
    """
    if entry.uses_bytes:
        return points, seconds
    smallest = sorted(
        number
        for numbers, shape in shapes(points)
        for number, size in zip(numbers, shape.sizes, strict=True)
        if size == min(shape.sizes)
    )
    longest = {number: _find_longest_message(points[number]) for number in smallest}
    short = max(min((size for size in longest.values() if size), default=0.0), SHORT_MESSAGE)
    kept = [number for number, size in longest.items() if size <= short]
    return [points[number] for number in kept], seconds[kept]


def _find_longest_message(point: Point) -> float:
    """Return the bytes of the longest message, 0 if there is none."""
    ends = (part.extremes()[1] for _, part, _ in in_parts([point]) if part.messages)
    return max((float(end.max()) for end in ends), default=0.0)


def list_placements(points: Sequence[Point]) -> list[str]:
    """Return the distance classes of messages: between nodes, within them, or both."""
    placed = {(point.layout, point.ranks) for point in points}
    return [FLAT.names[apart] for apart in sorted({apart for one in placed for apart in FLAT.classes(place(*one))})]


MAX_LOG_HALF_WIDTH = 0.5  # half of an interval of a logarithm, from which on a value counts as not identifiable
CHI_SQUARED_95 = 3.84  # 95 % of χ² with one degree of freedom: how much worse a fit may be and still be as good


def compute_intervals(task: Task, logs: Array, as_good: Array) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of every value.

    It includes the draws, equally good sets, and the profile likelihood: how far a value can move until the loss grows
    by that of one more free value. In large tables predictions are linearised.
    """
    best, low, high = logs[0], *np.percentile(logs[1:], [2.5, 97.5], axis=0)
    misfit = task.misfit(best[None])[0]
    least, allowed = task.loss(misfit), CHI_SQUARED_95 * task.noise(misfit)
    reach, spread = {}, task.spread(best, misfit)[1] if task.large else None
    for number, name in enumerate(task.names):
        report_step(f"the interval of {name}, value {number + 1} of {len(task.names)}")
        if spread is None:
            offsets, loss = task.profiled(best, number)
            ends = best[number] + _find_crossings(offsets, (loss - least) / allowed)
        else:
            ends = best[number] + np.clip(np.sqrt(allowed * spread[number, number]), 0, MAX_LOG_VALUE) * np.array(
                [-1.0, 1.0]
            )
        logarithms = [low[number], high[number], *as_good[:, number], *ends]
        reach[name] = tuple(float(end) for end in exp(np.array([min(logarithms), max(logarithms)])))
    return reach


def _find_crossings(offsets: Array, growth: Array) -> Array:
    """Return the offsets below and above the best value beyond which `growth` stays above 1.

    Growth is about quadratic in the offset, and 0 at 0.
    """
    half = len(offsets) // 2
    crossings = []
    for side in (slice(half - 1, None, -1), slice(half, None)):
        far, root = np.abs([0.0, *offsets[side]]), np.sqrt(np.maximum([0.0, *growth[side]], 0))
        last = int(np.flatnonzero(root <= 1)[-1])
        share = (1 - root[last]) / (root[last + 1] - root[last]) if last + 1 < len(far) else 0.0
        crossings.append(far[last] + share * (far[min(last + 1, len(far) - 1)] - far[last]))
    return np.array([-crossings[0], crossings[1]])


def find_unidentified(reach: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Return a note for each value that differs by orders of magnitude among fits with equal predictions."""
    return {
        name: f"not identifiable from these points: anything from {low:.2g} to {high:.2g} does"
        for name, (low, high) in reach.items()
        if high > low * np.exp(2 * MAX_LOG_HALF_WIDTH)
    }


FOLDS = 6  # parts that sizes, ranks or operations are left out in, where there are more of them
Again = Callable[[np.ndarray], Array]  # fitted to the points that each row marks: ln(measured/predicted) of all


def cross_validate_points(points: Sequence[Point], seconds: Array, again: Again) -> dict[str, Errors]:
    """Return the errors at held-out points, as the set stores them. A table names no allocations, so all rows count as
    one."""
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
    groups = np.array([point.workload for point in points])
    axes = {name: labels[name] for name in AXES}
    residuals = Residuals(first, labels["operation"], groups, np.full(len(points), ""), axes, left, seconds=seconds)
    return fit_bands(residuals.only(np.all([np.isfinite(logs) for logs in left.values()], axis=0)))


def make_refit(entry: Family, schedules: Sequence[Schedule], seconds: Array) -> Again:
    """Return a function that fits a model with its own fit again, without some of the points."""

    def again(masks: np.ndarray) -> Array:
        return np.array([of_those(np.flatnonzero(seen)) for seen in masks])

    def of_those(kept: np.ndarray) -> Array:
        try:
            fitted = entry.fit_points([schedules[number] for number in kept], seconds[kept])
        except UserError:  # too little is left to fit to
            return np.full(len(seconds), np.nan)
        model = Model.of_fit(entry, fitted)
        predictions = np.array([float(np.ravel(model.cost(pattern))[0]) for pattern in schedules])
        return np.log(seconds / np.where(predictions > 0, predictions, np.nan))

    return again


GAMMA_GUESS = 1e-10
STARTS, FEWER_STARTS = 40, 12  # first guesses that are improved; fewer where that takes long
MAX_REWEIGHTINGS, STEADY_WEIGHTS = (
    10,
    0.02,
)  # in which weights follow the fit and the fit the weights, until they change no more
ENDS, FEWER_ENDS = 5, 3  # of their ends, the best, that are carried on to the minimum
TIME_DIGITS = 10  # of a time: fewer than a float has, more than any measurement has
MAX_MESSAGE_DRAWS, MIN_DRAWS = 4_000_000, 40  # messages × draws, and as many draws at least
DRAW_RIDGE, MAX_DRAW_OFFSET = 1e-4, 1.0  # of draws along lines: what hardly matters rests, and no value goes farther
GUESS_PENALTY = 0.05  # of the noise: what it costs to be START_RANGE from the first guess; too little to move them
EDGE_NOTE = "found in the points; the change lies between this size and the next larger message"
ONE_SIZE_NOTE = "points of one size do not tell it"


def from_collectives() -> list[str]:
    """Return the names of the models whose values can be determined from collectives alone."""
    return [name for name in family_names() if _fits_tables(family(name))]


def _fits_tables(entry: Family) -> bool:
    return entry.initial_values is not None or entry.fit_points is not None


def fit_measured(
    points: Sequence[Point],
    seconds: Sequence[float],
    name: str,
    where: str,
    seed: int = 1,
) -> ParameterSet:
    """Fit one model to measured collectives. Unlike all other sets, this set used matrix points, which its source
    states."""
    entry = family(name)
    fitted = fit_points(entry, points, seconds, seed)
    used, parameters = len(fitted.curves[0].x), make_parameter_set(entry, fitted)
    return replace(
        parameters,
        settings={
            **parameters.settings,
            "probed_classes": list_placements(points),
            "fitted_ranks": [min(point.ranks for point in points), max(point.ranks for point in points)],
        },
        source=f"fitted from {used} points of {where}; these points are not held out",
        provenance={"held_out": False, "points": used, "seed": seed},
    )


def fit_regression(points: Sequence[Point], seconds: Sequence[float], name: str = "pmnf") -> ParameterSet:
    """Fit a model that has its own fit, without residuals of held-out points."""
    entry = family(name)
    return make_parameter_set(entry, entry.fit_points([schedule(point) for point in points], np.asarray(seconds)))


def fit_points(entry: Family, points: Sequence[Point], seconds: Sequence[float], seed: int = 1) -> Fitted:
    """Fit a model to points and their times."""
    if not _fits_tables(entry):
        raise UserError(f"family {entry.name} cannot be fitted to collectives alone: it needs its probes")
    points, seconds = select_observable_points(entry, list(points), np.asarray(seconds, dtype=float))
    given, (order, points, seconds) = seconds, _sort_points(points, seconds)
    if entry.fit_points is not None:
        schedules = [schedule(point) for point in points]
        fitted = entry.fit_points(
            schedules, given[order]
        )  # its own search has no kinks: it takes the times to the last bit
        return replace(
            fitted, errors=cross_validate_points(points, given[order], make_refit(entry, schedules, given[order]))
        )
    stacks = list(in_parts(points))
    guess = dict(entry.initial_values)
    works = any(pattern.reduces for _, pattern, _ in stacks)
    if works and entry.uses_bytes and "gamma" in entry.by_name:
        guess["gamma"] = GAMMA_GUESS  # at a single small size it is not identifiable
    if len(points) <= len(guess):
        wanted = f"wanted more than its {len(guess)} values: {', '.join(guess)}"
        raise UserError(f"family {entry.name}: found {len(points)} points, {wanted}")
    forms = infer_forms(entry, guess)
    task = Task(entry, tuple(guess), forms, stacks, seconds)
    rng = np.random.default_rng(seed)
    report_step(f"the best values for {len(points)} points")
    task, best, as_good = _search_best(task, log(list(guess.values())), rng)
    whole = len(task.names)
    task, best = find_protocol_changes(task, best)
    as_good = best[None] if len(best) > whole else as_good
    report_step("draws")
    logs = _draw_samples(task, best, rng)
    reach = compute_intervals(task, logs, as_good)
    report_step("its error at sizes, ranks and operations left out")
    unseen_errors = cross_validate_points(points, seconds, lambda masks: task.without(masks, best))
    values = {name: exp(logs[:, i]) for i, name in enumerate(task.names)}
    values |= {name: np.full(len(logs), edge) for name, edge in task.fixed.items()}
    back = np.argsort(order)
    sizes = [float(points[number].bytes) for number in back]
    labels = ("size of the operation / B", "time / s")
    title, predictions = "prediction of the fitted points", task.predictions(best[None])[0, back]
    evidence = curve(title, sizes, given, predictions, entry.equation, len(values), labels)
    messages = np.concatenate([end for _, pattern, _ in stacks if pattern.messages for end in pattern.extremes()])
    within = (float(messages.min()), float(messages.max())) if len(messages) else (0.0, 0.0)
    unseen = "gamma" in entry.by_name and "gamma" not in values
    return Fitted(
        values,
        within,
        forms=task.forms,
        notes=dict.fromkeys(task.fixed, EDGE_NOTE),
        unknown=find_unidentified(reach),
        reach=reach,
        curves=(evidence,),
        missing={"gamma": "not seen: " + (ONE_SIZE_NOTE if works else "no point reduces")} if unseen else {},
        errors=unseen_errors,
    )


def _sort_points(points: list[Point], seconds: Array) -> tuple[np.ndarray, list[Point], Array]:
    """Return the place of each point, the points in an order that does not depend on the table, and times of ten
    digits."""
    rounded = np.array([float(f"{time:.{TIME_DIGITS}g}") for time in seconds])
    order = sorted(range(len(points)), key=lambda number: (*astuple(points[number]), rounded[number]))
    return np.array(order), [points[number] for number in order], rounded[order]


def _search_best(task: Task, guess: Array, rng: np.random.Generator) -> tuple[Task, Array, Array]:
    """Return the task with its weights, the best logarithms, and all equally good ones.

    A small cost of the distance from the first guess makes the best one unique if the points do not determine all
    values.
    """
    count, ends = (FEWER_STARTS, FEWER_ENDS) if task.large else (STARTS, ENDS)
    starts = np.vstack([guess, guess + START_RANGE * rng.uniform(-1, 1, (count, len(guess)))])
    starts -= np.median(
        task.misfit(starts), axis=1, keepdims=True
    )  # a prediction grows in proportion to all of its values
    targets = np.zeros((len(starts), len(task.seconds)))
    logs, loss = task.nearest(starts, targets, STEPS_AT_FIRST if task.large else STEPS_FROM_AFAR)
    kept = logs[np.argsort(loss, kind="stable")[:ends]]
    if task.large:  # only the best starts are searched to the end
        logs, _ = task.nearest(kept, targets[: len(kept)], STEPS_FROM_AFAR)
        kept = logs
    for _ in range(MAX_REWEIGHTINGS):
        before, task = task.weights, task.weighed(kept[0])
        kept, loss = task.nearest(kept, targets[: len(kept)], STEPS_FROM_NEAR)
        kept = kept[np.argsort(loss, kind="stable")]
        if np.max(np.abs(task.weights - before)) <= STEADY_WEIGHTS:
            break
    logs, loss = task.nearest(logs, targets[: len(logs)], STEPS_FROM_NEAR)
    noise = task.noise(task.misfit(kept[:1])[0])
    ends, cost = task.settled(np.vstack([kept, starts[:1]]), starts[0], GUESS_PENALTY * noise)
    best = ends[cost.argmin()]
    return task, best, logs[loss <= task.loss(task.misfit(best[None])[0]) + CHI_SQUARED_95 * noise]


def _draw_samples(task: Task, best: Array, rng: np.random.Generator) -> Array:
    """Return the best logarithms, then draws of them.

    If predictions are slow there are fewer draws; if they are very slow, predictions are linearised.
    """
    misfit = task.misfit(best[None])[0]
    count, noise = len(misfit), task.noise(misfit)
    # Points that determine a value have small misfits for that reason: these are increased (HC3).
    moved = task.misfit(best + DIFFERENCE_STEP * np.eye(len(best)))
    put_on = task.held_back * misfit / np.maximum(1 - _compute_leverage(task.residuals(moved - misfit)), 0.1)
    if task.large:
        moves, _ = task.spread(best, misfit, DRAW_RIDGE)
        noise_put_on = put_on * normals(rng, (DRAWS, count))
        return np.vstack([best, best + np.clip(-noise_put_on @ moves, -MAX_DRAW_OFFSET, MAX_DRAW_OFFSET)])
    draws = int(np.clip(MAX_MESSAGE_DRAWS // max(task.messages, 1), MIN_DRAWS, DRAWS))
    target = misfit - put_on * normals(rng, (draws, count))
    near, loss = task.nearest(np.tile(best, (draws, 1)), target, STEPS_FROM_NEAR)
    far, far_loss = task.nearest(best + START_RANGE * rng.uniform(-1, 1, near.shape), target, STEPS_FROM_AFAR)
    as_good = far_loss <= loss + CHI_SQUARED_95 * noise + 1e-12 * count
    return np.vstack([best, np.where(as_good[:, None], far, near)])


def _compute_leverage(slopes: Array) -> Array:
    """Return how much each point's own time influences its prediction, from slopes (values, points)."""
    normal = products(slopes[None])[0]
    ridge = 1e-9 * np.trace(normal) + SMALL  # for values that no prediction depends on
    solved = solve(np.tile(normal + ridge * np.eye(len(normal)), (slopes.shape[1], 1, 1)), slopes.T)
    return np.sum(solved * slopes.T, axis=1)


# typical misfits, from which on a row is not explained: one of 10,000 normal ones is as far
MAX_TYPICAL_RESIDUALS = 4.0
MIN_ANOMALY_LOG = math.log(2)  # smaller deviations are never reported
MAX_NAMED_ROWS = 5
SAME_PREDICTIONS = 0.02  # of predictions: a smaller difference does not distinguish two models


def describe_fit(parameters: ParameterSet, measured: Measured, table: str) -> Iterator[str]:
    """Yield a line for each remark about a fit."""
    predictions = predict_seconds(parameters, measured.points)
    yield from _describe_unexplained_rows(predictions, measured, table)
    if parameters.family == "loggp":
        yield from _describe_collapse(parameters, predictions, measured.points)


def _describe_unexplained_rows(predictions: Array, measured: Measured, table: str) -> Iterator[str]:
    """Yield a line for rows whose ratio of time and prediction is far from the median ratio."""
    factors = np.log(np.array(measured.seconds) / predictions)
    predicted = np.isfinite(factors)
    if not predicted.any():
        return
    middle = np.median(factors[predicted])
    far = np.abs(factors - middle)
    allowed = max(MIN_ANOMALY_LOG, MAX_TYPICAL_RESIDUALS * MAD_TO_SIGMA * float(np.median(far[predicted])))
    unexplained = [
        number for number in np.argsort(-np.where(predicted, far, 0), kind="stable") if far[number] > allowed
    ]
    for number in unexplained[:MAX_NAMED_ROWS]:
        point, factor = measured.points[number], math.exp(factors[number])
        lines = ",".join(map(str, measured.lines.get(point, ())))
        what = f"{point.operation} {point.algorithm or point.topology}, {point.ranks} ranks"
        size = format_bytes(point.bytes)
        yield f"{table}:{lines}: {what}, {size}: took {factor:.3g} times its prediction, not explained"
    if len(unexplained) > MAX_NAMED_ROWS:
        yield f"{table}: {len(unexplained) - MAX_NAMED_ROWS} more rows are not explained"


def _describe_collapse(parameters: ParameterSet, predictions: Array, points: list[Point]) -> Iterator[str]:
    """Yield a line if the overheads and the gap of LogGP have no effect.

    LogGP is then Hockney with α = o_s + L + o_r and β = G.
    """
    values = parameters.numbers
    alpha, beta = values["o_s"] + values["L"] + values["o_r"], values["G"]
    numbers = {"alpha.a": (alpha, "s"), "beta.a": (beta, "s/B"), "gamma": (values.get("gamma", 0.0), "s/B")}
    estimates = {name: Estimate(value, unit, value, value) for name, (value, unit) in numbers.items()}
    hockney = ParameterSet(family="hockney", platform="", source="", values=estimates)
    apart = float(np.nanmax(np.abs(np.log(predict_seconds(hockney, points) / predictions))))
    if apart < SAME_PREDICTIONS:
        what = f"α = {format_seconds(alpha)}, β = {beta:.3g} s/B"
        yield f"loggp has collapsed to Hockney, whose predictions with {what} are its own within {100 * apart:.1g} %"


def predict_seconds(parameters: ParameterSet, points: Sequence[Point]) -> Array:
    """Return predicted times; NaN if the model ignores the size of a point, or a time is not above 0."""
    rows = predict(parameters, points, strict=False, draws=0)
    return np.array([row.seconds if row.validity.has_weight and row.seconds > 0 else np.nan for row in rows])
