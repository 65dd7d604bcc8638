"""Fits a family to measured collectives instead of probes: the values whose prices of the very schedules that were
measured come nearest to the times. What is fitted this way is not held out, and says so.

    >>> points = [Point("", "bcast", "linear", "", "", ranks=2, bytes=size) for size in (0, 1000, 2000, 4000)]
    >>> fitted = fit_points(family("hockney"), points, [1e-5 + 1e-9 * point.bytes for point in points])
    >>> {name: f"{draws[0]:.3g}" for name, draws in fitted.values.items()}
    {'alpha.a': '1e-05', 'beta.a': '1e-09'}

Nearest means the least sum of squares of ln(price/time), which is the relative error where errors are small and counts
twice as slow as much as twice as fast; what is far more off than usual counts less than its square (see `search.py`),
so that a few times that no values explain do not move those that explain the rest. All values are positive, so their
logarithms are searched, from many starts.
Where several sets of values meet the points equally well, the one nearest to the family's first guess is taken.
Draws: the misfit is put on again with random factors (wild bootstrap) and every draw is fitted anew, from values up to
a hundred times smaller or larger than the best; where that ends well it is kept, else a fit from the best values is. An
interval also holds how far each value can go while the others make up for it (profile likelihood). So a value that the
points do not depend on, or only together with another, comes out wide, and prices of the draws do not.
The search turns at kinks of the prices, so that its end may hang on one bit. Hence it starts from the same bits
everywhere: points in one order, times of ten digits, and arithmetic that no processor rounds in its own way.
Where several values compete for one effect, as a gap with the overheads below it, the best fit takes what suits the
noise from each: on synthetic LogGP machines the 95 % intervals of g held the truth in 92 % of the cases, gamma's in 87.
"""

from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np

from commodel.errors import UserError
from commodel.fit.pieces import by_size
from commodel.fit.probes import as_parameters
from commodel.fit.reach import ONE_MORE, intervals, not_told_apart
from commodel.fit.search import FARTHEST_START, MOVE, STEPS_AT_FIRST, STEPS_FROM_AFAR, STEPS_FROM_NEAR, Task
from commodel.fit.seen import in_parts, reached, that_it_sees
from commodel.fit.unseen import errors_unseen, refitted
from commodel.models import Array
from commodel.models.families import Family, family, family_names, forms_of
from commodel.models.fitting.curves import curve
from commodel.models.fitting.descent import SMALL
from commodel.models.fitting.observed import DRAWS, Fitted
from commodel.models.fitting.portable import exp, log, normals, products, solve
from commodel.parameters import ParameterSet
from commodel.patterns.build import schedule
from commodel.progress import at
from commodel.records import Point

GAMMA_GUESS = 1e-10
STARTS, FEWER_STARTS = 40, 12  # first guesses that are improved; fewer where that takes long
ROUNDS, STEADY = 10, 0.02  # in which weights follow the fit and the fit the weights, until they change no more
ENDS, FEWER_ENDS = 5, 3  # of their ends, the best, that are carried on to the minimum
DIGITS = 10  # of a time: fewer than a number holds, more than anybody measures
BUDGET, FEWEST_DRAWS = 4_000_000, 40  # messages × draws, and as many draws at least
RESTING, FARTHEST = 1e-4, 1.0  # of draws along lines: what hardly matters rests, and no value goes farther
PULL = 0.05  # of the noise: what it costs to be FARTHEST_START from the first guess; too little to move them
EDGE = "found in the points; the change lies between this size and the next larger message"
BLIND = "points of one size do not tell it"


def from_collectives() -> list[str]:
    """The families whose values collectives alone can tell."""
    return [name for name in family_names() if _can(family(name))]


def _can(entry: Family) -> bool:
    return entry.from_points is not None or entry.fit_points is not None


