"""The data behind the summary: predictions with measurements, fitted curves, parameters,
distributions of latency, summaries of raw samples, and with `--samples` every sample.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from commodel.compare.comparison import has_schedule, is_oversubscribed
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath
from commodel.files.tables import COMPARISON, SCHEDULE, Condition
from commodel.models.evaluation.values import FORM_NAMES, format_form
from commodel.models.keys import describe_piece, parse_key
from commodel.parameters import Estimate, ParameterSet
from commodel.records import RECOMMENDED, Plan
from commodel.reports import charts
from commodel.reports.comparison_frame import scale_to_shown_units
from commodel.reports.elements import (
    MICRO,
    MU_SCALE,
    AnsweredQuestion,
    Axis,
    Block,
    Chart,
    Column,
    Section,
    Series,
    format_count,
    format_value,
    label_platform,
    make_table,
    select_columns,
    to_plain_value,
)
from commodel.results.latency_distributions import count_modes
from commodel.results.raw_samples import find_raw_file, read_samples
from commodel.units import format_bytes


def make_samples_section(plan: Plan, results: Results, summary: pd.DataFrame) -> Section:
    """Return the section of all samples. A damaged raw file is an error, as in `collect`."""
    parts = []
    for path, case in list_case_files(plan, results, summary, find_raw_file):
        rows = pd.DataFrame(
            read_samples(path, case["id"]), columns=["pass", "sample", "seconds", "skew", "valid"]
        )
        rows[["seconds", "skew"]] *= MICRO
        parts.append(rows.assign(**case))
    frame = pd.concat(parts, ignore_index=True) if parts else []
    table = make_table("Samples", "All samples", frame, select_columns("Every sample"), fixed=6)
    return Section("Samples", "One row a sample of every pass, as in the raw files.", (table,))


def list_case_files(
    plan: Plan,
    results: Results,
    summary: pd.DataFrame,
    find_file: Callable[[AnyPath, str], AnyPath | None],
) -> Iterator[tuple[AnyPath, dict]]:
    """Yield the file of each summarized case in the raw folders of the plan, and the columns of the
    case."""
    cases = {
        row["id"]: row for row in summary[["id", "kind", "name", "settings"]].to_dict("records")
    }
    for batch in plan.batches:
        head = {"platform": batch.platform, "simulated": plan.platforms[batch.platform].simulated}
        for case in batch.ids:
            path = find_file(results.raw(batch.name), case) if case in cases else None
            if path and path.exists():
                yield path, head | cases[case]


# bytes: a packet of the TAN paper. Histograms show the smallest message and this one
HISTOGRAM_SIZE = 1024
STATISTICS = ("min", "median", "low", "high", "mean", "p95", "max")
LATENCY_DEFINITIONS = (
    "TAN defines latency as the mean of half the round trips, LogP as an upper bound without the overheads of sender "
    "and receiver, Netgauge as half the smallest round trip."
)
MODES_DEFINITION = (
    "Modes: peaks of the histogram with at least a tenth of the samples each, separated by a valley below half of the "
    "lower peak and deeper than counting noise. With two modes, the mean is a value that few samples have."
)


def make_latency_section(
    distributions: pd.DataFrame | None, raw: pd.DataFrame, simulated: set[str]
) -> Section:
    note = (
        "Half the round trip of a message between two ranks: valid samples of the ping-pong probe "
        "on the first nodes."
    )
    rows = []
    if distributions is not None:
        cases = {(row["id"], _read_setting(row)): row for row in raw.to_dict("records")}
        case_columns = [name for name in ("id", "setting") if name in distributions]
        for _, bins in distributions.groupby(case_columns, sort=False):
            first = bins.iloc[0]
            case = first["id"], _read_setting(first)
            if case in cases:
                rows.append(make_latency_row(bins, cases[case], simulated))
    rows.sort(key=lambda row: (row["platform"], row["setting"], row["pair"], row["bytes"]))
    smallest = {(row["platform"], row["setting"]): row["bytes"] for row in reversed(rows)}
    histograms = [
        chart_histogram(row)
        for row in rows
        if row["bytes"] in (smallest[row["platform"], row["setting"]], HISTOGRAM_SIZE)
        and not row["single"]
    ]
    hidden_columns = () if any(row["setting"] for row in rows) else ("setting",)
    columns = select_columns("Latency", without=hidden_columns)
    times = make_table("Latency", "Half the round trip by message size", rows, columns, fixed=4)
    definitions = AnsweredQuestion(
        "Definitions", (LATENCY_DEFINITIONS, MODES_DEFINITION, *describe_identical_samples(rows))
    )
    return Section("Latency", note, (times, definitions, *histograms) if rows else (times,))


def _read_setting(row: Mapping[str, object] | pd.Series) -> str:
    """Return the setting of a row; empty if it has none."""
    setting = row.get("setting", "")
    return to_plain_value(setting) if isinstance(setting, str) else ""


def make_latency_row(bins: pd.DataFrame, summary: Mapping[str, Any], simulated: set[str]) -> dict:
    """Return the row of one case, with the bins of its histogram."""
    inner_bins = bins[~bins["tail"].astype(bool)]
    last_bin = bins[bins["tail"].astype(bool)]
    first = bins.iloc[0]
    single = len(inner_bins) == 1
    platform = to_plain_value(first["platform"])
    size = int(first["bytes"])
    mode_count = 1 if single else count_modes(inner_bins["count"].to_numpy())
    return {
        "platform": platform,
        "simulated": platform in simulated,
        "setting": _read_setting(first),
        "pair": "" if pd.isna(first["pair"]) else to_plain_value(first["pair"]),
        "bytes": size,
        "label": format_bytes(size),
        "samples": int(bins["count"].sum()),
        "modes": mode_count,
        **{key: float(summary[key]) / 2 * MICRO for key in STATISTICS},
        "outliers": int(last_bin["count"].sum()),
        "spread": "one value"
        if single
        else "one mode"
        if mode_count == 1
        else f"{mode_count} modes",
        "single": single,
        "bins": inner_bins[["low", "high", "count"]].to_numpy(float).tolist(),
    }


def chart_histogram(row: dict) -> Chart:
    """Draw the outline of the bins without outliers, with the smallest, the median and the mean
    half round trip."""
    low, high, counts = np.array(row["bins"]).T
    xs = (np.array([low, low, high, high]).T * MICRO).ravel().tolist()
    ys = np.array([[0.0, *counts[:-1]], counts, counts, counts]).T.ravel().tolist()
    left = xs[0]
    right = xs[-1]
    top = max(ys) * 1.08
    outline = Series("samples", (*xs, right), (*ys, 0.0), "line", 0)
    definitions = (("half the smallest", "min"), ("median", "median"), ("mean", "mean"))
    marks = [
        Series(f"{name} {row[key]:.4g} µs", (row[key], row[key]), (0.0, top), "dashed", position)
        for position, (name, key) in enumerate(definitions, 1)
        if row[key] <= right
    ]
    note = f"{row['spread']}, {format_count(row['samples'], 'sample')}"
    if row["outliers"]:
        note += f"; {row['outliers']} above {right:.4g} µs not drawn"
    if row["mean"] > right:
        note += f", mean {row['mean']:.4g} µs"
    margin = 0.03 * (right - left)
    places = 2 - math.floor(math.log10(right - left))
    platform = label_platform(row["platform"], {row["platform"]} if row["simulated"] else set())
    subject = ", ".join(filter(None, (platform, row["setting"], row["pair"])))
    return Chart(
        name=" ".join(
            filter(
                None, ("Latency", row["platform"], row["setting"], row["pair"], str(row["bytes"]))
            )
        ),
        title=to_plain_value(f"Half the round trip of {row['label']}: {subject}"),
        x=Axis(
            "half the round trip [µs]",
            log=False,
            low=round(left - margin, places),
            high=round(right + margin, places),
        ),
        y=Axis("samples in a bin", log=False, low=0.0, high=float(math.ceil(top))),
        series=(outline, *marks),
        note=to_plain_value(note),
    )


def describe_identical_samples(rows: list[dict]) -> list[str]:
    """Return a sentence on each platform whose samples are identical, such as a simulator without
    noise."""
    lines = []
    for platform in sorted({row["platform"] for row in rows if row["single"]}):
        rows_of_platform = [row for row in rows if row["platform"] == platform]
        identical = sum(row["single"] for row in rows_of_platform)
        note = " (simulated)" if rows_of_platform[0]["simulated"] else ""
        sizes = (
            "every size"
            if identical == len(rows_of_platform)
            else f"{identical} of {len(rows_of_platform)} sizes"
        )
        lines.append(
            f"{platform}{note}: at {sizes} all samples are identical. There is no distribution to draw."
        )
    return lines


# Columns of Comparison from left to right; other columns of the schema follow.
POINT_COLUMNS = (
    "platform",
    "simulated",
    "operation",
    "alternative",
    "layout",
    "ranks",
    "leaves",
    "bytes",
    "waves",
    "setting",
    "model",
)
COLUMN_ORDER = (
    *POINT_COLUMNS,
    "seconds",
    "measured",
    "relative_error",
    "mu",
    "validity",
    "low",
    "high",
    "basis",
    "covered",
    "measured_low",
    "measured_high",
    "first",
    "last",
    "weights",
    "stack",
    "correction",
    "interval_factor",
    "deviation",
    "deviations",
    "parameter_low",
    "parameter_high",
    "chosen",
    "best",
    "tie",
    "regret",
    "held_out",
    "kind",
    "default_algorithm",
    "fan_in",
    "processes",
    "processors",
    "measurement",
    "samples",
    "invalid",
    "stop",
    "skew",
    "workload",
    "point",
    "batch",
    "raw",
)
MAX_FIXED_COLUMNS = 4  # columns that stay in sight


def put_first(recommended_rows: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison with the recommended predictions of each platform before those of the
    models. Real platforms stay before simulated ones."""
    rows = pd.concat([recommended_rows, frame], ignore_index=True)
    return rows.sort_values(["simulated", "platform"], kind="stable", ignore_index=True)


