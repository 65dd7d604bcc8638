"""commodel measure: run one batch of a plan.

Which setting a job measures in."""

import os
from pathlib import Path

import click

from commodel.errors import UserError
from commodel.files.quantities import VARIABLE, parse_setting


@click.command()
@click.option("--in", "plan_file", type=click.Path(path_type=Path), required=True, help="plan.json of the experiment.")
@click.option("--batch", "name", required=True, help="Name of the batch.")
@click.option(
    "--out", "folder", type=click.Path(path_type=Path), required=True, help="Folder for the batch's raw samples."
)
@click.option("--setting", help="What tells this job from others.  [default: $COMMODEL_SETTING, else the platform's]")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def measure(plan_file: Path, name: str, folder: Path, setting: str | None, quiet: bool) -> None:
    """Measure what is missing of one batch; a batch that was stopped goes on where it stopped."""
    from commodel.cli._output import progress
    from commodel.files.cache import standing_on
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.measure.batch import measure as measure_batch
    from commodel.plan.planning import load_plan

    results = plan_file.parent
    plan = load_plan(SafePath.given(plan_file, results))
    with standing_on(Results.of(results), plan.files):
        measure_batch(plan, plan.batch(name), SafePath.given(folder, results), progress(quiet), job_setting(setting))


def job_setting(given: str | None) -> str:
    """As asked for, else as the environment of the job says; blank: nobody says any."""
    called = "--setting" if given is not None else VARIABLE
    try:
        return parse_setting(os.environ.get(VARIABLE, "") if given is None else given)
    except UserError as error:
        raise UserError(error.found, key=called) from None