def fit_measured(
    points: Sequence[Point],
    seconds: Sequence[float],
    name: str,
    where: str,
    seed: int = 1,
) -> ParameterSet:
    """One family from collectives alone. Unlike every other set, this one has seen matrix points; it says so."""
    entry = family(name)
    fitted = fit_points(entry, points, seconds, seed)
    used, parameters = len(fitted.curves[0].x), as_parameters(entry, fitted)
    return replace(
        parameters,
        settings={
            **parameters.settings,
            "probed": reached(points),
            "fitted_ranks": [min(point.ranks for point in points), max(point.ranks for point in points)],
        },
        source=f"fitted from {used} points of {where}; these points are not held out",
        provenance={"held_out": False, "points": used, "seed": seed},
    )


def regression(points: Sequence[Point], seconds: Sequence[float], name: str = "pmnf") -> ParameterSet:
    """A family that has a way of its own to be fitted, without a look at how far off it is elsewhere."""
    entry = family(name)
    return as_parameters(entry, entry.fit_points([schedule(point) for point in points], np.asarray(seconds)))


def fit_points(entry: Family, points: Sequence[Point], seconds: Sequence[float], seed: int = 1) -> Fitted:
    """A family's values from points and the time that each took."""
    if not _can(entry):
        raise UserError(f"family {entry.name} cannot be fitted to collectives alone: it needs its probes")
    points, seconds = that_it_sees(entry, list(points), np.asarray(seconds, dtype=float))
    given, (order, points, seconds) = seconds, _in_order(points, seconds)
    if entry.fit_points is not None:
        schedules = [schedule(point) for point in points]
        fitted = entry.fit_points(
            schedules, given[order]
        )  # its own search has no kinks: it takes the times to the last bit
        return replace(fitted, errors=errors_unseen(points, given[order], refitted(entry, schedules, given[order])))
    stacks = list(in_parts(points))
    guess = dict(entry.from_points)
    works = any(pattern.reduces for _, pattern, _ in stacks)
    if works and entry.uses_bytes and "gamma" in entry.by_name:
        guess["gamma"] = GAMMA_GUESS  # at one small size it would be told from nothing
    if len(points) <= len(guess):
        wanted = f"wanted more than its {len(guess)} values: {', '.join(guess)}"
        raise UserError(f"family {entry.name}: found {len(points)} points, {wanted}")
    forms = forms_of(entry, guess)
    task = Task(entry, tuple(guess), forms, stacks, seconds)
    rng = np.random.default_rng(seed)
    at(f"the best values for {len(points)} points")
    task, best, as_good = _best(task, log(list(guess.values())), rng)
    whole = len(task.names)
    task, best = by_size(task, best)
    as_good = best[None] if len(best) > whole else as_good
    at("draws")
    logs = _drawn(task, best, rng)
    reach = intervals(task, logs, as_good)
    at("how far off it is at sizes, ranks and operations left out")
    unseen_errors = errors_unseen(points, seconds, lambda masks: task.without(masks, best))
    values = {name: exp(logs[:, i]) for i, name in enumerate(task.names)}
    values |= {name: np.full(len(logs), edge) for name, edge in task.fixed.items()}
    back = np.argsort(order)
    sizes = [float(points[number].bytes) for number in back]
    labels = ("size of the operation / B", "time / s")
    title, prices = "price of the fitted points", task.prices(best[None])[0, back]
    evidence = curve(title, sizes, given, prices, entry.equation, len(values), labels)
    messages = np.concatenate([end for _, pattern, _ in stacks if pattern.messages for end in pattern.extremes()])
    within = (float(messages.min()), float(messages.max())) if len(messages) else (0.0, 0.0)
    unseen = "gamma" in entry.by_name and "gamma" not in values
    return Fitted(
        values,
        within,
        forms=task.forms,
        notes=dict.fromkeys(task.fixed, EDGE),
        unknown=not_told_apart(reach),
        reach=reach,
        curves=(evidence,),
        missing={"gamma": "not seen: " + (BLIND if works else "no point reduces")} if unseen else {},
        errors=unseen_errors,
    )


