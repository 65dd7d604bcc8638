"""Fits a family to measured collectives instead of probes: the values whose prices of the very schedules that were
measured come nearest to the times. What is fitted this way is not held out, and says so.

Nearest means the least sum of squares of ln(price/time), which is the relative error where errors are small and counts
twice as slow as much as twice as fast. All values are positive, so their logarithms are searched, from many starts.
Draws: the misfit is put on again with random factors (wild bootstrap) and every draw is fitted anew, from values up to
a hundred times smaller or larger than the best; where that ends well it is kept, else a fit from the best values is. So
a value that the points do not depend on, or only together with another, comes out wide, and prices of the draws do not.
Where several values compete for one effect, as a gap with the overheads below it, the best fit takes what suits the
noise from each: on synthetic LogGP machines the 95 % intervals of g held the truth in 92 % of the cases, gamma's in 87.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.curves import curve
from commodel.descent import descend
from commodel.errors import UserError
from commodel.families import Family, complete, family, family_names, forms_of
from commodel.fit import as_parameters
from commodel.fitting import DRAWS, Fitted
from commodel.patterns import schedule, shapes, stacked
from commodel.records import ParameterSet, Point
from commodel.schedule import Schedule
from commodel.values import Values

CELLS = 500_000  # of one array: sizes × draws × messages
GAMMA_GUESS = 1e-10
STARTS = 40  # first guesses that are improved
FAR = np.log(100.0)  # how far from a guess they lie, either way
BOUND = np.log(1e6)
BUDGET, FEWEST = 4_000_000, 40  # messages × draws, and as many draws at least
WIDE = 0.5  # half of an interval of a logarithm, from which on a value counts as not told apart
DESCENT = {"move": 1e-4, "longest": 1.5, "rests": 1e-4}  # in logarithms
LONG, BRIEF = 30, 10  # steps of it, from afar and from the best
ONE_MORE = 3.84  # 95 % of χ² with one degree of freedom: how much worse a fit may be and still be as good


@dataclass(frozen=True, eq=False)
class Task:
    """Schedules with their times, stacked by shape once, and the names of the values that are sought."""

    family: Family
    names: Sequence[str]
    forms: Mapping[str, str]
    stacks: Sequence[tuple[list[int], Schedule]]
    seconds: np.ndarray

    def prices(self, logs: np.ndarray) -> np.ndarray:
        """(draws, points) of logarithms (draws, values)."""
        found = np.empty((len(logs), len(self.seconds)))
        for numbers, pattern in self.stacks:
            most = max(1, CELLS // max(pattern.bytes.size, 1))
            for first in range(0, len(logs), most):
                part = slice(first, first + most)
                columns = np.exp(logs[part]).T[..., None]
                values = Values(dict(zip(self.names, columns, strict=True)), self.forms)
                cost = pattern.cost(self.family.price(pattern, complete(self.family, values)))
                found[part, numbers] = np.broadcast_to(cost, (len(numbers), columns.shape[1])).T
        return found

    def misfit(self, logs: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(self.prices(logs), 1e-300) / self.seconds)

    def nearest(self, start: np.ndarray, target: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """From each row of `start` to misfits nearest to its row of `target`: logarithms, sums of squares."""
        bounds = start.min(axis=0) - BOUND, start.max(axis=0) + BOUND

        def residuals(rows, logs):
            return self.misfit(logs) - target[rows]

        return descend(residuals, start, bounds, steps, **DESCENT)


def from_collectives() -> list[str]:
    """The families whose values collectives alone can tell."""
    return [name for name in family_names() if _can(family(name))]


def _can(entry: Family) -> bool:
    return entry.from_points is not None or entry.fit_points is not None


def fit_measured(
    points: Sequence[Point], seconds: Sequence[float], name: str, where: str, seed: int = 1
) -> ParameterSet:
    """One family from collectives alone. Unlike every other set, this one has seen matrix points; it says so."""
    entry = family(name)
    fitted = fit_points(entry, points, seconds, seed)
    used = len(fitted.curves[0].x)
    return replace(
        as_parameters(entry, fitted),
        source=f"fitted from {used} points of {where}; these points are not held out",
        provenance={"held_out": False, "points": used, "seed": seed},
    )


def fit_points(entry: Family, points: Sequence[Point], seconds: Sequence[float], seed: int = 1) -> Fitted:
    """A family's values from points and the time that each took."""
    if not _can(entry):
        raise UserError(f"family {entry.name} cannot be fitted to collectives alone: it needs its probes")
    points, seconds = _that_it_sees(entry, list(points), np.asarray(seconds, dtype=float))
    if entry.fit_points is not None:
        return entry.fit_points([schedule(point) for point in points], seconds)
    stacks = list(stacked(points))
    guess = dict(entry.from_points)
    works = any(pattern.work.bytes.any() for _, pattern in stacks)
    if works and entry.uses_bytes and "gamma" in {parameter.name for parameter in entry.parameters}:
        guess["gamma"] = GAMMA_GUESS  # at one small size it would be told from nothing
    if len(points) <= len(guess):
        wanted = f"wanted more than its {len(guess)} values: {', '.join(guess)}"
        raise UserError(f"family {entry.name}: found {len(points)} points, {wanted}")
    forms = forms_of(entry, guess)
    task = Task(entry, tuple(guess), forms, stacks, seconds)
    rng = np.random.default_rng(seed)
    best = _best(task, np.log(list(guess.values())), rng)
    logs = _drawn(task, best, rng)
    values = {name: np.exp(logs[:, i]) for i, name in enumerate(guess)}
    sizes = [float(point.bytes) for point in points]
    evidence = curve(
        "price of the fitted points",
        ("size of the operation / B", "time / s"),
        sizes,
        seconds,
        task.prices(best[None])[0],
        entry.equation,
        len(guess),
    )
    messages = np.concatenate([pattern.bytes.ravel() for _, pattern in stacks])
    within = (float(messages.min()), float(messages.max())) if len(messages) else (0.0, 0.0)
    return Fitted(values, within, forms=forms, unknown=_not_told_apart(task.names, logs), curves=(evidence,))


