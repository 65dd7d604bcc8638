"""Time, memory and size of the workbook and the page of a large comparison: `make bench-workbook`.
An argument replaces the approximate number of rows.

The synthetic study of tests/reports is repeated with other numbers of ranks. Workbook and page are
written as by `commodel report`, from the tables of a run.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.measuring import print_figure, read_peak_gib, time_task
from commodel.files.tables import COMPARISON, SUMMARY, read_table, write_table
from commodel.reports import ReportInputs, build_report, write_html, write_xlsx
from tests.reports.study import make_comparison, make_parameters, make_raw

ROWS = 200_000


def repeat_study(study: pd.DataFrame, times: int) -> pd.DataFrame:
    """Return the study at several numbers of ranks. Each point has its own id and file of
    samples."""
    parts = []
    for number in range(times):
        point = study["point"] + f"{number:x}"
        parts.append(
            study.assign(
                ranks=study["ranks"] + number,
                leaves=study["leaves"] + number * (study["leaves"] > 0),
                workload=study["workload"] + f" {number}",
                point=point,
                raw=("raw/" + study["batch"] + "/" + point + ".csv").where(study["raw"] != "", ""),
            )
        )
    return pd.concat(parts, ignore_index=True)


def write_tables(folder: Path, rows: int) -> int:
    """Write the tables of a run with at least `rows` rows; return the number of rows."""
    study = make_comparison()
    comparison = repeat_study(study, -(-rows // len(study)))
    write_table(folder / "comparison.csv", comparison)
    raw = make_raw(comparison)
    write_table(folder / "summary.csv", raw.assign(low=raw["min"], high=raw["max"]))
    return len(comparison)


def write_reports(folder: Path) -> None:
    """Write workbook and page, and print time and memory, in a process that does nothing else."""
    sets = [replace(parameters, draws={}) for parameters in make_parameters()]

    def build():
        comparison, raw = (
            read_table(folder / "comparison.csv", COMPARISON),
            read_table(folder / "summary.csv", SUMMARY),
        )
        inputs = [ReportInputs(comparison, "large", parameter_sets=sets, raw=raw)]
        del comparison
        return build_report(inputs.pop())

    spent, report = time_task(build, time.process_time)
    print_figure("building the report", f"{spent:.0f} s of processor")
    for title, write, name in (
        ("workbook", write_xlsx, "large.xlsx"),
        ("page", write_html, "large.html"),
    ):
        spent, _ = time_task(partial(write, report, folder / name), time.process_time)
        print_figure(
            f"writing the {title}",
            f"{spent:.0f} s of processor, {1024 * read_peak_gib():.0f} MiB at most",
        )


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = write_tables(folder, rows)
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.workbook", "--write", name], check=True)
        for path in sorted(folder.glob("large*")):
            size = path.stat().st_size
            print_figure(
                path.name, f"{size / 2**20:.1f} MiB for {count:,} rows, {size / count:.0f} B a row"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write_reports(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
