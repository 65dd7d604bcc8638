"""Runs a campaign's workflow, and tells meanwhile how far it is and what jobs complain about, on one terminal."""

import re
import signal
import time

import click

from commodel.cli._output import Line
from commodel.cli.snakemake.complaints import Complaints
from commodel.cli.snakemake.running import run_snakemake
from commodel.errors import UserError
from commodel.platforms.slurm import cancel
from commodel.results.campaign import Campaign
from commodel.results.progress import Reader, sentence

RUN_ID = re.compile(r"^SLURM run ID: ([\w-]+)$")
LEFT_BEHIND = "commodel: jobs may still be in Slurm's queue ({}); once it answers: scancel --name {}"


def follow(campaign: Campaign, command: list[str], name: str, quiet: bool) -> int:
    """Returns Snakemake's code; what it prints is kept in NAME.log. Where it was stopped, this program ends as if the
    signal had ended it."""
    line, reader = Line(quiet), Reader(campaign)
    complaints = Complaints(line.above)
    log = campaign.results.log(name)

    def tick() -> None:
        try:
            line.show(sentence(reader.read("", time.time()), complaints.stage))
        except (UserError, OSError):  # a file that is damaged or gone stops no campaign
            line.clear()

    names: list[str] = []  # of the run's jobs in Slurm's queue

    def show(text: str) -> None:
        names.extend(RUN_ID.findall(text))
        complaints.line(text)

    command = [*command, "--quiet", "host", "reason", "--show-failed-logs"]  # jobs may run where nobody looks
    code, stopped = run_snakemake(command, log, show, tick, campaign.hold)
    line.clear()
    if stopped:
        for name in names:
            if complaint := cancel(name):  # Snakemake has tried too, but may have been killed over it
                click.echo(LEFT_BEHIND.format(complaint, name), err=True)
        how = "Ctrl-C" if stopped == signal.SIGINT else signal.Signals(stopped).name
        click.echo(f"commodel: stopped by {how}; what is measured is kept, and run goes on from there", err=True)
        raise SystemExit(128 + stopped)
    if code:
        for text in [] if complaints.shown else complaints.last:
            click.echo(text, err=True)
        click.echo(f"commodel: the run did not end well; all that it printed is in {log}", err=True)
    elif not quiet:
        click.echo(sentence(reader.read("", time.time())), err=True)
    return code
