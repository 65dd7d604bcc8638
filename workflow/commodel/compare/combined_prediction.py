"""The combined prediction of several models, the expected regret of each alternative, and the
regret of choosing by it.

`combine_predictions` returns the weighted geometric mean of the models' predictions, and ranks
alternatives by expected regret over the joint distribution of their times. Weights are those of the
recommended prediction (`compare/recommended.py`). If too little was measured for these, all weights
are equal. `choose_alternatives` returns for every measured workload the alternative with the lowest
recommended prediction, or the MPI default where it is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from statistics import NormalDist

import numpy as np
import pandas as pd

from commodel.compare.comparison import is_clearly_faster, is_library_default
from commodel.compare.recommended import evaluate_recommended
from commodel.patterns.operations import find_base_name
from commodel.stats import NEGLIGIBLE_DIFFERENCE, NORMAL_QUANTILE

MIN_VARIANCE = 1e-12  # of the logarithm of a ratio
MAX_SHOWN_PERCENT = 99.0


def weigh_equally(models: Collection[str], unprobed: Collection[str]) -> dict[str, float]:
    """Return equal weights of the models that were probed at a placement; of all if none was."""
    counting = [name for name in models if name not in unprobed] or list(models)
    return {name: 1 / len(counting) if name in counting else 0.0 for name in models}


def arrange_weights(
    weights: Mapping[str, Mapping[str, float]], placements: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return for each model an array over alternatives, each entry from the weights at the
    alternative's place."""
    weights_of_places = [weights[placement] for placement in placements]
    arrays = {}
    for name in next(iter(weights.values())):
        arrays[name] = np.array([of_place[name] for of_place in weights_of_places])
    return arrays


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """How many times as fast one alternative is as another, with its 95 % interval, and the
    probability that it is the faster one."""

    ratio: float
    low: float
    high: float
    probability: float

    @property
    def text(self) -> str:
        percent = 100 * self.probability
        probability = "more than 99 %" if percent > MAX_SHOWN_PERCENT else f"{percent:.0f} %"
        interval = f"[{self.low:.3g}, {self.high:.3g}]"
        return (
            f"{self.ratio:.3g} times {interval} as fast, and faster with probability {probability}"
        )


