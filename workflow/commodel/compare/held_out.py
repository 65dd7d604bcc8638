"""Measured collectives parted in two: a family is fitted to one part and prices the other, which no fit has seen.

An expression over the names of a point says which are held out. What is reported is how far off those prices are.
"""

from dataclasses import dataclass, replace

import pandas as pd

from commodel.compare.comparison import summarize, with_errors
from commodel.errors import UserError
from commodel.files import expressions
from commodel.fits.measured_tables import Measured
from commodel.fits.settings import fit_in_settings, only, settings_of
from commodel.parameters import ParameterSet
from commodel.plan.experiments import AXES
from commodel.predictions.predictions import predict
from commodel.records import Point
from commodel.units import format_bytes

NAMES = ("operation", "algorithm", "topology", "kind", "choice", "layout", "ranks", "bytes")


@dataclass(frozen=True)
class Split:
    """What may be fitted and what is held out, and the expression that is true for the latter."""

    where: str
    seen: Measured
    unseen: Measured


def split(measured: Measured, where: str) -> Split:
    try:
        held_out = expressions.parse(where, (*AXES, "setting"))
        both = zip(measured.points, settings_of(measured), strict=True)
        flags = [bool(held_out(_names(point) | {"setting": setting})) for point, setting in both]
    except UserError as error:
        raise UserError(error.message, key="--hold-out") from None
    if all(flags) or not any(flags):
        what = f"all {len(flags)} points, wanted some to fit" if all(flags) else f"none of the {len(flags)} points"
        raise UserError(f"'{held_out.text}' holds out {what}", key="--hold-out")
    seen, unseen = (only(measured, [flag is wanted for flag in flags]) for wanted in (False, True))
    return Split(held_out.text, seen, unseen)


def _names(point: Point) -> dict[str, str | int]:
    names = {name: getattr(point, name) for name in AXES if name != "ranks_per_node"}
    return names | {"ranks_per_node": point.per_node}


def fit_seen(parts: Split, family: str, table: str, setting: str | None = None) -> ParameterSet:
    """A family fitted to what is not held out; the set says what is."""
    parameters, count = fit_in_settings(parts.seen, family, table, setting), len(parts.unseen.points)
    return replace(
        parameters,
        source=f"{parameters.source}; the other {count}, where {parts.where}, are",
        provenance=parameters.provenance | {"held_out_where": parts.where, "held_out_points": count},
    )


def judged(parameters: ParameterSet, unseen: Measured) -> pd.DataFrame:
    """A row for each held-out point: its price beside its time, as in a comparison."""
    rows = [
        {
            "family": parameters.family,
            **{name: getattr(price.point, name) for name in NAMES},
            "group": f"{price.point.group} {setting}",
            "measured": seconds,
            "predicted": price.seconds,
            "predicted_low": price.low,
            "predicted_high": price.high,
            "parameters_low": price.parameters_low,
            "parameters_high": price.parameters_high,
            "interval": price.interval,
            "status": price.status,
        }
        for price, seconds, setting in zip(
            predict(parameters, unseen.points, strict=False), unseen.seconds, settings_of(unseen), strict=True
        )
    ]
    return with_errors(pd.DataFrame(rows)).assign(held_out=True)


def errors(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Of each group of judged rows: how many, μ, its median, bias, share inside the interval, and the worst point."""
    rows = rows.dropna(subset=["mu"]).reset_index(drop=True)
    groups = rows.groupby(by, sort=False)["mu"]
    worst = rows.loc[groups.idxmax()].set_index(by, drop=False)
    summary = summarize(rows, by).set_index(by)
    named = worst.assign(choice=worst["kind"].map({"topology": "topology "}).fillna("") + worst["choice"])
    called = named[[name for name in ("operation", "choice") if name not in by]].agg(" ".join, axis=1)
    size = worst["ranks"].map("{} ranks, ".format) + worst["bytes"].map(format_bytes)
    points = (called + " " + size).str.strip()
    return summary.assign(mu_median=groups.median(), mu_worst=worst["mu"], worst=points).reset_index()
