"""What the summary rests on: fitted curves with their samples, and raw summaries.

What was fitted, and of which families: values with their intervals, functions given by samples, where they come
from, and what each family says and ignores."""

import math
import re
from collections.abc import Mapping, Sequence

import pandas as pd

from commodel.models.keys import parse
from commodel.models.pricing.values import FORM_NAMES, form_text
from commodel.parameters import Estimate, ParameterSet
from commodel.reports import charts
from commodel.reports.frames import PLATFORM, SAMPLES
from commodel.reports.shape import MICRO, Column, Section, Table, table
from commodel.reports.values import about, plain, show, simulation
from commodel.units import format_bytes


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


UNITS = {
    "": ("1", 1.0),
    "s": ("µs", MICRO),
    "s·1": ("µs", MICRO),
    "s·B": ("µs·B", MICRO),
    "s/B": ("ns/B", 1e9),
    "s/B²": ("fs/B²", 1e15),
    "s/message": ("µs/message", MICRO),
    "B/s": ("MB/s", 1e-6),
}
FAMILY = [*PLATFORM, Column("family", "family")]
VALUE = [
    Column("value", "value", "number"),
    Column("low", "low (95 %)", "number"),
    Column("high", "high (95 %)", "number"),
    Column("unit", "unit"),
    Column("known", "told apart", "flag", "no: the data cannot tell this value apart; the note says from what"),
]
NOTE = (
    "Low and high: ends of the 95 % interval; equal: given as exact. ≈ and not told apart: the data do not determine "
    "this value by itself; n/a: it could not be observed; the note says why. Beyond the probed sizes a price "
    "extrapolates."
)


def parameters(sets: Sequence[ParameterSet], definitions: Mapping[tuple[str, str], str]) -> Section:
    scalars, samples, sources = [], [], []
    for fitted in ordered(sets):
        head = {
            "platform": fitted.platform,
            "simulated": simulation(fitted.simulated),
            "family": fitted.family,
        }
        for name, estimate in fitted.values.items():
            known = named(fitted, definitions, name) | shown(estimate)
            if sample := parse(name).sample:
                samples.append(head | known | {"name": parse(name).function, "at": sample[0], "level": sample[1]})
            else:
                scalars.append(head | known | {"name": name})
        for name, reason in fitted.missing.items():
            absent = dict.fromkeys(("value", "low", "high"), math.nan) | {"unit": "", "known": False, "note": reason}
            scalars.append(head | named(fitted, definitions, name) | absent | {"name": name})
        ends = fitted.bytes_range
        sources.append(
            head
            | {
                "source": fitted.source,
                "range": f"{format_bytes(int(ends[0]))} … {format_bytes(int(ends[1]))}" if ends else "",
                "values": len(fitted.values),
                "left_out": 100 * fitted.left_out.get("error", math.nan),
                "cases": fitted.left_out.get("cases", 0),
                "unknown": sum(not estimate.known for estimate in fitted.values.values()),
                "provenance": "; ".join(f"{key}: {entry}" for key, entry in flat(fitted.provenance).items()),
            }
        )
    meaning = [Column("definition", "definition")] if definitions else []
    columns = [*FAMILY, Column("name", "parameter"), *VALUE, Column("form", "form"), Column("note", "note"), *meaning]
    origins = [
        *FAMILY,
        Column("source", "source"),
        Column("range", "probed message sizes"),
        Column("values", "values", "count"),
        Column("unknown", "not told apart", "count"),
        Column("left_out", "left-out error [%]", "percent", "root mean square, at probe cases the fit had not seen"),
        Column("cases", "cases left out", "count", "each in turn, priced as the pattern that the probe plays"),
        Column("provenance", "provenance"),
    ]
    blocks = [
        table("Parameters", "Values", columns, rows(scalars, columns), fixed=4),
        table("Sources", "Where they come from", origins, rows(sources, origins), fixed=3),
    ]
    return Section("Parameters", NOTE, (*blocks, sampled(samples, meaning)))


def sampled(samples: list[dict], meaning: list[Column]) -> Table:
    """Functions given by samples, a row a sample: far more rows than there are other values."""
    columns = [
        *FAMILY,
        Column("name", "function"),
        Column("at", "at bytes (or count)", "count", "the function's argument: bytes of a message, or a count of them"),
        Column("level", "transfers at once", "count", "of a function that also depends on how many do the same"),
        *VALUE,
        Column("note", "note"),
        *meaning,
    ]
    note = "Linear between samples, constant below the first, and beyond the last as steep as between the last two."
    return table("Sampled", "Sampled functions", columns, rows(samples, columns), note=note, fixed=6)


def named(fitted: ParameterSet, definitions: Mapping[tuple[str, str], str], name: str) -> dict:
    """What a value is: the form of its function and the meaning of its parameter, found by its longest known name."""
    names = [name, parse(name).function, parse(name).parameter]
    form = next((fitted.forms[key] for key in names if key in fitted.forms), "")
    meaning = next((definitions[fitted.family, key] for key in names if (fitted.family, key) in definitions), "")
    if re.fullmatch(r"x\d+", parse(name).part):
        meaning = f"from this size on another piece of {parse(name).function} holds"
    return {"form": form_text(form) if form in FORM_NAMES else form, "definition": meaning}


def shown(estimate: Estimate) -> dict:
    """The numbers in the units of a report. What the data cannot tell apart must not look as if it were known."""
    unit, factor = UNITS.get(estimate.unit, (estimate.unit, 1.0))
    ends = supported({key: getattr(estimate, key) * factor for key in ("value", "low", "high")})
    if not estimate.known:
        ends = {key: about(value) for key, value in ends.items()}
    return ends | {"unit": unit, "known": estimate.known, "note": estimate.note}


def supported(ends: dict[str, float]) -> dict[str, float]:
    """To two digits more than the interval is wide: further ones would be noise."""
    wide = ends["high"] - ends["low"]
    if not (wide > 0 and math.isfinite(wide)):
        return ends
    places = 2 - math.floor(math.log10(wide))
    return {key: float(f"{round(value, places):.15g}") for key, value in ends.items()}


def models(families: Mapping[str, Mapping[str, str]]) -> Section:
    """Of each family: its full name, its equation, what it leaves out and where it comes from."""
    columns = [Column("family", "family")]
    columns += [Column(key, key) for key in ("title", "equation", "ignores", "citation")]
    entries = [
        {"family": name} | {key: plain(entry.get(key, "")) for key in ("title", "equation", "ignores", "citation")}
        for name, entry in sorted(families.items())
    ]
    note = "What each family says a message costs, and what it leaves out: where it must err."
    return Section("Families", note, (table("Models", "The families", columns, rows(entries, columns)),))
