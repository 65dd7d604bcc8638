"""How many measured medians lie in the intervals of predictions, and how wide these are: so many percent to either side
of their middle, and beside an oracle's, the narrowest interval that covers 95 % of the same residuals (taken as 1 %
wide where it is narrower). Arguments: folders of results.

A part is held out whole (a workload, a size, a number of ranks, an operation): neither the fit nor the
interval uses it.
Predictions with the validity `size not modelled` are left out. `before` is the interval that the
parameters alone leave open."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from commodel.cli._output import format_table
from commodel.compare.comparison_intervals import collect_residuals, scale_predictions
from commodel.files.tables import COMPARISON, read_table
from commodel.predictions.prediction_intervals import (
    PointSeries,
    apply_residuals,
    find_residual_interval,
    fit_residual_intervals,
)
from commodel.predictions.predictions import PredictedTimes
from commodel.predictions.residuals import BYTES, NODES, RANKS, Residuals
from commodel.predictions.validity import have_weight
from tests.bench.heldout import oracle

Part = Callable[[Residuals], Iterator[np.ndarray]]


class Figures(NamedTuple):
    """Coverage of one model: the covered share, the number of predictions, the mean widths of the intervals and of the
    narrowest possible ones (as logarithms), and the number of points without an interval."""

    inside: float
    predictions: int
    width: float
    oracle: float
    none: int = 0


def each(labels: Callable[[Residuals], np.ndarray]) -> Part:
    """Every value of something is held out in turn. Where an operation has no other, as a barrier has its 0 bytes only,
    that would hold out the operation."""

    def parts(known: Residuals) -> Iterator[np.ndarray]:
        for value in np.unique(labels(known)):
            held = labels(known) == value
            if labels(known) is known.operation or set(known.operation[held]) <= set(known.operation[~held]):
                yield held

    return parts


def inner_size(known: Residuals) -> Iterator[np.ndarray]:
    """Every size in turn that lies between others."""
    sizes = known.axes[BYTES]
    for size in np.unique(sizes[sizes > 0])[1:-1]:
        yield sizes == size


def largest(axis: str) -> Part:
    def parts(known: Residuals) -> Iterator[np.ndarray]:
        yield known.axes[axis] == known.axes[axis].max()

    return parts


def smallest_size(known: Residuals) -> Iterator[np.ndarray]:
    sizes = known.axes[BYTES]
    if (sizes > 0).any():
        yield sizes == sizes[sizes > 0].min()


def level(known: Residuals) -> Iterator[np.ndarray]:
    """Of a network: how far ranks are from each other."""
    yield from (
        ()
        if known.levels_crossed is None
        else (known.levels_crossed == name for name in np.unique(known.levels_crossed))
    )


PARTS: dict[str, Part] = {
    "a workload": each(lambda known: known.group),
    "a size": each(lambda known: known.axes["bytes"]),
    "a size between others": inner_size,
    "a number of ranks": each(lambda known: known.axes["ranks"]),
    "an operation": each(lambda known: known.operation),
    "a level": level,
    "the smallest size": smallest_size,
    "the largest size": largest("bytes"),
    "the most ranks": largest("ranks"),
}


def tried(known: Residuals, held: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the points held out whether they are in their intervals, and how wide these are, as a logarithm; NaN where
    none rests on errors. `ends`: both of what the parameters leave open, over what is scale_predictions."""
    intervals = fit_residual_intervals(known.only(~held))
    inside, width = [], []
    for place in np.flatnonzero(held):
        ranks, size, nodes = (float(known.axes[name][place]) for name in (RANKS, BYTES, NODES))
        levels_crossed = "" if known.levels_crossed is None else str(known.levels_crossed[place])
        workload = PointSeries(str(known.operation[place]), ranks, np.array([size]), nodes, levels_crossed)
        predictions = PredictedTimes(np.ones(1), ends[:1, place], ends[1:, place], np.ones(1), [])
        interval = apply_residuals(predictions, find_residual_interval(intervals, workload))
        (low,), (high,), (basis,) = interval.low, interval.high, interval.bases
        inside.append(np.log(low) - 1e-9 <= known.logs[place] <= np.log(high) + 1e-9)
        width.append(np.log(high / low) if basis.of_residuals else np.nan)
    return np.array(inside), np.array(width)


def campaign(folder: Path) -> Iterator[dict]:
    rows = read_table(folder / "comparison.csv", COMPARISON)
    rows = rows[rows["held_out"] & np.isfinite(rows["mu"].astype(float)) & (rows["family"] != "")]
    rows = rows[have_weight(rows["validity"])]
    ends = ("parameters_low", "parameters_high")
    before = rows["measured"].between(rows[ends[0]], rows[ends[1]]).astype(float)
    for platform, here in rows.groupby("platform", sort=False):
        families = [part for _, part in here.groupby("family", sort=False)]
        known = [
            (
                collect_residuals(part),
                (part[list(ends)].to_numpy(float) / scale_predictions(part).to_numpy()[:, None]).T,
            )
            for part in families
        ]
        for title, parts in PARTS.items():
            figures = [row for each_family in known if (row := _figures(*each_family, parts))]
            if figures:
                about = {"experiment": folder.name, "platform": platform, "held out": title}
                yield about | _row(figures, before[here.index].mean())


def _figures(known: Residuals, ends: np.ndarray, parts: Part) -> Figures | None:
    counted = [
        (held, *tried(known, held, ends)) for held in parts(known) if held.mean() <= 0.5
    ]  # enough is left to know
    if not counted:
        return None
    logs, inside, width = (
        np.concatenate(rows) for rows in zip(*((known.logs[h], i, w) for h, i, w in counted), strict=True)
    )
    there = np.isfinite(width)
    if not there.any():
        return Figures(np.nan, 0, np.nan, np.nan, len(logs))
    widths = float(width[there].mean()), oracle(logs[there])
    return Figures(float(inside[there].mean()), int(there.sum()), *widths, int((~there).sum()))


def _row(figures: list[Figures], before: float) -> dict:
    about = {
        "families": len(figures),
        "prices": sum(row.predictions for row in figures),
        "none": sum(row.none for row in figures),
        "before": f"{100 * before:.1f} %",
    }
    if not about["prices"]:
        return about | dict.fromkeys(
            ("covered", "least of a family", "half", "oracle's half", "width / oracle", "widest"), "-"
        )
    inside, predictions, width, narrowest, _ = (
        np.array(row) for row in zip(*filter(lambda row: row.predictions, figures), strict=True)
    )
    return about | {
        "covered": f"{100 * np.average(inside, weights=predictions):.1f} %",
        "least of a family": f"{100 * inside.min():.1f} %",
        "half": _format_half_width(width),
        "oracle's half": _format_half_width(narrowest),
        "width / oracle": float(np.median(width / narrowest)),
        "widest": float((width / narrowest).max()),
    }


def _format_half_width(widths: np.ndarray) -> str:
    """Return the median half-width: the high end over the geometric mean of both ends, minus 1."""
    return f"±{100 * np.expm1(np.median(widths) / 2):.1f} %"


def main(paths: list[Path]) -> None:
    folders = paths or [path.parent for path in Path("results").glob("*/comparison.csv")]
    rows = [row for folder in sorted(folders) for row in campaign(folder)]
    print(format_table(rows))


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
