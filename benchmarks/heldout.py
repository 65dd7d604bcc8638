"""Errors of models and regret of their choices at held-out points of a table: `make bench-heldout
TABLE=T.csv`.

Options of the command: FAMILIES, the models; RANKS, the largest number of ranks that is used;
STATISTIC, that of the times if the table does not state it. Models are fitted to the points that
are not held out, as `commodel fit table` does. Baselines, the recommended prediction and ratios use
the same points.

Held out are, one after the other:

- every second size;
- every other range of three doublings of the size;
- the three largest numbers of ranks, each scored by itself;
- the larger half of the numbers of ranks, if these are others;
- all but three numbers of ranks (the least, the median and the largest) and every second size;
- each setting, if the table has several.

The first table has the scores of each split, the second and third those by operation and by
doublings of the ranks beyond the fitted ones. Baselines have rows of their own
(`compare/baselines.py`). `neighbouring sizes` is a reference that knows the held-out times: it
interpolates each of them between the neighbouring sizes of its series, that is, of the same
operation, alternative, layout, ranks and setting.

- μ: max(prediction, time) / min(prediction, time).
- covered: share of the times inside the prediction intervals.
- width: mean width of the intervals over that of the narrowest interval that covers 95 % of the
  times, as logarithms.
- high/low: median ratio of the ends of the intervals.
- regret: measured time of the chosen alternative over that of the fastest one of its workload,
  minus 1. That of the MPI default is below 0 if the default is faster than all alternatives of the
  table.
- time / library: measured time of the chosen alternative over that of the MPI default, geometric
  mean."""

import argparse
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.compare.baselines import BASELINE, choose_by_rule, is_baseline, predict_baselines
from commodel.compare.comparison import add_choices, add_errors, compute_geometric_mean
from commodel.compare.held_out import (
    Split,
    fit_without_held_out,
    list_points,
    predict_held_out,
    recommend_held_out,
    split_flagged,
)
from commodel.errors import UserError
from commodel.fits.measured_tables import (
    Measured,
    describe_statistics,
    parse_statistic,
    read_points,
)
from commodel.fits.settings import choose_reference, list_settings, select_points
from commodel.fits.table_fits import list_fitted_by_collectives
from commodel.predictions.places import name_in_setting
from commodel.predictions.residual_model import COVERAGE
from commodel.predictions.validity import ValidityKind
from commodel.records import LIBRARY, Statistic

MIN_NARROWEST_WIDTH = 0.01  # logarithm; the narrowest interval counts as at least as wide
# of parameters, for the interval of a prediction; more take longer, and residuals decide about the
# width
DRAWS = 20
NEIGHBOURS = "neighbouring sizes"
CHOICE_COLUMNS = ("workloads", "regret", "worst regret", "time / library")
SMALL_DEVIATION = 1e-9  # of a logarithm


