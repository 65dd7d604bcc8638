"""Which families are right on a table of measured collectives about what their fit has not seen, and what choosing by
them costs: sizes, more ranks and, where the table has several settings, one of these after the other (`a setting`) are
held out. Below families stand two rules that know no model of communication (`compare/baselines.py`). Arguments: a
table as `commodel import` writes it, families. Minutes a family.

μ is max(prediction, time) / min(prediction, time). Inside: of the times in their intervals; width: of these, beside
the narrowest interval that holds 95 % of the times; high/low: median of the intervals. Regret: what the choice of the
lowest prediction takes longer than the fastest one measured, of those that do the same; time / library: beside the
library's own choice, as a geometric mean."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from commodel.cli._output import format_table
from commodel.compare.baselines import BASELINES, predict_baselines
from commodel.compare.comparison import add_choices, add_errors, summarize_choices
from commodel.compare.held_out import Split, fit_without_held_out, predict_held_out, recommend_held_out, split_points
from commodel.errors import UserError
from commodel.fits.measured_tables import Measured, read_points
from commodel.fits.settings import choose_reference, list_settings, select_points
from commodel.predictions.prediction_intervals import COVERAGE
from commodel.predictions.validity import ValidityKind
from commodel.records import LIBRARY

NARROWEST = 0.01  # of an oracle: what is less is no matter
TABLE_FAMILIES = ("hockney", "loggp", "pmnf")
MAX_RANKS = 256  # of a table's points: schedules of thousands of ranks take minutes each
EVERY_OTHER_SIZE = "log2(max(bytes, 1)) // 3 % 2 == 0"


CHOICES = ("workloads", "regret", "worst regret", "time / library")


def scores(rows: pd.DataFrame) -> Iterator[dict]:
    """Of each family. Rows are those of a comparison, with no more columns than this needs; points of a group do the
    same. What has no interval has NaN for its ends; the library's own have no family."""
    once = {"measured_low": rows["measured"], "measured_high": rows["measured"]}
    rows = rows.assign(held_out=True, point=range(len(rows)), **once)
    rows = add_choices(add_errors(rows))
    chosen = summarize_choices(rows, ["family"]).set_index("family")
    for name, predicted in rows.dropna(subset=["mu"]).groupby("family", sort=False):
        mu = predicted["mu"]
        yield {
            "family": name,
            "points": len(predicted),
            "μ": f"{mu.mean():.2f}",
            "median μ": f"{mu.median():.2f}",
            "90 %": f"{mu.quantile(0.9):.2f}",
            "worst": f"{mu.max():.1f}",
            **_intervals(predicted),
            "points valid": "-" if name in BASELINES else f"{predicted['validity'].eq(ValidityKind.VALID.value).sum()}",
            **(_choices(chosen.loc[name]) if name in chosen.index else dict.fromkeys(CHOICES, "-")),
        }


def _intervals(predicted: pd.DataFrame) -> dict[str, str]:
    width = np.log(predicted["predicted_high"] / predicted["predicted_low"])
    if width.isna().any():
        return {"covered": "-", "width": "-", "high/low": "-"}
    narrowest = oracle(np.log(predicted["measured"] / predicted["predicted"]).to_numpy())
    figures = f"{100 * predicted['covered'].mean():.0f} %", f"{width.mean() / narrowest:.2f}"
    return {"covered": figures[0], "width": figures[1], "high/low": f"{np.exp(width.median()):.2f}"}


def _choices(chosen: pd.Series) -> dict[str, str]:
    library = chosen["over_default"]
    figures = (
        f"{chosen['workloads']:.0f}",
        f"{100 * chosen['regret_mean']:.1f} %",
        f"{100 * chosen['regret_max']:.0f} %",
    )
    return dict(zip(CHOICES, (*figures, "-" if np.isnan(library) else f"{library:.2f}"), strict=True))


def oracle(logs: np.ndarray) -> float:
    ordered = np.sort(logs)
    held = int(np.ceil(COVERAGE * len(ordered)))
    return max(float(np.min(ordered[held - 1 :] - ordered[: len(ordered) - held + 1])), NARROWEST)


def held_out(measured: Measured) -> Iterator[tuple[str, list[str]]]:
    """What is held out, and expressions of the parts of it that are, one after the other."""
    yield "other sizes", [EVERY_OTHER_SIZE]
    ranks = sorted({point.ranks for point in measured.points})
    if len(ranks) > 1:
        yield "more ranks", [f"ranks > {ranks[(len(ranks) - 1) // 2]}"]
    settings = list(dict.fromkeys(list_settings(measured)))
    if len(settings) > 1:
        yield "a setting", [f"setting == '{setting}'" for setting in settings]


def predicted(parts: Split, families: list[str], name: str) -> Iterator[pd.DataFrame]:
    """A row for each point held out and each family, then each baseline, and the library's own times."""
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
    times = parts.held_out.library.items()
    library = [{"workload": f"{group} {setting}", "measured": seconds} for (group, setting), seconds in times]
    yield pd.DataFrame(library).assign(family="", algorithm=LIBRARY)


def judged_table(path: Path, families: list[str]) -> Iterator[dict]:
    whole = read_points(path)
    measured = select_points(whole, [point.ranks <= MAX_RANKS for point in whole.points])
    for title, expressions in held_out(measured):
        try:
            parts = [split_points(measured, where) for where in expressions]
        except UserError as error:
            print(f"{title}: {error.message}", file=sys.stderr)
            continue
        rows = pd.concat([rows for part in parts for rows in predicted(part, families, path.name)], ignore_index=True)
        yield from ({"table": path.name, "held out": title} | row for row in scores(rows))


def main(path: Path, families: list[str]) -> None:
    print(format_table(list(judged_table(path, families or list(TABLE_FAMILIES)))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
