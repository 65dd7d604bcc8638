"""commodel compare: predictions beside measurements."""

from pathlib import Path

import click
import pandas as pd

from commodel import collect
from commodel import compare as comparing
from commodel.plan import load_plan
from commodel.results import Results
from commodel.safepaths import SafePath
from commodel.tables import read_table, write_table
from commodel.unmeasured import read_unmeasured


@click.command()
@click.option("--in", "folder", type=click.Path(path_type=Path), required=True, help="results/<experiment>.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="comparison.csv.")
def compare(folder: Path, out: Path) -> None:
    """Put every family's predictions beside the measurements, with errors, intervals and choices."""
    results = Results.of(folder)
    plan = load_plan(results.plan)
    observations = read_table(results.table("observations"), collect.TEXT)
    parts = [read_table(results.predictions(name), ("point", "family", "status")) for name in plan.families]
    unmeasured = read_unmeasured(results.table("unmeasured"))
    write_table(SafePath.given(out, folder), comparing.compare(plan, observations, pd.concat(parts), unmeasured))
