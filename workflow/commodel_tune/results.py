"""The rules that were found for an MPI library, as a result (`Tuning`): their measured gains, and
the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import expm1
from statistics import mean
from typing import Any

from commodel.api.result import Answer
from commodel.files.text_tables import format_answer, format_table
from commodel.patterns.libraries import OPEN_MPI
from commodel.records import LIBRARY, PlacedWorkload
from commodel.units import format_bytes
from commodel_tune.search import Search, list_rule_choices
from commodel_tune.timer import LibraryTimer
from commodel_tune.validation import Stage, WorkloadGain, find_slowed_workloads

ENVIRONMENT_FILE = "environment.sh"


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of tuning: search, two stages of timing, and final rules."""

    timer: LibraryTimer
    search: Search
    screening: Stage
    validation: Stage  # of the rules that were faster in the screening
    final: Mapping[PlacedWorkload, str]  # the rules that are left
    dropped: Mapping[PlacedWorkload, str]  # rules that did not pay
    # reasons of rules that gave wrong results, by operation and algorithm
    wrong: Mapping[tuple[str, str], str]

    def __repr__(self) -> str:
        return f"Outcome: {len(self.validation.rows)} workloads, {len(self.dropped)} rules dropped"


@dataclass(frozen=True, eq=False, repr=False)
class Tuning(Answer):
    """The measured times of workloads with rules and without: a row for each."""

    outcome: Outcome

    @classmethod
    def of(cls, outcome: Outcome) -> Tuning:
        sentence, *notes = describe_outcome(outcome)
        rows = [make_gain_row("validation", row) for row in outcome.validation.rows]
        folder = str(outcome.timer.folder)
        provenance = [
            {
                "platform": outcome.timer.name,
                "library": outcome.timer.dialect.library,
                "source": folder,
            }
        ]
        return cls(rows, sentence, notes, provenance, outcome)

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, the rules with their gains, and the notes; only the first of these
        unless `verbose`."""
        final = self.outcome.final
        rows = [
            make_gain_cells(row)
            for row in self.outcome.validation.rows
            if final[row.workload] != LIBRARY
        ]
        return format_answer(
            self.sentence, format_table(rows, ("without rules", "with rules")), self.notes, verbose
        )


def make_gain_row(stage: str, row: WorkloadGain) -> dict[str, Any]:
    """Return a row of the table of gains."""
    operation, ranks, layout, size = row.workload
    gain, columns = (
        row.gain,
        {"stage": stage, "operation": operation, "ranks": ranks, "layout": layout},
    )
    columns |= {"from_bytes": size, "bytes": row.size, "algorithm": row.algorithm}
    columns |= {"with_rules": gain.with_rules, "without": gain.without}
    return columns | {"gain": gain.ratio, "gain_low": gain.low, "gain_high": gain.high}


SLOWED_WARNING = (
    "Investigate this before you use the rules: over TCP, one collective may leave connections in a state that slows "
    "others."
)


def make_gain_cells(row: WorkloadGain) -> dict[str, Any]:
    operation, ranks, _, size = row.workload
    gain = row.gain
    return {
        "operation": operation,
        "ranks": ranks,
        "from": format_bytes(size),
        "rule": row.algorithm,
        "measured at": format_bytes(row.size),
        "without rules": gain.without,
        "with rules": gain.with_rules,
        "gain [×]": f"{gain.ratio:.2f}",
        "95 % interval": f"{gain.low:.2f} to {gain.high:.2f}",
    }


def describe_outcome(outcome: Outcome) -> list[str]:
    searched, validation, timer = outcome.search, outcome.validation, outcome.timer
    rows = validation.rows
    measured, total, took = (
        len(searched.belief.measured_arms),
        len(searched.arms.arms),
        searched.took,
    )
    lines = [
        f"Measured {measured} of {total} points in {took:.0f} s; all of them would take about {searched.full:.0f} s.",
        f"The choice is expected to take {100 * mean(searched.belief.regret()):.1f} % more than the best.",
    ]
    validation_seconds = outcome.screening.seconds + validation.seconds
    if validation_seconds:
        lines.append(f"Screening and validation took {validation_seconds:.0f} s more.")
    hint = (
        " Another component may precede, such as han, hcoll or ucc."
        if timer.dialect.library == OPEN_MPI
        else ""
    )
    lines += [
        f"Rules for {name} change nothing: no workload has two algorithms whose times differ.{hint}"
        for name in searched.ignored
    ]
    lines += [
        f"Dropped {algorithm} for {operation}: wrong results. {reason.rstrip('.')}."
        for (operation, algorithm), reason in outcome.wrong.items()
    ]
    number = len(outcome.dropped)
    if number:
        lines.append(f"Dropped {number} rule{'' if number == 1 else 's'} without a measured gain.")
    lines += (
        describe_control("validation", validation)
        if rows
        else describe_control("screening", outcome.screening)
    )
    if not list_rule_choices(outcome.final.items()):
        return [f"No rule is faster: keep the defaults of {timer.dialect.library}.", *lines]
    operations = dict.fromkeys(row.workload.operation for row in rows)
    overall = _format_gain(*validation.mean_gain())
    gains = ", ".join(f"{name} {_format_gain(*validation.mean_gain(name))}" for name in operations)
    worst = min(rows, key=lambda row: row.gain.ratio)
    interval = _format_gain(worst.gain.ratio, worst.gain.low, worst.gain.high)
    return [
        f"Geometric mean of the gains of all {len(rows)} workloads, with and without a rule: {overall}; {gains}.",
        f"Rules: {timer.folder / timer.dialect.file}. In a Slurm script: source {timer.folder / ENVIRONMENT_FILE}",
        f"Smallest gain: {worst.workload.operation} of {format_bytes(worst.size)}, {interval}.",
        *(
            f"{row.workload.operation} of {format_bytes(row.size)} has no rule but got slower: {row.gain.ratio:.2f} ×."
            f" {SLOWED_WARNING}"
            for row in find_slowed_workloads(rows)
        ),
        *lines,
    ]


def describe_control(name: str, stage: Stage) -> list[str]:
    """Return a sentence on whether the machine was equally fast with rules and without."""
    controls = stage.control
    if not stage.rows:
        return []
    if not controls.workloads:
        return [
            f"The {name} has no workload without a rule, so a change of the machine's speed would go unnoticed."
        ]
    line = (
        f"In the {name}, times of {controls.excluding_one} of {controls.workloads} workloads "
        "without a rule changed"
    )
    if not controls.log_margin:
        return [f"{line}, no more than by chance."]
    widened = f"All intervals are widened by {100 * expm1(controls.log_margin):.2g} %"
    return [
        f"{line}: the machine's speed changed. {widened}, and rules are accepted by the wider intervals."
    ]


def _format_gain(middle: float, low: float, high: float) -> str:
    return f"{middle:.2f} × ({low:.2f} to {high:.2f})"
