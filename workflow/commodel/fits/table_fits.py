"""Fits of a model to a table of measured collectives (`fit_measured`, `fit_points`), their
residuals at held-out points (`cross_validate_points`), and remarks about a fit (`describe_fit`).

`fit_points` finds the values whose predictions of the measured schedules are nearest to the times.
The source of the set states that its points are not held out. For residuals at held-out points, one
size, number of ranks, number of nodes or operation is left out in turn (or one of FOLDS parts). The
model is fitted to the other points, from the best values and without draws, and predicts the
left-out points.

    >>> points = [Point("", "bcast", "linear", "", "", ranks=2, bytes=size) for size in (0, 1000, 2000, 4000)]
    >>> fitted = fit_points(find_family("hockney"), points, [1e-5 + 1e-9 * point.bytes for point in points])
    >>> {name: f"{draws[0]:.3g}" for name, draws in fitted.values.items()}
    {'alpha.a': '1e-05', 'beta.a': '1e-09', 'gamma': '2e-10'}

Loss: the sum of squares of ln(predicted/measured), the relative error for small errors, in which a
factor of 2 counts the same in both directions. Large residuals count less than their square (see
`parameter_search.py`), so that a few unexplained times do not change the values for all others.

Search: all values are positive, so their logarithms are searched, from many starts. If several sets
of values fit equally well, the one nearest to the model's first guess is used. Predictions have
kinks, so a difference in the last bit could change the result. The search therefore has the same
input bits on all machines: points in a fixed order, times of ten digits, and arithmetic with
defined rounding.

Draws: the residuals are multiplied by random factors and added to the predictions (wild bootstrap).
Each draw is fitted from a start up to a hundred times smaller or larger than the best values, and
from the best values. The first fit is used unless it is worse.

Intervals also include the profile likelihood: how far each value can change while the others
compensate. A value that the points do not determine, or only together with another one, therefore
has a wide interval. The intervals of predictions are not wide. If several values have the same
effect, such as gap and overheads, noise decides between them. On synthetic LogGP machines, the 95 %
interval of g covered the true value in 92 % of the cases, that of gamma in 87 %.

Remarks name the rows that a fit cannot explain, and a LogGP that is equal to Hockney.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter

import numpy as np

from commodel.errors import UserError
from commodel.fits.measured_tables import Measured
from commodel.fits.parameter_search import (
    CHI_SQUARED_95,
    DIFFERENCE_STEP,
    DRAW_RIDGE,
    MAX_LINEAR_STEP,
    MAX_LOG_VALUE,
    MAX_ROUGH_STEPS,
    MAX_STEPS_FROM_FAR,
    MAX_STEPS_FROM_NEAR,
    START_RANGE,
    SearchTask,
    find_protocol_changes,
    stack_parts,
)
from commodel.fits.prior_search import (
    MAX_MESSAGES,
    MAX_POINTS,
    ROUGH_MESSAGES,
    ROUGH_POINTS,
    PriorTask,
    count_messages,
    fit_with_priors,
    select_sample,
)
from commodel.fits.probe_fits import make_parameter_set
from commodel.hierarchy import FLAT
from commodel.models import Array
from commodel.models.families import (
    LOCAL_WORK,
    LOCAL_WORK_PRIOR,
    Family,
    find_family,
    infer_forms,
    list_family_names,
)
from commodel.models.fitting.numerics import (
    MIN_DIVISOR,
    draw_normals,
    exp,
    log,
    multiply_columns,
    solve,
)
from commodel.models.fitting.observed import DEFAULT_DRAWS, Fitted
from commodel.models.fitting.regression import make_curve
from commodel.models.keys import make_key, make_sample_key, parse_key
from commodel.parameters import Estimate, ParameterSet, StoredResiduals
from commodel.patterns.build import build_schedule, group_by_shape
from commodel.patterns.layouts import place_ranks
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from commodel.predictions.places import Places, number_labels
from commodel.predictions.predictions import explain_missing_statistic, predict
from commodel.predictions.residual_model import (
    MIN_FITTED_WORKLOADS,
    MeasuredResiduals,
    ResidualModel,
)
from commodel.predictions.stored_residuals import store_residuals
from commodel.predictions.validity import MIN_COUNTED_BYTES
from commodel.progress import report_step
from commodel.records import Point
from commodel.stats import MAD_TO_SIGMA
from commodel.units import format_bytes, format_seconds


def select_observable_points(
    family: Family, points: list[Point], seconds: Array
) -> tuple[list[Point], Array]:
    """Return the points to which a model is fitted, and their times: those whose statistic it
    predicts.

    A model that ignores message size is fitted only to the smallest size of each pattern, as by
    probes. Of these patterns only those with short messages are used. A fit to all sizes would be
    wrong at each of them.
    """
    predicted = [
        number
        for number, point in enumerate(points)
        if not explain_missing_statistic(family, point)
    ]
    points, seconds = [points[number] for number in predicted], seconds[predicted]
    if family.uses_bytes:
        return points, seconds
    smallest = sorted(
        number
        for numbers, shape in group_by_shape(points)
        for number, size in zip(numbers, shape.sizes, strict=True)
        if size == min(shape.sizes)
    )
    longest = {number: _find_longest_message(points[number]) for number in smallest}
    max_message = max(
        min((size for size in longest.values() if size), default=0.0), MIN_COUNTED_BYTES
    )
    selected = [number for number, size in longest.items() if size <= max_message]
    return [points[number] for number in selected], seconds[selected]


def _find_longest_message(point: Point) -> float:
    """Return the bytes of the longest message, 0 if there is none."""
    ends = (part.extremes()[1] for _, part, _ in stack_parts([point]) if part.messages)
    return max((float(end.max()) for end in ends), default=0.0)


def list_placements(points: Sequence[Point]) -> list[str]:
    """Return the distance classes of messages: between nodes, within them, or both."""
    layouts = {(point.layout, point.ranks) for point in points}
    distances = {
        distance
        for layout, ranks in layouts
        for distance in FLAT.classes(place_ranks(layout, ranks))
    }
    return [FLAT.names[distance] for distance in sorted(distances)]


# half-width of the interval of a logarithm, from which on a value is not identifiable
MAX_LOG_HALF_WIDTH = 0.5


def compute_intervals(
    task: SearchTask, logs: Array, equally_good: Array
) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of every value.

    It includes the draws, equally good sets, and the profile likelihood: the range of a value in
    which the loss does not grow significantly. For large tables predictions are linearised.
    """
    best, low, high = logs[0], *np.percentile(logs[1:], [2.5, 97.5], axis=0)
    misfit = task.misfit(best[None])[0]
    least_loss, allowed_growth = task.loss(misfit), CHI_SQUARED_95 * task.noise(misfit)
    report_step(f"intervals of {', '.join(task.names)}")
    if task.large:
        covariance = task.linearise(best, misfit)[1]
        half_widths = np.clip(np.sqrt(allowed_growth * np.diagonal(covariance)), 0, MAX_LOG_VALUE)
        crossings = half_widths[:, None] * np.array([-1.0, 1.0])
    else:
        offsets, losses = task.profile_values(best)
        crossings = [
            _find_crossings(offsets, (loss - least_loss) / allowed_growth) for loss in losses
        ]
    intervals: dict[str, tuple[float, float]] = {}
    for number, name in enumerate(task.names):
        ends = best[number] + crossings[number]
        logarithms = [low[number], high[number], *equally_good[:, number], *ends]
        smallest, largest = exp(np.array([min(logarithms), max(logarithms)])).tolist()
        intervals[name] = smallest, largest
    return intervals


