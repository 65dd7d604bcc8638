"""PMNF, the performance model normal form: a regression without a model of communication (Calotoiu
et al. 2013).

    T(p, m) = c₀ + Σ_t c_t·p^i_t·log₂(p)^j_t·m^k_t

It has at most two terms t besides the constant; p is the number of ranks and m the largest message.
Every hypothesis of the search space below is fitted by least squares of relative errors with
coefficients ≥ 0, so that no prediction falls. The simplest one is chosen whose error under
leave-one-out cross-validation is within a standard error of the best. Extra-P compares by SMAPE and
allows negative coefficients. All draws have the same exponents: an interval covers the noise, not
the choice of the hypothesis.

If hypotheses explain the data equally well, up to rounding, the one with fewer products of p and m
is chosen, with a note: the probes vary p at one m and m at p = 2, so they cannot separate p·m from
p.

From probes, a fan of n counts as a pattern of n + 1 ranks, half a ping-pong as one of 2, half a
chain of height h as one of h + 1. Such a fit has other patterns than it predicts, and is poor.
`fit_points` fits it to collectives.
"""

from collections.abc import Sequence
from itertools import combinations, product, zip_longest

import numpy as np

from commodel.errors import UserError
from commodel.models.families import (
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    TableFit,
    Values,
)
from commodel.models.fitting.observed import DEFAULT_DRAWS
from commodel.models.fitting.regression import add_misfit_draws, make_curve

# i, j, k
RANK_POWERS, LOG_POWERS, SIZE_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0), (0.0, 1.0, 2.0), (0.0, 0.5, 1.0)
TERMS = [
    (i, j, k)
    for k, i, j in product(SIZE_POWERS, RANK_POWERS, LOG_POWERS)
    if (i, j, k) != (0.0, 0.0, 0.0)
]
# of terms that data cannot distinguish, the first is chosen
TERMS.sort(key=lambda term: any(term[:2]) and term[2] > 0)
NUMBERS_OF_TERMS = range(1, 3)  # of the terms besides the constant
# relative residual of a column on the others, below which these data cannot separate them
COLLINEAR_RESIDUAL = 1e-7
ROUNDING_ERROR = 1e-24  # mean squared relative error that is rounding

Term = tuple[float, float, float]  # the powers i, j, k


def fit(observed: Observed) -> Fitted:
    fan, pingpong, chain = (observed.cases(probe) for probe in ("fan", "pingpong", "chain"))
    ranks = np.concatenate([fan["n"] + 1, np.full(len(pingpong), 2), chain["height"] + 1])
    size = np.concatenate([fan["bytes"], pingpong["bytes"], chain["bytes"]])
    return _fit_hypothesis(
        ranks, size, np.hstack([fan.seconds, pingpong.seconds / 2, chain.seconds / 2])
    )


def fit_points(schedules: Sequence[Schedule], seconds: Array) -> Fitted:
    """Fit measured collectives; draws differ by the misfit only, since each has one time."""
    ranks = np.array([pattern.ranks for pattern in schedules])
    size = np.array([pattern.largest for pattern in schedules])
    return _fit_hypothesis(ranks, size, np.tile(seconds, (1 + DEFAULT_DRAWS, 1)))


