"""A comparison in a few rows for the terminal: how close each family came."""

import math

import pandas as pd

from commodel.compare.table import selection, summarize


def scores(comparison: pd.DataFrame) -> list[dict]:
    """Per platform and family, the best first: mean proportional error, over all points and over those its parameters
    reach, and how often it picks the fastest choice."""
    by = ["platform", "simulated", "family"]
    rows = summarize(comparison, by).merge(selection(comparison, by), on=by, how="left")
    rows = rows.sort_values(["platform", "mu_mean", "family"])

    def digits(mu: float) -> float | str:
        return "∞" if math.isinf(mu) else "-" if math.isnan(mu) else round(float(mu), 3)

    return [
        {
            "platform": f"{row.platform} (simulated)" if row.simulated else row.platform,
            "family": row.family,
            "points": int(row.points),
            "mean error μ": digits(row.mu_mean),
            "μ in probed range": digits(row.mu_reached),
            "of points": int(row.points_reached),
            "picks the fastest": f"{row.right:.0%} of {int(row.groups)}" if row.groups > 0 else "-",
        }
        for row in rows.itertuples()
    ]
