"""A comparison in a few rows for the terminal: how close each family came, and what was odd about the machines."""

import math

import pandas as pd

from commodel.cli._output import table
from commodel.compare.comparison import selection, summarize
from commodel.files.results_folder import Results
from commodel.files.tables import COMPARISON, read_table


def outcome(results: Results) -> str:
    """The table, and below it what the report calls odd about how points were measured."""
    from commodel.report import odd_conditions  # slow to load: after the campaign

    comparison = read_table(results.table("comparison"), COMPARISON)
    odd = odd_conditions(results, comparison)
    return "\n".join([table(scores(comparison)), *([""] if odd else []), *odd])


def scores(comparison: pd.DataFrame) -> list[dict]:
    """Per platform and family, what was measured on a machine and the best first: mean proportional error, over all
    points and over those its parameters reach, and how often it picks the fastest choice."""
    by = ["platform", "simulated", "family"]
    rows = summarize(comparison, by).merge(selection(comparison, by), on=by, how="left")
    rows = rows.sort_values(["simulated", "platform", "mu_mean", "family"])

    def digits(mu: float) -> float | str:
        return "∞" if math.isinf(mu) else "-" if math.isnan(mu) else round(float(mu), 3)

    return [
        {
            "platform": f"{row.platform} (simulated)" if row.simulated else row.platform,
            "family": row.family,
            "points": int(row.points),
            "mean error μ": digits(row.mu_mean),
            "μ where ok": digits(row.mu_reached),
            "points ok": int(row.points_reached),
            "picks the fastest": f"{row.right:.0%} of {int(row.groups)}" if row.groups > 0 else "-",
        }
        for row in rows.itertuples()
    ]
