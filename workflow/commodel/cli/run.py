"""commodel run: an experiment from its YAML to its report."""

import subprocess
import sys
from pathlib import Path

import click

from commodel.cli._output import table
from commodel.compare import selection, summarize
from commodel.config import find
from commodel.plan import refresh
from commodel.planview import totals
from commodel.tables import read_table
from commodel.toolchain import ROOT


@click.command()
@click.argument("experiment")
@click.option("--profile", help="Snakemake profile, e.g. slurm.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores to use here.  [default: all]")
@click.option("--only", metavar="PLATFORM", help="Only the part that runs on this platform.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would run.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result.")
def run(experiment: str, profile: str | None, cores: int | None, only: str | None, dry_run: bool, quiet: bool) -> None:
    """Measure, fit, predict, compare and report EXPERIMENT; what is done already is not done again."""
    plan = refresh(str(find("experiment", experiment)), Path.cwd(), only)
    if not quiet:
        click.echo("\n".join(totals(plan)), err=True)
    settings = [f"experiment={plan.experiment}", *([f"only={only}"] if only else [])]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(Path.cwd())]
    command += ["--config", *settings, "--cores", str(cores or "all")]
    command += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    command += ["--profile", str(ROOT / "profiles" / profile) if (ROOT / "profiles" / (profile or "")).is_dir() else profile] if profile else []
    command += ["--dry-run"] if dry_run else []
    command += ["--quiet", "all"] if quiet else ["--quiet", "rules"] if not dry_run else []
    code = subprocess.run(command, check=False).returncode
    if code:
        raise SystemExit(code)
    if dry_run:
        return
    comparison = read_table(Path("results") / plan.experiment / "comparison.csv")
    click.echo("\n" + table(_scores(comparison)) + "\n")
    for name in (f"{plan.experiment}.xlsx", "index.html"):
        click.echo(Path("reports") / plan.experiment / name)


def _scores(comparison) -> list[dict]:
    by = ["platform", "simulated", "family"]
    scores = summarize(comparison, by).merge(selection(comparison, by), on=by, how="left")
    return [
        {
            "platform": f"{row.platform} (simulated)" if row.simulated else row.platform,
            "family": row.family,
            "points": int(row.points),
            "mean error μ": round(float(row.mu_mean), 3),
            "picks the fastest": f"{row.right:.0%} of {int(row.groups)}" if row.groups > 0 else "-",
        }
        for row in scores.itertuples()
    ]
