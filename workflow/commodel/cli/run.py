"""commodel run: an experiment from its YAML to its report."""

import math
from pathlib import Path

import click
import pandas as pd

from commodel.cli._output import table
from commodel.cli._snakemake import command as snakemake
from commodel.cli._snakemake import wait
from commodel.compare import TEXT, selection, summarize
from commodel.config import find
from commodel.holding import held
from commodel.plan import refresh
from commodel.planview import totals
from commodel.tables import read_table


@click.command()
@click.argument("experiment")
@click.option("--profile", help="Snakemake profile, e.g. slurm.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores to use here.  [default: all]")
@click.option("--only", metavar="PLATFORM", help="Only the part that runs on this platform.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would run.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result.")
def run(experiment: str, profile: str | None, cores: int | None, only: str | None, dry_run: bool, quiet: bool) -> None:
    """Measure, fit, predict, compare and report EXPERIMENT; what is done already is not done again."""
    path = find("experiment", experiment)
    plan = refresh(str(path), Path.cwd(), only)
    if not quiet:
        click.echo("\n".join(totals(plan)), err=True)
    settings = {"experiment": path, "only": only, "quiet": quiet or None}
    command = snakemake("Snakefile", settings, cores, profile)
    # Here the measuring prints its own progress; of jobs that run elsewhere Snakemake tells.
    command += ["--dry-run"] if dry_run else ["--quiet", *(["host", "reason"] if profile and not quiet else ["all"])]
    results, reports = (Path(folder) / plan.experiment for folder in ("results", "reports"))
    code = wait(command) if dry_run else _alone(results, command)
    if code:
        click.echo("commodel: the run did not end well; what went wrong stands above, or in .snakemake/log", err=True)
    if code or dry_run:
        raise SystemExit(code)
    click.echo("\n" + table(scores(read_table(results / "comparison.csv", TEXT))) + "\n")
    click.echo(reports / f"{plan.experiment}.xlsx")
    click.echo(reports / "index.html")


def _alone(results: Path, command: list[str]) -> int:
    """Runs Snakemake while nobody else does in this results folder. Its own lock would outlive a kill -9."""
    with held(results, "another run of this experiment"):
        return wait([*command, "--nolock"])


def scores(comparison: pd.DataFrame) -> list[dict]:
    """Per platform and family, the best first: mean proportional error, over all points and over those its parameters
    reach, and how often it picks the fastest choice."""
    by = ["platform", "simulated", "family"]
    found = summarize(comparison, by).merge(selection(comparison, by), on=by, how="left")
    found = found.sort_values(["platform", "mu_mean", "family"])

    def digits(mu: float) -> float | str:
        return "∞" if math.isinf(mu) else "-" if math.isnan(mu) else round(float(mu), 3)

    return [
        {
            "platform": f"{row.platform} (simulated)" if row.simulated else row.platform,
            "family": row.family,
            "points": int(row.points),
            "mean error μ": digits(row.mu_mean),
            "μ in probed range": digits(row.mu_reached),
            "of points": int(row.points_reached),
            "picks the fastest": f"{row.right:.0%} of {int(row.groups)}" if row.groups > 0 else "-",
        }
        for row in found.itertuples()
    ]
