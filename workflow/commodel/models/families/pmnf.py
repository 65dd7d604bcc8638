"""PMNF, the performance model normal form: what a regression says that knows no model of communication.

T(p, m) = c0 + Σ c_k · p^i · log2(p)^j · m^k with at most two terms beside the constant, p the ranks of a pattern and m
its largest message: nothing else of the pattern is seen. Every hypothesis of the search space below is fitted by least
squares of relative errors with no coefficient below 0, so that no price falls; the simplest one wins whose error under
leave-one-out cross-validation is within a standard error of the best. Extra-P compares by SMAPE and allows negative
coefficients. Exponents are the same in all draws: an interval holds the noise, not the choice.

Where hypotheses explain the data equally well, to the last bit, the one with fewer products of p and m is taken, and
the set says so: the probes vary p at one m and m at p = 2, so that they cannot tell p·m from p beside m.

From probes, a fan of n is taken as a pattern of n + 1 ranks, a ping-pong halved as one of 2, a chain of height h halved
as one of h + 1. Without measured collectives this is all a black box can know, and for that reason it loses: it has
seen other patterns than it prices. `fit_points` gives it collectives.
"""

from itertools import combinations, product

import numpy as np

from commodel.errors import UserError
from commodel.models.families import Family, Parameter
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import DRAWS, Fitted
from commodel.models.fitting.regression import with_misfit

POWERS, LOGS, SIZES = (0.0, 0.5, 1.0, 1.5, 2.0), (0.0, 1.0, 2.0), (0.0, 0.5, 1.0)  # i, j, k
TERMS = [(i, j, k) for k, i, j in product(SIZES, POWERS, LOGS) if (i, j, k) != (0.0, 0.0, 0.0)]
TERMS.sort(key=lambda term: any(term[:2]) and term[2] > 0)  # of terms that data cannot tell apart, the first is taken
MOST = 2
ALIKE = 1e-7  # what is left of a column beside the others; below, they are the same in these data
NOTHING = 1e-24  # a mean squared relative error that is rounding


def fit(observed):
    fan, pingpong, chain = (observed.cases(probe) for probe in ("fan", "pingpong", "chain"))
    ranks = np.concatenate([fan["n"] + 1, np.full(len(pingpong), 2), chain["height"] + 1])
    size = np.concatenate([fan["bytes"], pingpong["bytes"], chain["bytes"]])
    return _regressed(ranks, size, np.hstack([fan.seconds, pingpong.seconds / 2, chain.seconds / 2]))


def fit_points(schedules, seconds):
    """From measured collectives. One time of each is known: draws differ by the misfit alone."""
    ranks = np.array([pattern.ranks for pattern in schedules])
    size = np.array([pattern.bytes.max(initial=0) for pattern in schedules])
    return _regressed(ranks, size, np.tile(seconds, (1 + DRAWS, 1)))


def _regressed(ranks, size, y) -> Fitted:
    if len(ranks) < 3:
        raise UserError(f"found {len(ranks)} observation(s), wanted at least 3")
    chosen, error, alike = _hypothesis(ranks, size, y[0])
    values = dict.fromkeys(("c0", *(f"c{number + 1}" for number in range(MOST))), np.zeros(len(y)))
    coefficients = _coefficients(_columns(chosen, ranks, size), y)
    values |= {f"c{number}": coefficients[:, number] for number in range(1 + len(chosen))}
    for number in range(MOST):
        term = chosen[number] if number < len(chosen) else (0.0, 0.0, 0.0)
        values |= {f"{letter}{number + 1}": np.full(len(y), power) for letter, power in zip("ijk", term, strict=True)}
    found = _columns(chosen, ranks, size) @ coefficients[0]
    text = " + ".join(["c0", *(_written(number + 1, term) for number, term in enumerate(chosen))])
    evidence = curve("all observations", ("ranks", "time / s"), ranks, y[0], found, text, 1 + len(chosen))
    notes = {"c0": f"chosen by leave-one-out: {text}, relative error {100 * error:.2g} %"}
    if alike > 1:
        notes |= dict.fromkeys(
            (f"c{number + 1}" for number in range(len(chosen))),
            f"these data cannot tell {alike - 1} other choice(s) of terms from this one",
        )
    sizes = float(size.min()), float(size.max())
    for number, (_, _, k) in enumerate(chosen):
        if k:
            name = f"c{number + 1}"
            notes[name] = "; ".join(text for text in (f"its unit is s/B^{k:g}", notes.get(name, "")) if text)
    return Fitted(values, sizes, notes=notes, curves=(evidence,), settings={"ranks": int(ranks.max())})


def _written(number, term) -> str:
    i, j, k = term
    powers = [f"p^{i:g}"] * (i > 0) + [f"log2(p)^{j:g}"] * (j > 0) + [f"m^{k:g}"] * (k > 0)
    return "·".join([f"c{number}", *powers])


def _columns(terms, ranks, size) -> np.ndarray:
    """(observations, 1 + terms): the constant first."""
    ranks, size = ranks.astype(float), size.astype(float)
    columns = [ranks**i * np.log2(ranks) ** j * size**k for i, j, k in terms]
    return np.stack([np.ones(len(ranks)), *columns], axis=-1)