def _that_it_sees(entry: Family, points: list[Point], seconds: np.ndarray) -> tuple[list[Point], np.ndarray]:
    """A family that is blind to size is fitted to the smallest size of each pattern only, as it is from probes."""
    if entry.uses_bytes:
        return points, seconds
    kept = sorted(
        number
        for numbers, shape in shapes(points)
        for number, size in zip(numbers, shape.sizes, strict=True)
        if size == min(shape.sizes)
    )
    return [points[number] for number in kept], seconds[kept]


def _best(task: Task, guess: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    starts = np.vstack([guess, guess + FAR * rng.uniform(-1, 1, (STARTS, len(guess)))])
    starts -= np.median(task.misfit(starts), axis=1, keepdims=True)  # a price grows in proportion to all of its values
    logs, loss = task.nearest(starts, np.zeros((len(starts), len(task.seconds))), LONG)
    return task.nearest(logs[loss.argmin()][None], np.zeros((1, len(task.seconds))), LONG)[0][0]


def _drawn(task: Task, best: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The best logarithms, then draws of them; fewer where long schedules make pricing slow."""
    misfit = task.misfit(best[None])[0]
    count, noise = len(misfit), np.sum(misfit**2) / (len(misfit) - len(best))
    # Points that a value hangs on are met closely for that reason alone: their misfit counts for more (HC3).
    moved = task.misfit(best + DESCENT["move"] * np.eye(len(best)))
    slopes = (moved - misfit).T
    leverage = np.sum(np.linalg.pinv(slopes).T * slopes, axis=1)
    put_on = misfit / np.maximum(1 - leverage, 0.1)
    messages = sum(pattern.bytes.size for _, pattern in task.stacks)
    draws = int(np.clip(BUDGET // max(messages, 1), FEWEST, DRAWS))
    target = misfit - put_on * rng.standard_normal((draws, count))
    near, loss = task.nearest(np.tile(best, (draws, 1)), target, BRIEF)
    far, far_loss = task.nearest(best + FAR * rng.uniform(-1, 1, near.shape), target, LONG)
    as_good = far_loss <= loss + ONE_MORE * noise + 1e-12 * count
    return np.vstack([best, np.where(as_good[:, None], far, near)])


def _not_told_apart(names: Sequence[str], logs: np.ndarray) -> dict[str, str]:
    """Values whose draws differ by orders of magnitude while the prices of the points stay the same."""
    low, high = np.percentile(logs[1:], [2.5, 97.5], axis=0)
    found = {}
    for number, name in enumerate(names):
        if (high - low)[number] > 2 * WIDE:
            low_end, high_end = np.exp([low[number], high[number]])
            found[name] = f"not told apart by these points: anything from {low_end:.2g} to {high_end:.2g} does"
    return found
