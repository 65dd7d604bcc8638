"""The stages between measuring and the report, on a folder of results: raw samples become tables
(`collect_results`), and predictions are compared with them (`compare_results`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from commodel.compare import comparison as comparing
from commodel.compare.comparison_intervals import read_residuals
from commodel.compare.recommended import add_recommended, split_recommended
from commodel.files.cache import use_archived_inputs
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.files.results_folder import Results
from commodel.files.safe_paths import SafePath
from commodel.files.tables import OBSERVATIONS, PREDICTIONS, list_columns, read_table, write_table
from commodel.parallel import map_in_processes, use_processes
from commodel.plan.planning import load_plan
from commodel.records import RECOMMENDED, Plan
from commodel.results.collection import collect_samples, summarize_raw
from commodel.results.latency_distributions import tabulate_distributions
from commodel.results.provenance import count_processors, find_mpi_version
from commodel.results.raw_samples import read_unmeasured


def collect_results(plan: Plan, folder: Path, out: Path | None, unfinished: bool) -> None:
    """Write the samples of a plan as tables: `out`, and the others beside it."""
    observations, missing = collect_samples(plan, Results.of(folder).all_raw, unfinished)
    table = SafePath.of_argument(out or folder / "observations.csv", folder)
    write_table(table.with_name("unmeasured.csv"), missing)
    write_table(table.with_name("summary.csv"), summarize_raw(observations))
    write_table(table.with_name("distributions.csv"), tabulate_distributions(observations))
    write_table(table, observations)


def compare_results(folder: Path, out: Path | None, sets: bool, cores: int) -> None:
    """Write the comparison of predictions with measurements, and with `sets` the fitted sets with
    their errors at held-out points."""
    with use_processes(cores):
        results = Results.of(folder)
        plan = load_plan(results.plan)
        observations = read_table(results.table("observations"), OBSERVATIONS)
        parts = [read_table(results.predictions(name), PREDICTIONS) for name in plan.models]
        unmeasured = read_unmeasured(results.table("unmeasured"))
        with use_archived_inputs(results, plan.files):
            processors = {
                batch.name: count_processors(results.programs(batch.name)) for batch in plan.batches
            }
            libraries = {
                batch.name: find_mpi_version(results.programs(batch.name)) for batch in plan.batches
            }
            compared = comparing.compare(
                plan, observations, pd.concat(parts), unmeasured, processors, libraries
            )
        all_rows = add_recommended(compared)
        write_table(SafePath.of_argument(out or folder / "comparison.csv", folder), all_rows)
        # A table elsewhere is a trial, which changes nothing in the results.
        if out is None or out.resolve().parent == folder.resolve():
            _, recommended = split_recommended(all_rows)
            write_table(results.predictions(RECOMMENDED), recommended[list_columns(PREDICTIONS)])

        def validate(entry: tuple[str, SafePath]) -> None:
            platform, path = entry
            fitted = read_parameters(path)
            residuals = read_residuals(compared, platform, fitted.model)
            write_parameters(
                results.validated(platform, fitted.model), replace(fitted, residuals=residuals)
            )

        fitted_sets = [(name, path) for name in plan.platforms for path in results.sets(name)]
        for _ in map_in_processes(validate, fitted_sets if sets else []):
            pass