@dataclass(frozen=True, eq=False)
class CombinedPrediction:
    """Arrays with an entry for each alternative: predicted time in seconds with its interval,
    comparison with the best alternative, and `support`, the total weight of the models that predict
    it to be the fastest."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    support: np.ndarray
    regret: np.ndarray  # expected, of choosing this alternative
    # predicted time relative to the best alternative, minus 1; negative if faster, but less certain
    behind: np.ndarray
    as_good: np.ndarray  # statistically tied with the best
    deviation: np.ndarray  # standard deviation of the logarithm
    covariance: np.ndarray  # of the logarithms

    @property
    def best(self) -> int:
        """The alternative with the least expected regret; of several, the fastest."""
        return int(np.lexsort((self.seconds, self.regret))[0])

    def compare(self, first: int, second: int) -> PairedComparison:
        """Return how much faster one alternative is than another. Errors that both share do not
        count."""
        variances = np.diag(self.covariance)
        variance = variances[first] + variances[second] - 2 * self.covariance[first, second]
        deviation = float(np.sqrt(max(variance, MIN_VARIANCE)))
        gain = float(np.log(self.seconds[second] / self.seconds[first]))
        half_width = NORMAL_QUANTILE * deviation
        probability = NormalDist().cdf(gain / deviation)
        return PairedComparison(
            ratio=exp(gain),
            low=exp(gain - half_width),
            high=exp(gain + half_width),
            probability=probability,
        )


def combine_predictions(
    predictions: Mapping[str, np.ndarray],
    weights: Mapping[str, float | np.ndarray],
    covariance: np.ndarray | float = 0.0,
    widening: Mapping[str, np.ndarray] | None = None,
) -> CombinedPrediction:
    """Combine the `predictions` of each model: (draws, alternatives), the first draw the estimate.
    `covariance` is that of the errors of the combined prediction, as logarithms; without measured
    errors it is 0. `widening` is each model's own uncertainty beyond the probed range, as a
    standard deviation; the larger of the two counts."""
    counting = [name for name in predictions if np.any(weights[name] > 0)]
    total = sum(weights[name] for name in counting)
    shares = {name: weights[name] / total for name in counting}
    draws = max(len(predictions[name]) for name in counting)
    resampled = (shares[name] * _resample(np.log(predictions[name]), draws) for name in counting)
    logs = sum(resampled, np.zeros(()))
    shape = logs.shape[1:]
    extra_deviation = sum(shares[name] * widening[name] for name in counting) if widening else 0.0
    variances = np.diag(np.broadcast_to(covariance, shape * 2))
    extra_variance = np.maximum(np.broadcast_to(extra_deviation, shape) ** 2 - variances, 0.0)
    covariance = covariance + np.diag(extra_variance)
    deviations = logs[1:] - logs[1:].mean(axis=0) if draws > 1 else np.zeros((0, *shape))
    covariance = covariance + (
        deviations.T @ deviations / len(deviations) if len(deviations) else 0.0
    )
    regret = compute_expected_regret(logs[0], covariance)
    best = int(np.lexsort((logs[0], regret))[0])
    spread = np.sqrt(np.diag(covariance))
    support = np.zeros(shape)
    for name in counting:
        first = predictions[name][0] <= predictions[name][0].min() * (1 + 1e-9)
        support += np.mean(shares[name]) * first / first.sum()
    excess = logs[0] - logs[0][best]
    difference = np.diag(covariance) + covariance[best, best] - 2 * covariance[best]
    tied = excess <= np.maximum(
        NORMAL_QUANTILE * np.sqrt(np.maximum(difference, 0)), np.log1p(NEGLIGIBLE_DIFFERENCE)
    )
    seconds = np.exp(logs[0])
    ratio = np.exp(NORMAL_QUANTILE * spread)
    interval = seconds / ratio, seconds * ratio
    return CombinedPrediction(
        seconds, *interval, support, regret, np.expm1(excess), tied, spread, covariance
    )


ERROR_DRAWS = 2000  # of joint errors, for the expected regret
VARIANCE_JITTER = 1e-8  # of variances: keeps a Cholesky factor real


def compute_expected_regret(logs: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the expected regret of choosing each alternative, whose times have these means and
    covariances of their logarithms. It is rounded to 0.1 %, since smaller differences are noise of
    the draws."""
    factor = np.linalg.cholesky(covariance + VARIANCE_JITTER * np.eye(len(logs)))
    errors = np.random.default_rng(0).standard_normal((ERROR_DRAWS // 2, len(logs))) @ factor.T
    drawn = logs + np.concatenate([errors, -errors])
    return np.expm1(np.minimum(drawn - drawn.min(axis=1, keepdims=True), 5)).mean(axis=0).round(3)


def _resample(logs: np.ndarray, draws: int) -> np.ndarray:
    """Return the estimate and the wanted number of draws; a model without draws repeats its
    estimate."""
    if len(logs) == 1:
        return np.repeat(logs, draws, axis=0)
    return np.concatenate([logs[:1], logs[1 + np.arange(draws - 1) % (len(logs) - 1)]])


def _round_digits(values: np.ndarray) -> np.ndarray:
    return np.array([float(f"{value:.12g}") for value in values])


def find_pareto_front(seconds: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Return flags of the alternatives that no other one dominates: none is as fast in time and
    time between waves, and faster in one of them. Of equal alternatives all are flagged. Times that
    differ by rounding are equal."""
    seconds = _round_digits(seconds)
    period = _round_digits(period)
    order = np.lexsort((period, seconds))
    efficient = np.zeros(len(seconds), dtype=bool)
    last = None
    for index in order:
        is_equal = last is not None and (seconds[index], period[index]) == (
            seconds[last],
            period[last],
        )
        if last is None or is_equal or period[index] < period[last]:
            efficient[index] = True
            last = index
    return efficient


CHOICE_COLUMNS = [
    "platform",
    "simulated",
    "operation",
    "workload",
    "alternative",
    "layout",
    "measured",
]
# standard deviations by which an alternative has to be faster than the MPI default
MIN_GAIN_DEVIATIONS = 1.0


def is_default_kept(
    default: np.ndarray | float, seconds: np.ndarray | float, deviation: np.ndarray | float
) -> np.ndarray:
    """Return whether the expected gain over the MPI default, as a logarithm, is within its
    uncertainty. If the default's time is unknown (NaN), it is not kept."""
    return np.log(np.divide(default, seconds)) <= MIN_GAIN_DEVIATIONS * deviation


def choose_alternatives(
    comparison: pd.DataFrame, recommended: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return a row for each workload with at least two predicted and measured alternatives: the one
    with the lowest recommended prediction, or the MPI default where that is kept. The row has its
    time, the times of the fastest one and of the default, and the regret. `recommended` comes from
    `evaluate_recommended`."""
    rows = evaluate_recommended(comparison) if recommended is None else recommended
    if rows.empty:
        return pd.DataFrame(
            columns=[*CHOICE_COLUMNS, "fastest", "library_default", "regret", "right"]
        )
    defaults = comparison[is_library_default(comparison) & comparison["measured"].notna()]
    defaults = (
        defaults.sort_values("measured", kind="stable")
        .drop_duplicates("workload")
        .set_index("workload", drop=False)
    )
    rows = rows[rows.groupby("workload")["point"].transform("nunique") > 1].reset_index(drop=True)
    choices = rows.loc[rows.groupby("workload", sort=False)["seconds"].idxmin()].set_index(
        "workload", drop=False
    )
    fastest = (
        rows.loc[rows.groupby("workload")["measured"].idxmin()]
        .set_index("workload", drop=False)
        .loc[choices.index]
    )
    default = choices["workload"].map(defaults["measured"]).astype(float)
    deviation = np.log(choices["high"] / choices["low"]).fillna(0.0) / (2 * NORMAL_QUANTILE)
    keeps_default = is_default_kept(default, choices["seconds"], deviation)
    columns = [*CHOICE_COLUMNS, "measured_low", "measured_high"]
    choices = choices[columns]
    fastest = fastest[columns]
    library = defaults.reindex(choices.index)[columns]
    choices = library.where(keeps_default, choices, axis=0).astype(choices.dtypes)
    fastest = library.where(default < fastest["measured"], fastest, axis=0).astype(fastest.dtypes)
    compared_rows = zip(fastest.to_dict("records"), choices.to_dict("records"), strict=True)
    return (
        choices[CHOICE_COLUMNS]
        .assign(
            fastest=fastest["measured"],
            library_default=default,
            regret=choices["measured"] / fastest["measured"] - 1,
            right=[not is_clearly_faster(first, choice) for first, choice in compared_rows],
        )
        .reset_index(drop=True)
    )


def summarize_recommended_choices(choices: pd.DataFrame) -> pd.DataFrame:
    """Return by platform and operation how often the choice is the fastest or tied, its regret, and
    how much faster than the library default the choices are, and could be (geometric means)."""
    groups = choices.assign(
        operation=choices["operation"].map(find_base_name),
        gain=np.log(choices["library_default"] / choices["measured"]),
        largest_gain=np.log(choices["library_default"] / choices["fastest"]),
    ).groupby(["platform", "simulated", "operation"], sort=False)
    columns = {
        "workloads": groups.size(),
        "right": groups["right"].mean(),
        "regret_mean": groups["regret"].mean(),
        "regret_max": groups["regret"].max(),
        "gain": np.exp(groups["gain"].mean()),
        "largest_gain": np.exp(groups["largest_gain"].mean()),
        "defaults": groups["gain"].count(),
    }
    return pd.DataFrame(columns).reset_index()
