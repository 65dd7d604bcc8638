"""Held-out points of a table of measured collectives: `split_points` selects them by an expression
over the names of a point, `fit_without_held_out` fits a model to the other points, and
`predict_held_out` returns its predictions with the measured times. `recommend_held_out` returns
those of the recommended prediction, from all these models and the points that they fit."""

from dataclasses import dataclass, replace

import pandas as pd

from commodel.compare.comparison import add_errors, summarize_errors
from commodel.compare.recommended import Recommender, recommend_rows
from commodel.errors import UserError, locate_mistakes
from commodel.files import expressions
from commodel.fits.measured_tables import Measured
from commodel.fits.settings import (
    fit_default_in_setting,
    fit_in_settings,
    list_settings,
    select_points,
)
from commodel.parameters import ParameterSet
from commodel.plan.experiments import AXES
from commodel.predictions.mpi_default import MpiDefault
from commodel.predictions.places import name_in_setting
from commodel.predictions.predictions import predict
from commodel.records import LIBRARY, Point
from commodel.units import format_bytes

POINT_FIELDS = (
    "operation",
    "algorithm",
    "topology",
    "kind",
    "alternative",
    "layout",
    "ranks",
    "bytes",
)


@dataclass(frozen=True)
class Split:
    """The fitted points and the held-out points, with the expression that is true for held-out
    points."""

    expression: str
    fitted: Measured
    held_out: Measured


def split_points(measured: Measured, expression: str) -> Split:
    with locate_mistakes(key="--hold-out"):
        held_out = expressions.parse_expression(expression, (*AXES, "setting"))
        points_with_settings = zip(measured.points, list_settings(measured), strict=True)
        is_held_out = [
            bool(held_out(_name_values(point) | {"setting": setting}))
            for point, setting in points_with_settings
        ]
    if all(is_held_out) or not any(is_held_out):
        count = len(is_held_out)
        problem = (
            f"all {count} points, wanted some to fit"
            if all(is_held_out)
            else f"none of the {count} points"
        )
        raise UserError(f"'{held_out.text}' holds out {problem}", key="--hold-out")
    return split_flagged(measured, is_held_out, held_out.text)


def split_flagged(measured: Measured, is_held_out: list[bool], expression: str) -> Split:
    """Return the split whose flagged points are held out. `expression` describes them."""
    fitted = select_points(measured, [not flag for flag in is_held_out])
    return Split(expression, fitted, select_points(measured, is_held_out))


def _name_values(point: Point) -> dict[str, str | int]:
    names = {name: getattr(point, name) for name in AXES if name != "ranks_per_node"}
    return names | {"ranks_per_node": point.per_node}


def fit_without_held_out(
    split: Split, model: str, table: str, setting: str | None = None
) -> ParameterSet:
    """Fit a model to the points that are not held out. The provenance of the set names the
    expression."""
    fit = fit_default_in_setting if model == LIBRARY else fit_in_settings
    parameters = fit(split.fitted, model, table, setting)
    count = len(split.held_out.points)
    return replace(
        parameters,
        source=f"{parameters.source}; the other {count}, where {split.expression}, are",
        provenance=dict(parameters.provenance)
        | {"held_out_where": split.expression, "held_out_points": count},
    )


def list_points(measured: Measured) -> pd.DataFrame:
    """Return a row for each measured point, as in a comparison without predictions."""
    settings = list_settings(measured)
    rows = []
    for point, seconds, setting in zip(measured.points, measured.seconds, settings, strict=True):
        row = {name: getattr(point, name) for name in POINT_FIELDS}
        row["workload"] = name_in_setting(point.workload, setting)
        row["setting"] = setting
        row["measured"] = seconds
        rows.append(row)
    return pd.DataFrame(rows).assign(held_out=True)


def predict_held_out(
    parameters: ParameterSet, held_out: Measured, draws: int | None = None
) -> pd.DataFrame:
    """Return a row for each held-out point with its prediction and its time, as in a comparison.
    `draws` limits the draws for the interval; without any, there is none."""
    if parameters.model == LIBRARY:
        predictions = MpiDefault.of_set(parameters).predict(held_out.points)
    else:
        predictions = predict(parameters, held_out.points, strict=False, draws=draws)
    columns = {name: name for name in ("seconds", "low", "high", "parameter_low", "parameter_high")}
    columns |= {"basis": "interval", "validity": "validity_text"}
    values = {}
    for name, field in columns.items():
        values[name] = [getattr(prediction, field) for prediction in predictions]
    return add_errors(list_points(held_out).assign(model=parameters.model, **values))


def recommend_held_out(
    of_fitted: pd.DataFrame, of_held_out: pd.DataFrame, split: Split
) -> pd.DataFrame:
    """Return a row for each held-out point with the recommended prediction. It is fitted to
    residuals at the points of the models' own fits; no row if there are too few. The arguments are
    the rows of all models at fitted and held-out points."""

    def describe_models(rows: pd.DataFrame, points: Measured) -> pd.DataFrame:
        by_model = rows.groupby("model", sort=False)
        return pd.concat([_describe_places(rows_of_model, points) for _, rows_of_model in by_model])

    fitted = describe_models(of_fitted, split.fitted)
    held_out = describe_models(of_held_out, split.held_out)
    recommender = Recommender.fit(fitted)
    if recommender is None:
        return fitted.iloc[:0]
    return add_errors(recommend_rows(recommender, held_out))


def _describe_places(rows: pd.DataFrame, measured: Measured) -> pd.DataFrame:
    """Return the rows with the additional columns that the recommended prediction needs."""
    points = measured.points
    columns = {
        "leaves": [point.leaves for point in points],
        "nodes": [point.nodes for point in points],
    }
    names = rows["workload"] + " " + rows["kind"] + " " + rows["alternative"] + " " + rows["layout"]
    # a table has no intervals
    columns |= {"measured_low": rows["measured"], "measured_high": rows["measured"]}
    return rows.assign(
        **columns, point=names, waves=1, batch="", platform="", simulated=False
    ).reset_index(drop=True)


def tabulate_errors(rows: pd.DataFrame, group_columns: list[str]) -> pd.DataFrame:
    """Return the errors of each group of rows: number of points, mean and median μ, bias, share
    inside the interval, and the worst point."""
    rows = rows.dropna(subset=["mu"]).reset_index(drop=True)
    groups = rows.groupby(group_columns, sort=False)["mu"]
    worst = rows.loc[groups.idxmax()].set_index(group_columns, drop=False)
    summary = summarize_errors(rows, group_columns).set_index(group_columns)
    worst_with_kind = worst.assign(
        alternative=worst["kind"].map({"topology": "topology "}).fillna("") + worst["alternative"]
    )
    patterns = worst_with_kind[
        [name for name in ("operation", "alternative") if name not in group_columns]
    ].agg(" ".join, axis=1)
    extents = worst["ranks"].map("{} ranks, ".format) + worst["bytes"].map(format_bytes)
    points = (patterns + " " + extents).str.strip()
    return summary.assign(
        mu_median=groups.median(), mu_worst=worst["mu"], worst=points
    ).reset_index()
