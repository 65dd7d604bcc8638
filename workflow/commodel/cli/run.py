"""commodel run: an experiment from its YAML to its report."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from commodel.campaign import RUN, Campaign, forget_failures, results
from commodel.cli._following import follow
from commodel.cli._output import table
from commodel.cli._scores import scores
from commodel.cli._snakemake import command, wait
from commodel.compare import TEXT
from commodel.config import find
from commodel.errors import UserError
from commodel.holding import hold
from commodel.plan import launcher_of, make_plan, write_plan
from commodel.planview import totals
from commodel.results import Results
from commodel.tables import read_table
from commodel.toolchain import ROOT


@click.command()
@click.argument("experiment")
@click.option("--profile", help="Snakemake profile, e.g. slurm.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores to use here.  [default: all]")
@click.option("--only", metavar="PLATFORM", help="Only the part that runs on this platform.")
@click.option("--retry", is_flag=True, help="Also try again what was given up: crash, timeout, budget, late.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would run.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result.")
def run(
    experiment: str,
    profile: str | None,
    cores: int | None,
    only: str | None,
    retry: bool,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Measure, fit, predict, compare and report EXPERIMENT; what is done already is not done again.

    What cannot be measured is reported as not measured, and the exit code is 1.
    """
    settings = {"experiment": find("experiment", experiment), "only": only}
    asked = command("Snakefile", settings, cores, profile)
    folder = results(experiment)
    Results(folder).check()
    if dry_run:
        _tell(totals(make_plan(experiment, Path.cwd(), only)), quiet)
        raise SystemExit(wait([*asked, "--dry-run"]))
    with hold(folder, RUN) as stream:  # the workflow shares it, and holds the folder also without this process
        campaign = Campaign(make_plan(experiment, Path.cwd(), only), folder, stream)
        _require_jobs(campaign, profile)
        write_plan(campaign.plan, experiment, Path.cwd())
        again = [f"{forget_failures(campaign)} cases that were given up are tried again"] if retry else []
        _tell([*totals(campaign.plan), *again], quiet)
        code = _measured(campaign, partial(command, "Snakefile", cores=cores, profile=profile), settings, quiet)
    click.echo("\n" + table(scores(read_table(campaign.results.table("comparison"), TEXT))) + "\n")
    for name in (f"{folder.name}.xlsx", "index.html"):
        click.echo(Path("reports") / folder.name / name)
    raise SystemExit(code)


def _measured(campaign: Campaign, asked: Callable[..., list[str]], settings: dict, quiet: bool) -> int:
    """Snakemake's code. Raw files that prove damaged when they are collected are moved aside, and measured anew."""
    settings = settings | {"quiet": True}
    before = campaign.finished
    code = follow(campaign, asked(settings=settings), "run", quiet)
    if code and any(batch in campaign.unfinished for batch in before):
        click.echo("commodel: what was moved aside is measured anew", err=True)
        code = follow(campaign, asked(settings=settings), "again", quiet)
    missing, count = len(campaign.unfinished), len(campaign.plan.batches)
    if code and 0 < missing < count:
        if failed := follow(campaign, asked(settings=settings | {"finish": True}), "finish", quiet):
            raise SystemExit(failed)
        click.echo(
            f"commodel: {missing} of {count} batches did not finish; their points are marked as not measured;"
            " run again to try them again",
            err=True,
        )
    elif code:
        raise SystemExit(code)
    return code


def _require_jobs(campaign: Campaign, profile: str | None) -> None:
    """What is measured inside a batch system's job needs a profile that hands jobs in, or to be called in one."""
    if _hands_in_jobs(profile or os.environ.get("SNAKEMAKE_PROFILE")) or os.environ.get("SLURM_JOB_ID"):
        return
    for batch in campaign.unfinished:
        if launcher_of(campaign.plan, batch.name).in_job:
            raise UserError(
                f"platform '{batch.platform}' is measured inside Slurm jobs, which no profile hands in; "
                f"wanted: commodel run {campaign.plan.experiment} --profile slurm"
            )


def _hands_in_jobs(profile: str | None) -> bool:
    """As far as can be told: what a site's own profile does is the site's matter."""
    own = ROOT / "profiles" / (profile or "local") / "config.yaml"
    return "\nexecutor:" in own.read_text(encoding="utf-8") if own.exists() else True


def _tell(lines: list[str], quiet: bool) -> None:
    if not quiet:
        click.echo("\n".join(lines), err=True)
