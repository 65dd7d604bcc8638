"""commodel collect: raw samples to one table."""

from pathlib import Path

import click

from commodel.cli._output import waiting


@click.command()
@click.option(
    "--in",
    "plan_file",
    type=click.Path(path_type=Path),
    required=True,
    help="plan.json, or the folder it lies in.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Table to write.  [default: observations.csv there]")
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
    with waiting("collecting the samples"):
        observations, lacking = gather(plan, results.all_raw, unfinished)
        out = SafePath.given(out or plan_file.with_name("observations.csv"), plan_file.parent)
        write_table(out.with_name("unmeasured.csv"), lacking)
        write_table(out.with_name("summary.csv"), summarize_raw(observations))
        write_table(out.with_name("distributions.csv"), distributions(observations))
        write_table(out, observations)
