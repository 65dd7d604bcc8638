"""The combined prediction of several models: weights from held-out points, and the regret of the choices it makes.

`combine_predictions` returns the weighted geometric mean of the models' predictions. A model's weight is 1/e², e being
the root mean square of ln(predicted/measured) at held-out points; where nothing was measured all weights are equal. All
models neglect the same effects, so their errors are taken to add up, not to cancel. `pick_alternatives` returns, for
every measured workload, the alternative with the lowest combined prediction, with weights from the other workloads.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import pandas as pd

from commodel.compare.comparison import is_clearly_faster, is_library
from commodel.patterns.operations import base
from commodel.predictions.validity import have_weight
from commodel.stats import NEGLIGIBLE, NORMAL

FEWEST_POINTS = 6  # held-out points of one operation, from which on they alone decide on a model's weight
LEAST_ERROR = 0.01  # no model is taken to be better than 1 %: the held-out points are not all that it will predict


@dataclass(frozen=True)
class ModelWeight:
    """The weight of a model. `error` is of a prediction, `contrast` of the ratio of two alternatives' predictions, both
    as standard deviations of a logarithm, NaN where nothing was measured. Each may be an array over alternatives."""

    weight: float | np.ndarray
    error: float | np.ndarray = np.nan
    contrast: float | np.ndarray = np.nan
    points: int | np.ndarray = 0


def weigh_models(families: Collection[str], held_out: pd.DataFrame, operation: str) -> dict[str, ModelWeight]:
    """Return the weight of each model. `held_out` are rows of a comparison on one platform; those of this operation
    decide where there are enough."""
    finite = np.isfinite(held_out["mu"].astype(float))  # also where there is none: an empty column has no type
    rows = held_out[finite & have_weight(held_out["validity"])].reset_index(drop=True)
    residuals = {}
    for name in families:
        of_model = rows[rows["family"] == name]
        same = of_operation(of_model, operation)
        if len(of_model):
            residuals[name] = same if len(same) >= FEWEST_POINTS else of_model
    if not residuals:
        return _equal_weights(families, families)
    ratios = {name: np.log(part["predicted"] / part["measured"]) for name, part in residuals.items()}
    errors = {name: float(np.sqrt(np.mean(ratio**2))) for name, ratio in ratios.items()}
    precision = {name: 1 / max(error, LEAST_ERROR) ** 2 for name, error in errors.items()}
    total = sum(precision.values())
    return {
        name: ModelWeight(
            precision[name] / total,
            errors[name],
            _contrast(ratios[name], residuals[name]["workload"]),
            len(ratios[name]),
        )
        if name in residuals
        else ModelWeight(0.0)  # without a held-out point here, while others have some
        for name in families
    }


def weigh_probed_models(weights: Mapping[str, ModelWeight], unprobed: Collection[str]) -> dict[str, ModelWeight]:
    """Return equal weights of the models that were probed here, if nothing was measured; all count, if none was."""
    probed = [name for name in weights if name not in unprobed]
    measured = any(weight.points for weight in weights.values())
    return dict(weights) if measured or not probed else _equal_weights(weights, probed)


def _equal_weights(families: Collection[str], counting: Collection[str]) -> dict[str, ModelWeight]:
    return {name: ModelWeight(1 / len(counting) if name in counting else 0.0) for name in families}


def weights_by_alternative(
    weights: Mapping[str, Mapping[str, ModelWeight]], places: Sequence[str]
) -> dict[str, ModelWeight]:
    """Return for each model arrays over alternatives, each entry from the weights at the alternative's place."""
    rows = {name: [astuple(weights[place][name]) for place in places] for name in next(iter(weights.values()))}
    return {name: ModelWeight(*map(np.array, zip(*row, strict=True))) for name, row in rows.items()}


