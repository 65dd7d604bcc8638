"""Ranking of models: `rank_models` over a platform, `rank_by_class` in each class of operation,
fan-in and message size. A model is clearly best if no other model is statistically tied with it.
Models with equal predictions count as one."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from commodel.compare.comparison import ERROR_COLUMNS, summarize_errors
from commodel.patterns.operations import find_base_name
from commodel.stats import NEGLIGIBLE_DIFFERENCE

MAX_MU_GOOD = 1.10
MAX_MU_FAIR = 1.35  # highest mean μ of a model with this grade
# a model is ranked if it predicts this share of the points of the most complete model
MIN_SHARE_OF_POINTS = 0.8
# Models are equal if their predictions differ by less than this share at every point.
EQUALITY_TOLERANCE = 1e-3
MIN_POINTS = 3  # to distinguish models
MIN_POINTS_OF_SIGN_TEST = 6  # points; by chance, a model is worse at all six with probability 1/64
FAN_IN_CLASSES = ((1, "1"), (4, "2–4"), (16, "5–16"), (math.inf, "> 16"))
SIZE_CLASSES = (
    (64, "≤ 64 B"),
    (4096, "64 B to 4 KiB"),
    (65536, "4 to 64 KiB"),
    (math.inf, "> 64 KiB"),
)
CLASS_COLUMNS = ["platform", "operation", "fan_in", "size_class"]


def rank_models(part: pd.DataFrame) -> pd.DataFrame:
    """Return held-out points and mean μ of the models that predict most of the points, the lowest
    mean μ first. Of equal models the shortest name comes first, because an extension has a longer
    name than its base."""
    counted = (part["held_out"] & part["mu"].notna()).to_numpy(bool)
    model_of_row, families = pd.factorize(part["model"].to_numpy(object)[counted], sort=True)
    points = np.bincount(model_of_row, minlength=len(families))
    mu_mean = np.bincount(model_of_row, part["mu"].to_numpy()[counted], len(families)) / points
    ranked = np.flatnonzero(points >= MIN_SHARE_OF_POINTS * points.max(initial=0))
    order = sorted(ranked, key=lambda row: (mu_mean[row].round(9), *make_name_key(families[row])))
    return pd.DataFrame(
        {"model": families[order], "points": points[order], "mu_mean": mu_mean[order]}
    )


def find_base_operations(part: pd.DataFrame) -> pd.Series:
    """Return the operation of each row, without parameters."""
    return part["operation"].map(find_base_name)


def group_by_operation(part: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """Return the rows of each operation, with all its parameters."""
    return part.groupby(find_base_operations(part))


def sort_by_error(rows: pd.DataFrame, group_columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return the rows of models in ascending order of mean μ, within each value of the columns
    `group_columns`."""
    keyed = rows.assign(rounded=rows["mu_mean"].round(9), length=rows["model"].str.len())
    order = [*group_columns, "rounded", "length", "model"]
    return (
        keyed.sort_values(order, kind="stable")
        .drop(columns=["rounded", "length"])
        .reset_index(drop=True)
    )


def make_name_key(model: str) -> tuple[int, str]:
    """Return the sort key by which shorter names come first."""
    return len(model), model


def pivot_by_model(part: pd.DataFrame, column: str) -> tuple[list[str], np.ndarray]:
    """Return the models that have a value, and a column as a matrix of points × models; NaN without
    a value."""
    predicted = part[column].notna().to_numpy(bool)
    model_of_row, families = pd.factorize(part["model"].to_numpy(object)[predicted], sort=True)
    point_of_row, points = pd.factorize(part["point"].to_numpy(object)[predicted])
    matrix = np.full((len(points), len(families)), math.nan)
    matrix[point_of_row, model_of_row] = part[column].to_numpy()[predicted]
    return families.tolist(), matrix


def find_equal_models(part: pd.DataFrame, model: str) -> list[str]:
    """Return the other models that predict the same time for every point, such as LogP's extensions
    on equal nodes."""
    families, predictions = pivot_by_model(part, "seconds")
    if model not in families:
        return []
    of_family = predictions[:, [families.index(model)]]
    equal = np.abs(predictions - of_family) <= EQUALITY_TOLERANCE * of_family
    equal |= np.isnan(predictions) & np.isnan(of_family)
    equal_names = (
        name
        for name, is_equal in zip(families, equal.all(axis=0), strict=True)
        if is_equal and name != model
    )
    return sorted(equal_names, key=make_name_key)


def drop_equal_models(part: pd.DataFrame, limit: int) -> list[str]:
    """Return at most `limit` models of `rank_models`, none with the same predictions as an earlier
    one."""
    distinct: list[str] = []
    repeated: set[str] = set()
    for family in rank_models(part)["model"]:
        if len(distinct) == limit:
            break
        if family not in repeated:
            distinct.append(family)
            repeated |= set(find_equal_models(part, family))
    return distinct