def _in_order(points: list[Point], seconds: Array) -> tuple[np.ndarray, list[Point], Array]:
    """The same whatever the order of the table, and without the digits in which equal times may differ; first where
    each stood."""
    rounded = np.array([float(f"{time:.{DIGITS}g}") for time in seconds])
    order = sorted(range(len(points)), key=lambda number: (*astuple(points[number]), rounded[number]))
    return np.array(order), [points[number] for number in order], rounded[order]


def _best(task: Task, guess: Array, rng: np.random.Generator) -> tuple[Task, Array, Array]:
    """The task with its weights, the best logarithms, and all that were found that are as good. The best is what costs
    least where a distance from the guess costs too, if only a little: so values that the points do not tell apart are
    not left to chance."""
    count, ends = (FEWER_STARTS, FEWER_ENDS) if task.large else (STARTS, ENDS)
    starts = np.vstack([guess, guess + FARTHEST_START * rng.uniform(-1, 1, (count, len(guess)))])
    starts -= np.median(task.misfit(starts), axis=1, keepdims=True)  # a price grows in proportion to all of its values
    targets = np.zeros((len(starts), len(task.seconds)))
    logs, loss = task.nearest(starts, targets, STEPS_AT_FIRST if task.large else STEPS_FROM_AFAR)
    kept = logs[np.argsort(loss, kind="stable")[:ends]]
    if task.large:  # only the best starts are searched to the end
        logs, _ = task.nearest(kept, targets[: len(kept)], STEPS_FROM_AFAR)
        kept = logs
    for _ in range(ROUNDS):
        before, task = task.weights, task.weighed(kept[0])
        kept, loss = task.nearest(kept, targets[: len(kept)], STEPS_FROM_NEAR)
        kept = kept[np.argsort(loss, kind="stable")]
        if np.max(np.abs(task.weights - before)) <= STEADY:
            break
    logs, loss = task.nearest(logs, targets[: len(logs)], STEPS_FROM_NEAR)
    noise = task.noise(task.misfit(kept[:1])[0])
    ends, cost = task.settled(np.vstack([kept, starts[:1]]), starts[0], PULL * noise)
    best = ends[cost.argmin()]
    return task, best, logs[loss <= task.loss(task.misfit(best[None])[0]) + ONE_MORE * noise]


def _drawn(task: Task, best: Array, rng: np.random.Generator) -> Array:
    """The best logarithms, then draws of them; fewer where pricing is slow, and where it is very slow as if prices were
    straight lines near the best."""
    misfit = task.misfit(best[None])[0]
    count, noise = len(misfit), task.noise(misfit)
    # Points that a value hangs on are met closely for that reason alone: their misfit counts for more (HC3).
    moved = task.misfit(best + MOVE * np.eye(len(best)))
    put_on = task.held_back * misfit / np.maximum(1 - _leverage(task.residuals(moved - misfit)), 0.1)
    if task.large:
        moves, _ = task.spread(best, misfit, RESTING)
        noise_put_on = put_on * normals(rng, (DRAWS, count))
        return np.vstack([best, best + np.clip(-noise_put_on @ moves, -FARTHEST, FARTHEST)])
    draws = int(np.clip(BUDGET // max(task.messages, 1), FEWEST_DRAWS, DRAWS))
    target = misfit - put_on * normals(rng, (draws, count))
    near, loss = task.nearest(np.tile(best, (draws, 1)), target, STEPS_FROM_NEAR)
    far, far_loss = task.nearest(best + FARTHEST_START * rng.uniform(-1, 1, near.shape), target, STEPS_FROM_AFAR)
    as_good = far_loss <= loss + ONE_MORE * noise + 1e-12 * count
    return np.vstack([best, np.where(as_good[:, None], far, near)])


def _leverage(slopes: Array) -> Array:
    """How much each point's own time counts in its price, from slopes (values, points)."""
    normal = products(slopes[None])[0]
    ridge = 1e-9 * np.trace(normal) + SMALL  # for values that no price depends on
    solved = solve(np.tile(normal + ridge * np.eye(len(normal)), (slopes.shape[1], 1, 1)), slopes.T)
    return np.sum(solved * slopes.T, axis=1)