def _find_crossings(offsets: Array, growth: Array) -> Array:
    """Return the offsets below and above the best value beyond which `growth` stays above 1.

    Growth is about quadratic in the offset, and 0 at 0.
    """
    middle = len(offsets) // 2
    crossings = []
    for direction in (slice(middle - 1, None, -1), slice(middle, None)):
        distances, roots = (
            np.abs([0.0, *offsets[direction]]),
            np.sqrt(np.maximum([0.0, *growth[direction]], 0)),
        )
        last = int(np.flatnonzero(roots <= 1)[-1])
        share = (
            (1 - roots[last]) / (roots[last + 1] - roots[last])
            if last + 1 < len(distances)
            else 0.0
        )
        crossings.append(
            distances[last]
            + share * (distances[min(last + 1, len(distances) - 1)] - distances[last])
        )
    return np.array([-crossings[0], crossings[1]])


def find_unidentified(intervals: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Return a note for each value whose interval is wider than e-fold: half-width
    MAX_LOG_HALF_WIDTH."""
    return {
        name: f"not identifiable from these points: anything from {low:.2g} to {high:.2g} does"
        for name, (low, high) in intervals.items()
        if high > low * np.exp(2 * MAX_LOG_HALF_WIDTH)
    }


# parts of workloads, sizes, places or operations that are left out in turn, if there are more
FOLDS = 6
LEFT_OUT = ("workload", "size", "place", "operation")
ONE_ALLOCATION = "table"  # a table names no allocations
# returns ln(measured/predicted) of all points, after a fit to each row of flags
Refit = Callable[[np.ndarray], Array]


def cross_validate_points(points: Sequence[Point], refit: Refit) -> StoredResiduals | None:
    """Return the residuals at the points of a table, as the set stores them. Their scatter is that
    of fits without a workload, a size, a place or an operation."""
    places = Places.of_points(points, setting="")
    if len(np.unique(places.workload)) < MIN_FITTED_WORKLOADS:
        return None
    folds = {
        kind: number_labels(label) % FOLDS
        for kind, label in places.labels().items()
        if kind in LEFT_OUT
    }
    is_left_out = [
        fold == number for fold in folds.values() for number in range(fold.max() + 1) if fold.any()
    ]
    refitted = iter(refit(~np.array([np.zeros(len(points), dtype=bool), *is_left_out])))
    fitted_logs, left_out = next(refitted), {}
    for kind, fold in folds.items():
        if fold.any():
            logs_of_folds = [
                np.where(fold == number, next(refitted), 0.0) for number in range(fold.max() + 1)
            ]
            left_out[kind] = np.sum(logs_of_folds, axis=0)
    residuals = replace(
        MeasuredResiduals.of(places, fitted_logs, allocation=ONE_ALLOCATION), left_out=left_out
    )
    is_known = np.isfinite(np.array([fitted_logs, *left_out.values()])).all(axis=0)
    model = ResidualModel.fit(residuals.only(np.asarray(is_known)))
    return store_residuals(model) if model else None


def make_refit(family: Family, schedules: Sequence[Schedule], seconds: Array) -> Refit:
    """Return a function that fits a model to some of the points, by the model's own fit."""

    def refit(masks: np.ndarray) -> Array:
        return np.array([refit_points(np.flatnonzero(flags)) for flags in masks])

    def refit_points(numbers: np.ndarray) -> Array:
        assert family.table_fit is not None
        assert family.table_fit.fit is not None
        of_points = [schedules[number] for number in numbers]
        try:
            fitted = family.table_fit.fit(of_points, seconds[numbers])
        except UserError:  # too few points remain
            return np.full(len(seconds), np.nan)
        model = Model.of_fit(family, fitted)
        predictions = np.array([float(np.ravel(model.cost(pattern))[0]) for pattern in schedules])
        return np.log(seconds / np.where(predictions > 0, predictions, np.nan))

    return refit


GAMMA_GUESS = 1e-10
STARTS, FEWER_STARTS = 40, 12  # starts of the search; the second number is for large tables
# updates of weights and fit in turn; they end when no weight changes by more
MAX_REWEIGHTINGS = 10
MAX_WEIGHT_CHANGE = 0.02
# best results of the starts that are searched to the minimum
STARTS_TO_REFINE, FEWER_STARTS_TO_REFINE = 5, 3
# significant digits of a time: fewer than a float has, more than measurements need
TIME_DIGITS = 10
# limit of messages × draws, and the minimum number of draws
MAX_MESSAGE_DRAWS, MIN_DRAWS = 4_000_000, 40
# added loss at a distance of START_RANGE from the first guess, relative to the noise
GUESS_PENALTY = 0.05
EDGE_NOTE = "found in the points; the change lies between this size and the next larger message"
ONE_SIZE_NOTE = "points of one size do not determine it"
NO_LOCAL_WORK_NOTE = "not measured, a typical value: no point reduces or copies"


def list_fitted_by_collectives() -> list[str]:
    """Return the names of the models whose values can be determined from collectives alone."""
    return [name for name in list_family_names() if find_family(name).table_fit]


def fit_measured(
    points: Sequence[Point],
    seconds: Sequence[float],
    name: str,
    table: str,
    seed: int = 1,
) -> ParameterSet:
    """Fit one model to measured collectives. Unlike all other sets, this set used matrix points,
    which its source states."""
    family = find_family(name)
    fitted = fit_points(family, points, seconds, seed)
    used, parameters = len(fitted.curves[0].x), make_parameter_set(family, fitted)
    ranks = [point.ranks for point in points]
    return replace(
        parameters.with_settings(
            probed_classes=list_placements(points), fitted_ranks=[min(ranks), max(ranks)]
        ),
        source=f"fitted from {used} points of {table}; these points are not held out",
        provenance={"held_out": False, "points": used, "seed": seed},
    )


def fit_regression(points: Sequence[Point], seconds: Sequence[float]) -> ParameterSet:
    """Fit a regression in the performance model normal form, without residuals of held-out
    points."""
    family = find_family("pmnf")
    assert family.table_fit is not None
    assert family.table_fit.fit is not None
    schedules = [build_schedule(point) for point in points]
    return make_parameter_set(family, family.table_fit.fit(schedules, np.asarray(seconds)))


def fit_points(
    family: Family, points: Sequence[Point], seconds: Sequence[float], seed: int = 1
) -> Fitted:
    how = family.table_fit
    if how is None:
        raise UserError(
            f"model {family.name} cannot be fitted to collectives alone: it needs its probes"
        )
    table_points, table_seconds = select_observable_points(
        family, list(points), np.asarray(seconds, dtype=float)
    )
    rng = np.random.default_rng(seed)
    if how.priors is None:
        table_points, table_seconds = _take_sample(table_points, table_seconds, rng)
    order, points, sorted_seconds = _sort_points(table_points, table_seconds)
    # this fit does not depend on the last bit, so times are not rounded
    if how.fit is not None:
        schedules = [build_schedule(point) for point in points]
        exact_seconds = table_seconds[order]
        residuals = cross_validate_points(points, make_refit(family, schedules, exact_seconds))
        return replace(how.fit(schedules, exact_seconds), residuals=residuals)
    if how.priors is not None:
        return _fit_by_priors(family, points, sorted_seconds, rng)
    stacks = list(stack_parts(points))
    guess = dict(how.initial_values)
    has_local_work = any(pattern.has_local_work for _, pattern, _ in stacks)
    if has_local_work and family.uses_bytes and "gamma" in family.by_name:
        guess["gamma"] = GAMMA_GUESS  # at a single small size it is not identifiable
    if len(points) <= len(guess):
        wanted = f"wanted more than its {len(guess)} values: {', '.join(guess)}"
        raise UserError(f"model {family.name}: found {len(points)} points, {wanted}")
    forms = infer_forms(family, guess)
    task = SearchTask(family, tuple(guess), forms, stacks, sorted_seconds)
    report_step(f"the best values for {len(points)} points")
    rough = task
    chosen = select_sample(points, ROUGH_POINTS, ROUGH_MESSAGES, rng) if task.large else []
    if len(chosen) >= MIN_SAMPLE_POINTS:  # the search begins with some of the points
        rough_stacks = list(stack_parts([points[number] for number in chosen]))
        rough = replace(task, stacks=rough_stacks, seconds=sorted_seconds[chosen], is_rough=True)
    first_logs = log(np.array(list(guess.values())))
    rough, best, equally_good = _search_best(rough, first_logs, rng)
    task, best = _refine(task, first_logs, best) if rough.is_rough else (rough, best)
    value_count = len(task.names)
    task, best = find_protocol_changes(task, best)
    equally_good = best[None] if len(best) > value_count else equally_good
    report_step("draws")
    logs = _draw_samples(task, best, rng)
    intervals = compute_intervals(task, logs, equally_good)
    report_step("its error at sizes, ranks and operations left out")
    residuals = cross_validate_points(points, lambda masks: task.refit_without(masks, best))
    values = {name: exp(logs[:, i]) for i, name in enumerate(task.names)}
    values |= {name: np.full(len(logs), edge) for name, edge in task.fixed.items()}
    table_order = np.argsort(order)
    sizes = [float(points[number].bytes) for number in table_order]
    labels = ("size of the operation / B", "time / s")
    title, predictions = (
        "prediction of the fitted points",
        task.predictions(best[None])[0, table_order],
    )
    fitted_curve = make_curve(
        title, sizes, table_seconds, predictions, family.equation, len(values), labels
    )
    messages = np.concatenate(
        [end for _, pattern, _ in stacks if pattern.messages for end in pattern.extremes()]
    )
    size_range = (float(messages.min()), float(messages.max())) if len(messages) else (0.0, 0.0)
    missing, unidentified = {}, find_unidentified(intervals)
    if "gamma" in family.by_name and "gamma" not in values:
        if has_local_work or not family.uses_bytes:
            missing["gamma"] = f"not measured: {ONE_SIZE_NOTE}"
        else:
            values["gamma"] = np.full(len(logs), LOCAL_WORK_PRIOR.typical)
            intervals["gamma"] = LOCAL_WORK_PRIOR.interval
            unidentified["gamma"] = NO_LOCAL_WORK_NOTE
    return Fitted(
        values,
        size_range,
        forms=task.forms,
        notes=dict.fromkeys(task.fixed, EDGE_NOTE),
        unidentified=unidentified,
        intervals=intervals,
        curves=(fitted_curve,),
        missing=missing,
        residuals=residuals,
    )


WHOLE_POINTS, WHOLE_MESSAGES = 1000, 400_000  # of a table that is fitted as a whole
MIN_SAMPLE_POINTS = 40  # of a sample that replaces a table, or with which a search begins


def _take_sample(
    points: list[Point], seconds: Array, rng: np.random.Generator
) -> tuple[list[Point], Array]:
    """Return the points to fit and their times, in the order of the table: all, or a sample of a
    large table."""
    if len(points) <= WHOLE_POINTS and count_messages(points).sum() <= WHOLE_MESSAGES:
        return points, seconds
    order, sorted_points, _ = _sort_points(points, seconds)
    chosen = np.sort(order[select_sample(sorted_points, MAX_POINTS, MAX_MESSAGES, rng)])
    if len(chosen) < MIN_SAMPLE_POINTS:
        return points, seconds
    return [points[number] for number in chosen], seconds[chosen]


PROTOCOL_NOTE = "the best of the powers of two"


def _fit_by_priors(
    family: Family, points: Sequence[Point], seconds: Array, rng: np.random.Generator
) -> Fitted:
    """Return the fit of a model with a prior for each value. Classes of distance without messages
    have no value."""
    how = family.table_fit
    assert how is not None
    assert how.priors is not None
    # The prior of local work is used even if no rank of the points works: copies of other
    # algorithms would else take no time.
    present = {"", *list_placements(points), LOCAL_WORK}
    all_priors = how.priors(_count_ranks_per_node(points))
    priors = {name: prior for name, prior in all_priors.items() if prior.needs in present}
    limits = [name for name, need in how.eager_limits.items() if need in present]
    of_messages = [name for name, prior in priors.items() if prior.needs != LOCAL_WORK]
    if len(points) <= len(of_messages):
        wanted = f"wanted more than its {len(of_messages)} values of messages"
        raise UserError(f"model {family.name}: found {len(points)} points, {wanted}")
    constants = dict.fromkeys(_list_origins(priors), 0.0)
    forms = infer_forms(family, [*priors, *constants])
    settings = dict(how.settings)
    task = PriorTask(family, priors, forms, constants, limits, points, seconds, settings)
    fit = fit_with_priors(task, rng)
    sample = [points[number] for number in fit.sample]
    sample_seconds = seconds[fit.sample]
    report_step("its error at sizes, ranks and operations left out")
    predictions = sample_seconds * exp(fit.misfit)
    title, labels = (
        "prediction of some of the fitted points",
        ("size of the operation / B", "time / s"),
    )
    sizes = [float(point.bytes) for point in sample]
    curve = make_curve(
        title, sizes, sample_seconds, predictions, family.equation, len(priors), labels
    )
    ends = [
        end for _, pattern, _ in fit.task.stacks if pattern.messages for end in pattern.extremes()
    ]
    messages = np.concatenate(ends) if ends else np.zeros(1)
    return Fitted(
        {name: np.array([value]) for name, value in (fit.values | constants).items()},
        (float(messages.min()), float(messages.max())),
        forms=forms,
        notes={name: PROTOCOL_NOTE for name in limits if name in fit.values},
        unidentified=find_unidentified(fit.intervals),
        intervals=fit.intervals,
        curves=(curve,),
        settings=settings,
        missing=fit.missing,
        residuals=cross_validate_points(sample, fit.refit_without),
    )


def _count_ranks_per_node(points: Sequence[Point]) -> int:
    """Return the largest number of ranks on a node."""
    layouts = {(point.layout, point.ranks) for point in points}
    return max(int(np.bincount(place_ranks(layout, ranks)).max()) for layout, ranks in layouts)


def _list_origins(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of values that are 0: functions whose slope or sample has a prior begin at
    0."""
    for key in map(parse_key, names):
        if key.sample:
            yield make_sample_key(key.function, 0, key.sample[1])
        elif key.part == "b":
            yield make_key(key.function, "a")


GET_FIELDS = attrgetter(*(field.name for field in fields(Point)))


def _sort_points(points: list[Point], seconds: Array) -> tuple[np.ndarray, list[Point], Array]:
    """Return the original number of each point, the points in an order that does not depend on the
    table, and times rounded to TIME_DIGITS."""
    rounded = np.array([float(f"{time:.{TIME_DIGITS}g}") for time in seconds])
    order = sorted(
        range(len(points)), key=lambda number: (*GET_FIELDS(points[number]), rounded[number])
    )
    return np.array(order), [points[number] for number in order], rounded[order]


def _search_best(
    task: SearchTask, guess: Array, rng: np.random.Generator
) -> tuple[SearchTask, Array, Array]:
    """Return the task with its weights, the best logarithms, and all equally good ones.

    A small penalty for the distance from the first guess makes the best one unique if the points do
    not determine all values.
    """
    count, kept_count = (
        (FEWER_STARTS, FEWER_STARTS_TO_REFINE) if task.large else (STARTS, STARTS_TO_REFINE)
    )
    starts = np.vstack([guess, guess + START_RANGE * rng.uniform(-1, 1, (count, len(guess)))])
    # Multiplying all values by a factor multiplies predictions by it.
    starts -= np.median(task.misfit(starts), axis=1, keepdims=True)
    targets = np.zeros((len(starts), len(task.seconds)))
    logs, loss = task.fit_targets(
        starts, targets, MAX_ROUGH_STEPS if task.large else MAX_STEPS_FROM_FAR
    )
    candidates = logs[np.argsort(loss, kind="stable")[:kept_count]]
    if task.large:  # only the best starts are searched to the end
        candidates = logs = task.fit_targets(
            candidates, targets[: len(candidates)], MAX_STEPS_FROM_FAR
        )[0]
    for _ in range(MAX_REWEIGHTINGS):
        before, task = task.weights, task.update_weights(candidates[0])
        candidates, loss = task.fit_targets(
            candidates, targets[: len(candidates)], task.steps_from_near
        )
        candidates = candidates[np.argsort(loss, kind="stable")]
        if np.max(np.abs(task.weights - before)) <= MAX_WEIGHT_CHANGE:
            break
    logs, loss = task.fit_targets(logs, targets[: len(logs)], task.steps_from_near)
    noise = task.noise(task.misfit(candidates[:1])[0])
    minima, losses = task.find_minimum(
        np.vstack([candidates, starts[:1]]), starts[0], GUESS_PENALTY * noise
    )
    best = minima[losses.argmin()]
    return task, best, logs[loss <= task.loss(task.misfit(best[None])[0]) + CHI_SQUARED_95 * noise]


def _refine(task: SearchTask, guess: Array, best: Array) -> tuple[SearchTask, Array]:
    """Return a large task with its weights, and the best logarithms near those that fit some of its
    points best."""
    guess = guess - np.median(task.misfit(guess[None]))
    task = task.update_weights(best)
    noise = task.noise(task.misfit(best[None])[0])
    return task, task.find_minimum(best[None], guess, GUESS_PENALTY * noise)[0][0]


def _draw_samples(task: SearchTask, best: Array, rng: np.random.Generator) -> Array:
    """Return the best logarithms, then draws of them.

    If predictions are slow there are fewer draws; if they are very slow, predictions are
    linearised.
    """
    misfit = task.misfit(best[None])[0]
    count, noise = len(misfit), task.noise(misfit)
    # Points with high leverage have small misfits for that reason. Their residuals are increased
    # (HC3).
    shifted = task.misfit(best + DIFFERENCE_STEP * np.eye(len(best)))
    residuals = (
        task.damping_factor
        * misfit
        / np.maximum(1 - _compute_leverage(task.weigh_misfit(shifted - misfit)), 0.1)
    )
    if task.large:
        moves, _ = task.linearise(best, misfit, DRAW_RIDGE)
        noisy_residuals = residuals * draw_normals(rng, (DEFAULT_DRAWS, count))
        return np.vstack(
            [best, best + np.clip(-noisy_residuals @ moves, -MAX_LINEAR_STEP, MAX_LINEAR_STEP)]
        )
    draws = int(np.clip(MAX_MESSAGE_DRAWS // max(task.messages, 1), MIN_DRAWS, DEFAULT_DRAWS))
    target = misfit - residuals * draw_normals(rng, (draws, count))
    from_near, loss = task.fit_targets(np.tile(best, (draws, 1)), target, MAX_STEPS_FROM_NEAR)
    from_far, loss_from_far = task.fit_targets(
        best + START_RANGE * rng.uniform(-1, 1, from_near.shape), target, MAX_STEPS_FROM_FAR
    )
    is_as_good = loss_from_far <= loss + CHI_SQUARED_95 * noise + 1e-12 * count
    return np.vstack([best, np.where(is_as_good[:, None], from_far, from_near)])


def _compute_leverage(slopes: Array) -> Array:
    """Return how much each point's own time influences its prediction, from slopes (values,
    points)."""
    normal = multiply_columns(slopes[None])[0]
    ridge = 1e-9 * np.trace(normal) + MIN_DIVISOR  # for values that no prediction depends on
    solved = solve(np.tile(normal + ridge * np.eye(len(normal)), (slopes.shape[1], 1, 1)), slopes.T)
    return np.sum(solved * slopes.T, axis=1)


# standard deviations of the residuals, beyond which a row is not explained; of normal residuals 1
# in 16,000 is beyond
MAX_TYPICAL_RESIDUALS = 4.0
MIN_ANOMALY_LOG = math.log(2)  # deviation of a logarithm below which rows are not reported
MAX_NAMED_ROWS = 5
MAX_RELATIVE_DIFFERENCE = 0.02  # of predictions, up to which LogGP counts as equal to Hockney


def describe_fit(parameters: ParameterSet, measured: Measured, table: str) -> Iterator[str]:
    """Yield a line for each remark about a fit. Of a large table, only a sample is predicted."""
    points, seconds = _take_sample(
        measured.points, np.array(measured.seconds), np.random.default_rng(1)
    )
    if len(points) < len(measured.points):
        yield f"{table}: remarks are about a sample of {len(points)} of its {len(measured.points)} points"
    measured = replace(measured, points=points, seconds=seconds.tolist())
    predictions = predict_seconds(parameters, measured.points)
    yield from _describe_unexplained_rows(predictions, measured, table)
    if parameters.model == "loggp":
        yield from _describe_collapse(parameters, predictions, measured.points)


def _describe_unexplained_rows(predictions: Array, measured: Measured, table: str) -> Iterator[str]:
    """Yield a line for rows whose ratio of time and prediction is far from the median ratio."""
    factors = np.log(np.array(measured.seconds) / predictions)
    predicted = np.isfinite(factors)
    if not predicted.any():
        return
    median = np.median(factors[predicted])
    distances = np.abs(factors - median)
    max_distance = max(
        MIN_ANOMALY_LOG,
        MAX_TYPICAL_RESIDUALS * MAD_TO_SIGMA * float(np.median(distances[predicted])),
    )
    order = np.argsort(-np.where(predicted, distances, 0), kind="stable")
    unexplained = order[distances[order] > max_distance]
    for number in unexplained[:MAX_NAMED_ROWS]:
        point, factor = measured.points[number], math.exp(factors[number])
        places = ", ".join(measured.places.get(point, ()))
        workload = f"{point.operation} {point.algorithm or point.topology}, {point.ranks} ranks"
        size = format_bytes(point.bytes)
        yield f"{places}: {workload}, {size}: took {factor:.3g} times its prediction, not explained"
    if len(unexplained) > MAX_NAMED_ROWS:
        yield f"{table}: {len(unexplained) - MAX_NAMED_ROWS} more rows are not explained"


def _describe_collapse(
    parameters: ParameterSet, predictions: Array, points: list[Point]
) -> Iterator[str]:
    """Yield a line if the overheads and the gap of LogGP have no effect.

    LogGP is then Hockney with α = o_s + L + o_r and β = G.
    """
    values = parameters.numbers
    alpha, beta = values["o_s"] + values["L"] + values["o_r"], values["G"]
    numbers = {
        "alpha.a": (alpha, "s"),
        "beta.a": (beta, "s/B"),
        "gamma": (values.get("gamma", 0.0), "s/B"),
    }
    estimates = {name: Estimate.exact(value, unit) for name, (value, unit) in numbers.items()}
    hockney = ParameterSet(model="hockney", platform="", source="", values=estimates)
    difference = float(np.nanmax(np.abs(np.log(predict_seconds(hockney, points) / predictions))))
    if difference < MAX_RELATIVE_DIFFERENCE:
        constants = f"α = {format_seconds(alpha)}, β = {beta:.3g} s/B"
        yield f"loggp has collapsed to Hockney: with {constants} predictions are equal within {100 * difference:.1g} %"


def predict_seconds(parameters: ParameterSet, points: Sequence[Point]) -> Array:
    """Return predicted times; NaN if the model ignores the size of a point, or a time is not above
    0."""
    rows = predict(parameters, points, strict=False, draws=0)
    return np.array(
        [row.seconds if row.validity.has_weight and row.seconds > 0 else np.nan for row in rows]
    )
