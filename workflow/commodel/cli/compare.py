"""commodel compare: predictions beside measurements."""

from pathlib import Path

import click

from commodel.cli._output import waiting


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), required=True, help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), help="Table to write.  [default: comparison.csv there]")
@click.option("--sets", is_flag=True, help="Write the fitted sets with these errors too, into judged/PLATFORM/.")
def compare(folder: Path, out: Path | None, sets: bool) -> None:
    """Put every family's predictions beside the measurements, with errors, intervals and choices.

    An interval holds what the family was off at the other jobs of the platform; that of the parameters alone has
    columns of its own. Sets of `judged` carry these errors: prices by them have such intervals too.
    """
    from dataclasses import replace

    import pandas as pd

    from commodel.compare import comparison as comparing
    from commodel.compare.comparison_intervals import errors_of
    from commodel.files.cache import standing_on
    from commodel.files.parameter_sets import read_parameters, write_parameters
    from commodel.files.results_folder import Results
    from commodel.files.safe_paths import SafePath
    from commodel.files.tables import OBSERVATIONS, PREDICTIONS, read_table, write_table
    from commodel.plan.planning import load_plan
    from commodel.results.provenance import processors
    from commodel.results.raw_samples import read_unmeasured

    with waiting("comparing"):
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
                errors = errors_of(compared, platform, fitted.family)
                write_parameters(results.judged(platform, fitted.family), replace(fitted, errors=errors))
