"""The charts of a report, as values: predicted over measured times, time over message size, fitted
curves.

`chart_predictions`, `chart_times` and `chart_fit` build them.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter

import numpy as np
import pandas as pd

from commodel.compare.alternatives import WORKLOAD, find_fastest
from commodel.compare.comparison import ERROR_COLUMNS, is_library_default
from commodel.compare.model_ranking import drop_equal_models, find_best_model
from commodel.models.evaluation.values import TABLE, format_form
from commodel.parameters import Curve, ParameterSet
from commodel.records import RECOMMENDED
from commodel.reports.elements import (
    MICRO,
    Axis,
    Chart,
    Series,
    count_by_frequency,
    format_percent,
    shorten_list,
    to_plain_value,
)
from commodel.units import format_bytes

# Okabe and Ito: distinct for most colour-blind readers. Beyond eight, dots change their shape.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5C00", "#444444")
# Backgrounds of dark letters.
PALE_COLOURS = (
    "#CFE8E0",
    "#FBE3C9",
    "#D6E4F5",
    "#F3D6E2",
    "#E6E0F4",
    "#FBF4C4",
    "#DDE7C7",
    "#DCDCDC",
    "#C9EEF5",
    "#F6D0C8",
)
GREY = -1  # colour of a series
MAX_TIME_CHARTS = 6  # charts of time over message size, a platform
MAX_MODELS = 5  # in one chart: the best ones
MAX_CURVES = 8  # drawn of one model on one platform
MAX_DOTS = 5_000  # predictions in one chart; with more, some points are left out
# Columns of a comparison that charts of times need. All others would be copied with every chart.
TIME_CHART_COLUMNS = [
    *WORKLOAD,
    *("ranks", "leaves", "bytes", "point", "algorithm", "alternative_label", "simulated"),
    *("measured", "measured_low", "measured_high", "library_default"),
    *("model", "seconds", "held_out", *ERROR_COLUMNS),
]
MIN_RELATIVE_RANGE = 1e-6  # a curve that varies by less is constant except for rounding
MAX_BAND_ERROR = 0.1  # μ − 1 at the edges of the strip along the identity line


def chart_predictions(
    frame: pd.DataFrame, recommended: pd.DataFrame | None = None
) -> dict[str, Chart]:
    """Return, by platform, a chart with a series for the recommended prediction and for each of the
    best models, and the identity line."""
    charts = {}
    recommended = frame.iloc[:0] if recommended is None else recommended
    best = {
        platform: drop_equal_models(part, MAX_MODELS)
        for platform, part in frame.groupby("platform")
    }
    drawn = list(dict.fromkeys(chain.from_iterable(best.values())))
    for platform, part in frame.groupby("platform"):
        best_models = best[platform]
        model_count = part.loc[part["model"] != "", "model"].nunique()
        count = len(best_models)
        note = (
            f"Shown: the best {count} of {model_count} models by mean error; of models with equal "
            "predictions, one."
        )
        note = note if count < model_count else ""
        own = recommended[recommended["platform"] == platform]
        shown = [RECOMMENDED, *best_models] if len(own) else best_models
        part = pd.concat([own, part]) if len(own) else part
        part = part[part["measured"] > 0]
        accuracy = describe_accuracy(part, shown[0]) if shown else ""
        part = part[part["seconds"] > 0]  # zero has no place on a log axis
        part = part[part["model"].isin(shown)]
        if part.empty:
            continue
        step = -(-len(part) // MAX_DOTS)
        if step > 1:
            part = part[pd.factorize(part["point"])[0] % step == 0]
            note += f" One of every {step} points is drawn."
        labels = [
            f"{row.operation} {row.alternative}, {row.size}, {row.layout}, {format_bytes(row.bytes)}"
            for row in part.itertuples()
        ]
        part = part.assign(label=labels)
        low, high = find_decades([*part["measured"] * MICRO, *part["seconds"] * MICRO])
        clouds = []
        for colour, family in ((len(drawn), RECOMMENDED), *enumerate(drawn)):
            predicted = part[part["model"] == family]
            if predicted.empty:
                continue
            low_ends, high_ends = list_interval_ends(predicted, family)
            cloud = Series(
                name=family,
                x=to_microseconds(predicted["measured"]),
                y=to_microseconds(predicted["seconds"]),
                style="dots",
                colour=colour,
                labels=tuple(predicted["label"]),
                low=low_ends,
                high=high_ends,
            )
            clouds.append(cloud)
        diagonal = Series("predicted = measured", (low, high), (low, high), "line", GREY)
        charts[platform] = Chart(
            name=f"Predicted {platform}",
            title=f"{accuracy}: {platform}{make_simulation_mark(part)}",
            x=Axis("measured [µs]", low=low, high=high),
            y=Axis("predicted [µs]", low=low, high=high),
            series=(diagonal, *clouds),
            note=note,
            band=MAX_BAND_ERROR,
        )
    return charts


def list_interval_ends(
    predicted: pd.DataFrame, model: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the ends of the prediction intervals that the chart draws: those of the recommended
    prediction, unless one of them is unknown or has no place on a log axis."""
    if (
        model != RECOMMENDED
        or not (predicted["low"] > 0).all()
        or not np.isfinite(predicted["high"]).all()
    ):
        return (), ()
    return to_microseconds(predicted["low"]), to_microseconds(predicted["high"])


