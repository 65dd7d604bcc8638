"""Coverage and width of prediction intervals. The oracle is the narrowest interval that covers 95 %
of the same residuals; if it is narrower than 1 %, it counts as 1 %. Arguments: folders of results.

All points of a workload, a size, a number of ranks or an operation are held out together: the
interval does not use them. Predictions with the validity `size not modelled` are left out."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.heldout import find_narrowest_width
from commodel.compare.comparison_intervals import collect_residuals
from commodel.files.tables import COMPARISON, read_table
from commodel.files.text_tables import format_table
from commodel.predictions.predictions import PredictedTimes, apply_corrections
from commodel.predictions.residual_model import MeasuredResiduals, ResidualModel
from commodel.predictions.validity import have_weight

Part = Callable[[MeasuredResiduals], Iterator[np.ndarray]]


class Figures(NamedTuple):
    """Coverage of one model: the covered share, the number of predictions, the mean widths of the
    intervals and of the oracle's (as logarithms), and the number of points without an interval."""

    covered: float
    predictions: int
    width: float
    oracle: float
    no_interval: int = 0


def hold_out_each_value(labels: Callable[[MeasuredResiduals], np.ndarray]) -> Part:
    """Hold out every value of a label in turn. A value that would hold out a whole operation, such
    as the 0 bytes of a barrier, is omitted."""

    def parts(residuals: MeasuredResiduals) -> Iterator[np.ndarray]:
        for value in np.unique(labels(residuals)):
            held_out = labels(residuals) == value
            if labels(residuals) is residuals.places.operation or set(
                residuals.places.operation[held_out]
            ) <= set(residuals.places.operation[~held_out]):
                yield held_out

    return parts


def hold_out_inner_sizes(residuals: MeasuredResiduals) -> Iterator[np.ndarray]:
    """Hold out every size in turn, except the smallest and the largest."""
    sizes = residuals.places.size
    for size in np.unique(sizes[sizes > 0])[1:-1]:
        yield sizes == size


def hold_out_largest(values: Callable[[MeasuredResiduals], np.ndarray]) -> Part:
    """Hold out the largest of some values."""

    def parts(residuals: MeasuredResiduals) -> Iterator[np.ndarray]:
        yield values(residuals) == values(residuals).max()

    return parts


def hold_out_smallest_size(residuals: MeasuredResiduals) -> Iterator[np.ndarray]:
    """Hold out the smallest size that is not 0."""
    sizes = residuals.places.size
    if (sizes > 0).any():
        yield sizes == sizes[sizes > 0].min()


def hold_out_each_level(residuals: MeasuredResiduals) -> Iterator[np.ndarray]:
    """Hold out every level of the network in turn."""
    levels_crossed = residuals.places.levels_crossed
    if (levels_crossed != "").all():
        yield from (levels_crossed == name for name in np.unique(levels_crossed))


PARTS: dict[str, Part] = {
    "a workload": hold_out_each_value(lambda residuals: residuals.places.workload),
    "a size": hold_out_each_value(lambda residuals: residuals.places.size),
    "a size between others": hold_out_inner_sizes,
    "a number of ranks": hold_out_each_value(lambda residuals: residuals.places.ranks),
    "an operation": hold_out_each_value(lambda residuals: residuals.places.operation),
    "a level": hold_out_each_level,
    "the smallest size": hold_out_smallest_size,
    "the largest size": hold_out_largest(lambda residuals: residuals.places.size),
    "the most ranks": hold_out_largest(lambda residuals: residuals.places.ranks),
}


