"""commodel compare: predictions beside measurements."""

from pathlib import Path

import click
import pandas as pd

from commodel import collect
from commodel import compare as comparing
from commodel.plan import load_plan
from commodel.tables import read_table, write_table
from commodel.unmeasured import read_unmeasured


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), required=True, help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="comparison.csv.")
def compare(folder: Path, out: Path) -> None:
    """Put every family's predictions beside the measurements, with errors, intervals and choices."""
    plan = load_plan(folder / "plan.json")
    observations = read_table(folder / "observations.csv", collect.TEXT)
    parts = [
        read_table(folder / "predictions" / f"{name}.csv", ("point", "family", "status")) for name in plan.families
    ]
    unmeasured = read_unmeasured(folder / "unmeasured.csv")
    write_table(out, comparing.compare(plan, observations, pd.concat(parts), unmeasured))
