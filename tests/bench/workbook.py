"""What the workbook and the page of a very large comparison take: `make bench-workbook`. With an argument, about so
many rows only.

The made-up study of tests/reports is repeated with other numbers of ranks until it is long enough, and both are written
as `commodel report` does, from the tables that stages leave.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from commodel.files.tables import COMPARISON, SUMMARY, read_table, write_table
from commodel.reports import build_report, write_html, write_xlsx
from tests.bench.measuring import peak_gib, show, timed
from tests.reports.study import make_comparison, make_parameters, make_raw

ROWS = 200_000


def repeated(study: pd.DataFrame, times: int) -> pd.DataFrame:
    """The study over other numbers of ranks, each point with an id and a file of samples of its own."""
    parts = []
    for number in range(times):
        point = study["point"] + f"{number:x}"
        parts.append(
            study.assign(
                ranks=study["ranks"] + number,
                leaves=study["leaves"] + number * (study["leaves"] > 0),
                group=study["workload"] + f" {number}",
                point=point,
                raw=("raw/" + study["batch"] + "/" + point + ".csv").where(study["raw"] != "", ""),
            )
        )
    return pd.concat(parts, ignore_index=True)


def tables(folder: Path, rows: int) -> int:
    """How many rows they have in the end."""
    study = make_comparison()
    comparison = repeated(study, -(-rows // len(study)))
    write_table(folder / "comparison.csv", comparison)
    raw = make_raw(comparison).assign(simulated=False)
    write_table(folder / "summary.csv", raw.assign(low=raw["min"], high=raw["max"]))
    return len(comparison)


def written(folder: Path) -> None:
    """In a process of its own, whose memory is the report's."""
    sets = [replace(parameters, draws={}) for parameters in make_parameters()]

    def built():
        raw = read_table(folder / "summary.csv", SUMMARY)
        return build_report(read_table(folder / "comparison.csv", COMPARISON), sets, raw, experiment="large")

    spent, report = timed(built, time.process_time)
    show("building the report", f"{spent:.0f} s of processor")
    for what, write, name in (("workbook", write_xlsx, "large.xlsx"), ("page", write_html, "large.html")):
        spent, _ = timed(partial(write, report, folder / name), time.process_time)
        show(f"writing the {what}", f"{spent:.0f} s of processor, {1024 * peak_gib():.0f} MiB at most")


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = tables(folder, rows)
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "tests.bench.workbook", "--write", name], check=True)
        for path in sorted(folder.glob("large*")):
            size = path.stat().st_size
            show(path.name, f"{size / 2**20:.1f} MiB for {count:,} rows, {size / count:.0f} B a row")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        written(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