def of_operation(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """Return the rows of an operation, whatever its parameters."""
    return rows[rows["operation"].map(base) == base(operation)]


def _contrast(ratio: pd.Series, group: pd.Series) -> float:
    """Return the error of the difference of two logarithms: an error that all alternatives of a workload share does not
    change the choice."""
    groups = ratio.groupby(group)
    rest = (ratio - groups.transform("mean"))[groups.transform("size") > 1]
    freedom = len(rest) - rest.groupby(group).ngroups
    squares = np.sum(rest**2) / freedom if freedom > 0 else np.mean(ratio**2)
    return float(np.sqrt(2 * squares))


@dataclass(frozen=True, eq=False)
class CombinedPrediction:
    """One entry an alternative: the predicted time with its interval, the share of the weights whose models put the
    alternative first, and how its time compares with that of the best one."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    support: np.ndarray
    behind: np.ndarray  # time over that of the best, minus 1
    as_good: np.ndarray  # statistically tied with the best

    @property
    def best(self) -> int:
        return int(self.seconds.argmin())


def combine_predictions(
    predictions: Mapping[str, np.ndarray],
    weights: Mapping[str, ModelWeight],
    doublings: float | np.ndarray = 0.0,
    widening: Mapping[str, np.ndarray] | None = None,
) -> CombinedPrediction:
    """Combine the `predictions` of each model: (draws, alternatives), the first draw the estimate. `doublings`: how
    many times a size or a number of ranks doubles beyond the measured points; variances grow by as many. `widening`:
    each model's own uncertainty beyond what was probed, as a standard deviation; the larger of the two counts."""
    counting = [name for name in predictions if np.any(weights[name].weight > 0)]
    total = sum(weights[name].weight for name in counting)
    shares = {name: weights[name].weight / total for name in counting}
    draws = max(len(predictions[name]) for name in counting)
    logs = sum(shares[name] * _resampled(np.log(predictions[name]), draws) for name in counting)
    best, shape = int(logs[0].argmin()), logs.shape[1:]
    away = logs - logs[:, [best]]
    grown = np.sqrt(1 + np.broadcast_to(doublings, shape))
    beyond = sum(shares[name] * widening[name] for name in counting) if widening else 0.0
    error, contrast = (
        np.maximum(grown * sum(shares[name] * np.nan_to_num(getattr(weights[name], what)) for name in counting), beyond)
        for what in ("error", "contrast")
    )
    weighted = np.array([np.broadcast_to(shares[name], shape) for name in counting])
    elsewhere = (weighted != weighted[:, [best]]).any(axis=0)  # at another place: no error is common to both
    contrast = np.where(elsewhere, np.hypot(error, error[best]), contrast)
    of_draws, of_differences = (sample[1:].std(axis=0) if draws > 1 else 0.0 for sample in (logs, away))
    spread = NORMAL * np.hypot(of_draws, error)
    support = np.zeros(shape)
    for name in counting:
        first = predictions[name][0] <= predictions[name][0].min() * (1 + 1e-9)
        support += np.mean(shares[name]) * first / first.sum()
    tied = away[0] <= np.maximum(NORMAL * np.hypot(of_differences, contrast), np.log1p(NEGLIGIBLE))
    seconds = np.exp(logs[0])
    low, high = seconds * np.exp(-spread), seconds * np.exp(spread)
    return CombinedPrediction(seconds, low, high, support, np.expm1(away[0]), tied)


def _resampled(logs: np.ndarray, draws: int) -> np.ndarray:
    """Return the estimate, then as many draws as wanted; a model without draws repeats its estimate."""
    if len(logs) == 1:
        return np.repeat(logs, draws, axis=0)
    return np.concatenate([logs[:1], logs[1 + np.arange(draws - 1) % (len(logs) - 1)]])


def pareto_front(seconds: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Return which alternatives none beats in both time and time between waves; equals together. Times that differ
    by rounding are equal."""
    seconds, period = (np.array([float(f"{value:.12g}") for value in column]) for column in (seconds, period))
    order = np.lexsort((period, seconds))
    kept = np.zeros(len(seconds), dtype=bool)
    last = None
    for place in order:
        twin = last is not None and (seconds[place], period[place]) == (seconds[last], period[last])
        if last is None or twin or period[place] < period[last]:
            kept[place], last = True, place
    return kept


PICK = ["platform", "simulated", "operation", "workload", "choice", "layout", "measured"]
NEEDED = [*PICK, "family", "point", "validity", "mu", "predicted", "measured_low", "measured_high"]


def pick_alternatives(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return one row a workload with two predicted and measured alternatives or more: the alternative with the lowest
    combined prediction, its time, the fastest one's, the library default's, and the regret.

    A model counts where it predicts all alternatives and does not ignore their size."""
    library = comparison[is_library(comparison)].groupby("workload")["measured"].min()
    known = comparison["measured"].notna() & comparison["predicted"].notna() & comparison["held_out"]
    rows = comparison.loc[known, NEEDED].reset_index(drop=True)
    alternatives = rows.groupby("workload")["point"].transform("nunique")
    weighted = have_weight(rows["validity"])
    finite = weighted & (rows["predicted"] > 0) & np.isfinite(rows["predicted"])
    complete = finite.groupby([rows["workload"], rows["family"]]).transform("sum") == alternatives
    counting = rows[complete & (alternatives > 1)]
    points = [counting["workload"], counting["point"]]
    precision = 1 / np.maximum(error_at_other_workloads(rows[weighted], counting), LEAST_ERROR) ** 2
    total = precision.groupby(points).transform("sum")
    weight = precision.fillna(0).where(total > 0, 1.0)
    weight /= weight.groupby(points).transform("sum")
    combined = (np.log(counting["predicted"]) * weight).groupby(points).transform("sum")
    picked = counting.loc[combined.groupby(counting["workload"], sort=False).idxmin()]
    fastest = rows.loc[rows.groupby("workload")["measured"].idxmin()].set_index("workload").loc[picked["workload"]]
    both = zip(fastest.to_dict("records"), picked.to_dict("records"), strict=True)
    return picked[PICK].assign(
        fastest=fastest["measured"].to_numpy(),
        library=picked["workload"].map(library).astype(float),
        regret=picked["measured"] / fastest["measured"].to_numpy() - 1,
        right=[not is_clearly_faster(first, pick) for first, pick in both],
    )


def error_at_other_workloads(rows: pd.DataFrame, wanted: pd.DataFrame) -> pd.Series:
    """Return for each row of `wanted` the root mean square residual of its model at the points of other workloads: of
    the same operation if there are enough, else of all; NaN where there are none. Sums over all points, from which
    those of one workload are subtracted, take the place of a sum for each workload."""
    rows = rows[np.isfinite(rows["mu"])]
    squares = np.log(rows["predicted"] / rows["measured"]) ** 2
    model = ["platform", "family"]
    total, same, own = (
        wanted[keys]
        .merge(squares.groupby([rows[key] for key in keys]).agg(["sum", "count"]).reset_index(), "left", keys)
        .set_index(wanted.index)[["sum", "count"]]
        .fillna(0)
        for keys in (model, [*model, "operation"], [*model, "workload"])
    )
    others = (same - own).where((same - own)["count"] >= FEWEST_POINTS, total - own)
    return np.sqrt(others["sum"].clip(lower=0) / others["count"].where(others["count"] > 0))


def summarize_picks(picked: pd.DataFrame) -> pd.DataFrame:
    """Return by platform and operation how often the pick is the fastest or tied, its regret, and how much faster than
    the library default the picks are, and could be (geometric means)."""
    groups = picked.assign(
        operation=picked["operation"].map(base),
        gain=np.log(picked["library"] / picked["measured"]),
        most=np.log(picked["library"] / picked["fastest"]),
    ).groupby(["platform", "simulated", "operation"], sort=False)
    columns = {
        "workloads": groups.size(),
        "right": groups["right"].mean(),
        "regret_mean": groups["regret"].mean(),
        "regret_max": groups["regret"].max(),
        "gain": np.exp(groups["gain"].mean()),
        "most": np.exp(groups["most"].mean()),
    }
    return pd.DataFrame(columns).reset_index()