def make_prediction_section(frame: pd.DataFrame) -> Section:
    """Return the section of the comparison, which begins with the recommended predictions. Columns
    of a single value are the last ones, folded, and the note has that value. The schema defines how
    each column is shown and when it is blank; n/a marks a missing value with a reason."""
    present = {
        Condition.ALWAYS: True,
        Condition.WAVES: (frame["waves"] > 1).any(),
        Condition.SETTINGS: frame["setting"].ne("").any(),
        Condition.OVERSUBSCRIBED: is_oversubscribed(frame).any(),
        Condition.RECOMMENDED: frame["weights"].ne("").any(),
        Condition.DEFAULT_ALGORITHM: frame["default_algorithm"].ne("").any(),
    }
    fields = {field.name: field for field in COMPARISON if present.get(field.shown)}
    order = [key for key in COLUMN_ORDER if key in fields or key == "kind"]
    order += [name for name in fields if name not in order]
    shown = scale_to_shown_units(frame)
    constant = [
        key
        for key in POINT_COLUMNS[:-1]
        if key in fields and len(frame) > 1 and (shown[key] == shown[key].iloc[0]).all()
    ]
    order = [*(key for key in order if key not in constant), *constant]
    columns = []
    blank = {}
    for key in order:
        if key == "kind":
            columns.append(Column("kind", "kind"))
            continue
        field = fields[key]
        scale = MU_SCALE if key == "mu" else None
        columns.append(Column(key, field.title, field.shown_format, field.note, scale))
        if field.blank_without == SCHEDULE:
            blank[key] = ~has_schedule(frame)
        elif field.blank_without:
            blank[key] = ~frame[field.blank_without].fillna(0).astype(bool)
    varying = sum(key in POINT_COLUMNS and key not in constant for key in order)
    fixed = min(varying, MAX_FIXED_COLUMNS)
    table = make_table(
        "Comparison",
        "Predicted and measured",
        shown,
        columns,
        blank,
        fixed=fixed,
        folded=len(constant),
    )
    note = "One row a point and model: prediction, measurement, error, and the file of the samples."
    if (frame["model"] == RECOMMENDED).any():
        note += (
            " The recommended predictions of a platform come first; that of a point never uses "
            "its workload."
        )
        note += (
            " predicted = stack × correction; low and high: ÷ and × interval factor. Standings, "
            "in sheet Errors, has "
        )
        note += "the rule."
    values = [
        f"{fields[key].title} {table.column(key)[0]}"
        for key in constant
        if key != "leaves" or shown[key].iloc[0]
    ]
    note += f" The same in all rows, in the last columns: {', '.join(values)}." if values else ""
    return Section("Comparison", note, (table,))


