"""Which charts a report has, as values: predicted against measured, time over bytes, fitted curves."""

import math
import re
from collections.abc import Sequence

import pandas as pd

from commodel.records import ParameterSet
from commodel.report.answers import best_family
from commodel.report.frames import families_of
from commodel.report.recommend import JOB
from commodel.report.shape import MICRO, Axis, Chart, Series, plain
from commodel.units import format_bytes

# Okabe and Ito: told apart by most colour-blind readers. Beyond eight the dots change their shape.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5C00", "#444444")
INTERESTING = 6  # time-over-bytes charts a platform


def predicted_measured(frame: pd.DataFrame) -> list[Chart]:
    """One chart a platform, a series a family, and the diagonal on which a perfect price lies."""
    charts = []
    families = families_of(frame)
    for platform, part in frame.groupby("platform"):
        part = part[(part["measured"] > 0) & (part["predicted"] > 0)]  # a price of zero has no place on a log axis
        if part.empty:
            continue
        labels = [
            f"{row.operation} {row.choice}, {row.size}, {row.layout}, {format_bytes(row.bytes)}"
            for row in part.itertuples()
        ]
        part = part.assign(label=labels)
        low, high = decades([*part["measured"] * MICRO, *part["predicted"] * MICRO])
        clouds = [
            Series(family, times(some["measured"]), times(some["predicted"]), "dots", place, tuple(some["label"]))
            for place, family in enumerate(families)
            if len(some := part[part["family"] == family])
        ]
        diagonal = Series("predicted = measured", (low, high), (low, high), "line", -1)
        charts.append(
            Chart(
                f"Predicted {platform}",
                f"Predicted over measured: {platform}{mark(part)}",
                Axis("measured [µs]", low=low, high=high),
                Axis("predicted [µs]", low=low, high=high),
                (diagonal, *clouds),
            )
        )
    return charts


def time_over_bytes(frame: pd.DataFrame) -> list[Chart]:
    """First the jobs whose winner changes with the size, then those where the choice matters most."""
    charts = []
    for _, part in frame.groupby("platform"):
        jobs = []
        for job, some in part[(part["measured"] > 0) & (part["bytes"] > 0)].groupby(JOB):
            once = some.drop_duplicates("point")
            if once["choice"].nunique() > 1 and once["bytes"].nunique() > 2:
                at = once.groupby("bytes")["measured"]
                winners = once.loc[at.idxmin(), "choice"].nunique()
                jobs.append((-winners, -(at.max() / at.min()).max(), job, some))
        jobs.sort(key=lambda entry: entry[:3])
        charts += [time_chart(job, some, best_family(some)) for _, _, job, some in jobs[:INTERESTING]]
    return charts


def time_chart(job: tuple[str, ...], part: pd.DataFrame, best: pd.Series | None) -> Chart:
    platform, operation, layout, size = job
    lines, prices = [], []
    for place, choice in enumerate(sorted(part["choice"].unique())):
        some = part[part["choice"] == choice]
        once = some.drop_duplicates("point").sort_values("bytes")
        sizes = tuple(once["bytes"].astype(float))
        ends = {"low": times(once["measured_low"]), "high": times(once["measured_high"])}
        lines.append(Series(choice, sizes, times(once["measured"]), "both", place, **ends))
        if best is not None:
            price = some[(some["family"] == best["family"]) & (some["predicted"] > 0)].sort_values("bytes")
            name = f"{choice}, {best['family']} price"
            prices.append(Series(name, tuple(price["bytes"].astype(float)), times(price["predicted"]), "dashed", place))
    return Chart(
        f"Time {' '.join(job)}",
        f"{operation}, {size}, {layout}: {platform}{mark(part)}",
        Axis("message size [B]", bytes=True),
        Axis("time [µs]"),
        (*lines, *(series for series in prices if series.x)),
    )


def fitted(sets: Sequence[ParameterSet]) -> list[Chart]:
    """Samples and the curve through them. Axes are logarithmic where the values span more than a factor of ten."""
    charts = []
    for each in sets:
        for curve in each.curves:
            factor, label = micro(curve.y_label)
            order = sorted(range(len(curve.x)), key=lambda place: curve.x[place])
            xs = tuple(float(curve.x[place]) for place in order)
            measured = tuple(float(curve.measured[place] * factor) for place in order)
            line = tuple(float(curve.fitted[place] * factor) for place in order)
            simulated = " (simulated)" if each.simulated else ""
            charts.append(
                Chart(
                    f"Fit {each.platform} {each.family} {curve.title}",
                    plain(f"{curve.title}: {each.family}, {each.platform}{simulated}"),
                    Axis(plain(curve.x_label), log=wide(xs), bytes=wide(xs) and "[B]" in curve.x_label),
                    Axis(plain(label), log=wide([*measured, *line])),
                    (Series("samples", xs, measured, "dots", 0), Series("fitted", xs, line, "line", 1)),
                    plain(f"{curve.form}, R² = {curve.r2:.4f}"),
                )
            )
    return charts


def micro(label: str) -> tuple[float, str]:
    """Factor and label that turn an axis in seconds into one in µs; others stay as they are."""
    scaled = re.sub(r"([\[(])s([\])])", r"\1µs\2", label)
    return (MICRO, scaled) if scaled != label else (1.0, label)


def times(column: pd.Series) -> tuple[float, ...]:
    return tuple(float(value) for value in column * MICRO)


def wide(values: Sequence[float]) -> bool:
    return len(values) > 0 and min(values) > 0 and max(values) > 10 * min(values)


def decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def mark(part: pd.DataFrame) -> str:
    return " (simulated)" if part["simulated"].any() else ""