def _fit_hypothesis(ranks: np.ndarray, size: np.ndarray, y: Array) -> Fitted:
    """Fit the best hypothesis to times y: (draws, observations)."""
    if len(ranks) < 3:
        raise UserError(f"found {len(ranks)} observation(s), wanted at least 3")
    chosen, error, equal_hypotheses = _choose_terms(ranks, size, y[0])
    columns = _make_columns(chosen, ranks, size)
    coefficients = _solve_coefficients(columns, y)
    text = " + ".join(
        ["c0", *(_format_term(number, term) for number, term in enumerate(chosen, 1))]
    )
    values = {f"c{number}": np.zeros(len(y)) for number in (0, *NUMBERS_OF_TERMS)}
    values |= {f"c{number}": draws for number, draws in enumerate(coefficients.T)}
    notes = {"c0": f"chosen by leave-one-out: {text}, relative error {100 * error:.2g} %"}
    for number, powers in zip_longest(NUMBERS_OF_TERMS, chosen, fillvalue=(0.0, 0.0, 0.0)):
        values |= {
            f"{letter}{number}": np.full(len(y), power)
            for letter, power in zip("ijk", powers, strict=True)
        }
        remarks = [f"its unit is s/B^{powers[2]:g}"] if powers[2] else []
        if any(powers) and equal_hypotheses > 1:
            remarks.append(
                f"{equal_hypotheses - 1} other choice(s) of terms fit these data equally well"
            )
        if remarks:
            notes[f"c{number}"] = "; ".join(remarks)
    fitted, labels = columns @ coefficients[0], ("ranks", "time / s")
    evidence = make_curve("all observations", ranks, y[0], fitted, text, 1 + len(chosen), labels)
    sizes = float(size.min()), float(size.max())
    return Fitted(
        values, sizes, notes=notes, curves=(evidence,), settings={"ranks": int(ranks.max())}
    )


def _format_term(number: int, term: Term) -> str:
    i, j, k = term
    powers = [f"p^{i:g}"] * (i > 0) + [f"log2(p)^{j:g}"] * (j > 0) + [f"m^{k:g}"] * (k > 0)
    return "·".join([f"c{number}", *powers])


def _make_columns(terms: Sequence[Term], ranks: np.ndarray, size: np.ndarray) -> Array:
    """Return the columns of terms, the constant first: (observations, 1 + terms)."""
    ranks, size = ranks.astype(float), size.astype(float)
    columns = [ranks**i * np.log2(ranks) ** j * size**k for i, j, k in terms]
    return np.stack([np.ones(len(ranks)), *columns], axis=-1)


def _choose_terms(
    ranks: np.ndarray, size: np.ndarray, y: Array
) -> tuple[Sequence[Term], float, int]:
    """Return the terms that predict a left-out observation best, their relative error (root mean
    square), and how many hypotheses are equal."""
    columns = _make_columns(TERMS, ranks, size)
    columns = columns / np.maximum(columns.max(axis=0), 1.0) / y[:, None]
    best_sets = []  # of every number of terms
    for count in (0, *NUMBERS_OF_TERMS):
        # constant, terms, the left-out observation, and one degree of freedom
        if len(y) < count + 3:
            continue
        sets = list(combinations(range(len(TERMS)), count))
        indices = np.array(sets, dtype=int).reshape(len(sets), count) + 1
        with_constant = columns[:, np.hstack([np.zeros((len(sets), 1), dtype=int), indices])]
        trials = [_leave_one_out(np.moveaxis(with_constant, 1, 0))]
        if count:
            trials.append(_leave_one_out(np.moveaxis(columns[:, indices], 1, 0)))
        # Without the constant if a coefficient would be < 0 with it.
        errors = np.where(np.isfinite(trials[0][:, :1]), trials[0], trials[-1])
        means = np.mean(errors, axis=1)
        equal = np.flatnonzero(means <= means.min() * (1 + COLLINEAR_RESIDUAL) + ROUNDING_ERROR)
        if np.isfinite(means[equal[0]]):
            best_sets.append(
                ([TERMS[number] for number in sets[equal[0]]], errors[equal[0]], len(equal))
            )
    means = np.array([np.mean(errors) for _, errors, _ in best_sets])
    best = best_sets[means.argmin()][1]
    limit = means.min() + max(np.std(best) / np.sqrt(len(best)), ROUNDING_ERROR)
    terms, chosen_errors, equals = best_sets[int(np.flatnonzero(means <= limit)[0])]
    return terms, float(np.sqrt(np.mean(chosen_errors))), equals