def check_coverage(
    residuals: MeasuredResiduals, held_out: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether the interval of each held-out point covers it, and the interval's width as a
    logarithm; NaN for a parameter interval. `ends`: low and high end of the parameter intervals,
    over the predictions."""
    model = ResidualModel.fit(residuals.only(~held_out))
    count, places = int(held_out.sum()), residuals.places.only(held_out)
    if model is None:
        return np.zeros(count, dtype=bool), np.full(count, np.nan)
    times = PredictedTimes(np.ones(count), *ends[:, held_out], np.ones(count), [], np.zeros(count))
    interval = apply_corrections(times, *model.predict_singly(places), model.find_bases(places))
    logs, of_residuals = residuals.logs[held_out], [basis.of_residuals for basis in interval.bases]
    covered = (np.log(interval.low) - 1e-9 <= logs) & (logs <= np.log(interval.high) + 1e-9)
    return covered, np.where(of_residuals, np.log(interval.high / interval.low), np.nan)


def evaluate_campaign(folder: Path) -> Iterator[dict]:
    rows = read_table(folder / "comparison.csv", COMPARISON)
    rows = rows[rows["held_out"] & np.isfinite(rows["mu"].astype(float)) & (rows["model"] != "")]
    rows = rows[have_weight(rows["validity"])]
    ends = ("parameter_low", "parameter_high")
    covered_by_parameters = rows["measured"].between(rows[ends[0]], rows[ends[1]]).astype(float)
    for platform, rows_of_platform in rows.groupby("platform", sort=False):
        families = [part for _, part in rows_of_platform.groupby("model", sort=False)]
        models = [
            (
                collect_residuals(part),
                (part[list(ends)].to_numpy(float) / part["seconds"].to_numpy()[:, None]).T,
            )
            for part in families
        ]
        for title, parts in PARTS.items():
            figures = [row for model in models if (row := _compute_figures(*model, parts))]
            if figures:
                labels = {"experiment": folder.name, "platform": platform, "held out": title}
                yield labels | _make_row(
                    figures, covered_by_parameters[rows_of_platform.index].mean()
                )


def _compute_figures(residuals: MeasuredResiduals, ends: np.ndarray, parts: Part) -> Figures | None:
    counted = [
        (held_out, *check_coverage(residuals, held_out, ends))
        for held_out in parts(residuals)
        if held_out.mean() <= 0.5  # at least half of the points remain
    ]
    if not counted:
        return None
    logs, covered, width = (
        np.concatenate(rows)
        for rows in zip(*((residuals.logs[h], c, w) for h, c, w in counted), strict=True)
    )
    has_interval = np.isfinite(width)
    if not has_interval.any():
        return Figures(np.nan, 0, np.nan, np.nan, len(logs))
    widths = float(width[has_interval].mean()), find_narrowest_width(logs[has_interval])
    return Figures(
        float(covered[has_interval].mean()),
        int(has_interval.sum()),
        *widths,
        int((~has_interval).sum()),
    )


def _make_row(figures: list[Figures], parameter_coverage: float) -> dict:
    row = {
        "models": len(figures),
        "predictions": sum(model.predictions for model in figures),
        "no interval": sum(model.no_interval for model in figures),
        "covered by parameter interval": f"{100 * parameter_coverage:.1f} %",
    }
    if not row["predictions"]:
        return row | dict.fromkeys(
            (
                "covered",
                "least of a model",
                "half-width",
                "oracle's half-width",
                "width / oracle",
                "widest",
            ),
            "-",
        )
    covered, predictions, width, narrowest, _ = (
        np.array(column)
        for column in zip(*filter(lambda model: model.predictions, figures), strict=True)
    )
    return row | {
        "covered": f"{100 * np.average(covered, weights=predictions):.1f} %",
        "least of a model": f"{100 * covered.min():.1f} %",
        "half-width": _format_half_width(width),
        "oracle's half-width": _format_half_width(narrowest),
        "width / oracle": float(np.median(width / narrowest)),
        "widest": float((width / narrowest).max()),
    }


def _format_half_width(widths: np.ndarray) -> str:
    """Return the median half-width: the high end over the geometric mean of both ends, minus 1."""
    return f"±{100 * np.expm1(np.median(widths) / 2):.1f} %"


def main(paths: list[Path]) -> None:
    folders = paths or [path.parent for path in Path("results").glob("*/comparison.csv")]
    rows = [row for folder in sorted(folders) for row in evaluate_campaign(folder)]
    print(format_table(rows))


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
