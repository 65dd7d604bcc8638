"""Which family is ahead: over a whole platform, and in each class of operation, fan-in and message size. A family is
ahead alone where every other one can be told apart from it."""

import math

import pandas as pd
from scipy.special import stdtrit

from commodel.compare import summarize
from commodel.report.words import ratio, some

GOOD, FAIR = 1.10, 1.35  # mean μ up to which a family is called so
COVER = 0.8  # a family that prices fewer of the points than this share of the others is not compared with them
FEWEST = 3  # points from which families can be told apart
FAN_INS = ((1, "1"), (4, "2–4"), (16, "5–16"), (math.inf, "> 16"))
SIZES = ((64, "≤ 64 B"), (4096, "≤ 4 KiB"), (65536, "≤ 64 KiB"), (math.inf, "> 64 KiB"))
CLASS = ["platform", "operation", "fan_in", "size_class"]


def ranked(part: pd.DataFrame) -> pd.DataFrame:
    """Rows of `summarize`, the lowest mean μ first, of the families that price most of the points."""
    rows = summarize(part, ["family"])
    if rows.empty:
        return rows
    rows = rows[(rows["points"] >= COVER * rows["points"].max()) & rows["mu_mean"].notna()]
    return rows.sort_values(["mu_mean", "family"], kind="stable").reset_index(drop=True)


def best_family(part: pd.DataFrame) -> pd.Series | None:
    """The first row of `ranked`; None where nothing can be compared or every family prices something at 0."""
    rows = ranked(part)
    return rows.iloc[0] if len(rows) and math.isfinite(rows["mu_mean"].iloc[0]) else None


def tied_families(part: pd.DataFrame, best: pd.Series) -> list[str]:
    """Families whose μ differs from the best one's by less than the 95 % interval of the paired mean difference. A
    price of 0 ties with nothing."""
    wide = part.pivot_table(index="point", columns="family", values="mu")
    tied = []
    for family in wide.columns:
        both = (wide[family] - wide[best["family"]]).dropna()
        count = len(both)
        if family == best["family"] or count < FEWEST or count <= COVER * best["points"] or both.max() == math.inf:
            continue
        if both.mean() <= stdtrit(count - 1, 0.975) * both.std() / math.sqrt(count):
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
            rows.append(row | {"best": "", "mu": math.nan, "tied": [], "next": "", "mu_next": math.nan, "told": False})
            continue
        told, tied = points >= FEWEST, tied_families(part, best)
        others = [other for other in ranked(part).iloc[1:].itertuples() if told and other.family not in tied]
        after = (others[0].family, others[0].mu_mean) if others else ("", None)
        row |= {"best": best["family"], "mu": best["mu_mean"], "tied": tied, "next": after[0], "mu_next": after[1]}
        rows.append(row | {"told": told})
    columns = [*CLASS, "order", "points", "best", "mu", "tied", "next", "mu_next", "told"]
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