def _hypothesis(ranks, size, y) -> tuple[tuple, float, int]:
    """The terms that predict an observation left out best, their relative error (root mean square), and how many
    hypotheses do as well."""
    columns = _columns(TERMS, ranks, size)
    columns = columns / np.maximum(columns.max(axis=0), 1.0) / y[:, None]
    found = []
    for count in range(MOST + 1):
        if len(y) < count + 3:  # constant, terms, and one observation left out still leave one to spare
            continue
        sets = list(combinations(range(len(TERMS)), count))
        picked = np.array(sets, dtype=int).reshape(len(sets), count) + 1
        with_constant = columns[:, np.hstack([np.zeros((len(sets), 1), dtype=int), picked])]
        tried = [_left_out(np.moveaxis(with_constant, 1, 0))]
        if count:
            tried.append(_left_out(np.moveaxis(columns[:, picked], 1, 0)))
        errors = np.where(np.isfinite(tried[0][:, :1]), tried[0], tried[-1])  # without constant where it would be < 0
        means = np.mean(errors, axis=1)
        alike = np.flatnonzero(means <= means.min() * (1 + ALIKE) + NOTHING)
        if np.isfinite(means[alike[0]]):
            found.append(([TERMS[number] for number in sets[alike[0]]], errors[alike[0]], len(alike)))
    means = np.array([np.mean(errors) for _, errors, _ in found])
    best = found[means.argmin()][1]
    near = means.min() + max(np.std(best) / np.sqrt(len(best)), NOTHING)
    terms, errors, alike = found[int(np.flatnonzero(means <= near)[0])]
    return tuple(terms), float(np.sqrt(np.mean(errors))), alike


def _left_out(columns: np.ndarray) -> np.ndarray:
    """Squared relative errors (sets, observations) where each observation is left out in turn, of columns (sets,
    observations, terms) over the time; infinite where a coefficient is below 0 or columns are alike."""
    q, r = np.linalg.qr(columns)
    scale = np.linalg.norm(columns, axis=1)
    sound = np.all(np.abs(np.diagonal(r, axis1=1, axis2=2)) > ALIKE * scale, axis=1)
    ones = np.ones(columns.shape[1])
    projected = np.swapaxes(q, 1, 2) @ ones
    coefficients = np.linalg.solve(np.where(sound[:, None, None], r, np.eye(r.shape[-1])), projected[..., None])[..., 0]
    spare = 1 - np.sum(q**2, axis=-1)
    sound &= np.all(coefficients >= 0, axis=1) & np.all(spare > ALIKE, axis=1)
    residual = 1 - (q @ projected[..., None])[..., 0]
    return np.where(sound[:, None], (residual / np.maximum(spare, ALIKE)) ** 2, np.inf)


def _coefficients(columns, y) -> np.ndarray:
    """(draws, terms), none below 0: of all choices of columns that give none, the one that fits best."""
    scale = np.maximum(columns.max(axis=0), 1.0)
    columns = columns / scale / y[0][:, None]

    def solved(kept, ratios):
        found = np.zeros((len(ratios), columns.shape[1]))
        found[:, kept] = ratios @ np.linalg.pinv(columns[:, kept]).T
        loss = np.sum((ratios - found @ columns.T) ** 2, axis=1)
        return found, np.where(np.all(found >= 0, axis=1), loss, np.inf)

    def best(ratios):
        count = columns.shape[1]
        tried = [solved(list(kept), ratios) for n in range(1, count + 1) for kept in combinations(range(count), n)]
        chosen = np.argmin([loss for _, loss in tried], axis=0)
        return np.array([found for found, _ in tried])[chosen, np.arange(len(ratios))]

    ratios = y / y[0]
    misfit = ratios[0] - columns @ best(ratios[:1])[0]
    return best(with_misfit(ratios, misfit, np.ones(y.shape[1]), columns.shape[1])) / scale


def price(schedule, values):
    size = np.asarray(schedule.bytes.max(axis=-1, initial=0), dtype=float)[..., None]
    ranks = float(schedule.ranks)
    total = values["c0"] + 0.0 * size
    for number in range(1, MOST + 1):
        i, j, k = (values[f"{letter}{number}"] for letter in "ijk")
        total = total + values[f"c{number}"] * ranks**i * np.log2(ranks) ** j * size**k
    return np.broadcast_to(total, (*total.shape[:-1], schedule.ranks))


FAMILY = Family(
    name="pmnf",
    title="Normal form",
    citation="A. Calotoiu, T. Hoefler, M. Poke, F. Wolf, Using automated performance modeling to find scalability bugs "
    "in complex codes, SC 2013",
    equation="T(p, m) = c0 + c1·p^i1·log2(p)^j1·m^k1 + c2·p^i2·log2(p)^j2·m^k2",
    parameters=(
        Parameter("c0", "s", "what every pattern costs"),
        *(Parameter(f"c{n}", "s", f"coefficient of term {n}", default=0.0) for n in range(1, MOST + 1)),
        *(Parameter(f"i{n}", "1", f"power of the ranks in term {n}", default=0.0) for n in range(1, MOST + 1)),
        *(Parameter(f"j{n}", "1", f"power of their logarithm in term {n}", default=0.0) for n in range(1, MOST + 1)),
        *(Parameter(f"k{n}", "1", f"power of the message in term {n}", default=0.0) for n in range(1, MOST + 1)),
    ),
    probes=("fan", "pingpong", "chain"),
    fit=fit,
    price=price,
    ignores="the pattern: who sends to whom, in which order, and where ranks sit",
    fit_points=fit_points,
)
