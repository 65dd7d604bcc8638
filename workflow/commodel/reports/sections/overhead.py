"""Overhead of a container: the same points measured inside it and on the same machine without it."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from commodel.compare.comparison import compute_geometric_mean
from commodel.reports.comparison_frame import list_leaves
from commodel.reports.elements import (
    MICRO,
    Answer,
    Axis,
    Chart,
    Section,
    Series,
    format_count,
    format_size,
    label_platform,
    make_table,
    to_plain_value,
)

POINT_KEYS = ["operation", "alternative", "layout", "ranks", "leaves", "bytes", "waves"]  # only a topology has leaves
OUTCOMES = ("slower", "faster", "tied")
METHOD = (
    "Ratio: median in the container over the median without it. Its 95 % interval combines the two measurements' "
    "intervals on a logarithmic scale (MOVER: Zou and Donner 2008). Slower or faster: the interval excludes 1. "
    "Without any overhead, one point in twenty is slower or faster by chance."
)


def pair_with_native(frame: pd.DataFrame, containers: Mapping[str, Mapping]) -> pd.DataFrame:
    """Return a row for each point that was measured in a container and without it on the same platform."""
    if not containers:
        return pd.DataFrame()
    times = ["measured", "measured_low", "measured_high"]
    columns = ["platform", "simulated", "point", *POINT_KEYS, *times]
    points = frame.loc[frame["measured"] > 0, columns].drop_duplicates("point")
    pairs = []
    for name, container in containers.items():
        native = to_plain_value(container.get("native") or "")
        container_points, native_points = (
            points[points["platform"] == to_plain_value(name)],
            points[points["platform"] == native],
        )
        if native and len(container_points) and len(native_points):
            container_points = container_points[["platform", "simulated", *POINT_KEYS, *times]]
            native_points = native_points[[*POINT_KEYS, *times]].assign(native=native)
            pairs.append(container_points.merge(native_points, on=POINT_KEYS, suffixes=("", "_native")))
    return compute_ratios(pd.concat(pairs, ignore_index=True)) if pairs else pd.DataFrame()


def compute_ratios(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return ratio and interval of each pair. On a logarithmic scale, the distances from the medians to the ends of
    their intervals add in squares (MOVER): the high end combines a high numerator and a low denominator."""
    container, native = np.log(pairs["measured"]), np.log(pairs["measured_native"])
    up, native_up = np.log(pairs["measured_high"]) - container, np.log(pairs["measured_high_native"]) - native
    with np.errstate(divide="ignore"):  # an interval down to 0 has no end on that side
        down, native_down = container - np.log(pairs["measured_low"]), native - np.log(pairs["measured_low_native"])
    ratio = container - native
    low, high = ratio - np.hypot(down, native_up), ratio + np.hypot(up, native_down)
    outcome = np.select([low > 0, high < 0], OUTCOMES[:2], OUTCOMES[2])
    return pairs.assign(ratio=np.exp(ratio), low=np.exp(low), high=np.exp(high), outcome=outcome)


def describe_overhead(pairs: pd.DataFrame, containers: Mapping[str, Mapping], simulated: set[str]) -> list[str]:
    """Return a sentence on each container: its mean overhead, its largest, and how many points differ significantly."""
    lines = []
    for name, recorded in containers.items():
        if not (native := to_plain_value(recorded.get("native") or "")):
            continue
        measured = pairs[pairs["platform"] == to_plain_value(name)] if len(pairs) else pairs
        container = f"{label_platform(to_plain_value(name), simulated)}, {describe_container(recorded)}"
        compared = f"{container}, compared with {label_platform(native, simulated)} without it"
        if measured.empty:
            lines.append(f"{compared}: no point was measured on both.")
            continue
        worst = measured.loc[measured["ratio"].idxmax()]
        workload = (
            f"{worst['operation']} {worst['alternative']}, {describe_extent(worst)}, {format_size(worst['bytes'])}"
        )
        outcomes = [
            f"{number} {outcome}" for outcome in OUTCOMES[:2] if (number := int((measured["outcome"] == outcome).sum()))
        ]
        mean = compute_geometric_mean(np.log(measured["ratio"]))
        line = f"{compared}: {mean:.3f}× the time{format_mean_interval(measured['ratio'])}, geometric mean "
        line += f"over {format_count(len(measured), 'point')}; {worst['ratio']:.2f}× at worst ({workload}). "
        line += (
            f"Significant at {' and '.join(outcomes)} of {format_count(len(measured), 'point')}."
            if outcomes
            else "No point differs significantly."
        )
        lines.append(line)
    return lines


