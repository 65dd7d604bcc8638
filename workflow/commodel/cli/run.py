"""commodel run and status: run a campaign, and show its progress, also while its jobs run
elsewhere."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import EXPERIMENT_ARGUMENT, RESULTS_ARGUMENT, format_option
from commodel.cli._output import ProgressLine
from commodel.files.text_tables import format_table

if TYPE_CHECKING:
    from commodel.results.interim_answers import Answers
    from commodel.results.progress import Status


@click.command(
    cls=VerbCommand,
    examples=("commodel run sample", "commodel run sample --dry-run"),
    arguments=EXPERIMENT_ARGUMENT,
)
@click.argument("experiment")
@make_option_group(
    "Experiment",
    click.option("--only", metavar="PLATFORM", help="Run only the part on this platform."),
    click.option(
        "--retry",
        is_flag=True,
        help="Try again what failed: cases (crash, timeout, budget, late), models.",
    ),
    click.option(
        "--no-survey",
        is_flag=True,
        help="Do not learn levels that the platform file does not name.",
    ),
    click.option(
        "--until",
        metavar="REGRET",
        help="Stop measuring once the expected regret of the advice is below this, e.g. 5%.",
    ),
    click.option("-n", "--dry-run", is_flag=True, help="Show the jobs that would run."),
)
@make_option_group(
    "Jobs and cores",
    click.option("--profile", help="Run jobs by this Snakemake profile, e.g. slurm."),
    click.option(
        "--cores",
        type=click.IntRange(min=1),
        help="Use at most N cores of this machine.  [default: all]",
    ),
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
    until: str | None,
    dry_run: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    from commodel.api.campaigns import (
        CampaignRequest,
        load,
        parse_regret,
        run_campaign,
        show_dry_run,
    )
    from commodel.api.snakemake_runs import RunFailedError, RunStoppedError

    limit = None if until is None else parse_regret(until)
    request = CampaignRequest(experiment, only, profile, cores, not no_survey, verbose, limit)
    if dry_run:
        raise SystemExit(show_dry_run(request, ProgressLine(quiet)))
    try:
        folder, code = run_campaign(request, retry, ProgressLine(quiet))
    except RunFailedError as failure:  # its messages are on the screen already
        raise SystemExit(failure.exit_code) from None
    except RunStoppedError as stopped:
        raise SystemExit(128 + stopped.number) from None
    campaign = load(folder)
    click.echo()
    click.echo(campaign.text())
    raise SystemExit(code or int(campaign.has_program_errors))


STATUS_INTERVAL_S = 5.0


@click.command(
    cls=VerbCommand,
    examples=("commodel status sample", "commodel status sample --watch"),
    arguments=RESULTS_ARGUMENT,
)
@click.argument("experiment")
@make_option_group(
    "Output",
    click.option(
        "--watch", is_flag=True, help="Print the progress every few seconds until the run ends."
    ),
    format_option("table", "json", help_text="Print tables, or JSON."),
)
def status(experiment: str, watch: bool, style: str) -> None:
    from commodel.files.results_folder import Results
    from commodel.plan.planning import load_plan
    from commodel.results.campaign import Campaign, find_results, read_lock_holder
    from commodel.results.interim_answers import read_so_far
    from commodel.results.progress import StatusReader, format_status, make_json_data

    named = Results.of(Path("results") / experiment)
    results = named if named.plan.exists() else Results(find_results(experiment))
    folder = results.folder
    reader = StatusReader(Campaign(load_plan(results.plan), folder))
    shown = ""
    while True:
        progress = reader.read(read_lock_holder(folder), time.time())
        text = (
            json.dumps(make_json_data(progress))
            if style == "json"
            else _format_status_tables(progress, read_so_far(folder))
        )
        if watch and style == "table" and sys.stdout.isatty():
            click.clear()
        elif watch and style == "table" and not progress.has_ended:
            answers = read_so_far(folder)
            text = "\n".join([*([answers.text] if answers else []), format_status(progress)])
        if text != shown:
            click.echo(text)
        shown = text
        if not watch or progress.has_ended:
            return
        time.sleep(STATUS_INTERVAL_S)


def _format_status_tables(status: Status, answers: Answers | None) -> str:
    from commodel.results.progress import format_status, tabulate_batches, tabulate_platforms

    lock_line = f"at work: {status.lock_holder}" if status.lock_holder else "no run is active here"
    tables = (format_table(tabulate_platforms(status)), format_table(tabulate_batches(status)))
    answer_texts = [answers.text] if answers and not status.has_ended else []
    return "\n\n".join([f"{format_status(status)}\n{lock_line}", *tables, *answer_texts])
