"""Several families vote on a choice, each with the weight that its errors at held-out points of the platform give it.

The common price is the weighted geometric mean of the families' prices. A family's weight is 1/e², e being the root
mean square of ln(predicted/measured) at held-out points; where nothing was measured all count alike. Families err
alike (none sees what all leave out), so their errors are taken to add up, not to cancel.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import pandas as pd

from commodel.patterns.operations import base
from commodel.price.status import PriceStatus
from commodel.stats import NEGLIGIBLE, NORMAL

FEWEST_POINTS = 6  # held-out points of one operation, from which on they alone decide on a family's weight
LEAST_ERROR = 0.01  # no family is taken to be better than 1 %: what it was tried on is not all there is


@dataclass(frozen=True)
class Trust:
    """How much a family's word counts. `error` is of a price, `contrast` of the ratio of two alternatives' prices, both
    as standard deviations of a logarithm, NaN where nothing was measured. Each may be one for every candidate."""

    weight: float | np.ndarray
    error: float | np.ndarray
    contrast: float | np.ndarray
    points: int | np.ndarray


def trusts(families: list[str], held_out: pd.DataFrame, operation: str) -> dict[str, Trust]:
    """The weight of each family. `held_out` are rows of a comparison on one platform; those of this operation decide
    where there are enough."""
    finite = np.isfinite(held_out["mu"].astype(float))  # also where there is none: an empty column has no type
    voting = held_out["status"].map(PriceStatus.votes).astype(bool)
    rows = held_out[finite & voting].reset_index(drop=True)
    errors = {}
    for name in families:
        of_family = rows[rows["family"] == name]
        same = of_operation(of_family, operation)
        errors[name] = same if len(same) >= FEWEST_POINTS else of_family
    judging = {name: part for name, part in errors.items() if len(part)}
    if not judging:
        return {name: Trust(1 / len(families), np.nan, np.nan, 0) for name in families}
    judged = {name: (_error(part), _contrast(part), len(part)) for name, part in judging.items()}
    weight = weights({name: error for name, (error, _, _) in judged.items()})
    silent = Trust(0.0, np.nan, np.nan, 0)  # never tried here, while others were
    return {name: Trust(weight[name], *judged[name]) if name in judged else silent for name in families}


def of_probed(trusted: Mapping[str, Trust], unprobed: Collection[str]) -> dict[str, Trust]:
    """Where nothing was measured those families count alike that were probed there; all, if none was."""
    left = [name for name in trusted if name not in unprobed]
    if not left or any(family.points for family in trusted.values()):
        return dict(trusted)
    silent = Trust(0.0, np.nan, np.nan, 0)
    return {name: Trust(1 / len(left), np.nan, np.nan, 0) if name in left else silent for name in trusted}


def by_candidate(trusted: Mapping[str, Mapping[str, Trust]], sides: Sequence[str]) -> dict[str, Trust]:
    """For every candidate that of the side where it sits."""
    names = next(iter(trusted.values()))
    fields = {name: [astuple(trusted[side][name]) for side in sides] for name in names}
    return {name: Trust(*map(np.array, zip(*rows, strict=True))) for name, rows in fields.items()}


def of_operation(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """The rows of an operation, whatever its parameters."""
    return rows[rows["operation"].map(base) == base(operation)]


def weights(errors: Mapping[str, float]) -> dict[str, float]:
    """The less a family errs, the more its word counts; together they count 1."""
    precision = {name: 1 / max(error, LEAST_ERROR) ** 2 for name, error in errors.items()}
    total = sum(precision.values())
    return {name: value / total for name, value in precision.items()}


def _error(rows: pd.DataFrame) -> float:
    return float(np.sqrt(np.mean(np.log(rows["predicted"] / rows["measured"]) ** 2)))


def _contrast(rows: pd.DataFrame) -> float:
    """Within a group of alternatives a common error says nothing against the choice: what is left without it, for the
    difference of two."""
    ratio = np.log(rows["predicted"] / rows["measured"])
    groups = ratio.groupby(rows["group"])
    left = (ratio - groups.transform("mean"))[groups.transform("size") > 1]
    freedom = len(left) - left.groupby(rows["group"]).ngroups
    squares = np.sum(left**2) / freedom if freedom > 0 else np.mean(ratio**2)
    return float(np.sqrt(2 * squares))


@dataclass(frozen=True, eq=False)
class Ballot:
    """The outcome, one entry a candidate: common price with its interval, the share of the weights whose families put
    it first, and how its price compares with the cheapest one's."""

    seconds: np.ndarray
    low: np.ndarray
    high: np.ndarray
    votes: np.ndarray
    behind: np.ndarray  # price over that of the best, minus 1
    as_good: np.ndarray  # cannot be told apart from the best

    @property
    def best(self) -> int:
        return int(self.seconds.argmin())


