"""Advice as results: the alternatives for one workload (`Advice`), and the best one for each of
many (`Decisions`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from commodel import records
from commodel.advice import Ranking
from commodel.advice.decision_tables import (
    BASIS_COLUMNS,
    COLUMNS,
    describe_weights,
    list_tied,
    summarize_notes,
)
from commodel.advice.evidence import MEASURED, Evidence
from commodel.api.charts import draw_times
from commodel.api.result import Answer, describe_sources
from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.text_tables import format_answer, format_table
from commodel.interchange import rules
from commodel.interchange.rules import Assumptions
from commodel.parameters import ParameterSet
from commodel.patterns.points import PlatformResources
from commodel.plan.duration import Durations
from commodel.plan.experiments import Measure
from commodel.predictions.interval_basis import IntervalBasis
from commodel.records import Point
from commodel.stats import NEGLIGIBLE_DIFFERENCE
from commodel.substrates import MPI
from commodel.units import format_bytes, format_duration, format_seconds

if TYPE_CHECKING:
    import altair

MAX_SHOWN_ALTERNATIVES = 12
MAX_NAMED = 6  # alternatives that a sentence names
TIME_COLUMNS = ("measured", "time", "low", "high", "between waves")
# waves per second over those of the best for one wave, from which on a note names it
MIN_STREAM_GAIN = 1.05
MIN_WEIGHT = 0.01  # of a model that a note names
# begin of the notes that follow the answer at once
WARNINGS = ("EXTRAPOLATED", "NO PREDICTION INTERVAL")
MAX_LAYOUT_LENGTH = 40  # characters of a layout in a table
RULES_SUFFIX = ".conf"  # ending of a file of Open MPI's rules
DECISION_SUFFIXES = (".csv", ".xlsx", RULES_SUFFIX)


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Answer):
    """The alternatives for a workload: a row for each algorithm, tree and layout, the best
    first."""

    ranking: Ranking

    @classmethod
    def of(cls, ranking: Ranking, evidence: Evidence) -> Advice:
        to_measure = (
            [_name_informative_points(ranking, evidence)] if ranking.informative_points else []
        )
        sentence = " ".join([f"{ranking.sentence}.", *to_measure])
        weights = [
            f"Weights of models: {describe_weights(ranking)}.",
            *(f"{text}." for text in ranking.zero_weight_reasons),
        ]
        notes = [*_list_notes(ranking), *weights]
        rows = [*ranking.frame.to_dict("records"), *_list_default_rows(ranking)]
        return cls(rows, sentence, notes, describe_sources(evidence.sets), ranking)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows of the alternatives as a DataFrame, without that of the MPI default."""
        return self.ranking.frame

    def plot(self) -> altair.Chart:
        """Return a chart of the alternatives' times with their intervals, the best first; ticks are
        measured times."""
        best = self.frame.head(MAX_SHOWN_ALTERNATIVES)
        named = best.assign(
            name=best["alternative"] + ", " + best["layout_name"].map(_shorten_layout)
        )
        return draw_times(
            named,
            self.sentence.partition(". ")[0].rstrip("."),
            measured=bool(best["measured"].notna().any()),
        )

    def text(self, verbose: bool = True, top: int = MAX_SHOWN_ALTERNATIVES) -> str:
        """Return the sentence, the `top` alternatives as a table, and the notes. Unless `verbose`,
        only the first notes are in it, and only large weights."""
        frame = self.ranking.frame
        shown = frame[(frame.index < top) | frame["front"]].to_dict("records")
        table_rows = [_make_alternative_row(row, shown) for row in shown]
        table = format_table(_insert_default(table_rows, self.ranking), TIME_COLUMNS)
        notes = self.notes
        if not verbose and len(self.ranking.weights) == 1:
            notes = [*_list_notes(self.ranking), _name_large_weights(self.ranking)]
        elif not verbose:
            notes = notes[: len(notes) - len(self.ranking.zero_weight_reasons)]
        return format_answer(self.sentence, table, notes, verbose)


