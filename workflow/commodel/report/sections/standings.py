"""How the families stand: their figures of merit on each platform, and who is ahead in which class of points."""

import math

import pandas as pd

from commodel.compare.choices import selection
from commodel.compare.ranking import COVER, FEWEST_POINTS, best_family, in_order, tied_families, twins
from commodel.compare.table import is_said, summarize
from commodel.report.frames import PLATFORM, scaled
from commodel.report.shape import MU, Column, Table, table
from commodel.report.words import simulation


def families(frame: pd.DataFrame, judged: pd.DataFrame) -> tuple[Table, Table]:
    """Family × figures of merit, of its prices and of its picks: the best one of each platform marked, the family that
    predicts best first."""
    by = ["platform", "family"]
    priced = frame.loc[is_said(frame), [*by, "simulated", "point", "measured"]]
    every = priced.loc[priced["family"] != "", [*by, "simulated"]].drop_duplicates(by)
    rows = every.merge(summarize(judged, by), "left", on=by).merge(selection(frame, by), "left", on=by)
    rows = scaled(rows.assign(points=rows["points"].fillna(0), groups=rows["groups"].fillna(0)))
    rows = in_order(rows, ("simulated", "platform"))
    best = {platform: best_family(part) for platform, part in judged.groupby("platform")}
    return predicting(rows, judged, priced, best), choosing(rows, best)


def predicting(rows: pd.DataFrame, judged: pd.DataFrame, priced: pd.DataFrame, best: dict) -> Table:
    standing = {}
    for platform, first in best.items():
        if first is not None:
            part = judged[judged["platform"] == platform]
            standing |= {(platform, family): "not told apart" for family in tied_families(part, first)}
            standing |= {(platform, family): "same prices" for family in twins(part, first["family"])}
            standing[platform, first["family"]] = "best"
    rows["standing"] = [standing.get((row.platform, row.family), "") for row in rows.itertuples()]
    total = priced[priced["measured"].notna()].groupby("platform")["point"].nunique()
    rows["measured_points"] = rows["platform"].map(total).fillna(0)
    columns = [
        *PLATFORM,
        Column("family", "family"),
        Column("points", "points compared", "count"),
        Column("measured_points", "points measured", "count"),
        Column("mu_mean", "mean μ", "ratio", "1 is exact; ∞: it prices something at 0"),
        Column(
            "standing", "standing", "text", "not told apart: from the best, by these points; same prices: as the best"
        ),
        Column(
            "mu_reached", "mean μ where ok", "ratio", "of the prices whose status is ok: no probe speaks against them"
        ),
        Column(
            "points_reached",
            "points ok",
            "count",
            "of prices whose status is ok; each family has its own: compare means with care",
        ),
        Column("abs_error_median", "median |error| [%]", "percent"),
        Column("bias", "bias [%]", "signed", "median signed error; positive: priced too slow"),
        Column("inside_share", "inside interval [%]", "percent", "95 % would be right; a wide interval is no merit"),
    ]
    marks = best_marked(rows, columns, {"mu_mean": 1, "abs_error_median": 1, "bias": 1}, best)
    note = "Best value of each platform marked, among families that price at least 80 % of the points. "
    note += "Shares inside the interval have no best: the widest interval would win."
    return table("Families", "How well each family predicts", columns, rows, note=note, fixed=3, marks=marks)


def choosing(rows: pd.DataFrame, best: dict) -> Table:
    columns = [
        *PLATFORM,
        Column("family", "family"),
        Column("groups", "jobs", "count", "with at least two schedules that it prices"),
        Column("right", "picks best [%]", "percent"),
        Column("tied", "of ties [%]", "percent", "jobs where its pick is the first of alternatives it prices the same"),
        Column("regret_mean", "mean regret [%]", "percent"),
        Column("regret_max", "max regret [%]", "percent"),
        Column("over_library", "pick / library [×]", "times", "geometric mean; below 1: faster than the library's own"),
        Column("over_fastest", "pick / fastest [×]", "times", "geometric mean over the fastest measured, library too"),
    ]
    merit = {"right": -1, "regret_mean": 1, "regret_max": 1, "over_library": 1, "over_fastest": 1}
    note = "What comes of picking the schedule that the family prices lowest, beside the fastest one and the library."
    marks = best_marked(rows, columns, merit, best)
    return table("Choosing", "How well each family chooses", columns, rows, note=note, fixed=3, marks=marks)


def best_marked(rows: pd.DataFrame, columns: list[Column], merit: dict[str, int], best: dict) -> frozenset:
    """Places of each platform's best values, and of the name of its best family; -1: more is better."""
    places, marks = [column.key for column in columns], set()
    for platform, part in rows.groupby("platform"):
        ranked = part[part["points"] >= COVER * part["points"].max()]
        if (first := best.get(platform)) is not None:
            marks |= {(row, places.index("family")) for row in part.index[part["family"] == first["family"]]}
        for key, sense in merit.items():
            value = (ranked[key].abs() if key == "bias" else ranked[key]) * sense
            if len(ranked) > 1 and value.min() < math.inf:
                marks |= {(row, places.index(key)) for row in value.index[value == value.min()]}
    return frozenset(marks)


def classes(ahead: pd.DataFrame, simulated: set[str]) -> Table:
    """Operation × fan-in × message size: the rows of `ranking.ahead`."""
    shown = ahead.assign(simulated=[simulation(platform in simulated) for platform in ahead["platform"]])
    shown["tied"] = [
        ", ".join(row.tied) if row.enough or not row.best else f"fewer than {FEWEST_POINTS} points"
        for row in ahead.itertuples()
    ]
    shown["same"] = [", ".join(row.same) for row in ahead.itertuples()]
    shown["mu_next"] = shown["mu_next"].astype(object).where(shown["next"] != "", None)
    shown["alone"] = [row.enough and not row.tied for row in ahead.itertuples()]
    columns = [
        *PLATFORM,
        Column("operation", "operation"),
        Column("fan_in", "fan-in"),
        Column("size_class", "message size"),
        Column("points", "points", "count"),
        Column("best", "lowest mean μ"),
        Column("next", "next told apart"),
        Column("mu", "mean μ of the lowest", "ratio", scale=MU),
        Column("mu_next", "mean μ of the next", "ratio", scale=MU),
        Column("alone", "ahead alone", "flag", "every other family can be told apart from it"),
        Column("same", "prices the same"),
        Column("tied", "cannot be told apart from the lowest"),
    ]
    marks = frozenset((place, 6) for place, row in enumerate(shown.itertuples()) if row.alone)
    note = "Fan-in: the most messages that one rank receives in one step. Marked: ahead alone."
    return table(
        "Ahead", "Families by operation, fan-in and message size", columns, shown, note=note, fixed=5, marks=marks
    )
