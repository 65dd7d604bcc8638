"""What following the families' vote would have cost: at every measured job the vote of the families whose weights come
from the other jobs alone, beside the fastest alternative measured and beside the MPI library's own choice."""

from collections import Counter
from collections.abc import Iterable
from math import isfinite, log, sqrt

import numpy as np
import pandas as pd

from commodel.compare.table import clearly_faster
from commodel.compare.vote import FEWEST, weights
from commodel.patterns.operations import base
from commodel.price.status import PriceStatus
from commodel.records import LIBRARY

COLUMNS = ("platform", "simulated", "operation", "group", "choice", "layout")
COLUMNS += ("measured", "fastest", "library", "regret", "right")


def picks(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row a job with two priced and measured alternatives or more: the vote's pick, its time, the fastest one's and
    the library's."""
    rows = []
    for platform, here in comparison.groupby("platform", sort=False):
        measured = here[here["measured"].notna()]
        library = measured[measured["algorithm"] == LIBRARY].groupby("group")["measured"].min()
        priced = measured[measured["held_out"] & measured["predicted"].notna()]
        errors = Errors(priced)
        for (group, operation), job in priced.groupby(["group", "operation"], sort=False):
            voted = vote(job, errors, group, operation)
            if voted is None:
                continue
            fastest = job["measured"].min()
            rows.append(
                {
                    "platform": platform,
                    "simulated": bool(job["simulated"].iloc[0]),
                    "operation": operation,
                    "group": group,
                    "choice": voted["choice"],
                    "layout": voted["layout"],
                    "measured": voted["measured"],
                    "fastest": fastest,
                    "library": library.get(group, np.nan),
                    "regret": voted["measured"] / fastest - 1,
                    "right": not clearly_faster(job.loc[job["measured"].idxmin()], voted),
                }
            )
    return pd.DataFrame(rows, columns=COLUMNS)


class Errors:
    """Squared logarithmic errors of the families, summed so that those of one job can be left out without looking at
    all others again."""

    def __init__(self, priced: pd.DataFrame):
        voting = priced["status"].map(PriceStatus.votes).astype(bool)
        known = priced[priced["mu"].notna() & np.isfinite(priced["mu"]) & voting]
        squares = np.log(known["predicted"] / known["measured"]) ** 2
        self.sums, self.counts = Counter(), Counter()
        for family, operation, group, square in zip(
            known["family"], known["operation"], known["group"], squares, strict=True
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
                if count >= (FEWEST if key[1:] else 1):
                    typical[name] = sqrt(max(self.sums[key] - self.sums[own], 0.0) / count)
                    break
        return weights(typical) if typical else dict.fromkeys(families, 1 / len(families))


def vote(job: pd.DataFrame, errors: Errors, group: str, operation: str) -> pd.Series | None:
    """The alternative with the lowest common price, None where there is nothing to choose. As in advice a family has no
    say where it does not price all alternatives, or is blind to their sizes."""
    prices: dict[str, dict[str, float]] = {}
    for family, point, price, status in zip(job["family"], job["point"], job["predicted"], job["status"], strict=True):
        prices.setdefault(family, {})[point] = price if PriceStatus.votes(status) and price > 0 else np.inf
    points = job["point"].unique()
    voters = [
        name for name, of in prices.items() if len(of) == len(points) and all(isfinite(price) for price in of.values())
    ]
    if len(points) < 2 or not voters:
        return None
    weight = errors.without(group, operation, voters)
    common = {point: sum(share * log(prices[name][point]) for name, share in weight.items()) for point in points}
    return job[job["point"] == min(common, key=common.get)].iloc[0]


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
