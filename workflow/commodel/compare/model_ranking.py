"""Ranking of models: `rank_models` over a platform, `rank_by_class` in each class of operation, fan-in and message
size. A model is ahead alone if no other model is statistically tied with it. Models with equal predictions count as
one."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from commodel.compare.comparison import ERRORS, summarize
from commodel.patterns.operations import base
from commodel.stats import NEGLIGIBLE

GOOD, FAIR = 1.10, 1.35  # mean μ up to which a model is called so
COVER = 0.8  # a model that predicts fewer than this share of the points of the others is not compared with them
# predictions that differ by less, at every point, are the same: one model with two names on this platform
TOO_ALIKE = 1e-3
FEWEST_POINTS = 3  # points from which models can be distinguished
POINTS_BEYOND_CHANCE = 6  # points from which being worse at each is significant: the probability by chance is 1/64
FAN_INS = ((1, "1"), (4, "2–4"), (16, "5–16"), (math.inf, "> 16"))
SIZES = ((64, "≤ 64 B"), (4096, "≤ 4 KiB"), (65536, "≤ 64 KiB"), (math.inf, "> 64 KiB"))
CLASS = ["platform", "operation", "fan_in", "size_class"]


def rank_models(part: pd.DataFrame) -> pd.DataFrame:
    """Return held-out points and mean μ of the models that predict most of the points, the lowest mean μ first. Of
    equal models the shortest name comes first, because an extension has a longer name than its base."""
    judged = (part["held_out"] & part["mu"].notna()).to_numpy(bool)
    owner, families = pd.factorize(part["family"].to_numpy(object)[judged], sort=True)
    points = np.bincount(owner, minlength=len(families))
    mu_mean = np.bincount(owner, part["mu"].to_numpy()[judged], len(families)) / points
    kept = np.flatnonzero(points >= COVER * points.max(initial=0))
    order = sorted(kept, key=lambda place: (mu_mean[place].round(9), *named(families[place])))
    return pd.DataFrame({"family": families[order], "points": points[order], "mu_mean": mu_mean[order]})


def operations(part: pd.DataFrame) -> pd.Series:
    """Return the operation of each row, without parameters."""
    return part["operation"].map(base)


def by_operation(part: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Return the rows of each operation, whatever its parameters."""
    return part.groupby(operations(part))


def sort_by_error(rows: pd.DataFrame, by: tuple[str, ...] = ()) -> pd.DataFrame:
    keyed = rows.assign(rounded=rows["mu_mean"].round(9), length=rows["family"].str.len())
    order = [*by, "rounded", "length", "family"]
    return keyed.sort_values(order, kind="stable").drop(columns=["rounded", "length"]).reset_index(drop=True)


def named(family: str) -> tuple[int, str]:
    return len(family), family


def by_family(part: pd.DataFrame, column: str) -> tuple[list[str], np.ndarray]:
    """Return a column as a matrix of points × models, and the models that have a value anywhere."""
    predicted = part[column].notna().to_numpy(bool)
    columns, families = pd.factorize(part["family"].to_numpy(object)[predicted], sort=True)
    places, points = pd.factorize(part["point"].to_numpy(object)[predicted])
    matrix = np.full((len(points), len(families)), math.nan)
    matrix[places, columns] = part[column].to_numpy()[predicted]
    return families.tolist(), matrix


def find_equal_models(part: pd.DataFrame, family: str) -> list[str]:
    """Return the other models that predict the same time for every point, such as LogP's extensions on equal nodes."""
    families, predictions = by_family(part, "predicted")
    if family not in families:
        return []
    of_family = predictions[:, [families.index(family)]]
    alike = (np.abs(predictions - of_family) <= TOO_ALIKE * of_family) | (np.isnan(predictions) & np.isnan(of_family))
    return sorted(
        (name for name, same in zip(families, alike.all(axis=0), strict=True) if same and name != family), key=named
    )


def drop_equal_models(part: pd.DataFrame, rows: pd.DataFrame, most: int) -> list[str]:
    """Return the first models of `rank_models` without those whose predictions equal those of an earlier one."""
    kept, same = [], set()
    for family in rows["family"]:
        if len(kept) == most:
            break
        if family not in same:
            kept.append(family)
            same |= set(find_equal_models(part, family))
    return kept


