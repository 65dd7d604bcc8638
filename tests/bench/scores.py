"""What benches print of families: how far off prices are, how many times lie in their intervals, and what choosing by
the lowest price costs.

μ is max(price, time) / min(price, time). Inside: of the times in their intervals; width: of these, beside the
narrowest band that holds 95 % of the times. Regret: what the choice of the lowest price takes longer than the fastest
one measured, of those that do the same; time / library: beside the library's own choice, as a geometric mean.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from tests.bench.coverage import oracle

from commodel.compare.baselines import BASELINES
from commodel.compare.comparison import selection, with_choices, with_errors, with_library
from commodel.predictions.validity import PriceStatus

CHOICES = ("jobs", "regret", "worst regret", "time / library")


def scores(rows: pd.DataFrame) -> Iterator[dict]:
    """Of each family. Rows are those of a comparison, with no more columns than this needs; points of a group do the
    same. What has no interval has NaN for its ends; the library's own have no family."""
    once = {"measured_low": rows["measured"], "measured_high": rows["measured"]}
    rows = rows.assign(held_out=True, point=range(len(rows)), **once)
    rows = with_library(with_choices(with_errors(rows)))
    chosen = selection(rows, ["family"]).set_index("family")
    for name, priced in rows.dropna(subset=["mu"]).groupby("family", sort=False):
        mu = priced["mu"]
        yield {
            "family": name,
            "points": len(priced),
            "μ": f"{mu.mean():.2f}",
            "90 %": f"{mu.quantile(0.9):.2f}",
            "worst": f"{mu.max():.1f}",
            **_intervals(priced),
            "status ok": "-" if name in BASELINES else f"{priced['status'].eq(PriceStatus.OK.value).sum()}",
            **(_choices(chosen.loc[name]) if name in chosen.index else dict.fromkeys(CHOICES, "-")),
        }


def _intervals(priced: pd.DataFrame) -> dict[str, str]:
    width = np.log(priced["predicted_high"] / priced["predicted_low"])
    if width.isna().any():
        return {"inside": "-", "width": "-"}
    narrowest = oracle(np.log(priced["measured"] / priced["predicted"]).to_numpy())
    return {"inside": f"{100 * priced['inside'].mean():.0f} %", "width": f"{width.mean() / narrowest:.2f}"}


def _choices(chosen: pd.Series) -> dict[str, str]:
    library = chosen["over_library"]
    figures = f"{chosen['groups']:.0f}", f"{100 * chosen['regret_mean']:.1f} %", f"{100 * chosen['regret_max']:.0f} %"
    return dict(zip(CHOICES, (*figures, "-" if np.isnan(library) else f"{library:.2f}"), strict=True))
