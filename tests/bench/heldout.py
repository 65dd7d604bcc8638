"""Errors of models and regret of their choices at held-out points of a measured table: `make bench-heldout`.

Arguments: a table as `commodel import` writes it, then models. The run takes minutes a model.

Held out are every other range of sizes, the larger half of the numbers of ranks and, if the table has several settings,
each setting. Baselines without a model of communication have rows of their own (`compare/baselines.py`).
`neighbouring sizes` is a reference that knows the held-out times: it interpolates each of them between the neighbouring
sizes of its series, that is, of the same operation, alternative, layout, ranks and setting.

- μ: max(prediction, time) / min(prediction, time).
- covered: share of the times inside the prediction intervals.
- width: mean width of the intervals over that of the narrowest interval that covers 95 % of the times, as logarithms.
- high/low: median ratio of the ends of the intervals.
- regret: measured time of the chosen alternative over that of the fastest one of its workload, minus 1.
- time / library: measured time of the chosen alternative over that of the library default, geometric mean."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.cli._output import format_table
from commodel.compare.baselines import BASELINE, BASELINES, predict_baselines
from commodel.compare.comparison import add_choices, add_errors, summarize_choices
from commodel.compare.held_out import (
    Split,
    fit_without_held_out,
    list_points,
    predict_held_out,
    recommend_held_out,
    split_points,
)
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured, read_points
from commodel.fits.settings import choose_reference, list_settings, select_points
from commodel.predictions.prediction_intervals import COVERAGE
from commodel.predictions.validity import ValidityKind
from commodel.records import LIBRARY

MIN_NARROWEST_WIDTH = 0.01  # logarithm; the narrowest interval counts as at least as wide
TABLE_FAMILIES = ("hockney", "loggp", "pmnf")
MAX_RANKS = 256  # ranks of a point; schedules of thousands of ranks take minutes each
EVERY_OTHER_SIZE = "log2(max(bytes, 1)) // 3 % 2 == 0"
NEIGHBOURS = "neighbouring sizes"
CHOICE_COLUMNS = ("workloads", "regret", "worst regret", "time / library")


def score_models(rows: pd.DataFrame) -> Iterator[dict]:
    """Yield a row of scores for each model.

    `rows` has the columns of a comparison that the scores need. Rows of one workload are its alternatives. Predictions
    without an interval have NaN for its ends, and rows of the library default have no family.
    """
    measured_interval = {"measured_low": rows["measured"], "measured_high": rows["measured"]}
    rows = rows.assign(held_out=True, point=range(len(rows)), **measured_interval)
    rows = add_choices(add_errors(rows))
    choices = summarize_choices(rows, ["family"]).set_index("family")
    for name, predicted in rows.dropna(subset=["mu"]).groupby("family", sort=False):
        mu, is_reference = predicted["mu"], name in (*BASELINES, NEIGHBOURS)
        yield {
            "family": name,
            "points": len(predicted),
            "μ": f"{mu.mean():.2f}",
            "median μ": f"{mu.median():.2f}",
            "90 %": f"{mu.quantile(0.9):.2f}",
            "worst": f"{mu.max():.1f}",
            **_format_intervals(predicted),
            "points valid": "-" if is_reference else f"{predicted['validity'].eq(ValidityKind.VALID.value).sum()}",
            **(_format_choices(choices.loc[name]) if name in choices.index else dict.fromkeys(CHOICE_COLUMNS, "-")),
        }


def _format_intervals(predicted: pd.DataFrame) -> dict[str, str]:
    width = np.log(predicted["predicted_high"] / predicted["predicted_low"])
    if width.isna().any():
        return {"covered": "-", "width": "-", "high/low": "-"}
    narrowest = find_narrowest_width(np.log(predicted["measured"] / predicted["predicted"]).to_numpy())
    return {
        "covered": f"{100 * predicted['covered'].mean():.0f} %",
        "width": f"{width.mean() / narrowest:.2f}",
        "high/low": f"{np.exp(width.median()):.2f}",
    }


def _format_choices(choices: pd.Series) -> dict[str, str]:
    over_default = choices["over_default"]
    cells = (
        f"{choices['workloads']:.0f}",
        f"{100 * choices['regret_mean']:.1f} %",
        f"{100 * choices['regret_max']:.0f} %",
        "-" if np.isnan(over_default) else f"{over_default:.2f}",
    )
    return dict(zip(CHOICE_COLUMNS, cells, strict=True))


def find_narrowest_width(residuals: np.ndarray) -> float:
    """Return the width of the narrowest interval that covers 95 % of the residuals."""
    ordered = np.sort(residuals)
    covered = int(np.ceil(COVERAGE * len(ordered)))
    return max(float(np.min(ordered[covered - 1 :] - ordered[: len(ordered) - covered + 1])), MIN_NARROWEST_WIDTH)


def list_splits(measured: Measured) -> Iterator[tuple[str, list[str]]]:
    """Yield each kind of split: its title, and the expressions of the points that are held out in turn."""
    yield "other sizes", [EVERY_OTHER_SIZE]
    ranks = sorted({point.ranks for point in measured.points})
    if len(ranks) > 1:
        yield "more ranks", [f"ranks > {ranks[(len(ranks) - 1) // 2]}"]
    settings = list(dict.fromkeys(list_settings(measured)))
    if len(settings) > 1:
        yield "a setting", [f"setting == '{setting}'" for setting in settings]


def predict_split(parts: Split, families: list[str], name: str) -> Iterator[pd.DataFrame]:
    """Yield rows of all held-out points: for each model, the recommended prediction, each baseline, and the library
    default."""
    sets = []
    for family in families:
        try:
            sets.append(fit_without_held_out(parts, family, name))
            yield predict_held_out(sets[-1], parts.held_out)
        except UserError as error:
            print(f"{family}: {error.message}", file=sys.stderr)
    if sets:
        yield recommend_held_out(sets, parts)
    yield predict_baselines(parts, choose_reference(parts.fitted))
    yield interpolate_neighbours(parts)
    times = parts.held_out.library.items()
    default_rows = [{"workload": f"{group} {setting}", "measured": seconds} for (group, setting), seconds in times]
    yield pd.DataFrame(default_rows).assign(family="", algorithm=LIBRARY)


def interpolate_neighbours(parts: Split) -> pd.DataFrame:
    """Return a row for each held-out point: its time interpolated between the neighbouring sizes of its series, over
    logarithms; NaN at the ends of the series."""
    places, times = [], []
    series: dict[tuple, dict[int, float]] = defaultdict(dict)
    for part in (parts.fitted, parts.held_out):
        settings = list_settings(part)
        places = [
            (point.operation, point.alternative, point.layout, point.ranks, setting)
            for point, setting in zip(part.points, settings, strict=True)
        ]
        for place, point, seconds in zip(places, part.points, part.seconds, strict=True):
            series[place][point.bytes] = seconds
    for place, point in zip(places, parts.held_out.points, strict=True):  # those of the held-out part, the last
        sizes = np.array(sorted(series[place].keys() - {point.bytes}))
        is_between = len(sizes) and sizes[0] < point.bytes < sizes[-1]
        logs = np.log([series[place][size] for size in sizes.tolist()])
        times.append(np.exp(np.interp(np.log1p(point.bytes), np.log1p(sizes), logs)) if is_between else np.nan)
    blank = {"predicted_low": np.nan, "predicted_high": np.nan, "covered": np.nan}
    rows = list_points(parts.held_out).assign(family=NEIGHBOURS, predicted=times, validity=BASELINE)
    return add_errors(rows.assign(**blank)).assign(covered=np.nan)


def score_table(path: Path, families: list[str]) -> Iterator[dict]:
    """Yield a row of scores for each kind of split of a table and each model."""
    table = read_points(path)
    measured = select_points(table, [point.ranks <= MAX_RANKS for point in table.points])
    for title, expressions in list_splits(measured):
        try:
            splits = [split_points(measured, expression) for expression in expressions]
        except UserError as error:
            print(f"{title}: {error.message}", file=sys.stderr)
            continue
        rows = pd.concat(
            [rows for split in splits for rows in predict_split(split, families, path.name)], ignore_index=True
        )
        yield from ({"table": path.name, "held out": title} | row for row in score_models(rows))


def main(path: Path, families: list[str]) -> None:
    print(format_table(list(score_table(path, families or list(TABLE_FAMILIES)))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