def describe_accuracy(part: pd.DataFrame, model: str) -> str:
    """Return the share of a model's predictions with an error μ − 1 of at most MAX_BAND_ERROR."""
    share = format_percent((part.loc[part["model"] == model, "mu"] <= 1 + MAX_BAND_ERROR).mean())
    owner = "the recommended predictions" if model == RECOMMENDED else f"{model}'s predictions"
    return f"{share} of {owner} are within {100 * MAX_BAND_ERROR:.0f} %"


def chart_times(frame: pd.DataFrame) -> dict[str, list[Chart]]:
    """Return charts by platform: first workloads whose fastest alternative changes with the message
    size, then those with the largest differences."""
    frame = frame[TIME_CHART_COLUMNS]
    drawn = frame["held_out"] & (frame["measured"] > 0) & (frame["bytes"] > 0)
    charts: dict[str, list[Chart]] = {}
    measured_points = frame.loc[
        drawn, [*WORKLOAD, "bytes", "alternative_label", "point", "measured"]
    ].drop_duplicates("point")
    for platform, platform_points in measured_points.groupby("platform"):
        for workload in choose_workloads(platform_points):
            is_workload = [
                frame[key] == value for key, value in zip(WORKLOAD, workload, strict=True)
            ]
            part = frame[np.logical_and.reduce([drawn, *is_workload])]
            charts.setdefault(platform, []).append(
                chart_workload(workload, part, find_best_model(part))
            )
    return charts


