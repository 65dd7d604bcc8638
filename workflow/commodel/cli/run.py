"""commodel run: an experiment from its YAML to its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.errors import UserError

if TYPE_CHECKING:
    from commodel.records import Batch, Plan
    from commodel.results.campaign import Campaign


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
    from commodel.cli._scores import outcome
    from commodel.cli.snakemake.command import command
    from commodel.cli.snakemake.running import wait
    from commodel.files.results_folder import Results
    from commodel.plan.config import find
    from commodel.plan.planning import make_plan, write_plan
    from commodel.plan.view import totals
    from commodel.results.campaign import RUN, Campaign, forget_failures, hold, results

    settings = {"experiment": find("experiment", experiment), "only": only}
    command_line = command("Snakefile", settings, cores, profile)
    folder = results(experiment)
    Results(folder).check()
    if dry_run:
        plan = make_plan(experiment, Path.cwd(), only)
        _require_compilers(plan, plan.batches)
        _tell(totals(plan), quiet)
        raise SystemExit(wait([*command_line, "--dry-run"]))
    with hold(folder, RUN) as stream:  # the workflow shares it, and holds the folder also without this process
        campaign = Campaign(make_plan(experiment, Path.cwd(), only), folder, stream)
        _require_jobs(campaign, profile)
        _require_compilers(campaign.plan, campaign.unfinished)
        write_plan(campaign.plan, experiment, Path.cwd())
        again = [f"cases given up before, to be tried again: {forget_failures(campaign)}"] if retry else []
        _tell([*totals(campaign.plan), *again], quiet)
        code = _measured(campaign, partial(command, "Snakefile", cores=cores, profile=profile), settings, quiet)
    click.echo("\n" + outcome(campaign.results) + "\n")
    for name in (f"{folder.name}.xlsx", "index.html"):
        click.echo(Path("reports") / folder.name / name)
    raise SystemExit(code)


def _measured(campaign: Campaign, command: Callable[..., list[str]], settings: dict, quiet: bool) -> int:
    """Snakemake's code. Raw files that prove damaged when they are collected are moved aside, and measured anew."""
    from commodel.cli.snakemake.following import follow

    settings = settings | {"quiet": True}
    before = campaign.finished
    code = follow(campaign, command(settings=settings), "run", quiet)
    if code and any(batch in campaign.unfinished for batch in before):
        click.echo("commodel: what was moved aside is measured anew", err=True)
        code = follow(campaign, command(settings=settings), "again", quiet)
    missing, count = len(campaign.unfinished), len(campaign.plan.batches)
    if code and 0 < missing < count:
        if failed := follow(campaign, command(settings=settings | {"finish": True}), "finish", quiet):
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
    from commodel.plan.planning import launcher_of

    if _hands_in_jobs(profile or os.environ.get("SNAKEMAKE_PROFILE")) or os.environ.get("SLURM_JOB_ID"):
        return
    for batch in campaign.unfinished:
        if launcher_of(campaign.plan, batch.name).in_job:
            raise UserError(
                f"platform '{batch.platform}' is measured inside Slurm jobs, which no profile hands in; "
                f"wanted: commodel run {campaign.plan.experiment} --profile slurm"
            )


def _require_compilers(plan: Plan, batches: Iterable[Batch]) -> None:
    """Snakemake would name a file that nothing makes."""
    from commodel.plan.planning import missing_compiler

    missing = {of.platform: missing_compiler(plan, of.name) for of in {of.platform: of for of in batches}.values()}
    for platform, compiler in missing.items():
        if compiler:
            others = [name for name in plan.platforms if not missing.get(name)]
            instead = f"; without it: commodel run {plan.experiment} --only {others[0]}" if others else ""
            raise UserError(f"no {compiler} found, which platform '{platform}' needs: see commodel doctor{instead}")


def _hands_in_jobs(profile: str | None) -> bool:
    """As far as can be told: what a site's own profile does is the site's matter."""
    from commodel.cli.snakemake.command import of_project

    own = of_project(profile or "local")
    return "\nexecutor:" in (own / "config.yaml").read_text(encoding="utf-8") if own else True


def _tell(lines: list[str], quiet: bool) -> None:
    if not quiet:
        click.echo("\n".join(lines), err=True)
