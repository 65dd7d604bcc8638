"""The verb that tunes an MPI library's own collectives by rules that are measured to pay."""

from __future__ import annotations

from math import expm1
from statistics import mean
from typing import TYPE_CHECKING

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import (
    commutative_option,
    experiment_option,
    out_option,
    params_option,
    quiet_option,
    same_types_option,
    style_option,
    verbose_option,
)
from commodel.cli._output import make_progress_printer, print_answer, print_rows
from commodel.files.text_tables import format_table
from commodel.units import format_bytes

if TYPE_CHECKING:
    from commodel.advice.rule_validation import Row, Stage
    from commodel.api.library_rules import Outcome


@click.command(
    cls=Verb,
    examples=(
        "commodel tune --platform mycluster --ranks 64 --bytes 8:1MiB:*16 --minutes 10",
        "commodel tune --platform local --ranks 2 --operation bcast --bytes 8",
    ),
)
@make_option_group(
    "Workloads",
    click.option("--operation", "operations", multiple=True, help="Operation to tune; repeated.  [default: all]"),
    click.option("--ranks", required=True, help="Number of ranks: 16, or 2,4,8, or 2:64:*2."),
    click.option(
        "--bytes", "sizes", default="8:256KiB:*8", show_default=True, help="Message sizes: 1KiB, or 8:1MiB:*4."
    ),
    click.option("--layout", default="block", show_default=True, help="Layout of ranks on nodes."),
)
@make_option_group("Models", params_option, experiment_option)
@make_option_group("Assumptions", commutative_option, same_types_option)
@make_option_group(
    "Measurement",
    click.option("--platform", required=True, help="Platform to measure on."),
    click.option(
        "--minutes",
        type=click.FloatRange(0, min_open=True),
        default=5.0,
        show_default=True,
        help="Search for at most N minutes; screening and validation follow.",
    ),
    click.option(
        "--pairs",
        type=click.IntRange(3),
        default=4,
        show_default=True,
        help="For validation, start N times with rules and N times without.",
    ),
    click.option(
        "--sync",
        type=click.Choice(["window", "barrier"]),
        default="window",
        show_default=True,
        help="Start samples by clocks or a barrier.",
    ),
)
@make_option_group(
    "Output",
    out_option("Folder of results, continued if there.  [default: results/tune-PLATFORM]"),
    quiet_option,
    style_option,
    verbose_option,
)
def tune(ranks, sizes, commutative, same_types, quiet, style, verbose, **settings) -> None:
    from commodel.api.library_rules import tune_library
    from commodel.api.recommendations import list_workloads
    from commodel.interchange.rules import Assumptions

    outcome = tune_library(
        **settings,
        list_workloads=lambda operations: list_workloads(operations, ranks=ranks, sizes=sizes),
        assumptions=Assumptions(commutative, same_types),
        progress=make_progress_printer(quiet),
    )
    _print_outcome(outcome, style, verbose)


SLOWED_WARNING = (
    "Investigate this before you use the rules: over TCP, one collective may leave connections in a state that slows "
    "others."
)


def _print_outcome(outcome: Outcome, style: str, verbose: bool) -> None:
    from commodel.api.library_rules import make_gain_row
    from commodel.records import LIBRARY

    if style != "table":
        print_rows([make_gain_row("validation", row) for row in outcome.validation.rows], style)
        return
    rows = [_make_gain_row(row) for row in outcome.validation.rows if outcome.final[row.workload] != LIBRARY]
    answer, *notes = _describe_outcome(outcome)
    print_answer(answer, format_table(rows, ("without rules", "with rules")), notes, verbose)


def _make_gain_row(row: Row) -> dict:
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


def _describe_outcome(outcome: Outcome) -> list[str]:
    from commodel.advice.rule_validation import find_slowed_workloads
    from commodel.advice.tuning import list_rule_choices
    from commodel.api.library_rules import ENVIRONMENT_FILE
    from commodel.patterns.libraries import OPEN_MPI

    searched, validation, timer = outcome.search, outcome.validation, outcome.timer
    rows = validation.rows
    measured, total, took = len(searched.belief.measured_arms), len(searched.arms.arms), searched.took
    lines = [
        f"Measured {measured} of {total} points in {took:.0f} s; all of them would take about {searched.full:.0f} s.",
        f"The choice is expected to take {100 * mean(searched.belief.regret()):.1f} % more than the best.",
    ]
    if validation_seconds := outcome.screening.seconds + validation.seconds:
        lines.append(f"Screening and validation took {validation_seconds:.0f} s more.")
    hint = " Another component may precede, such as han, hcoll or ucc." if timer.dialect.library == OPEN_MPI else ""
    lines += [
        f"Rules for {name} change nothing: no workload has two algorithms whose times differ.{hint}"
        for name in searched.ignored
    ]
    lines += [
        f"Dropped {algorithm} for {operation}: wrong results. {reason.rstrip('.')}."
        for (operation, algorithm), reason in outcome.wrong.items()
    ]
    if number := len(outcome.dropped):
        lines.append(f"Dropped {number} rule{'' if number == 1 else 's'} without a measured gain.")
    lines += _describe_control("validation", validation) if rows else _describe_control("screening", outcome.screening)
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


def _describe_control(name: str, stage: Stage) -> list[str]:
    """Return a sentence on whether the machine was equally fast with rules and without."""
    controls = stage.control
    if not stage.rows:
        return []
    if not controls.workloads:
        return [f"The {name} has no workload without a rule, so a change of the machine's speed would go unnoticed."]
    line = f"In the {name}, times of {controls.excluding_one} of {controls.workloads} workloads without a rule changed"
    if not controls.log_margin:
        return [f"{line}, no more than by chance."]
    widened = f"All intervals are widened by {100 * expm1(controls.log_margin):.2g} %"
    return [f"{line}: the machine's speed changed. {widened}, and rules are accepted by the wider intervals."]


def _format_gain(middle: float, low: float, high: float) -> str:
    return f"{middle:.2f} × ({low:.2f} to {high:.2f})"
