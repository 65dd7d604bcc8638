"""commodel status: how far a campaign is, also while its jobs run elsewhere."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._output import table

if TYPE_CHECKING:
    from commodel.results.progress import Status

BETWEEN_LOOKS = 5.0  # seconds between two looks


@click.command()
@click.argument("experiment")
@click.option("--watch", is_flag=True, help="Look again every few seconds, until nothing is at work any more.")
@click.option(
    "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output."
)
def status(experiment: str, watch: bool, style: str) -> None:
    """Show what of EXPERIMENT is measured, given up and left, what each batch does, and when it may be done.

    Only results/EXPERIMENT is read: it works on any machine that sees the folder. Cases are the
    points of the matrix and those of the probes.
    """
    from commodel.files.results_folder import Results
    from commodel.plan.planning import load_plan
    from commodel.results.campaign import Campaign, holder, results
    from commodel.results.progress import Reader, as_data, sentence

    named = Results.of(Path("results") / experiment)
    there = named if named.plan.exists() else Results(results(experiment))
    folder = there.folder
    reader = Reader(Campaign(load_plan(there.plan), folder))
    shown = ""
    while True:
        now = reader.read(holder(folder), time.time())
        text = json.dumps(as_data(now)) if style == "json" else _table(now)
        if watch and style == "table" and sys.stdout.isatty():
            click.clear()
        elif watch and style == "table" and not now.over:
            text = sentence(now)
        if text != shown:
            click.echo(text)
        shown = text
        if not watch or now.over:
            return
        time.sleep(BETWEEN_LOOKS)


def _table(status: Status) -> str:
    from commodel.results.progress import batch_rows, platform_rows, sentence

    at_work = f"at work: {status.at_work}" if status.at_work else "nobody is at work here"
    return "\n".join([table(platform_rows(status)), "", table(batch_rows(status)), "", sentence(status), at_work])
