"""What following the families' vote would have cost: at every measured job the vote of the families whose weights come
from the other jobs alone, beside the fastest alternative measured and beside the MPI library's own choice."""

import numpy as np
import pandas as pd

from commodel.records import LIBRARY
from commodel.stats import NEGLIGIBLE
from commodel.vote import trusts

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
        for (group, operation), job in priced.groupby(["group", "operation"], sort=False):
            voted = vote(job, priced[priced["group"] != group], operation)
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
                    "right": _as_good(voted, job.loc[job["measured"].idxmin()]),
                }
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def vote(job: pd.DataFrame, others: pd.DataFrame, operation: str) -> pd.Series | None:
    """The alternative with the lowest common price, None where there is nothing to choose."""
    prices = job.pivot_table(index="point", columns="family", values="predicted", aggfunc="first", sort=False)
    statuses = job.pivot_table(index="point", columns="family", values="status", aggfunc="first", sort=False)
    able = prices.notna().all() & (prices > 0).all() & (statuses == "ok").all()
    voters = [name for name in prices.columns if able[name]]
    if len(prices) < 2 or not voters:
        return None
    trust = trusts(voters, others, operation)
    common = sum(trust[name].weight * np.log(prices[name]) for name in voters)
    return job[job["point"] == common.idxmin()].iloc[0]


def _as_good(one: pd.Series, fastest: pd.Series) -> bool:
    """Their intervals overlap, or the difference is no reason to prefer anything."""
    apart = one["measured_low"] > fastest["measured_high"]
    return not (apart and one["measured"] > (1 + NEGLIGIBLE) * fastest["measured"])


def summary(picked: pd.DataFrame) -> pd.DataFrame:
    """By platform and operation: how often the vote finds the fastest or a tie, what its picks cost over it, and how
    much faster than the library's own choice they are, and could be (geometric means)."""
    found = picked.assign(
        gain=np.log(picked["library"] / picked["measured"]), most=np.log(picked["library"] / picked["fastest"])
    ).groupby(["platform", "simulated", "operation"], sort=False)
    table = found.agg(
        jobs=("right", "size"),
        right=("right", "mean"),
        regret_mean=("regret", "mean"),
        regret_max=("regret", "max"),
        gain=("gain", "mean"),
        most=("most", "mean"),
    ).reset_index()
    return table.assign(gain=np.exp(table["gain"]), most=np.exp(table["most"]))
