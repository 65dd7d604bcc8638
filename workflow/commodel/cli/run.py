"""commodel run and status: run a campaign, and show its progress, also while its jobs run elsewhere."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commodel.cli._help import Verb, make_option_group
from commodel.cli._options import EXPERIMENT_ARGUMENT, RESULTS_ARGUMENT, format_option
from commodel.cli._output import ProgressLine, print_answer
from commodel.files.text_tables import format_table

if TYPE_CHECKING:
    import pandas as pd

    from commodel.files.results_folder import Results
    from commodel.results.progress import Status


@click.command(
    cls=Verb, examples=("commodel run sample", "commodel run sample --dry-run"), arguments=EXPERIMENT_ARGUMENT
)
@click.argument("experiment")
@make_option_group(
    "Experiment",
    click.option("--only", metavar="PLATFORM", help="Run only the part on this platform."),
    click.option("--retry", is_flag=True, help="Try again what failed: cases (crash, timeout, budget, late), models."),
    click.option("--no-survey", is_flag=True, help="Do not learn levels that the platform file does not name."),
    click.option("-n", "--dry-run", is_flag=True, help="Show the jobs that would run."),
)
@make_option_group(
    "Jobs and cores",
    click.option("--profile", help="Run jobs by this Snakemake profile, e.g. slurm."),
    click.option("--cores", type=click.IntRange(min=1), help="Use at most N cores of this machine.  [default: all]"),
)
@make_option_group(
    "Output",
    click.option("-q", "--quiet", is_flag=True, help="Print only the result."),
    click.option("--verbose", is_flag=True, help="Also print which models need each probe."),
)
def run(
    experiment: str,
    profile: str | None,
    cores: int | None,
    only: str | None,
    retry: bool,
    no_survey: bool,
    dry_run: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    from commodel.api.campaigns import run_campaign, show_dry_run
    from commodel.api.snakemake_runs import RunFailedError, RunStoppedError
    from commodel.files.results_folder import Results

    if dry_run:
        raise SystemExit(show_dry_run(experiment, only, profile, cores, ProgressLine(quiet), not no_survey, verbose))
    try:
        display = ProgressLine(quiet)
        folder, code = run_campaign(experiment, only, profile, cores, retry, display, not no_survey, verbose)
    except RunFailedError as failure:  # its messages are on the screen already
        raise SystemExit(failure.exit_code) from None
    except RunStoppedError as stopped:
        raise SystemExit(128 + stopped.number) from None
    click.echo()
    failed = print_outcome(Results.of(folder))
    click.echo()
    for name in (f"{folder.name}.xlsx", "index.html"):
        click.echo(Path("reports") / folder.name / name)
    raise SystemExit(code or int(failed))


def print_outcome(results: Results) -> bool:
    """Print the errors of the recommended prediction on each platform, the scores of the best models, and anomalies of
    the measurements. Return whether a model failed by an error of the program."""
    # Slow to load: after the campaign.
    from commodel.compare.comparison import list_model_failures
    from commodel.compare.recommended import split_recommended
    from commodel.files.tables import COMPARISON, read_table
    from commodel.reports import list_anomalies  # slow to load: after the campaign
    from commodel.reports.elements import format_error

    comparison = read_table(results.table("comparison"), COMPARISON)
    rows = tabulate_scores(comparison)
    best_rows = list({row["platform"]: row for row in reversed(rows) if row["points"]}.values())[::-1]
    useful: list[str] = []
    useless: list[str] = []
    for row in best_rows:
        mu = row["mean error μ"]
        is_useful = mu <= MAX_USEFUL_ERROR
        (useful if is_useful else useless).append(f"{row['model']}, mean error {format_error(mu)} on {row['platform']}")
    answers = [f"Prediction to use: {'; '.join(useful)}."] if useful else []
    if useless:
        best = "; ".join(useless)
        answers.append(f"No prediction is within a factor of {MAX_USEFUL_ERROR:g} on average: best {best}.")
    answer = " ".join(answers) or "No point has both a prediction and a measurement."
    of_models, _ = split_recommended(comparison)
    anomalies = [f"{remark.platform}: {remark.text}" for remark in list_anomalies(results, of_models)]
    print_answer(answer, _format_best_rows(rows), anomalies)
    return any(failure.is_program_error for failure in list_model_failures(comparison))


MAX_USEFUL_ERROR = 2.0  # highest mean μ of a prediction to use
MAX_SHOWN_MODELS = 5  # of a platform, besides the recommended prediction


def _format_best_rows(rows: list[dict[str, Any]]) -> str:
    """Return the table of the recommended prediction and the best models of each platform, and a line that counts the
    others."""
    rows_of_platform: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        rows_of_platform.setdefault(row["platform"], []).append(row)
    shown = [row for group in rows_of_platform.values() for row in group[: MAX_SHOWN_MODELS + 1]]
    hidden = [
        f"{len(group) - MAX_SHOWN_MODELS - 1} on {platform}"
        for platform, group in rows_of_platform.items()
        if len(group) > MAX_SHOWN_MODELS + 1
    ]
    count_text = f"\nother models, with higher errors: {', '.join(hidden)}; the report has all" if hidden else ""
    return format_table([{name: _format_score(value) for name, value in row.items()} for row in shown]) + count_text


def _format_score(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "∞" if math.isinf(value) else "-" if math.isnan(value) else round(value, 3)


def tabulate_scores(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows by platform and model, measured platforms first, and the recommended prediction before models: mean
    proportional error over all points and over the valid ones, and how often the choice is the fastest alternative."""
    from commodel.compare.comparison import summarize_choices, summarize_errors
    from commodel.records import RECOMMENDED

    group_columns = ["platform", "simulated", "family"]
    rows = summarize_errors(comparison, group_columns).merge(
        summarize_choices(comparison, group_columns), on=group_columns, how="left"
    )
    rows = rows.assign(model=rows["family"] != RECOMMENDED)
    rows = rows.sort_values(["simulated", "platform", "model", "mu_mean", "family"])

    return [
        {
            "platform": f"{row.platform} (simulated)" if row.simulated else row.platform,
            "model": row.family,
            "points": int(row.points),
            "mean error μ": row.mu_mean,
            "valid points": int(row.points_valid),
            "μ of these": row.mu_valid,
            "fastest found without default": f"{100 * row.right:.0f} % of {int(row.workloads)}"
            if row.workloads > 0
            else "-",
        }
        for row in rows.itertuples()
    ]