def choose_workloads(points: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the workloads to draw; `points` has one row for each measured point."""
    sizes = points.groupby([*WORKLOAD, "bytes"])["measured"]
    spread = (sizes.max() / sizes.min()).groupby(WORKLOAD).max()
    winners = points.loc[sizes.idxmin()].groupby(WORKLOAD)["alternative_label"].nunique()
    contested = points.groupby(WORKLOAD)[["alternative_label", "bytes"]].nunique()
    contested = contested[(contested["alternative_label"] > 1) & (contested["bytes"] > 2)].index
    return sorted(
        contested, key=lambda workload: (-winners[workload], -spread[workload], workload)
    )[:MAX_TIME_CHARTS]


def chart_workload(workload: tuple[str, ...], part: pd.DataFrame, best: pd.Series | None) -> Chart:
    """Return the chart of a workload: dots are measured, dashed lines are predicted by the best
    model. A line joins the dots of an alternative without a prediction."""
    platform, operation, layout, size = workload
    measured, predictions = [], []
    defaults = set(part.loc[is_library_default(part), "alternative_label"])
    alternatives = sorted(
        part["alternative_label"].unique(), key=lambda name: (name in defaults, name)
    )
    for index, alternative in enumerate(alternatives):
        rows = part[part["alternative_label"] == alternative].sort_values("bytes", kind="stable")
        colour = GREY if defaults == {alternative} else index
        predicted = rows.iloc[:0]
        if best is not None and alternative not in defaults:
            predicted = rows[(rows["model"] == best["model"]) & (rows["seconds"] > 0)]
        style = "wide" if alternative in defaults else "both" if predicted.empty else "dots"
        points = rows.drop_duplicates("point")
        measured.append(
            make_time_series(
                f"{alternative}, measured",
                points,
                "bytes",
                "measured",
                style,
                colour,
                error_bars=True,
            )
        )
        if len(predicted):
            name = f"{alternative}, predicted"
            predictions.append(
                make_time_series(name, predicted, "bytes", "seconds", "dashed", index)
            )
    return Chart(
        name=f"Time {' '.join(workload)}",
        title=(
            f"{operation}, {size}, {layout}{describe_fastest(find_fastest(part))}: "
            f"{platform}{make_simulation_mark(part)}"
        ),
        x=Axis("message size [B]", bytes=True),
        y=Axis("time [µs]"),
        series=(*measured, *predictions),
        note=f"Dots: measured. Dashed: predicted by {best['model']}."
        if best is not None and predictions
        else "",
    )


def describe_fastest(fastest: pd.DataFrame) -> str:
    """Return which alternative is the fastest at the largest messages, and at which sizes; such as
    `: chain is the fastest from 64 KiB`. `fastest` has the rows of one workload from
    `find_fastest`, which the map shows, too."""
    if fastest.empty:
        return ""
    name = fastest["fastest"].iloc[-1]
    other_sizes = fastest.loc[fastest["fastest"] != name, "bytes"]
    largest = fastest[fastest["bytes"] > (other_sizes.max() if len(other_sizes) else 0)]
    sizes = f"from {format_bytes(int(largest['bytes'].min()))}"
    if len(largest) == len(fastest):
        sizes = "at all sizes"
    elif len(largest) == 1:
        sizes = f"at {format_bytes(int(largest['bytes'].iloc[0]))}, the largest size"
    if largest["is_clear"].all():
        return f": {name} is the fastest {sizes}"
    if largest["is_clear"].any():
        return f": {name} is the fastest, or statistically tied, {sizes}"
    tied = dict.fromkeys(chain.from_iterable(largest["ties"]))
    return f": {name} is statistically tied with {shorten_list(list(tied))} {sizes}"


def chart_fit(fitted_set: ParameterSet, curve: Curve, figure: int) -> Chart:
    """Return the chart of samples and their fitted curve. An axis over more than a factor of ten is
    logarithmic."""
    factor, label = scale_to_micro(curve.y_label)
    samples = sorted(zip(curve.x, curve.measured, curve.fitted, strict=True), key=itemgetter(0))
    xs, measured, line = (
        tuple(column)
        for column in (np.array(samples, float).T * [[1], [factor], [factor]]).tolist()
    )
    lowest = min(*measured, *line)
    highest = max(*measured, *line)
    # rounding differences would fill the chart
    is_constant = highest - lowest < MIN_RELATIVE_RANGE * abs(highest)
    ends = {"low": 0.0, "high": 2 * highest} if is_constant and highest > 0 else {}
    return Chart(
        name=f"Fit {fitted_set.platform} {fitted_set.model} {curve.title}",
        title=to_plain_value(f"{figure}. {curve.title}: {describe_set(fitted_set)}"),
        x=make_curve_axis(curve, xs),
        y=Axis(to_plain_value(label), log=spans_decades([*measured, *line]), **ends),
        series=(Series("samples", xs, measured, "dots", 0), Series("fitted", xs, line, "line", 1)),
        note=to_plain_value(describe_quality(curve)),
        number=figure,
    )


def describe_quality(curve: Curve) -> str:
    """Return form and R² of a fit. A negative R² has its meaning; a constant is not named as lines
    between samples."""
    constant = max(curve.fitted) - min(curve.fitted) <= MIN_RELATIVE_RANGE * abs(max(curve.fitted))
    form = "a constant" if constant and curve.form == format_form(TABLE) else curve.form
    if curve.r2 < -MIN_RELATIVE_RANGE:
        return f"{form}, R² < 0: worse than the mean of the samples"
    return f"{form}, R² = {curve.r2:.4f}"


def select_worst_curves(curves: Sequence[Curve]) -> list[Curve]:
    """Return the curves with the largest residuals or left-out errors. A curve needs two samples or
    more."""

    def compute_worst_error(curve: Curve) -> float:
        errors = [abs(error) for error in compute_residuals(curve) if math.isfinite(error)]
        return max([*errors, 100 * curve.left_out if curve.left_out > 0 else 0.0])

    worst = sorted(
        (curve for curve in curves if len(set(curve.x)) > 1), key=compute_worst_error, reverse=True
    )[:MAX_CURVES]
    return [curve for curve in curves if curve in worst]


def chart_residuals(fitted_set: ParameterSet, curves: Sequence[Curve], figure: int) -> list[Chart]:
    """Return charts of a model's residuals in % of the sample, one for each abscissa. Curves
    through all of their samples have none."""
    by_axis: dict[str, list[Curve]] = {}
    for curve in curves:
        if any(error != 0 for error in compute_residuals(curve)):
            by_axis.setdefault(curve.x_label, []).append(curve)
    charts: list[Chart] = []
    for curves_of_axis in by_axis.values():
        lines = []
        for index, curve in enumerate(curves_of_axis):
            points = sorted(zip(curve.x, compute_residuals(curve), strict=True))
            points = [(float(x), error) for x, error in points if math.isfinite(error)]
            if points:
                xs, errors = zip(*points, strict=True)
                lines.append(Series(to_plain_value(curve.title), xs, errors, "both", index))
        if lines:
            xs = tuple(x for line in lines for x in line.x)
            charts.append(
                Chart(
                    name=f"Residuals {fitted_set.platform} {fitted_set.model} {curves_of_axis[0].x_label}",
                    title=to_plain_value(
                        f"{figure + len(charts)}. residuals: {describe_set(fitted_set)}"
                    ),
                    x=make_curve_axis(curves_of_axis[0], xs),
                    y=Axis("fitted − measured [%]", log=False),
                    series=tuple(lines),
                    number=figure + len(charts),
                )
            )
    return charts


def compute_residuals(curve: Curve) -> list[float]:
    """Return fitted − measured of each sample, in % of the measured value; NaN if that is 0."""
    pairs = zip(curve.measured, curve.fitted, strict=True)
    return [100 * (fit / measured - 1) if measured else math.nan for measured, fit in pairs]


def make_curve_axis(curve: Curve, xs: Sequence[float]) -> Axis:
    """Return the horizontal axis of a curve."""
    label = bracket_unit(curve.x_label)
    log = spans_decades(xs)
    return Axis(to_plain_value(label), log=log, bytes=log and "[B]" in label)


def describe_set(fitted_set: ParameterSet) -> str:
    note = " (simulated)" if fitted_set.simulated else ""
    return f"{fitted_set.model}, {fitted_set.platform}{note}"


def scale_to_micro(label: str) -> tuple[float, str]:
    """Return factor and label of an axis: 10⁶ and a label in µs if the given label is in seconds,
    else 1 and the label."""
    label = bracket_unit(label)
    scaled = re.sub(r"([\[(])s([\])])", r"\1µs\2", label)
    return (MICRO, scaled) if scaled != label else (1.0, label)


def bracket_unit(label: str) -> str:
    """Return `time / s` as `time [s]`."""
    return re.sub(r" / (\S+)$", r" [\1]", label)


def make_time_series(
    name: str,
    rows: pd.DataFrame,
    x: str,
    time: str,
    style: str,
    colour: int,
    error_bars: bool = False,
) -> Series:
    """Return a series of times, over another column of the comparison."""
    low, high = (
        (to_microseconds(rows[f"{time}_{end}"]) if error_bars else ()) for end in ("low", "high")
    )
    return Series(
        name,
        tuple(rows[x].astype(float)),
        to_microseconds(rows[time]),
        style,
        colour,
        low=low,
        high=high,
    )


def to_microseconds(column: pd.Series) -> tuple[float, ...]:
    return tuple(float(value) for value in column * MICRO)


def spans_decades(values: Sequence[float]) -> bool:
    return len(values) > 0 and min(values) > 0 and max(values) > 10 * min(values)


def find_decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten around the values."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def make_simulation_mark(part: pd.DataFrame) -> str:
    return " (simulated)" if part["simulated"].any() else ""


def assign_colours(alternatives: Iterable[str]) -> dict[str, str]:
    """Return a colour for each algorithm or kind of tree, the most frequent first; beyond ten,
    colours repeat."""
    names = [name for name, _ in count_by_frequency(map(name_without_argument, alternatives))]
    return {name: PALE_COLOURS[index % len(PALE_COLOURS)] for index, name in enumerate(names)}


def name_without_argument(choice: str) -> str:
    """Return an algorithm without its argument, a kind of topology without its numbers."""
    return choice.partition(":")[0]