def ballot(
    prices: Mapping[str, np.ndarray],
    trust: Mapping[str, Trust],
    doublings: float | np.ndarray = 0.0,
    widening: Mapping[str, np.ndarray] | None = None,
) -> Ballot:
    """`prices` of each family: (draws, candidates), the first draw the estimate. `doublings` says how many times beyond
    what was measured a size or a number of ranks doubles: variances grow by as many times. `widening` is each family's
    own doubt beyond what was probed, as a standard deviation; the larger of the two counts."""
    voters = [name for name in prices if np.any(trust[name].weight > 0)]
    total = sum(trust[name].weight for name in voters)
    shares = {name: trust[name].weight / total for name in voters}
    draws = max(len(prices[name]) for name in voters)
    logs = sum(shares[name] * _resampled(np.log(prices[name]), draws) for name in voters)
    best = int(logs[0].argmin())
    away = logs - logs[:, [best]]
    grown = np.sqrt(1 + np.broadcast_to(doublings, logs.shape[1:]))
    beyond = sum(shares[name] * widening[name] for name in voters) if widening else 0.0
    error, contrast = (
        np.maximum(grown * sum(shares[name] * np.nan_to_num(getattr(trust[name], what)) for name in voters), beyond)
        for what in ("error", "contrast")
    )
    weighed = np.array([np.broadcast_to(shares[name], logs.shape[1:]) for name in voters])
    elsewhere = (weighed != weighed[:, [best]]).any(axis=0)  # on the other side of a node: no error is common to both
    contrast = np.where(elsewhere, np.hypot(error, error[best]), contrast)
    spread = np.hypot(logs[1:].std(axis=0) if draws > 1 else 0.0, error)
    doubt = np.hypot(away[1:].std(axis=0) if draws > 1 else 0.0, contrast)
    votes = np.zeros(logs.shape[1])
    for name in voters:
        first = prices[name][0] <= prices[name][0].min() * (1 + 1e-9)
        votes += np.mean(shares[name]) * first / first.sum()
    close = away[0] <= np.maximum(NORMAL * doubt, np.log1p(NEGLIGIBLE))
    seconds = np.exp(logs[0])
    return Ballot(
        seconds, seconds * np.exp(-NORMAL * spread), seconds * np.exp(NORMAL * spread), votes, np.expm1(away[0]), close
    )


def _resampled(logs: np.ndarray, draws: int) -> np.ndarray:
    """The estimate, then as many draws as asked; a family without draws is sure of itself."""
    if len(logs) == 1:
        return np.repeat(logs, draws, axis=0)
    return np.concatenate([logs[:1], logs[1 + np.arange(draws - 1) % (len(logs) - 1)]])


def front(seconds: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Which candidates nothing beats in both: the Pareto front of latency and time between waves; equals together."""
    order = np.lexsort((period, seconds))
    kept = np.zeros(len(seconds), dtype=bool)
    last = None
    for place in order:
        twin = last is not None and (seconds[place], period[place]) == (seconds[last], period[last])
        if last is None or twin or period[place] < period[last]:
            kept[place], last = True, place
    return kept