def _make_alternative_row(row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row of the table; columns of measured times and of streams only if there are any."""
    excess = "tied" if row["as_good"] else f"{100 * row['behind']:.0f}"
    excess = "best" if row is rows[0] else excess
    has_measured = any(row["measured"] == row["measured"] for row in rows)
    has_equal = any(row["same_messages"] for row in rows)
    periods = [row["period"] for row in rows if row["period"] == row["period"]]
    has_front = min(periods, default=math.inf) * MIN_STREAM_GAIN < rows[0]["period"]
    period = row["period"] if row["period"] == row["period"] else None
    return (
        {
            "alternative": row["alternative"],
            "layout": _shorten_layout(row["layout_name"]),
            "ranks": row["ranks"],
        }
        | ({"measured": row["measured"]} if has_measured else {})
        | {
            "time": row["seconds"],
            **{name: None if row[name] != row[name] else row[name] for name in ("low", "high")},
            "slower by [%]": excess,
            "regret [%]": float(f"{100 * row['regret']:.2g}"),
        }
        | ({"same messages": row["same_messages"]} if has_equal else {})
        | ({"between waves": period} if periods else {})
        | ({"front": "*" if row["front"] else ""} if has_front else {})
    )


def _list_default_rows(ranking: Ranking) -> list[dict[str, Any]]:
    """Return the row of the MPI default for programs, after those of the alternatives; none if its
    time is unknown."""
    default = ranking.default
    if default is None:
        return []
    best = float(ranking.frame["seconds"].iloc[0])
    is_measured = default.source == MEASURED
    row = dict.fromkeys(ranking.frame.columns, math.nan) | {
        "alternative": records.LIBRARY,
        "layout": "",
        "layout_name": "",
        "ranks": ranking.workload.ranks or ranking.workload.leaves + 1,
        "same_messages": "",
        "seconds": default.seconds,
        "measured": default.seconds if is_measured else math.nan,
        "low": default.low,
        "high": default.high,
        "basis": default.source,
        "behind": default.seconds / best - 1,
        "as_good": False,
        "front": False,
        "doubt": "",
    }
    return [row]


def _insert_default(rows: list[dict[str, Any]], ranking: Ranking) -> list[dict[str, Any]]:
    """Return the rows of the table with that of the MPI default, before the slower alternatives."""
    default = ranking.default
    if default is None:
        return rows
    best = float(ranking.frame["seconds"].iloc[0])
    row = dict.fromkeys(rows[0], "") | {
        "alternative": records.DEFAULT_LABEL,
        "ranks": ranking.workload.ranks or ranking.workload.leaves + 1,
        "time": default.seconds,
        "low": default.low,
        "high": default.high,
        "slower by [%]": f"{100 * (default.seconds / best - 1):.0f}",
    }
    empty = {name: None for name in ("measured", "between waves") if name in row}
    slower = [row["time"] > default.seconds for row in rows]
    place = slower.index(True) if True in slower else len(rows)
    return [*rows[:place], row | empty, *rows[place:]]


def _shorten_layout(layout: str) -> str:
    """Return a short form of an alternative with the nodes of hundreds of ranks."""
    return layout if len(layout) <= MAX_LAYOUT_LENGTH else f"{layout[: MAX_LAYOUT_LENGTH - 1]}…"


def _list_notes(ranking: Ranking) -> list[str]:
    """Return warnings, ties, the best alternative for streams, the meaning of intervals, and the
    ranking's notes."""
    rows, best = ranking.frame, ranking.frame.iloc[0]
    notes = [f"{note}." for note in (*ranking.notes, best["doubt"]) if note]
    warnings = [note for note in notes if note.startswith(WARNINGS)]
    further_notes = [note for note in notes if note not in warnings]
    lines = list(warnings)
    tied = list_tied(ranking).split(", ") if rows["as_good"].sum() > 1 else []
    if tied:
        more_text = f" and {len(tied) - MAX_NAMED} more" if len(tied) > MAX_NAMED else ""
        names = f"{', '.join(map(_shorten_layout, tied[:MAX_NAMED]))}{more_text}"
        rule = (
            "the difference is within its 95 % interval, or at most "
            f"{100 * NEGLIGIBLE_DIFFERENCE:g} %"
        )
        lines.append(f"Statistically tied with {best['alternative']}: {names} ({rule}).")
    fastest = rows.sort_values("period", kind="stable").iloc[0]
    if fastest["period"] * MIN_STREAM_GAIN < best["period"]:
        gain = best["period"] / fastest["period"]
        lines.append(
            f"For a stream of waves: {fastest['alternative']} ends one every {format_seconds(fastest['period'])}, "
            f"{gain:.2f} times as many as {best['alternative']}; one wave takes {format_seconds(fastest['seconds'])}."
            " No alternative is faster both for one wave and for a stream than those marked *."
        )
    if rows["low"].notna().any():
        lines.append(f"Low to high: {IntervalBasis.parse(ranking.interval).sentence}.")
    else:
        lines.append("The values have no intervals, so the predictions have none.")
    return [*lines, *further_notes]


def _name_large_weights(ranking: Ranking) -> str:
    """Return the weights of the models that have more than 1 %."""
    weights = [pair for of_placement in ranking.weights.values() for pair in of_placement.items()]
    large_weights = sorted(
        ((name, weight) for name, weight in weights if weight > MIN_WEIGHT),
        key=lambda pair: -pair[1],
    )
    named = ", ".join(f"{name} {100 * weight:.0f} %" for name, weight in large_weights)
    small_weights = "; others at most 1 % each" if len(weights) > len(large_weights) else ""
    return f"Weights of models: {named}{small_weights}."


def _name_informative_points(ranking: Ranking, evidence: Evidence) -> str:
    """Return which points to measure first, and why."""
    points = []
    for candidate in ranking.informative_points:
        seconds = estimate_measuring(candidate.point, evidence.resources)
        duration = "" if math.isnan(seconds) else f" (in about {format_duration(seconds)})"
        points.append(f"{candidate.alternative}, {_shorten_layout(candidate.layout)}{duration}")
    regret = 100 * ranking.frame["regret"].iloc[0]
    return (
        "Alternatives are statistically tied, and the expected regret of the choice is "
        f"{regret:.0f} %. Measure first: {' and '.join(points)}."
    )


def estimate_measuring(point: Point, resources: PlatformResources) -> float:
    """Return the seconds to measure a point with the default settings, as a plan does; NaN without
    a platform."""
    if not resources.launcher:
        return math.nan
    settings = records.Measure(**Measure.model_validate({}).model_dump())
    return Durations(resources.launcher, settings, resources.substrate or MPI).estimate_point(point)


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Answer):
    """The alternative to use for each of several workloads: a row for each, with those that are
    tied with it."""

    table: pd.DataFrame
    # on programs, if the alternatives are those of Open MPI's rules
    assumptions: Assumptions | None = None

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        sets: Sequence[ParameterSet],
        assumptions: Assumptions | None = None,
    ) -> Decisions:
        chosen = [
            f"{name} ({count})"
            for name, count in table["algorithm"].value_counts(sort=False).items()
        ]
        sentence = f"Alternatives to use in {len(table)} workloads: {', '.join(chosen)}."
        notes = [f"{note}." for note in summarize_notes(table)]
        return cls(
            table.to_dict("records"), sentence, notes, describe_sources(sets), table, assumptions
        )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        return self.table

    def text(self, verbose: bool = True) -> str:
        filled = [
            name
            for name in COLUMNS
            if name not in BASIS_COLUMNS and self.table[name].astype(bool).any()
        ]
        named = self.table.assign(layout=self.table["layout_name"])
        rows = [_make_decision_row(row) for row in named[filled].to_dict("records")]
        return format_answer(self.sentence, format_table(rows, TIME_COLUMNS), self.notes, verbose)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook with the decisions, and a sheet with the best alternatives of each
        operation."""
        from commodel.reports.workbooks import write_decision_workbook  # slow to load

        write_decision_workbook(self.table, summarize_notes(self.table), Path(file))

    def to_rules(self, file: str | Path) -> None:
        """Write the decisions as rules of Open MPI."""
        if self.assumptions is None:
            raise UserError(
                "rules: found decisions among all alternatives, wanted decide(..., open_mpi=True)"
            )
        choices = rules.parse_choice_frame(self.table)
        write_text(Path(file), rules.format_rules(choices, self.assumptions))

    def save(self, file: str | Path) -> None:
        """Write a table (.csv), a workbook (.xlsx) or Open MPI's rules (.conf), as the file's name
        ends."""
        path = Path(file)
        check_decision_file(path)
        if path.suffix == ".xlsx":
            self.to_excel(path)
        elif path.suffix == RULES_SUFFIX:
            self.to_rules(path)
        else:
            self.to_csv(path)


def check_decision_file(path: Path) -> None:
    if path.suffix not in DECISION_SUFFIXES:
        raise UserError(f"found '{path.name}', wanted a file .csv, .xlsx or .conf")


def _make_decision_row(row: dict[str, Any]) -> dict[str, Any]:
    renamed = {"algorithm": "alternative", "seconds": "time", "as_good": "tied"}
    return {renamed.get(name, name): value for name, value in row.items()} | {
        "bytes": format_bytes(row["bytes"])
    }
