"""commodel run: an experiment from its YAML to its report."""

from pathlib import Path

import click

from commodel.campaign import RUN, Campaign, forget_failures, results
from commodel.cli._following import follow
from commodel.cli._output import table
from commodel.cli._scores import scores
from commodel.cli._snakemake import command, wait
from commodel.compare import TEXT
from commodel.config import find
from commodel.holding import held
from commodel.plan import make_plan, refresh
from commodel.planview import totals
from commodel.results import Results
from commodel.tables import read_table


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
    folder = results(experiment)
    Results(folder).check()
    if dry_run:
        _tell(totals(make_plan(experiment, Path.cwd(), only)), quiet)
        raise SystemExit(wait([*command("Snakefile", settings, cores, profile), "--dry-run"]))
    with held(folder, RUN):  # only for a moment: then the workflow holds it, also without this process
        campaign = Campaign(refresh(experiment, Path.cwd(), only), folder)
        again = [f"{forget_failures(campaign)} cases that were given up are tried again"] if retry else []
    _tell([*totals(campaign.plan), *again], quiet)
    settings |= {"quiet": True}
    code = follow(campaign, command("Snakefile", settings, cores, profile), "run", quiet)
    missing, count = len(campaign.unfinished), len(campaign.plan.batches)
    if code and 0 < missing < count:
        click.echo(
            f"commodel: {missing} of {count} batches did not finish; their points are marked as not measured;"
            " run again to try them again",
            err=True,
        )
        settings |= {"finish": True}
        if failed := follow(campaign, command("Snakefile", settings, cores, profile), "finish", quiet):
            raise SystemExit(failed)
    elif code:
        raise SystemExit(code)
    click.echo("\n" + table(scores(read_table(campaign.results.table("comparison"), TEXT))) + "\n")
    for name in (f"{folder.name}.xlsx", "index.html"):
        click.echo(Path("reports") / folder.name / name)
    raise SystemExit(code)


def _tell(lines: list[str], quiet: bool) -> None:
    if not quiet:
        click.echo("\n".join(lines), err=True)
