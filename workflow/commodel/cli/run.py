"""commodel run: an experiment from its YAML to its report."""

from __future__ import annotations

from pathlib import Path

import click

from commodel.cli._output import Line


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
    from commodel.api.campaigns import RunFailedError, run_campaign, show_dry_run
    from commodel.api.snakemake_runs import RunStoppedError
    from commodel.cli._scores import outcome
    from commodel.files.results_folder import Results

    if dry_run:
        raise SystemExit(show_dry_run(experiment, only, profile, cores, Line(quiet)))
    try:
        folder, code = run_campaign(experiment, only, profile, cores, retry, Line(quiet))
    except RunFailedError as failure:  # its messages are on the screen already
        raise SystemExit(failure.exit_code) from None
    except RunStoppedError as stopped:
        raise SystemExit(128 + stopped.number) from None
    click.echo("\n" + outcome(Results.of(folder)) + "\n")
    for name in (f"{folder.name}.xlsx", "index.html"):
        click.echo(Path("reports") / folder.name / name)
    raise SystemExit(code)
