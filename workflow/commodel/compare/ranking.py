"""Which family is ahead: over a whole platform, and in each class of operation, fan-in and message size. A family is
ahead alone where every other one can be told apart from it, but for those that price the same."""

import math

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from commodel.compare.table import summarize
from commodel.report.words import ratio, some
from commodel.stats import NEGLIGIBLE

GOOD, FAIR = 1.10, 1.35  # mean μ up to which a family is called so
COVER = 0.8  # a family that prices fewer of the points than this share of the others is not compared with them
ALIKE = 1e-3  # prices that differ by less, at every point, are the same: one model with two names on this platform
FEWEST = 3  # points from which families can be told apart
EVERY = 6  # points from which to be worse at every one is no chance: of 64 coins one falls so
FAN_INS = ((1, "1"), (4, "2–4"), (16, "5–16"), (math.inf, "> 16"))
SIZES = ((64, "≤ 64 B"), (4096, "≤ 4 KiB"), (65536, "≤ 64 KiB"), (math.inf, "> 64 KiB"))
CLASS = ["platform", "operation", "fan_in", "size_class"]


def ranked(part: pd.DataFrame) -> pd.DataFrame:
    """Rows of `summarize`, the lowest mean μ first, of the families that price most of the points. Of equals the
    shortest name comes first: a family that extends another is named after it."""
    rows = summarize(part, ["family"])
    if rows.empty:
        return rows
    rows = rows[(rows["points"] >= COVER * rows["points"].max()) & rows["mu_mean"].notna()]
    return in_order(rows)


def in_order(rows: pd.DataFrame, by: tuple[str, ...] = ()) -> pd.DataFrame:
    keyed = rows.assign(rounded=rows["mu_mean"].round(9), length=rows["family"].str.len())
    order = [*by, "rounded", "length", "family"]
    return keyed.sort_values(order, kind="stable").drop(columns=["rounded", "length"]).reset_index(drop=True)


def named(family: str) -> tuple[int, str]:
    return len(family), family


def twins(part: pd.DataFrame, family: str) -> list[str]:
    """The other families that price every point as this one does, as LogGP's extensions do where nodes are alike."""
    wide = part.pivot_table(index="point", columns="family", values="predicted")
    if family not in wide:
        return []
    prices, mine = wide.to_numpy(), wide[family].to_numpy()[:, None]
    alike = (np.abs(prices - mine) <= ALIKE * mine) | (np.isnan(prices) & np.isnan(mine))
    return sorted((name for name in wide.columns[alike.all(axis=0)] if name != family), key=named)


def distinct(part: pd.DataFrame, rows: pd.DataFrame, most: int) -> list[str]:
    """The first families of `ranked`, without those that price as an earlier one does."""
    kept, same = [], set()
    for family in rows["family"]:
        if len(kept) == most:
            break
        if family not in same:
            kept.append(family)
            same |= set(twins(part, family))
    return kept


def best_family(part: pd.DataFrame) -> pd.Series | None:
    """The first row of `ranked`; None where nothing can be compared or every family prices something at 0."""
    rows = ranked(part)
    return rows.iloc[0] if len(rows) and math.isfinite(rows["mu_mean"].iloc[0]) else None


def tied_families(part: pd.DataFrame, best: pd.Series) -> list[str]:
    """Families whose μ differs from the best one's by less than the 95 % interval of the paired mean difference of the
    logarithms, or by less than 1 %. Logarithms, because a family that is off by factors of 10 to 1,000 scatters so much
    that its plain mean would be told apart from nothing. For the same reason one that is worse by more than 1 % at
    every point of six or more is told apart, and of fewer one whose best point is worse than the best family's worst. A
    price of 0 ties with nothing; what prices the same is no other family."""
    same = twins(part, best["family"])
    wide = np.log(part.pivot_table(index="point", columns="family", values="mu"))
    negligible = math.log1p(NEGLIGIBLE)
    tied = []
    for family in wide.columns:
        both = wide[[family, best["family"]]].dropna() if family != best["family"] else wide[[]]
        count = len(both)
        if family in (best["family"], *same) or count < FEWEST or count <= COVER * best["points"]:
            continue
        theirs, first = both[family], both[best["family"]]
        gap = theirs - first
        noise = stdtrit(count - 1, 0.975) * gap.std() / math.sqrt(count) if theirs.max() < math.inf else 0.0
        apart = theirs.min() > first.max() + negligible or (count >= EVERY and gap.min() > negligible)
        if not apart and gap.mean() <= max(noise, negligible):
            tied.append(family)
    return tied


