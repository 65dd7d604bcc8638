"""Campaigns with kernels, simulated and on this machine."""

import openpyxl
import pytest

from commodel.compare.recommended import split_recommended
from commodel.files.tables import COMPARISON, SUMMARY, read_table

KERNELS = """
title: kernels
platform: loggp-64
survey: false
models: [loggp]
measure: {precision: 5%, min_samples: 2, max_samples: 2, seconds: 1, warmup: 1}
probe_bytes: [1, 1024, 8KiB, 64KiB, 256KiB]
matrix:
  - axes:
      operation: summa
      algorithm: paper
      parameters: {n: 16, grid: 2x4, iteration: [all, 0, 5, 15]}
      bytes: 8KiB
  - axes: {operation: "summa:barrier=no", algorithm: paper, parameters: {n: 16, grid: 2x4}, bytes: 8KiB}
  - axes: {operation: wave2d, algorithm: paper, parameters: {n: 64, grid: 2x4}, bytes: 8}
"""


HERE = """
title: kernels
platform: local
models: [loggp]
measure: {sync: barrier, precision: 20%, min_samples: 6, max_samples: 20, seconds: 1, warmup: 1, passes: 1}
probe_bytes: [1, 64KiB]
matrix:
  - axes:
      operation: [summa, "summa:overlapped=yes", "summa:barrier=no"]
      algorithm: paper
      ranks: 2
      parameters: {n: 8}
      bytes: 8KiB
  - axes: {operation: wave2d, algorithm: paper, ranks: 2, parameters: {n: 256}, bytes: 8}
"""


def cells_of(project, name):
    project.verb("report", "--in", f"results/{name}", "--out", f"reports/{name}")
    book = openpyxl.load_workbook(
        project.folder / "reports" / name / f"{name}.xlsx", read_only=True
    )
    return {cell for sheet in book for row in sheet.iter_rows(values_only=True) for cell in row}


def test_kernels_go_all_the_way(project):
    project.experiment("kernels", KERNELS)
    results = project.compare("kernels")
    of_models, _ = split_recommended(read_table(results / "comparison.csv", COMPARISON))
    rows = of_models.set_index("operation")
    spelled = "summa:n=16:grid=2x4"
    iteration = rows.loc[f"{spelled}:iteration=5"]
    assert iteration["mu"] < 1.1
    # A grid's are all alike.
    assert rows.loc[spelled, "measured"] == pytest.approx(16 * iteration["measured"], rel=0.01)
    assert rows.loc[spelled, "mu"] < 1.1
    assert rows.loc["wave2d:n=64:grid=2x4", "mu"] < 1.1
    loose = rows.loc[f"{spelled}:barrier=no"]
    assert loose["seconds"] == rows.loc[spelled, "seconds"]
    assert loose["measured"] != rows.loc[spelled, "measured"]
    cells = cells_of(project, "kernels")
    assert spelled in cells
    assert "computation [µs]" not in cells
    assert any(
        str(cell).startswith("nothing: time is simulated; only communication is executed")
        for cell in cells
    )


def test_kernels_run_on_this_machine_with_reported_computation_times(project):
    """Two ranks run both kernels; results and report contain the ranks and the computation
    times."""
    project.experiment("here", HERE)
    results = project.compare("here")
    rows = read_table(results / "comparison.csv", COMPARISON)
    rows = rows[rows["model"] != "recommended"]
    assert len(rows) == 4
    assert (rows["measured"] > 0).all()
    raw = read_table(results / "summary.csv", SUMMARY)
    kernels = raw[raw["kind"] == "point"]
    assert (kernels["computation"] > 0).all()
    cells = cells_of(project, "here")
    assert "computation [µs]" in cells
    assert any(str(cell).startswith("ranks 0-") for cell in cells)