def make_fit_section(sets: Sequence[ParameterSet]) -> Section:
    """Return the section of fitted curves: quality of fit, charts, residuals and samples."""
    curves, samples = [], []
    drawn: list[Chart] = []
    for fitted_set in sort_sets(sets):
        worst_curves = charts.select_worst_curves(fitted_set.curves)
        for curve in fitted_set.curves:
            head = {key: getattr(fitted_set, key) for key in SET_KEYS} | {"curve": curve.title}
            factor, label = charts.scale_to_micro(curve.y_label)
            figure = None
            if curve in worst_curves:
                figure = len(drawn) + 1
                drawn.append(charts.chart_fit(fitted_set, curve, figure))
            errors = charts.compute_residuals(curve)
            curves.append(
                head
                | {
                    "figure": figure,
                    "form": curve.form,
                    "r2": curve.r2 if len(curve.x) > 1 else math.nan,
                    "aic": curve.aic,
                    "worst": max(
                        (abs(error) for error in errors if math.isfinite(error)), default=math.nan
                    ),
                    "left_out": 100 * curve.left_out,
                    "count": len(curve.x),
                    "x": charts.bracket_unit(curve.x_label),
                    "y": label,
                }
            )
            labels = {"x_label": charts.bracket_unit(curve.x_label), "y_label": label}
            for x, measured, fitted, error in zip(
                curve.x, curve.measured, curve.fitted, errors, strict=True
            ):
                values = {
                    "x": x,
                    "measured": measured * factor,
                    "fitted": fitted * factor,
                    "error": error,
                }
                samples.append(head | labels | values)
        drawn += charts.chart_residuals(fitted_set, worst_curves, len(drawn) + 1)
    note = (
        "Left-out error: each sample is left out in turn and predicted by the fit to the others. "
        "n/a: too few samples."
    )
    if any(row["figure"] is None for row in curves):
        note += (
            f" Charts show at most {charts.MAX_CURVES} curves of each model, those with the "
            "largest errors."
        )
    blocks: tuple[Block, ...] = (
        make_table("Curves", "Fitted curves", curves, fixed=4, note=note),
        *drawn,
        make_table("Samples", "Samples of the curves", samples, fixed=4),
    )
    note = (
        "Models are fitted to probes only, except to points that the comparison lists as not held "
        "out."
    )
    return Section("Fits", note, blocks)