def find_best_model(part: pd.DataFrame) -> pd.Series | None:
    """Return the row of `summarize_errors` of the first model of `rank_models`; None if no
    comparison is possible, or if every model predicts 0 somewhere."""
    first = _find_first_finite(rank_models(part))
    if first is None:
        return None
    # other columns are not needed, and copying them takes long
    columns = ["model", "held_out", *ERROR_COLUMNS]
    return summarize_errors(part.loc[part["model"] == first["model"], columns], ["model"]).iloc[0]


def _find_first_finite(rows: pd.DataFrame) -> pd.Series | None:
    return rows.iloc[0] if len(rows) and math.isfinite(rows["mu_mean"].iloc[0]) else None


def find_tied_models(part: pd.DataFrame, best: pd.Series) -> list[str]:
    """Return the models that are statistically tied with the best one: their μ differ by less than
    the 95 % interval of the paired mean difference of the logarithms, or by less than 1 %.

    The test uses logarithms because the errors of a bad model scatter so much that its plain mean
    would be tied with everything. For the same reason a model is not tied if it is worse by more
    than 1 % at every point of six or more; with fewer points, if its best point is worse than the
    best model's worst. A prediction of 0 is never tied, nor is a model with fewer than MIN_POINTS
    common points, or less than MIN_SHARE_OF_POINTS of the best one's. Models with equal predictions
    count as one.
    """
    # imported here, because loading it takes longer than a comparison
    from scipy.special import stdtrit

    families, errors = pivot_by_model(part, "mu")
    errors = np.log(errors)
    of_best = errors[:, families.index(best["model"])]
    rivals = set(families) - {best["model"], *find_equal_models(part, best["model"])}
    negligible = math.log1p(NEGLIGIBLE_DIFFERENCE)
    tied = []
    for family in sorted(rivals):
        of_rival = errors[:, families.index(family)]
        both = ~np.isnan(of_rival) & ~np.isnan(of_best)
        count = int(both.sum())
        if count < MIN_POINTS or count < MIN_SHARE_OF_POINTS * best["points"]:
            continue
        rival_errors, best_errors = of_rival[both], of_best[both]
        differences = rival_errors - best_errors
        noise = (
            stdtrit(count - 1, 0.975) * differences.std(ddof=1) / math.sqrt(count)
            if rival_errors.max() < math.inf
            else 0.0
        )
        always_worse = rival_errors.min() > best_errors.max() + negligible or (
            count >= MIN_POINTS_OF_SIGN_TEST and differences.min() > negligible
        )
        if not always_worse and differences.mean() <= max(noise, negligible):
            tied.append(family)
    return tied


def grade_error(mu: float) -> str:
    return "good" if mu <= MAX_MU_GOOD else "fair" if mu <= MAX_MU_FAIR else "poor"


def rank_by_class(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each class: the best model, the models tied with it, and the best of the
    others."""
    rows = []
    for key, part in add_point_classes(frame).groupby(
        [*CLASS_COLUMNS, "fan_order", "size_order"], sort=False
    ):
        rows_of_class = rank_models(part)
        best = _find_first_finite(rows_of_class)
        points = int(part.loc[part["mu"].notna(), "point"].nunique())
        row = dict(zip(CLASS_COLUMNS, key, strict=False)) | {"order": key[4:], "points": points}
        row |= {
            "best": "",
            "mu": math.nan,
            "same": [],
            "tied": [],
            "next": "",
            "mu_next": math.nan,
            "enough": False,
        }
        if best is not None:
            tied = find_tied_models(part, best)
            same = find_equal_models(part, best["model"])
            enough = points >= MIN_POINTS
            row |= {
                "best": best["model"],
                "mu": best["mu_mean"],
                "same": same,
                "tied": tied,
                "enough": enough,
            }
            remaining = rows_of_class[~rows_of_class["model"].isin([best["model"], *tied, *same])]
            following = (
                remaining.iloc[0] if enough and len(remaining) else {"model": "", "mu_mean": None}
            )
            row |= {"next": following["model"], "mu_next": following["mu_mean"]}
        rows.append(row)
    columns = [
        *CLASS_COLUMNS,
        "order",
        "points",
        "best",
        "mu",
        "same",
        "tied",
        "next",
        "mu_next",
        "enough",
    ]
    return (
        pd.DataFrame(rows, columns=columns)
        .sort_values(["platform", "operation", "order"], kind="stable")
        .reset_index(drop=True)
    )


def add_point_classes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the fan-in class and the size class of each point, and the order of the
    classes."""
    fan_ins = [_find_class_index(FAN_IN_CLASSES, value) for value in frame["fan_in"]]
    sizes = [_find_class_index(SIZE_CLASSES, value) for value in frame["bytes"]]
    return frame.assign(
        operation=find_base_operations(frame),
        fan_order=fan_ins,
        size_order=sizes,
        fan_in=[FAN_IN_CLASSES[index][1] for index in fan_ins],
        size_class=[SIZE_CLASSES[index][1] for index in sizes],
    )


def _find_class_index(bounds: tuple, value: float) -> int:
    """Return the index of the class that a value belongs to."""
    return next(index for index, (bound, _) in enumerate(bounds) if value <= bound)
