"""What families would choose of alternatives that were measured, how often that was right, and what it costs."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from commodel.records import LIBRARY
from commodel.stats import NEGLIGIBLE

EQUAL = 1e-9  # prices that differ by less, relatively, are equal: the order of a sum can do as much
OVER = {"over_library": "library", "over_fastest": "fastest"}


def with_choices(frame: pd.DataFrame) -> pd.DataFrame:
    """In each group of alternatives what was fastest of those that the family prices, what it would choose,
    what that costs. A family does not choose among points that its fit has seen. Of equal prices, such as those of two
    layouts by a family that does not look at where ranks sit, the first in the plan counts as chosen, and `tie` says
    that it was no choice."""
    both = frame["measured"].notna() & frame["predicted"].notna() & frame["held_out"]
    per_group = frame[both].groupby(["family", "group"])
    alternatives = per_group["point"].transform("count").reindex(frame.index, fill_value=0)
    contest = both & (alternatives > 1)
    fastest = per_group["measured"].transform("min").reindex(frame.index)
    lowest = per_group["predicted"].transform("min").reindex(frame.index)
    cheapest = frame[both & (frame["predicted"] <= lowest * (1 + EQUAL))].groupby(["family", "group"])["predicted"]
    preferred = cheapest.cumcount().eq(0).reindex(frame.index, fill_value=False)
    frame["best"] = contest & (frame["measured"] == fastest)
    frame["chosen"] = contest & preferred
    frame["tie"] = frame["chosen"] & cheapest.transform("size").gt(1).reindex(frame.index, fill_value=False)
    frame["regret"] = np.where(frame["chosen"], frame["measured"] / fastest - 1, np.nan)
    return frame


def with_library(frame: pd.DataFrame) -> pd.DataFrame:
    """The time of the library's own choice in each group, at the layout that suits it best, and the fastest time that
    was measured there at all."""
    library_seconds = frame[frame["algorithm"] == LIBRARY].groupby("group")["measured"].min()
    frame["library"] = frame["group"].map(library_seconds).astype(float)
    frame["fastest"] = frame.groupby("group")["measured"].transform("min")
    return frame


def clearly_faster(first: Mapping, second: Mapping) -> bool:
    """Whether the first measurement is faster than the second beyond doubt, and by enough to matter."""
    apart = second["measured_low"] > first["measured_high"]
    return bool(apart and second["measured"] > (1 + NEGLIGIBLE) * first["measured"])


def selection(comparison: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """How often a family's choice is the fastest one measured of those that it prices, or as good: their intervals
    overlap, or it is less than 1 % slower. What its choice costs over that one; and, as geometric means, over the
    library's own choice (below 1: it is faster) and over the fastest one measured, the library's included."""
    key = ["family", "group"]
    best = comparison[comparison["best"]].drop_duplicates(key).set_index(key)["measured_high"].rename("best_high")
    chosen = comparison[comparison["chosen"]].join(best, on=key)
    tied = (chosen["measured_low"] <= chosen["best_high"]) | (chosen["regret"] < NEGLIGIBLE)
    over = {name: np.log(chosen["measured"] / chosen[other]) for name, other in OVER.items()}
    chosen = chosen.assign(right=tied, **over)
    choices = chosen.groupby(by, sort=False)
    columns = {
        "groups": choices.size(),
        "right": choices["right"].mean(),
        "tied": choices["tie"].mean(),
        "regret_mean": choices["regret"].mean(),
        "regret_max": choices["regret"].max(),
        "over_library": choices["over_library"].agg(geometric),
        "over_fastest": choices["over_fastest"].agg(geometric),
    }
    return pd.DataFrame(columns).reset_index()


def geometric(logarithms: pd.Series) -> float:
    """The geometric mean: it does not matter which of the two is divided by the other."""
    return float(np.exp(logarithms.mean()))