OPTIONAL_TIMES = ("cpu", "computation")
RAW_TIMES = ("min", "median", "mean", "p95", "max", "skew", *OPTIONAL_TIMES)  # seconds


def make_raw_section(raw: pd.DataFrame, simulated: set[str]) -> Section:
    columns = select_columns("Raw", without=set(OPTIONAL_TIMES) - set(raw))
    frame = raw.copy()
    for key in set(RAW_TIMES) & set(frame):
        frame[key] = pd.to_numeric(frame[key], errors="coerce") * MICRO
    frame["simulated"] = [to_plain_value(platform) in simulated for platform in frame["platform"]]
    frame = frame.sort_values(["platform", "kind", "name"], kind="stable")
    note = "One row a point or probe case. The raw file has every sample."
    return Section("Raw summary", note, (make_table("Raw", "Samples", frame, columns, fixed=5),))


def sort_sets(sets: Sequence[ParameterSet]) -> list[ParameterSet]:
    return sorted(sets, key=lambda fitted: (fitted.platform, fitted.model, fitted.source))


def flatten_provenance(nested: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested provenance as dotted keys and texts."""
    texts: dict[str, str] = {}
    for key, value in nested.items():
        name = to_plain_value(f"{prefix}{key}")
        if isinstance(value, Mapping):
            texts |= flatten_provenance(value, f"{name}.")
        elif isinstance(value, list | tuple | set):
            texts[name] = to_plain_value(", ".join(str(entry) for entry in value))
        else:
            texts[name] = (
                format_value("text", value)
                if value is None or isinstance(value, bool)
                else to_plain_value(str(value))
            )
    return texts


SHOWN_UNITS = {
    "": ("1", 1.0),
    "s": ("µs", MICRO),
    "s·B": ("µs·B", MICRO),
    "s/B": ("ns/B", 1e9),
    "s/B²": ("fs/B²", 1e15),
    "B/s": ("MB/s", 1e-6),
}
SET_KEYS = ("platform", "simulated", "model")
NOTE = (
    "Low and high: ends of the 95 % parameter interval; equal: given as exact. Grey: the data do not determine this "
    "value alone. n/a: not observed, with the reason in the note. `commodel predict --params` reads these tables."
)
UNDETERMINED_COLOUR = "#E4E4E4"
FORMS_KEYS = ("forms", "settings", "vectors")
SAMPLED_NOTE = (
    "Linear between samples, constant below the first. Beyond the last: the last slope, or "
    "constant if it is negative."
)


def make_parameter_section(
    sets: Sequence[ParameterSet], definitions: Mapping[tuple[str, str], str]
) -> Section:
    scalars = []
    samples = []
    sources = []
    for fitted in sort_sets(sets):
        head = {key: getattr(fitted, key) for key in SET_KEYS}
        for name, estimate in fitted.values.items():
            value_columns = describe_value(fitted, definitions, name) | convert_estimate(estimate)
            sample = parse_key(name).sample
            if sample:
                samples.append(
                    head
                    | value_columns
                    | {"name": parse_key(name).function, "at": sample[0], "level": sample[1]}
                )
            else:
                scalars.append(head | value_columns | {"name": name})
        for name, reason in fitted.missing.items():
            absent = dict.fromkeys(("value", "low", "high"), math.nan) | {
                "unit": "",
                "known": False,
                "note": reason,
            }
            scalars.append(
                head | describe_value(fitted, definitions, name) | absent | {"name": name}
            )
        ends = fitted.bytes_range
        sources.append(
            head
            | {
                "source": fitted.source,
                "low": int(ends[0]) if ends else None,
                "high": int(ends[1]) if ends else None,
                "values": len(fitted.values),
                "left_out": 100 * fitted.left_out.get("error", math.nan),
                "cases": fitted.left_out.get("cases", 0),
                "forms": format_forms(fitted),
                "unknown": sum(not estimate.known for estimate in fitted.values.values()),
                "provenance": "; ".join(
                    f"{key}: {entry}"
                    for key, entry in flatten_provenance(fitted.provenance).items()
                ),
            }
        )
    optional = () if definitions else ("definition",)
    columns = select_columns("Parameters", without=optional)
    sampled_columns = select_columns("Sampled functions", without=optional)

    def mark_undetermined(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
        colours = ["" if row["known"] else UNDETERMINED_COLOUR for row in rows]
        return dict.fromkeys(("value", "low", "high"), colours)

    blocks = (
        make_table(
            "Parameters",
            "Values",
            scalars,
            columns,
            fixed=4,
            backgrounds=mark_undetermined(scalars),
        ),
        make_table("Sources", "Sources", sources, fixed=3),
        make_table(
            "Sampled functions",
            "Sampled functions",
            samples,
            sampled_columns,
            note=SAMPLED_NOTE,
            fixed=6,
            backgrounds=mark_undetermined(samples),
        ),
    )
    return Section("Parameters", NOTE, blocks)


def format_forms(fitted: ParameterSet) -> str:
    """Return what predictions need of a set besides its values, as JSON."""
    fields = {key: dict(getattr(fitted, key)) for key in FORMS_KEYS}
    return json.dumps(
        {key: entries for key, entries in fields.items() if entries}, ensure_ascii=False
    )


def describe_value(
    fitted: ParameterSet, definitions: Mapping[tuple[str, str], str], name: str
) -> dict:
    """Return the form of a value's function and the meaning of its parameter, by its longest known
    name."""
    key = parse_key(name)
    names = [name, key.function, key.parameter]
    form = next((fitted.forms[spelling] for spelling in names if spelling in fitted.forms), "")
    meaning = next(
        (
            definitions[fitted.model, spelling]
            for spelling in names
            if (fitted.model, spelling) in definitions
        ),
        "",
    )
    form = format_form(form) if form in FORM_NAMES else form
    return {"form": form, "definition": describe_piece(key, meaning)}


def convert_estimate(estimate: Estimate) -> dict:
    """Return the numbers in the units of a report."""
    unit, factor = SHOWN_UNITS.get(estimate.unit, (estimate.unit, 1.0))
    numbers = {key: getattr(estimate, key) * factor for key in ("value", "low", "high")}
    return numbers | {"unit": unit, "known": estimate.known, "note": estimate.note}


def make_model_section(models: Mapping[str, Mapping[str, str]]) -> Section:
    """Return full name, equation, neglected effects and citation of each model."""
    rows = [{"model": name, **entry} for name, entry in sorted(models.items())]
    note = "Each model's time of a message, and the effects that it neglects."
    return Section("Models", note, (make_table("Models", "The models", rows),))
