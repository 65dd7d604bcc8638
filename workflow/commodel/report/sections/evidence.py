"""What the summary rests on: fitted curves with their samples, and raw summaries."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from commodel.parameters import ParameterSet
from commodel.report import charts
from commodel.report.frames import PLATFORM, SAMPLES
from commodel.report.shape import MICRO, Column, Section, table
from commodel.report.values import plain, show
from commodel.report.words import simulation


def fits(sets: Sequence[ParameterSet]) -> Section:
    """Every fitted curve: how well it fits, a chart, what is left over, and the samples it was drawn through."""
    curves, samples, drawn = [], [], []
    for fitted_set in ordered(sets):
        title = {
            "platform": fitted_set.platform,
            "simulated": simulation(fitted_set.simulated),
            "family": fitted_set.family,
        }
        interesting = charts.worst_fitted(fitted_set.curves)
        for curve in fitted_set.curves:
            head = title | {"curve": curve.title}
            factor, label = charts.micro(curve.y_label)
            figure = None
            if curve in interesting:
                figure = len(drawn) + 1
                drawn.append(charts.fitted(fitted_set, curve, figure))
            errors = charts.residuals(curve)
            curves.append(
                head
                | {
                    "figure": figure,
                    "form": curve.form,
                    "r2": curve.r2 if len(curve.x) > 1 else math.nan,
                    "aic": curve.aic,
                    "worst": max((abs(error) for error in errors if math.isfinite(error)), default=math.nan),
                    "left_out": 100 * curve.left_out,
                    "count": len(curve.x),
                    "x": charts.bracketed(curve.x_label),
                    "y": label,
                }
            )
            for x, measured, fitted, error in zip(curve.x, curve.measured, curve.fitted, errors, strict=True):
                values = {"measured": measured * factor, "fitted": fitted * factor, "error": error}
                samples.append(head | {"x_label": charts.bracketed(curve.x_label), "x": x, "y_label": label} | values)
        drawn += charts.left_over(fitted_set, interesting, len(drawn) + 1)
    head = [*PLATFORM, Column("family", "family"), Column("curve", "curve")]
    about = [
        *head,
        Column("figure", "figure", "figure"),
        Column("form", "form"),
        Column("count", "samples", "count"),
        Column("r2", "R²", "number"),
        Column("aic", "AICc", "number", "smaller is better; comparable between forms fitted to the same samples only"),
        Column("worst", "largest residual [%]", "percent", "largest |fitted − measured| / measured of a sample"),
        Column("left_out", "left-out error [%]", "percent", "root mean square error at a sample that the fit left out"),
        Column("x", "over"),
        Column("y", "quantity"),
    ]
    of_samples = [
        *head,
        Column("x_label", "over"),
        Column("x", "x", "number"),
        Column("y_label", "quantity"),
        Column("measured", "measured", "number"),
        Column("fitted", "fitted", "number"),
        Column("error", "fitted − measured [%]", "signed"),
    ]
    note = "Left-out error: each sample left out in turn and predicted by the fit to the others. n/a: too few samples."
    if any(row["figure"] is None for row in curves):
        note += f" Drawn are, of each family, the {charts.MOST_CURVES} worst fitted curves of several samples; blank: "
        note += "not drawn."
    blocks = (
        table("Curves", "Fitted curves", about, rows(curves, about), fixed=4, note=note),
        *drawn,
        table("Samples", "What the curves were fitted to", of_samples, rows(samples, of_samples), fixed=4),
    )
    return Section("Fits", "Fits see probes only, unless the comparison says that a point was not held out.", blocks)


BESIDE = (  # a sample's time, where somebody knows it
    Column("cpu", "processor time of a wave [µs]", "number", "of all processes of an overlay network, median"),
    Column("computation", "computation [µs]", "number", "of a kernel, beside its communication: median"),
)


def raw_summary(raw: pd.DataFrame | None, simulated: set[str]) -> Section:
    columns = [
        *PLATFORM,
        *(Column(key, key) for key in ("kind", "name", "settings")),
        *(Column(key, key, "count") for key in ("passes", "samples", "invalid")),
        Column("stop", "stopped by"),
        *(Column(key, f"{key} [µs]", "number") for key in ("min", "median", "mean", "p95", "max", "skew")),
        *(column for column in BESIDE if raw is not None and column.key in raw),
        Column("id", "id"),
        *SAMPLES,
    ]
    keys = [column.key for column in columns]
    frame = raw if raw is not None else pd.DataFrame(columns=keys)
    frame = frame.assign(**dict.fromkeys({"batch", "raw"} - set(frame), ""))  # of an older summary
    for key in {"min", "median", "mean", "p95", "max", "skew", "cpu", "computation"} & set(frame):
        frame[key] = pd.to_numeric(frame[key], errors="coerce") * MICRO
    frame["simulated"] = [simulation(plain(platform) in simulated) for platform in frame["platform"]]
    frame = frame.sort_values(["platform", "kind", "name"], kind="stable")
    note = "One row per point or probe case; every single sample stands in its raw file."
    return Section("Raw summary", note, (table("Raw", "Samples", columns, frame, fixed=5),))


def ordered(sets: Sequence[ParameterSet]) -> list[ParameterSet]:
    return sorted(sets, key=lambda fitted: (fitted.platform, fitted.family, fitted.source))


def rows(entries: list[dict], columns: list[Column]) -> pd.DataFrame:
    """Objects as they are: a frame left to guess would turn a missing text into NaN."""
    return pd.DataFrame(entries, columns=[column.key for column in columns], dtype=object)


def flat(nested: Mapping, prefix: str = "") -> dict[str, str]:
    """Nested provenance as dotted keys and texts."""
    texts: dict[str, str] = {}
    for key, value in nested.items():
        name = plain(f"{prefix}{key}")
        if isinstance(value, Mapping):
            texts |= flat(value, f"{name}.")
        elif isinstance(value, list | tuple | set):
            texts[name] = plain(", ".join(str(entry) for entry in value))
        else:
            texts[name] = show("text", value) if value is None or isinstance(value, bool) else plain(str(value))
    return texts
