"""How much one job differs from another: factors of latency and of time per byte, from calibrations of a campaign and
from its own batches, by the family that is nearest there.

A batch has no points in common with others: its times are compared with prices, and where prices are off by more with
more ranks, or on more nodes, that looks like another job. So batches are told apart by settings, else by allocations of
a machine; a simulated one is the same in all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import numpy as np
import pandas as pd

from commodel.compare.table import STREAM, named_streams
from commodel.errors import UserError
from commodel.fit.pace import pace_of
from commodel.parameters import ParameterSet
from commodel.price.pace import Pace
from commodel.price.status import PriceStatus
from commodel.records import Plan
from commodel.results.calibrations import Calibration, NotedPace
from commodel.stats import NEGLIGIBLE

CALIBRATED, BATCHES = "same points", "prices"  # what factors rest on
ENDS = ("value", "low", "high")
COLUMNS = [
    *("platform", "simulated", "job", "date", "against", "family"),
    *(f"{name}_{end}" for name in ("latency", "per_byte") for end in ENDS),
    *("points", "before", "after", "checked"),
]
FEWEST_POINTS = 4  # points of a batch
LOOKED_AT = 400  # points of a platform


def drift(
    plan: Plan, comparison: pd.DataFrame, sets: Sequence[ParameterSet], calibrations: Mapping[str, Calibration]
) -> pd.DataFrame:
    """A row a job; none where there is but one."""
    rows = [*_calibrated(calibrations), *_batches(plan, comparison, sets)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _calibrated(calibrations: Mapping[str, Calibration]) -> Iterator[dict]:
    for calibration in calibrations.values():
        if not calibration.families:
            continue
        name, pace = min(calibration.families.items(), key=lambda entry: entry[1].after or inf)
        yield {
            "platform": calibration.platform,
            "simulated": calibration.simulated,
            "job": _called(calibration),
            "date": calibration.date,
            "against": CALIBRATED,
            "family": name,
            **_factors(pace),
            "points": pace.points,
            "before": pace.before,
            "after": pace.after,
            "checked": pace.checked,
        }


def _called(noted: Calibration) -> str:
    return noted.setting + (f", on {noted.measured_on}" if noted.measured_on != noted.platform else "")


def _batches(plan: Plan, comparison: pd.DataFrame, sets: Sequence[ParameterSet]) -> Iterator[dict]:
    points = {point.id: point for point in plan.points}
    seen = comparison[comparison["held_out"] & (comparison["measured"] > 0) & (comparison["predicted"] > 0)]
    seen = named_streams(seen[seen["status"].map(PriceStatus.votes).astype(bool)])
    seen = seen[~seen["operation"].str.startswith(STREAM).astype(bool)]
    for platform, own in seen.groupby("platform"):
        job = _jobs(own)
        best = own.groupby("family")["mu"].mean().idxmin()
        rows = own[own["family"] == best].assign(job=job)
        counts = rows.groupby("job").size()
        if (counts >= FEWEST_POINTS).sum() < 2:
            continue
        rows = rows.iloc[:: max(-(-len(rows) // LOOKED_AT), 1)]
        parameters = next((entry for entry in sets if (entry.family, entry.platform) == (best, platform)), None)
        for name in counts.index[counts >= FEWEST_POINTS] if parameters else ():
            there = rows[rows["job"] == name]
            logs = np.log(there["measured"] / there["predicted"]).to_numpy(float)
            try:
                pace = pace_of(parameters, [points[case] for case in there["point"]], logs)
            except UserError:  # it has no factors, or the points tell none
                continue
            yield {"platform": platform, "simulated": bool(there["simulated"].iloc[0]), "job": name, "date": ""} | {
                "against": BATCHES,
                "family": best,
                **_factors(pace),
                "points": len(there),
                "before": np.nan,
                "after": np.nan,
                "checked": 0,
            }


def _jobs(rows: pd.DataFrame) -> pd.Series:
    """What jobs of a platform are told apart by; nothing where they are not."""
    if "setting" in rows and rows["setting"].nunique() > 1:
        return rows["setting"].replace("", "(none)")
    apart = "batch" in rows and not rows["simulated"].any()
    return rows["batch"].astype(str) if apart else pd.Series("", index=rows.index)


def _factors(pace: Pace | NotedPace) -> dict[str, float]:
    return {
        f"{part}_{end}": getattr(factor, end) if factor.known else np.nan
        for part, factor in (("latency", pace.latency), ("per_byte", pace.per_byte))
        for end in ENDS
    }


def clear(low: float, high: float) -> bool:
    """Whether a factor is told from 1, and by enough to matter."""
    return low > 1 + NEGLIGIBLE or high < 1 - NEGLIGIBLE
