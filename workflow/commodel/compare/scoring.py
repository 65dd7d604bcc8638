"""What following the families' vote would have cost: at every measured job the vote of the families whose weights come
from the other jobs alone, beside the fastest alternative measured and beside the MPI library's own choice."""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite, log, sqrt
from operator import itemgetter

import numpy as np
import pandas as pd

from commodel.compare.choices import clearly_faster
from commodel.compare.vote import FEWEST_POINTS, weights
from commodel.patterns.operations import base
from commodel.price.status import PriceStatus
from commodel.records import LIBRARY

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