def prepare_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with their errors and the choices of each model. Rows of one workload are its
    alternatives. Predictions without an interval have NaN for its ends, and rows of the library
    default have no family."""
    measured_interval = {"measured_low": rows["measured"], "measured_high": rows["measured"]}
    rows = rows.assign(held_out=True, point=range(len(rows)), **measured_interval)
    return add_choices(add_errors(rows))


def add_rules(rows: pd.DataFrame, parts: Split) -> pd.DataFrame:
    """Return the rows with those of baselines that choose without a prediction. Each has one for a
    workload."""
    by_rule = choose_by_rule(parts)
    workloads = rows.drop_duplicates("workload").set_index("workload")
    copied = ("operation", "ranks", "doublings", "library_default")
    by_rule = by_rule.assign(
        **{name: by_rule["workload"].map(workloads[name]) for name in copied},
        regret=by_rule["measured"] / by_rule["fastest"] - 1,
        chosen=True,
    )
    return pd.concat([rows, by_rule], ignore_index=True)


def score_models(rows: pd.DataFrame) -> Iterator[dict]:
    """Yield a row of scores for each model. `rows` are those of `prepare_scores`."""
    for name, rows_of_model in rows[rows["model"] != ""].groupby("model", sort=False):
        predicted = rows_of_model.dropna(subset=["mu"])
        chosen = rows_of_model[rows_of_model["chosen"]]
        if predicted.empty and chosen.empty:
            continue
        mu, is_reference = predicted["mu"], is_baseline(str(name)) or name == NEIGHBOURS
        is_valid = predicted["validity"].eq(ValidityKind.VALID.value)
        yield {
            "model": name,
            "points": len(predicted) or "-",
            "median μ": _format_number(mu.median()),
            "mean μ": _format_number(mu.mean()),
            "90 %": _format_number(mu.quantile(0.9)),
            "worst": _format_number(mu.max(), 1),
            **_format_intervals(predicted),
            "points valid": "-" if is_reference else f"{is_valid.sum()}",
            **_format_choices(chosen),
        }


def _format_number(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _format_intervals(predicted: pd.DataFrame) -> dict[str, str]:
    width = np.log(predicted["high"].astype(float) / predicted["low"].astype(float))
    if width.empty or width.isna().any():
        return {"covered": "-", "width": "-", "high/low": "-"}
    narrowest = find_narrowest_width(
        np.log(predicted["measured"] / predicted["seconds"]).to_numpy()
    )
    return {
        "covered": f"{100 * predicted['covered'].mean():.0f} %",
        "width": f"{width.mean() / narrowest:.2f}",
        "high/low": f"{np.exp(width.median()):.2f}",
    }


def _format_choices(chosen: pd.DataFrame) -> dict[str, str]:
    if chosen.empty:
        return dict.fromkeys(CHOICE_COLUMNS, "-")
    regret = chosen["regret"].astype(float)
    over_default = compute_geometric_mean(
        np.log(chosen["measured"] / chosen["library_default"].astype(float))
    )
    cells = (
        f"{len(chosen)}",
        f"{100 * regret.mean():.1f} %",
        f"{100 * regret.max():.0f} %",
        _format_number(over_default),
    )
    return dict(zip(CHOICE_COLUMNS, cells, strict=True))


def find_narrowest_width(residuals: np.ndarray) -> float:
    """Return the width of the narrowest interval that covers 95 % of the residuals."""
    ordered = np.sort(residuals)
    covered = int(np.ceil(COVERAGE * len(ordered)))
    return max(
        float(np.min(ordered[covered - 1 :] - ordered[: len(ordered) - covered + 1])),
        MIN_NARROWEST_WIDTH,
    )


def score_groups(rows: pd.DataFrame, column: str) -> Iterator[dict]:
    """Yield a row for each model with its median μ and its mean regret in each group, as `1.20 /
    3.1 %`."""
    groups = sorted(rows[column].dropna().unique())
    for name, rows_of_model in rows[rows["model"] != ""].groupby("model", sort=False):
        cells = {}
        for group in groups:
            part = rows_of_model[rows_of_model[column] == group]
            regret = part.loc[part["chosen"], "regret"].astype(float).mean()
            regret_text = "-" if math.isnan(regret) else f"{100 * regret:.1f} %"
            cells[str(group)] = (
                f"{_format_number(part['mu'].astype(float).median())} / {regret_text}"
            )
        yield {"model": name, **cells}


@dataclass(frozen=True)
class SplitKind:
    """A kind of split: which points are held out, in turn if there are several rows of flags."""

    title: str
    flags: list[list[bool]]
    each_ranks: bool = False  # whether each number of ranks is scored by itself


def list_splits(measured: Measured) -> Iterator[SplitKind]:
    """Yield each kind of split that the table has: some points are fitted, and some held out."""
    kinds = [
        kind
        for kind in _list_all_splits(measured)
        if all(any(f) and not all(f) for f in kind.flags)
    ]
    seen = []
    for kind in kinds:
        if kind.flags not in seen:
            seen.append(kind.flags)
            yield kind


def _list_all_splits(measured: Measured) -> Iterator[SplitKind]:
    points = measured.points
    ranks, sizes = (
        sorted({point.ranks for point in points}),
        sorted({point.bytes for point in points}),
    )
    second_sizes = set(sizes[1::2])
    yield SplitKind("every second size", [[point.bytes in second_sizes for point in points]])
    in_ranges = [int(math.log2(max(point.bytes, 1)) // 3) % 2 == 0 for point in points]
    yield SplitKind("ranges of sizes", [in_ranges])
    if len(ranks) > 1:
        largest = ranks[-min(3, len(ranks) - 1) :]
        yield SplitKind("ranks", [[point.ranks in largest for point in points]], each_ranks=True)
        larger_half = ranks[(len(ranks) - 1) // 2 + 1 :]
        yield SplitKind("larger half of ranks", [[point.ranks in larger_half for point in points]])
    if len(ranks) > 3:
        kept = {ranks[0], ranks[len(ranks) // 2], ranks[-1]}
        flags = [point.ranks not in kept or point.bytes in second_sizes for point in points]
        yield SplitKind("all but 3 ranks, half of sizes", [flags])
    settings = list(dict.fromkeys(list_settings(measured)))
    if len(settings) > 1:
        flags_of_settings = [
            [name == setting for name in list_settings(measured)] for setting in settings
        ]
        yield SplitKind("a setting", flags_of_settings)


def predict_split(parts: Split, models: Sequence[str], name: str) -> Iterator[pd.DataFrame]:
    """Yield rows of all held-out points: for each model, the recommended prediction, each baseline,
    and the library default."""
    of_fitted, of_held_out = [], []
    for family in models:
        try:
            parameters = fit_without_held_out(parts, family, name)
        except UserError as error:
            print(f"{family}: {error.message}", file=sys.stderr)
            continue
        of_held_out.append(predict_held_out(parameters, parts.held_out, draws=DRAWS))
        of_fitted.append(predict_held_out(parameters, parts.fitted, draws=0))
    reference = choose_reference(parts.fitted)
    if of_fitted:
        predicted = (
            pd.concat(of_fitted, ignore_index=True),
            pd.concat(of_held_out, ignore_index=True),
        )
        yield predicted[1]
        yield recommend_held_out(*predicted, parts)
        yield predict_baselines(parts, reference, *predicted)
    else:
        yield predict_baselines(parts, reference)
    yield interpolate_neighbours(parts)
    times = parts.held_out.library.items()
    default_rows = [
        {"workload": name_in_setting(group, setting), "measured": seconds}
        for (group, setting), seconds in times
    ]
    yield pd.DataFrame(default_rows).assign(model="", algorithm=LIBRARY)


def interpolate_neighbours(parts: Split) -> pd.DataFrame:
    """Return a row for each held-out point: its time interpolated between the neighbouring sizes of
    its series, over logarithms; NaN at the ends of the series."""
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
    # those of the held-out part, the last
    for place, point in zip(places, parts.held_out.points, strict=True):
        sizes = np.array(sorted(series[place].keys() - {point.bytes}))
        is_between = len(sizes) and sizes[0] < point.bytes < sizes[-1]
        logs = np.log([series[place][size] for size in sizes.tolist()])
        times.append(
            np.exp(np.interp(np.log1p(point.bytes), np.log1p(sizes), logs))
            if is_between
            else np.nan
        )
    blank = {"low": np.nan, "high": np.nan, "covered": np.nan}
    rows = list_points(parts.held_out).assign(model=NEIGHBOURS, seconds=times, validity=BASELINE)
    return add_errors(rows.assign(**blank)).assign(covered=np.nan)


def count_doublings(ranks: pd.Series, fitted: Measured) -> pd.Series:
    """Return by how many doublings each number of ranks exceeds the fitted ones, rounded up."""
    largest = max(point.ranks for point in fitted.points)
    doublings = np.log2(ranks.astype(float) / largest) - SMALL_DEVIATION
    return np.ceil(doublings.clip(lower=0.0))


def predict_splits(measured: Measured, models: Sequence[str], name: str) -> Iterator[pd.DataFrame]:
    """Yield the rows of each title: a kind of split, or of one number of ranks in it."""
    for kind in list_splits(measured):
        parts_of_kind = []
        for flags in kind.flags:
            parts = split_flagged(measured, flags, kind.title)
            rows = pd.concat(list(predict_split(parts, models, name)), ignore_index=True)
            rows["doublings"] = count_doublings(rows["ranks"], parts.fitted)
            rows = add_rules(prepare_scores(rows), parts)
            parts_of_kind.append(rows.assign(title=kind.title))
        rows = pd.concat(parts_of_kind, ignore_index=True)
        if not kind.each_ranks:
            yield rows
            continue
        for ranks, rows_of_ranks in rows.groupby("ranks"):
            doublings = rows_of_ranks["doublings"].iloc[0]
            title = (
                f"{ranks:.0f} ranks ({doublings:.0f} "
                f"{'doubling' if doublings == 1 else 'doublings'})"
            )
            yield rows_of_ranks.assign(title=title)


def describe_points(table: Measured, measured: Measured, max_ranks: float) -> str:
    """Return how many points are used, and what is left out, with counts."""
    left_out = Counter(point.ranks for point in table.points if point.ranks > max_ranks)
    texts = [
        f"{len(measured.points)} of {len(table.points)} points",
        describe_statistics(table.points),
    ]
    if left_out:
        counts = ", ".join(f"{count} of {ranks}" for ranks, count in sorted(left_out.items()))
        texts.append(f"left out by number of ranks: {counts} (RANKS={max_ranks})")
    return "; ".join(texts)


def score_table(
    path: Path,
    models: Sequence[str],
    max_ranks: float = math.inf,
    statistic: Statistic | None = None,
) -> Iterator[tuple[str, list[dict]]]:
    """Yield a heading and the rows of each table of scores."""
    table = read_points(path, statistic=statistic)
    measured = select_points(table, [point.ranks <= max_ranks for point in table.points])
    if not measured.points:
        raise UserError(f"found no point of at most {max_ranks} ranks", file=path)
    print(f"{path.name}: {describe_points(table, measured, max_ranks)}", file=sys.stderr)
    parts = list(predict_splits(measured, models, path.name))
    yield (
        "Held out",
        [{"held out": rows["title"].iloc[0]} | row for rows in parts for row in score_models(rows)],
    )
    for heading, column in (
        ("by operation", "operation"),
        ("by doublings of ranks beyond the fitted", "doublings"),
    ):
        wanted = [rows for rows in parts if rows[column].nunique() > 1]
        scores = [
            {"held out": rows["title"].iloc[0]} | row
            for rows in wanted
            for row in score_groups(rows, column)
        ]
        if scores:
            yield f"Median μ / mean regret {heading}", scores


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Errors at held-out points of a measured table.")
    parser.add_argument("table", type=Path)
    parser.add_argument(
        "models", nargs="*", help="models; default: all that can be fitted to tables"
    )
    parser.add_argument("--ranks", type=int, default=math.inf, help="largest number of ranks")
    parser.add_argument(
        "--statistic", help="which ranks times are of, if the table does not say it"
    )
    options = parser.parse_args(arguments)
    families = options.models or list_fitted_by_collectives()
    try:
        statistic = parse_statistic(options.statistic) if options.statistic else None
        for heading, rows in score_table(options.table, families, options.ranks, statistic):
            print(
                f"{heading}:\n{pd.DataFrame(rows).fillna('').to_string(index=False)}\n", flush=True
            )
    except UserError as error:
        sys.exit(f"bench-heldout: {error}")


if __name__ == "__main__":
    main()
