"""commodel build, measure, collect and compare: stages of the workflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commodel.cli._help import VerbCommand, VerbWithModes, make_option_group
from commodel.cli._options import PATH, cores_option, out_option, quiet_option
from commodel.cli._output import make_progress_printer, print_stage, show_waiting
from commodel.errors import UserError
from commodel.platforms.toolchains import list_toolchains

if TYPE_CHECKING:
    from commodel.records import Plan


@click.command(
    cls=VerbCommand,
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
    cls=VerbCommand,
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
    from commodel.api.comparisons import collect_results

    plan, results = _read_plan(plan_file)
    with show_waiting("collecting the samples"):
        collect_results(plan, results, out, unfinished)


@click.command(
    cls=VerbCommand,
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
    from commodel.api.comparisons import compare_results

    with show_waiting("comparing"):
        compare_results(folder, out, sets, cores)