def find_best_model(part: pd.DataFrame) -> pd.Series | None:
    """Return the row of `summarize` of the first model of `rank_models`; None if no comparison is possible, or if every
    model predicts 0 somewhere."""
    first = _first(rank_models(part))
    if first is None:
        return None
    columns = ["family", "held_out", *ERRORS]  # of wide tables the rest would be copied for nothing
    return summarize(part.loc[part["family"] == first["family"], columns], ["family"]).iloc[0]


def _first(rows: pd.DataFrame) -> pd.Series | None:
    return rows.iloc[0] if len(rows) and math.isfinite(rows["mu_mean"].iloc[0]) else None


def find_tied_models(part: pd.DataFrame, best: pd.Series) -> list[str]:
    """Return the models that are statistically tied with the best one: their μ differ by less than the 95 % interval of
    the paired mean difference of the logarithms, or by less than 1 %.

    The test uses logarithms because the errors of a bad model scatter so much that its plain mean would be tied with
    everything. For the same reason a model is not tied if it is worse by more than 1 % at every point of six or more;
    with fewer points, if its best point is worse than the best model's worst. A prediction of 0 is never tied. Models
    with equal predictions count as one.
    """
    from scipy.special import stdtrit  # here, because it takes longer to load than a comparison to make

    families, errors = by_family(part, "mu")
    errors = np.log(errors)
    of_best = errors[:, families.index(best["family"])]
    rivals = set(families) - {best["family"], *find_equal_models(part, best["family"])}
    negligible = math.log1p(NEGLIGIBLE)
    tied = []
    for family in sorted(rivals):
        theirs = errors[:, families.index(family)]
        both = ~np.isnan(theirs) & ~np.isnan(of_best)
        count = int(both.sum())
        if count < FEWEST_POINTS or count <= COVER * best["points"]:
            continue
        theirs, first = theirs[both], of_best[both]
        gap = theirs - first
        noise = stdtrit(count - 1, 0.975) * gap.std(ddof=1) / math.sqrt(count) if theirs.max() < math.inf else 0.0
        apart = theirs.min() > first.max() + negligible or (count >= POINTS_BEYOND_CHANCE and gap.min() > negligible)
        if not apart and gap.mean() <= max(noise, negligible):
            tied.append(family)
    return tied


def grade(mu: float) -> str:
    return "good" if mu <= GOOD else "fair" if mu <= FAIR else "poor"


def rank_by_class(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each class: the best model, the models statistically tied with it, and the next one."""
    rows = []
    for key, part in add_point_classes(frame).groupby([*CLASS, "fan_order", "size_order"], sort=False):
        rows_of_class = rank_models(part)
        best = _first(rows_of_class)
        points = int(part.loc[part["mu"].notna(), "point"].nunique())
        row = dict(zip(CLASS, key, strict=False)) | {"order": key[4:], "points": points, "best": "", "mu": math.nan}
        row |= {"same": [], "tied": [], "next": "", "mu_next": math.nan, "enough": False}
        if best is not None:
            enough, tied, same = (
                points >= FEWEST_POINTS,
                find_tied_models(part, best),
                find_equal_models(part, best["family"]),
            )
            row |= {"best": best["family"], "mu": best["mu_mean"], "same": same, "tied": tied, "enough": enough}
            others = rows_of_class[~rows_of_class["family"].isin([best["family"], *tied, *same])]
            following = others.iloc[0] if enough and len(others) else {"family": "", "mu_mean": None}
            row |= {"next": following["family"], "mu_next": following["mu_mean"]}
        rows.append(row)
    columns = [*CLASS, "order", "points", "best", "mu", "same", "tied", "next", "mu_next", "enough"]
    return (
        pd.DataFrame(rows, columns=columns)
        .sort_values(["platform", "operation", "order"], kind="stable")
        .reset_index(drop=True)
    )


def add_point_classes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the classes of its points by name, and their order."""
    fans = [_class(FAN_INS, value) for value in frame["fan_in"]]
    sizes = [_class(SIZES, value) for value in frame["bytes"]]
    return frame.assign(
        operation=operations(frame),
        fan_order=fans,
        size_order=sizes,
        fan_in=[FAN_INS[place][1] for place in fans],
        size_class=[SIZES[place][1] for place in sizes],
    )


def _class(bounds: tuple, value: float) -> int:
    return next(place for place, (bound, _) in enumerate(bounds) if value <= bound)
