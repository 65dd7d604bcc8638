"""The path of a hybrid application, from speeds to the report, with pocl as the GPU."""

import os
import shutil

import openpyxl

from commodel.files.tables import COMPARISON, read_table
from commodel.platforms.tools import ROOT

LAYOUT = "processes:params/layouts/hybrid.csv"
SPEEDS = "params/speeds/hybrid.yaml"
FAST = "--seconds 0.1 --most 2 --quiet --out"


def make_layout():
    """Return the shipped layout, with one process fewer where there are two cores."""
    lines = (ROOT / "params/layouts/hybrid.csv").read_text().splitlines()
    return lines[: 1 + min(len(lines), len(os.sched_getaffinity(0)))]


def test_speeds_partitions_predictions_and_measurements_make_a_report(gpu, project, monkeypatch):
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    project.environment["COMMODEL_ACCELERATOR"] = "opencl"
    params = project.folder / "params"
    for folder in ("layouts", "speeds", "partitions"):
        (params / folder).mkdir()
    shutil.copy(ROOT / "params/experiments/hybrid.yaml", params / "experiments")
    (params / "layouts/hybrid.csv").write_text("\n".join(make_layout()) + "\n")
    layout = ("--layout", LAYOUT)
    for kernel, sizes in (("gemm", "4:256"), ("wave", "1024:65536")):
        options = ("--sizes", sizes, *FAST.split(), SPEEDS)
        said = project.verb("measure", "speeds", kernel, *layout, *options)
        assert "of 2 kinds of processes" in said
    for kernel, blocks in (("gemm", 16), ("wave", 512)):
        options = ("--speeds", SPEEDS, "--platform", "local", "--kernel", kernel)
        out = f"params/partitions/hybrid-{kernel}.csv"
        project.verb("partition", *options, "--blocks", blocks, *layout, "-o", out)
    project.commodel("run", "hybrid")
    rows = read_table(project.folder / "results/hybrid/comparison.csv", COMPARISON)
    assert set(rows["model"]) == {"taulop", "hloggp", "recommended"}
    assert rows["seconds"].notna().all()
    assert (rows["measured"] > 0).all()
    workbook = openpyxl.load_workbook(project.folder / "reports/hybrid/hybrid.xlsx")
    cells = [str(value) for sheet in workbook for row in sheet.values for value in row]
    assert any(cell.startswith("rank 0: opencl, ") for cell in cells)
    assert "node/gpu" in cells
    assert "0 GPU</text>" in (project.folder / "reports/hybrid/index.html").read_text()