def describe_extent(pair: Mapping) -> str:
    """Return the number of ranks of an algorithm, or of leaves of a topology."""
    return f"{pair['leaves']} leaves" if pair["leaves"] else format_count(pair["ranks"], "rank")


def format_mean_interval(ratios: pd.Series) -> str:
    """Return the 95 % interval of the geometric mean, from the spread of the points; empty for one point."""
    if len(ratios) < 2:
        return ""
    from scipy.special import stdtrit  # here, because it is slow to load and few reports need it

    logs = np.log(ratios.to_numpy())
    half = stdtrit(len(logs) - 1, 0.975) * logs.std(ddof=1) / np.sqrt(len(logs))
    return f" (95 %: {np.exp(logs.mean() - half):.3f}–{np.exp(logs.mean() + half):.3f})"


def describe_container(container: Mapping) -> str:
    """Return image, model and the first digits of the digest of a container."""
    digest = to_plain_value(container.get("digest") or "of no digest")
    image, model = (
        to_plain_value(container.get("image") or ""),
        to_plain_value(container.get("model") or "model unknown"),
    )
    return f"container {image} ({model}, {digest[:19]})"


def make_sections(pairs: pd.DataFrame, containers: Mapping[str, Mapping], simulated: set[str]) -> list[Section]:
    """Return the section of the overhead; none without a point measured with and without the container."""
    if pairs.empty:
        return []
    images = [
        f"{to_plain_value(name)}: image {to_plain_value(container.get('image') or '')}, "
        f"{to_plain_value(container.get('digest') or 'no digest')}, "
        f"model {to_plain_value(container.get('model') or 'unknown')}, "
        f"without it: {to_plain_value(container.get('native') or '')}."
        for name, container in containers.items()
        if to_plain_value(name) in set(pairs["platform"])
    ]
    shown = pairs.assign(
        measured=pairs["measured"] * MICRO,
        measured_native=pairs["measured_native"] * MICRO,
        leaves=list_leaves(pairs),
    )
    marks = {"ratio": pairs["outcome"] != OUTCOMES[2]}
    points = make_table("Overhead", "Points with and without the container", shown, fixed=5, marks=marks)
    answer = Answer("Overhead of the container", (*describe_overhead(pairs, containers, simulated), *images, METHOD))
    return [Section("Container overhead", "", (answer, *chart_overhead(pairs, simulated), points))]


def chart_overhead(pairs: pd.DataFrame, simulated: set[str]) -> list[Chart]:
    """Return a chart for each platform, with a series for each operation: ratio over the time without the container.
    If the overhead is constant, the ratio decreases with that time."""
    charts = []
    for (name, native), platform_pairs in pairs.groupby(["platform", "native"]):
        series = [
            Series(
                operation,
                tuple(rows["measured_native"] * MICRO),
                tuple(rows["ratio"]),
                "dots",
                index,
                tuple(
                    f"{row['alternative']}, {describe_extent(row)}, {format_size(row['bytes'])}"
                    for row in rows.to_dict("records")
                ),
                tuple(rows["low"]),
                tuple(rows["high"]),
            )
            for index, (operation, rows) in enumerate(platform_pairs.groupby("operation"))
        ]
        title = f"Container over native: {label_platform(name, simulated)} / {label_platform(native, simulated)}"
        axes = Axis(f"{native} [µs]"), Axis("container / native [×]", log=False)
        charts.append(Chart(f"Overhead {name}", title, *axes, tuple(series), "1: no overhead"))
    return charts