STATUS_INTERVAL_S = 5.0


@click.command(
    cls=Verb, examples=("commodel status sample", "commodel status sample --watch"), arguments=RESULTS_ARGUMENT
)
@click.argument("experiment")
@make_option_group(
    "Output",
    click.option("--watch", is_flag=True, help="Print the progress every few seconds until the run ends."),
    format_option("table", "json", help_text="Print tables, or JSON."),
)
def status(experiment: str, watch: bool, style: str) -> None:
    from commodel.files.results_folder import Results
    from commodel.plan.planning import load_plan
    from commodel.results.campaign import Campaign, find_results, read_lock_holder
    from commodel.results.progress import StatusReader, format_status, make_json_data

    named = Results.of(Path("results") / experiment)
    results = named if named.plan.exists() else Results(find_results(experiment))
    folder = results.folder
    reader = StatusReader(Campaign(load_plan(results.plan), folder))
    shown = ""
    while True:
        progress = reader.read(read_lock_holder(folder), time.time())
        text = json.dumps(make_json_data(progress)) if style == "json" else _format_status_tables(progress)
        if watch and style == "table" and sys.stdout.isatty():
            click.clear()
        elif watch and style == "table" and not progress.has_ended:
            text = format_status(progress)
        if text != shown:
            click.echo(text)
        shown = text
        if not watch or progress.has_ended:
            return
        time.sleep(STATUS_INTERVAL_S)


def _format_status_tables(status: Status) -> str:
    from commodel.results.progress import format_status, tabulate_batches, tabulate_platforms

    lock_line = f"at work: {status.lock_holder}" if status.lock_holder else "no run is active here"
    tables = (format_table(tabulate_platforms(status)), format_table(tabulate_batches(status)))
    return "\n\n".join([f"{format_status(status)}\n{lock_line}", *tables])
