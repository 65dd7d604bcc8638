"""The verbs of the workflow's stages that take no more than a call: compile, measure a batch, collect, compare."""

from __future__ import annotations

from pathlib import Path

import click

from commodel.cli._options import PATH, quiet_option
from commodel.cli._output import progress, show_waiting


@click.command()
@click.argument("toolchain", type=click.Choice(["mpi", "smpi", "overlay", "mrnet", "prices"]), default="mpi")
def build(toolchain: str) -> None:
    """Compile what measures: probes, player and kernels with the MPI at hand (mpi) or for SimGrid (smpi), the overlay
    network and its benchmark (overlay), or that benchmark on MRNet (mrnet); or, for this installation, the library
    that predicts times (prices)."""
    from commodel.platforms.build import build as compile_programs
    from commodel.platforms.tools import workshop
    from commodel.sources import ROOT

    with show_waiting("compiling"):
        folder = compile_programs(ROOT if toolchain == "prices" else workshop(), toolchain)
    click.echo(folder)


@click.command()
@click.option("--in", "plan_file", type=PATH, required=True, help="plan.json of the experiment.")
@click.option("--batch", "name", required=True, help="Name of the batch.")
@click.option("--out", "folder", type=PATH, required=True, help="Folder for the batch's raw samples.")
@click.option("--setting", help="What tells this job from others.  [default: $COMMODEL_SETTING, else the platform's]")
@quiet_option
def measure(plan_file: Path, name: str, folder: Path, setting: str | None, quiet: bool) -> None:
    """Measure what is missing of one batch; a batch that was stopped goes on where it stopped."""
    from commodel.files.cache import standing_on
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.measure.batch import measure as measure_batch
    from commodel.measure.batch import setting_of_job
    from commodel.plan.planning import load_plan

    results = plan_file.parent
    plan = load_plan(SafePath.given(plan_file, results))
    with standing_on(Results.of(results), plan.files):
        measure_batch(plan, plan.batch(name), SafePath.given(folder, results), progress(quiet), setting_of_job(setting))


@click.command()
@click.option(
    "--in",
    "plan_file",
    type=PATH,
    required=True,
    help="plan.json, or the folder it lies in.",
)
@click.option("--out", type=PATH, help="Table to write.  [default: observations.csv there]")
@click.option("--unfinished", is_flag=True, help="Also where batches did not finish: what they lack is not measured.")
def collect(plan_file: Path, out: Path | None, unfinished: bool) -> None:
    """Gather all raw samples into one table, and beside it a summary of each case (summary.csv), the
    histograms of the latencies (distributions.csv), and what was not measured, and why (unmeasured.csv)."""
    from commodel.files.results_folder import PLAN, Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import write_table
    from commodel.plan.planning import load_plan
    from commodel.results.collection import collect as gather
    from commodel.results.collection import summarize_raw
    from commodel.results.latency_distributions import distributions

    plan_file = plan_file / PLAN if plan_file.is_dir() else plan_file
    results = Results.of(plan_file.parent)
    plan = load_plan(SafePath.given(plan_file, plan_file.parent))
    with show_waiting("collecting the samples"):
        observations, lacking = gather(plan, results.all_raw, unfinished)
        out = SafePath.given(out or plan_file.with_name("observations.csv"), plan_file.parent)
        write_table(out.with_name("unmeasured.csv"), lacking)
        write_table(out.with_name("summary.csv"), summarize_raw(observations))
        write_table(out.with_name("distributions.csv"), distributions(observations))
        write_table(out, observations)


@click.command()
@click.option("--in", "folder", type=PATH, required=True, help="results/<experiment>.")
@click.option("--out", type=PATH, help="Table to write.  [default: comparison.csv there]")
@click.option("--sets", is_flag=True, help="Write the fitted sets with these errors too, into judged/PLATFORM/.")
def compare(folder: Path, out: Path | None, sets: bool) -> None:
    """Put every family's predictions beside the measurements, with errors, intervals and choices.

    An interval holds what the family was off at the other jobs of the platform; that of the parameters alone has
    columns of its own. Sets of `judged` carry these errors: prices by them have such intervals too.
    """
    from dataclasses import replace

    import pandas as pd

    from commodel.compare import comparison as comparing
    from commodel.compare.comparison_intervals import read_residuals
    from commodel.files.cache import standing_on
    from commodel.files.parameter_sets import read_parameters, write_parameters
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import OBSERVATIONS, PREDICTIONS, read_table, write_table
    from commodel.plan.planning import load_plan
    from commodel.results.provenance import processors
    from commodel.results.raw_samples import read_unmeasured

    with show_waiting("comparing"):
        results = Results.of(folder)
        plan = load_plan(results.plan)
        observations = read_table(results.table("observations"), OBSERVATIONS)
        parts = [read_table(results.predictions(name), PREDICTIONS) for name in plan.families]
        unmeasured = read_unmeasured(results.table("unmeasured"))
        with standing_on(results, plan.files):
            room = {batch.name: processors(results.programs(batch.name)) for batch in plan.batches}
            compared = comparing.compare(plan, observations, pd.concat(parts), unmeasured, room)
        write_table(SafePath.given(out or folder / "comparison.csv", folder), compared)
        for platform in plan.platforms if sets else ():
            for path in results.sets(platform):
                fitted = read_parameters(path)
                errors = read_residuals(compared, platform, fitted.family)
                write_parameters(results.judged(platform, fitted.family), replace(fitted, errors=errors))
