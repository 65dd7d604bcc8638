"""The combined prediction: weights of the models from held-out points, and their scores.

Several families vote on a choice, each with the weight that its errors at held-out points of the platform give it.

The common price is the weighted geometric mean of the families' prices. A family's weight is 1/e², e being the root
mean square of ln(predicted/measured) at held-out points; where nothing was measured all count alike. Families err
alike (none sees what all leave out), so their errors are taken to add up, not to cancel.

What following the families' vote would have cost: at every measured job the vote of the families whose weights come
from the other jobs alone, beside the fastest alternative measured and beside the MPI library's own choice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import isfinite, log, sqrt
from operator import itemgetter

import numpy as np
import pandas as pd

from commodel.compare.comparison import clearly_faster
from commodel.patterns.operations import base
from commodel.predictions.validity import PriceStatus
from commodel.records import LIBRARY
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


COLUMNS = ("platform", "simulated", "operation", "group", "choice", "layout")
COLUMNS += ("measured", "fastest", "library", "regret", "right")
NEEDED = ["simulated", "operation", "group", "family", "point", "choice", "layout", "status", "mu"]
NEEDED += ["predicted", "measured", "measured_low", "measured_high"]


def picks(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row a job with two priced and measured alternatives or more: the vote's pick, its time, the fastest one's and
    the library's."""
    rows = []
    for platform in comparison["platform"].unique():
        here = comparison.loc[comparison["platform"] == platform, [*NEEDED, "algorithm", "held_out"]]
        library = here[here["algorithm"] == LIBRARY].groupby("group")["measured"].min()
        priced = here.loc[here["measured"].notna() & here["predicted"].notna() & here["held_out"], NEEDED]
        errors = Errors(priced)
        for (group, operation), job in jobs(priced):
            voted = vote(job, errors, group, operation)
            if voted is None:
                continue
            fastest = min(job, key=itemgetter("measured"))
            rows.append(
                {key: voted[key] for key in ("simulated", "choice", "layout", "measured")}
                | {"platform": platform, "operation": operation, "group": group}
                | {"fastest": fastest["measured"], "library": library.get(group, np.nan)}
                | {"regret": voted["measured"] / fastest["measured"] - 1, "right": not clearly_faster(fastest, voted)}
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def jobs(priced: pd.DataFrame) -> Iterator[tuple[tuple[str, str], list[dict]]]:
    """Group and operation of each job, and its rows: there are thousands of few rows, too small for frames."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, job in enumerate(zip(priced["group"], priced["operation"], strict=True)):
        places.setdefault(job, []).append(place)
    columns = {key: priced[key].tolist() for key in NEEDED}
    for job, own in places.items():
        yield job, [{key: values[place] for key, values in columns.items()} for place in own]


class Errors:
    """Squared logarithmic errors of the families, summed so that those of one job can be left out without looking at
    all others again."""

    def __init__(self, priced: pd.DataFrame):
        voting = priced["status"].map(PriceStatus.votes).astype(bool)
        judged = priced[priced["mu"].notna() & np.isfinite(priced["mu"]) & voting]
        squares = np.log(judged["predicted"] / judged["measured"]) ** 2
        self.sums, self.counts = Counter(), Counter()
        for family, operation, group, square in zip(
            judged["family"], judged["operation"], judged["group"], squares, strict=True
        ):
            for key in ((family,), (family, operation), (family, operation, group)):
                self.sums[key] += square
                self.counts[key] += 1

    def without(self, group: str, operation: str, families: Iterable[str]) -> dict[str, float]:
        """The weights that `vote.trusts` would give without the points of one job."""
        families, typical = list(families), {}
        for name in families:
            own = (name, operation, group)
            for key in ((name, operation), (name,)):
                count = self.counts[key] - self.counts[own]
                if count >= (FEWEST_POINTS if key[1:] else 1):
                    typical[name] = sqrt(max(self.sums[key] - self.sums[own], 0.0) / count)
                    break
        return weights(typical) if typical else dict.fromkeys(families, 1 / len(families))


def vote(job: list[dict], errors: Errors, group: str, operation: str) -> dict | None:
    """The alternative with the lowest common price, None where there is nothing to choose. As in advice a family has no
    say where it does not price all alternatives, or is blind to their sizes."""
    prices: dict[str, dict[str, float]] = {}
    for row in job:
        counts = PriceStatus.votes(row["status"]) and row["predicted"] > 0
        prices.setdefault(row["family"], {})[row["point"]] = row["predicted"] if counts else np.inf
    points = list(dict.fromkeys(row["point"] for row in job))
    voters = [
        name for name, of in prices.items() if len(of) == len(points) and all(isfinite(price) for price in of.values())
    ]
    if len(points) < 2 or not voters:
        return None
    weight = errors.without(group, operation, voters)
    common = {point: sum(share * log(prices[name][point]) for name, share in weight.items()) for point in points}
    picked = min(common, key=common.get)
    return next(row for row in job if row["point"] == picked)


def summary(picked: pd.DataFrame) -> pd.DataFrame:
    """By platform and operation: how often the vote finds the fastest or a tie, what its picks cost over it, and how
    much faster than the library's own choice they are, and could be (geometric means)."""
    groups = picked.assign(
        operation=picked["operation"].map(base),
        gain=np.log(picked["library"] / picked["measured"]),
        most=np.log(picked["library"] / picked["fastest"]),
    ).groupby(["platform", "simulated", "operation"], sort=False)
    columns = {
        "jobs": groups.size(),
        "right": groups["right"].mean(),
        "regret_mean": groups["regret"].mean(),
        "regret_max": groups["regret"].max(),
        "gain": np.exp(groups["gain"].mean()),
        "most": np.exp(groups["most"].mean()),
    }
    return pd.DataFrame(columns).reset_index()