def _leave_one_out(columns: Array) -> Array:
    """Return the squared relative errors (sets, observations) of each observation from a fit
    without it.

    `columns` (sets, observations, terms) are relative to the time. The error is ∞ if a coefficient
    is below 0 or columns are collinear.
    """
    q, r = np.linalg.qr(columns)
    scale = np.linalg.norm(columns, axis=1)
    is_valid = np.all(np.abs(np.diagonal(r, axis1=1, axis2=2)) > COLLINEAR_RESIDUAL * scale, axis=1)
    unit_target = np.ones(columns.shape[1])
    projected = np.swapaxes(q, 1, 2) @ unit_target
    triangular = np.where(is_valid[:, None, None], r, np.eye(r.shape[-1]))
    coefficients = np.linalg.solve(triangular, projected[..., None])[..., 0]
    leverage_rest = 1 - np.sum(q**2, axis=-1)
    is_valid &= np.all(coefficients >= 0, axis=1) & np.all(
        leverage_rest > COLLINEAR_RESIDUAL, axis=1
    )
    residual = 1 - (q @ projected[..., None])[..., 0]
    return np.where(
        is_valid[:, None], (residual / np.maximum(leverage_rest, COLLINEAR_RESIDUAL)) ** 2, np.inf
    )


def _solve_coefficients(columns: Array, y: Array) -> Array:
    """Return coefficients ≥ 0 (draws, terms): of all subsets of columns without a negative one, the
    best fit."""
    scale = np.maximum(columns.max(axis=0), 1.0)
    columns = columns / scale / y[0][:, None]

    def solve_subset(subset: list[int], ratios: Array) -> tuple[Array, Array]:
        coefficients = np.zeros((len(ratios), columns.shape[1]))
        coefficients[:, subset] = ratios @ np.linalg.pinv(columns[:, subset]).T
        loss = np.sum((ratios - coefficients @ columns.T) ** 2, axis=1)
        return coefficients, np.where(np.all(coefficients >= 0, axis=1), loss, np.inf)

    def best(ratios: Array) -> Array:
        count = columns.shape[1]
        trials = [
            solve_subset(list(subset), ratios)
            for n in range(1, count + 1)
            for subset in combinations(range(count), n)
        ]
        chosen = np.argmin([loss for _, loss in trials], axis=0)
        return np.array([coefficients for coefficients, _ in trials])[
            chosen, np.arange(len(ratios))
        ]

    ratios = y / y[0]
    misfit = ratios[0] - columns @ best(ratios[:1])[0]
    return best(add_misfit_draws(ratios, misfit, np.ones(y.shape[1]), columns.shape[1])) / scale


def predict(schedule: Schedule, values: Values) -> Array:
    size = np.asarray(schedule.largest, dtype=float)[..., None]
    ranks = float(schedule.ranks)
    total = values["c0"] + 0.0 * size
    for number in NUMBERS_OF_TERMS:
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
        Parameter("c0", "s", "time of every pattern", recalibrated=False),
        *(
            Parameter(f"c{n}", "s", f"coefficient of term {n}", default=0.0, recalibrated=False)
            for n in NUMBERS_OF_TERMS
        ),
        *(
            Parameter(f"i{n}", "1", f"power of the ranks in term {n}", default=0.0)
            for n in NUMBERS_OF_TERMS
        ),
        *(
            Parameter(f"j{n}", "1", f"power of their logarithm in term {n}", default=0.0)
            for n in NUMBERS_OF_TERMS
        ),
        *(
            Parameter(f"k{n}", "1", f"power of the message in term {n}", default=0.0)
            for n in NUMBERS_OF_TERMS
        ),
    ),
    probes=("fan", "pingpong", "chain"),
    fit=fit,
    predict=predict,
    same_for_all_ranks=True,
    ignores="the pattern: who sends to whom, in which order, and where ranks sit",
    overlaps_work=False,
    table_fit=TableFit(fit=fit_points),
)