def grade(mu: float) -> str:
    return "good" if mu <= GOOD else "fair" if mu <= FAIR else "poor"


def ahead(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a class that occurs: the best family, those tied with it, and the next one that is not."""
    rows = []
    for key, part in classed(frame).groupby([*CLASS, "fan_order", "size_order"], sort=False):
        best = best_family(part)
        points = int(part.loc[part["mu"].notna(), "point"].nunique())
        row = dict(zip(CLASS, key, strict=False)) | {"order": key[4:], "points": points}
        if best is None:
            none = {"best": "", "mu": math.nan, "same": [], "tied": [], "next": "", "mu_next": math.nan, "told": False}
            rows.append(row | none)
            continue
        told, tied, same = points >= FEWEST, tied_families(part, best), twins(part, best["family"])
        close = {best["family"], *tied, *same}
        others = [other for other in ranked(part).itertuples() if told and other.family not in close]
        after = (others[0].family, others[0].mu_mean) if others else ("", None)
        row |= {"best": best["family"], "mu": best["mu_mean"], "same": same, "tied": tied, "told": told}
        rows.append(row | {"next": after[0], "mu_next": after[1]})
    columns = [*CLASS, "order", "points", "best", "mu", "same", "tied", "next", "mu_next", "told"]
    found = pd.DataFrame(rows, columns=columns)
    return found.sort_values(["platform", "operation", "order"], kind="stable").reset_index(drop=True)


def classed(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the classes of its points by name, and their order."""
    fans = [_class(FAN_INS, value) for value in frame["fan_in"]]
    sizes = [_class(SIZES, value) for value in frame["bytes"]]
    return frame.assign(
        fan_order=fans,
        size_order=sizes,
        fan_in=[FAN_INS[place][1] for place in fans],
        size_class=[SIZES[place][1] for place in sizes],
    )


def _class(bounds: tuple, value: float) -> int:
    return next(place for place, (bound, _) in enumerate(bounds) if value <= bound)


def ahead_counts(rows: pd.DataFrame) -> str:
    """How the classes of one platform are shared out: who has the lowest mean μ in how many, and who does beyond
    doubt."""
    alone = rows[rows["told"] & (rows["tied"].str.len() == 0)]["best"].value_counts()
    wins = rows.loc[rows["best"] != "", "best"].value_counts()
    shares = [
        f"{name} in {number}" + (f" ({alone[name]} alone)" if name in alone else "")
        for name, number in sorted(wins.items(), key=lambda item: (-alone.get(item[0], 0), -item[1], item[0]))
    ]
    text = f"ahead by class of operation, fan-in and size: {some(shares)}, of {len(rows)}"
    return text if len(alone) else f"{text}; nowhere alone: other families cannot be told apart, or points are few"


def ahead_lines(rows: pd.DataFrame) -> list[str]:
    """For each family that is ahead alone somewhere on one platform: where, and how far."""
    alone = rows[rows["told"] & (rows["tied"].str.len() == 0)]
    lines = []
    for family, mine in sorted(alone.groupby("best"), key=lambda item: (-len(item[1]), item[0])):
        places = [
            f"{operation} at fan-in {fan_in} ({', '.join(entry['size_class'])})"
            for (operation, fan_in), entry in mine.groupby(["operation", "fan_in"], sort=False)
        ]
        gaps = mine.dropna(subset=["mu_next"])
        line = f"{family} is ahead alone in {some(places, 4)}"
        if len(gaps):
            widest = gaps.loc[(gaps["mu_next"] / gaps["mu"]).idxmax()]
            line += f"; furthest at μ {ratio(widest['mu'])}, next {widest['next']} at {ratio(widest['mu_next'])}"
        lines.append(line)
    return lines
