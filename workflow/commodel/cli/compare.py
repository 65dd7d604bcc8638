"""commodel compare: predictions beside measurements."""

from pathlib import Path

import click


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), required=True, help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="comparison.csv.")
def compare(folder: Path, out: Path) -> None:
    """Put every family's predictions beside the measurements, with errors, intervals and choices."""
    import pandas as pd

    from commodel.compare import table as comparing
    from commodel.files.columns import OBSERVATIONS, PREDICTIONS
    from commodel.files.paths import SafePath
    from commodel.files.results import Results
    from commodel.files.tables import read_table, write_table
    from commodel.plan.file import load_plan
    from commodel.results.unmeasured import read_unmeasured

    results = Results.of(folder)
    plan = load_plan(results.plan)
    observations = read_table(results.table("observations"), OBSERVATIONS)
    parts = [read_table(results.predictions(name), PREDICTIONS) for name in plan.families]
    unmeasured = read_unmeasured(results.table("unmeasured"))
    write_table(SafePath.given(out, folder), comparing.compare(plan, observations, pd.concat(parts), unmeasured))
