"""Overhead of a container: the same points measured inside it and on the same machine without
it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from commodel.compare.comparison import compute_geometric_mean
from commodel.reports.comparison_frame import list_leaves
from commodel.reports.elements import (
    MICRO,
    AnsweredQuestion,
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

# only a topology has leaves
POINT_KEYS = ["operation", "alternative", "layout", "ranks", "leaves", "bytes", "waves"]
CONTAINER_KEYS = ("native", "image", "model", "digest")
OUTCOMES = ("slower", "faster", "tied")
METHOD = (
    "Ratio: median in the container over the median without it. Its 95 % interval combines the two measurements' "
    "intervals on a logarithmic scale (MOVER: Zou and Donner 2008). Slower or faster: the interval excludes 1. "
    "Without any overhead, one point in twenty is slower or faster by chance."
)


def select_containers(containers: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return native platform, image, model and digest of the containers that have a native
    platform, by platform."""
    selected = {}
    for name, container in containers.items():
        if container.get("native"):
            texts = {key: to_plain_value(container.get(key) or "") for key in CONTAINER_KEYS}
            selected[to_plain_value(name)] = texts
    return selected


def pair_with_native(
    frame: pd.DataFrame, containers: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return a row for each point that was measured in a container and without it on the same
    platform."""
    if not containers:
        return pd.DataFrame()
    times = ["measured", "measured_low", "measured_high"]
    columns = ["platform", "simulated", "point", *POINT_KEYS, *times]
    points = frame.loc[frame["measured"] > 0, columns].drop_duplicates("point")
    pairs = []
    for name, container in containers.items():
        native = container["native"]
        container_points, native_points = (
            points[points["platform"] == platform] for platform in (name, native)
        )
        if len(container_points) and len(native_points):
            native_points = native_points[[*POINT_KEYS, *times]].assign(native=native)
            pairs.append(
                container_points.merge(native_points, on=POINT_KEYS, suffixes=("", "_native"))
            )
    return compute_ratios(pd.concat(pairs, ignore_index=True)) if pairs else pd.DataFrame()


def compute_ratios(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return ratio and interval of each pair. On a logarithmic scale, the distances from the
    medians to the ends of their intervals add in squares (MOVER): the high end combines a high
    numerator and a low denominator."""
    container = np.log(pairs["measured"])
    native = np.log(pairs["measured_native"])
    up = np.log(pairs["measured_high"]) - container
    native_up = np.log(pairs["measured_high_native"]) - native
    with np.errstate(divide="ignore"):  # an interval down to 0 has no end on that side
        down = container - np.log(pairs["measured_low"])
        native_down = native - np.log(pairs["measured_low_native"])
    ratio = container - native
    low = ratio - np.hypot(down, native_up)
    high = ratio + np.hypot(up, native_down)
    outcome = np.select([low > 0, high < 0], OUTCOMES[:2], OUTCOMES[2])
    return pairs.assign(ratio=np.exp(ratio), low=np.exp(low), high=np.exp(high), outcome=outcome)


def describe_overhead(
    pairs: pd.DataFrame, containers: Mapping[str, Mapping[str, Any]], simulated: set[str]
) -> list[str]:
    """Return a sentence on each container: its mean overhead, its largest, and how many points
    differ significantly."""
    lines = []
    for name, container in containers.items():
        measured = pairs[pairs["platform"] == name] if len(pairs) else pairs
        image = f"container {container['image']} ({container['model'] or 'model unknown'}, "
        image += f"{(container['digest'] or 'of no digest')[:19]})"
        platforms = f"{label_platform(name, simulated)}, {image}, compared with "
        platforms += f"{label_platform(container['native'], simulated)} without it"
        if measured.empty:
            lines.append(f"{platforms}: no point was measured on both.")
            continue
        worst = measured.loc[measured["ratio"].idxmax()]
        counts = measured["outcome"].value_counts()
        outcomes = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES[:2] if outcome in counts]
        mean = compute_geometric_mean(np.log(measured["ratio"]))
        points = format_count(len(measured), "point")
        line = (
            f"{platforms}: {mean:.3f}× the time{format_mean_interval(measured['ratio'])}, "
            "geometric mean "
        )
        line += (
            f"over {points}; {worst['ratio']:.2f}× at worst ({worst['operation']} "
            f"{describe_workload(worst)}). "
        )
        significant = f"Significant at {' and '.join(outcomes)} of {points}."
        lines.append(line + (significant if outcomes else "No point differs significantly."))
    return lines


def describe_workload(pair: Mapping) -> str:
    """Return the alternative, with the number of ranks of an algorithm or of leaves of a topology,
    and the size."""
    extent = f"{pair['leaves']} leaves" if pair["leaves"] else format_count(pair["ranks"], "rank")
    return f"{pair['alternative']}, {extent}, {format_size(pair['bytes'])}"


def format_mean_interval(ratios: pd.Series) -> str:
    """Return the 95 % interval of the geometric mean, from the spread of the points; empty for one
    point."""
    if len(ratios) < 2:
        return ""
    from scipy.special import stdtrit  # here, because it is slow to load and few reports need it

    logs = np.log(ratios.to_numpy())
    half = stdtrit(len(logs) - 1, 0.975) * logs.std(ddof=1) / np.sqrt(len(logs))
    return f" (95 %: {np.exp(logs.mean() - half):.3f}–{np.exp(logs.mean() + half):.3f})"


def make_sections(
    pairs: pd.DataFrame, containers: Mapping[str, Mapping[str, Any]], simulated: set[str]
) -> list[Section]:
    """Return the section of the overhead; none without a point measured with and without the
    container."""
    if pairs.empty:
        return []
    images = [
        f"{name}: image {container['image']}, {container['digest'] or 'no digest'}, "
        f"model {container['model'] or 'unknown'}, without it: {container['native']}."
        for name, container in containers.items()
        if name in set(pairs["platform"])
    ]
    shown = pairs.assign(
        measured=pairs["measured"] * MICRO,
        measured_native=pairs["measured_native"] * MICRO,
        leaves=list_leaves(pairs),
    )
    marks = {"ratio": pairs["outcome"] != OUTCOMES[2]}
    points = make_table(
        "Overhead", "Points with and without the container", shown, fixed=5, marks=marks
    )
    answer = AnsweredQuestion(
        "Overhead of the container",
        (*describe_overhead(pairs, containers, simulated), *images, METHOD),
    )
    return [Section("Container overhead", "", (answer, *chart_overhead(pairs, simulated), points))]


def chart_overhead(pairs: pd.DataFrame, simulated: set[str]) -> list[Chart]:
    """Return a chart for each platform, with a series for each operation: ratio over the time
    without the container. If the overhead is constant, the ratio decreases with that time."""
    charts = []
    for (name, native), platform_pairs in pairs.groupby(["platform", "native"]):
        series = [
            Series(
                operation,
                tuple(rows["measured_native"] * MICRO),
                tuple(rows["ratio"]),
                "dots",
                index,
                tuple(map(describe_workload, rows.to_dict("records"))),
                tuple(rows["low"]),
                tuple(rows["high"]),
            )
            for index, (operation, rows) in enumerate(platform_pairs.groupby("operation"))
        ]
        title = (
            f"Container over native: {label_platform(name, simulated)} / "
            f"{label_platform(native, simulated)}"
        )
        axes = Axis(f"{native} [µs]"), Axis("container / native [×]", log=False)
        charts.append(Chart(f"Overhead {name}", title, *axes, tuple(series), "1: no overhead"))
    return charts
