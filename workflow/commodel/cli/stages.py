"""commodel build, measure, collect and compare: stages of the workflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._help import Verb, VerbWithModes, make_option_group
from commodel.cli._options import PATH, cores_option, out_option, quiet_option
from commodel.cli._output import make_progress_printer, print_stage, show_waiting
from commodel.errors import UserError
from commodel.platforms.toolchains import list_toolchains

if TYPE_CHECKING:
    from commodel.records import Plan


@click.command(
    cls=Verb,
    examples=("commodel build", "commodel build smpi"),
    arguments={name: entry.sentence for name, entry in list_toolchains().items()},
)
@click.argument("toolchain", type=click.Choice(list(list_toolchains())), default="mpi")
def build(toolchain: str) -> None:
    from commodel.platforms.build import build_toolchain as compile_programs
    from commodel.platforms.tools import find_build_root
    from commodel.sources import ROOT

    with show_waiting("compiling"):
        folder = compile_programs(ROOT if toolchain == "replay" else find_build_root(), toolchain)
    click.echo(folder)


@click.group(
    cls=VerbWithModes,
    examples=(
        "commodel measure --in results/sample --batch fast-ethernet-32-upto16n",
        "commodel measure --in results/sample --batch fast-ethernet-32-probes --quiet",
    ),
)
@make_option_group(
    "A batch of a plan",
    click.option(
        "--in",
        "plan_file",
        metavar="PLAN",
        type=PATH,
        help="Plan of an experiment, or its folder results/NAME.",
    ),
    click.option(
        "--batch", help="Batch to measure, or the start of its name; a stopped batch is resumed."
    ),
    click.option(
        "--setting",
        help="Name of this allocation.  [default: $COMMODEL_SETTING, else the platform's]",
    ),
)
@make_option_group(
    "Output", out_option("Folder of raw samples.  [default: raw/BATCH]"), quiet_option
)
def measure(plan_file, batch, setting, out, quiet) -> None:
    if not (plan_file and batch):
        raise UserError("give --in PLAN and --batch NAME")
    from commodel.api.measured_batches import measure_batch

    result = measure_batch(
        plan_file, batch, out=out, setting=setting, progress=make_progress_printer(quiet)
    )
    print_stage(result)


def _read_plan(path: Path) -> tuple[Plan, Path]:
    """Return a plan, given by its file or its folder, and the folder."""
    from commodel.files.results_folder import PLAN
    from commodel.files.safe_paths import SafePath
    from commodel.plan.planning import load_plan

    path = path / PLAN if path.is_dir() else path
    return load_plan(SafePath.of_argument(path, path.parent)), path.parent


@click.command(
    cls=Verb,
    examples=(
        "commodel collect --in results/sample",
        "commodel collect --in results/sample --unfinished",
    ),
)
@make_option_group(
    "Results to read",
    click.option(
        "--in",
        "plan_file",
        metavar="PLAN",
        type=PATH,
        required=True,
        help="Plan of the experiment, or its folder.",
    ),
    click.option(
        "--unfinished",
        is_flag=True,
        help="Collect unfinished batches too; mark missing cases unmeasured.",
    ),
)
@make_option_group(
    "Output",
    out_option(
        "Table to write; other tables go to its folder.  [default: observations.csv of PLAN]"
    ),
)
def collect(plan_file: Path, out: Path | None, unfinished: bool) -> None:
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import write_table
    from commodel.results.collection import collect_samples, summarize_raw
    from commodel.results.latency_distributions import tabulate_distributions

    plan, results = _read_plan(plan_file)
    with show_waiting("collecting the samples"):
        observations, missing = collect_samples(plan, Results.of(results).all_raw, unfinished)
        table = SafePath.of_argument(out or results / "observations.csv", results)
        write_table(table.with_name("unmeasured.csv"), missing)
        write_table(table.with_name("summary.csv"), summarize_raw(observations))
        write_table(table.with_name("distributions.csv"), tabulate_distributions(observations))
        write_table(table, observations)


@click.command(
    cls=Verb,
    examples=(
        "commodel compare --in results/sample",
        "commodel compare --in results/sample --sets",
    ),
)
@make_option_group(
    "Results to read",
    click.option(
        "--in", "folder", type=PATH, required=True, help="Results of an experiment, results/NAME."
    ),
)
@make_option_group(
    "Output",
    out_option("Table to write.  [default: comparison.csv of the results]"),
    click.option(
        "--sets",
        is_flag=True,
        help="Also write the fitted sets with their errors, to validated/PLATFORM.",
    ),
    cores_option,
)
def compare(folder: Path, out: Path | None, sets: bool, cores: int) -> None:
    from dataclasses import replace

    import pandas as pd

    from commodel.compare import comparison as comparing
    from commodel.compare.comparison_intervals import read_residuals
    from commodel.compare.recommended import add_recommended, split_recommended
    from commodel.files.cache import use_archived_inputs
    from commodel.files.parameter_sets import read_parameters, write_parameters
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import (
        OBSERVATIONS,
        PREDICTIONS,
        list_columns,
        read_table,
        write_table,
    )
    from commodel.parallel import map_in_processes, use_processes
    from commodel.plan.planning import load_plan
    from commodel.records import RECOMMENDED
    from commodel.results.provenance import count_processors
    from commodel.results.raw_samples import read_unmeasured

    with show_waiting("comparing"), use_processes(cores):
        results = Results.of(folder)
        plan = load_plan(results.plan)
        observations = read_table(results.table("observations"), OBSERVATIONS)
        parts = [read_table(results.predictions(name), PREDICTIONS) for name in plan.models]
        unmeasured = read_unmeasured(results.table("unmeasured"))
        with use_archived_inputs(results, plan.files):
            processors = {
                batch.name: count_processors(results.programs(batch.name)) for batch in plan.batches
            }
            compared = comparing.compare(
                plan, observations, pd.concat(parts), unmeasured, processors
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
