"""The path of a hybrid application, from speeds to the report, with pocl as the GPU: a process that
drives it, and two on a core each, which all fit on two cores."""

import shutil

import openpyxl

from commodel.files.tables import COMPARISON, read_table
from commodel.platforms.tools import ROOT

LAYOUT = "processes:params/layouts/hybrid.csv"
SPEEDS = "params/speeds/hybrid.yaml"
FAST = "--seconds 0.1 --most 2 --quiet --out"
# Few samples of few probes.
FEWER = {
    "max_samples: 30, seconds: 0.5": "max_samples: 6, seconds: 0.1",
    "probe_bytes: [1, 1KiB, 16KiB, 64KiB, 256KiB]": "probe_bytes: [1, 64KiB]",
}


def test_speeds_partitions_predictions_and_measurements_make_a_report(gpu, project, monkeypatch):
    monkeypatch.setenv("COMMODEL_ACCELERATOR", "opencl")
    params = project.folder / "params"
    for folder in ("layouts", "speeds", "partitions"):
        (params / folder).mkdir()
    shutil.copy(ROOT / "params/layouts/hybrid.csv", params / "layouts")
    experiment = (ROOT / "params/experiments/hybrid.yaml").read_text()
    for long, short in FEWER.items():
        assert long in experiment
        experiment = experiment.replace(long, short)
    project.experiment("hybrid", experiment)
    layout = ("--layout", LAYOUT)
    for kernel, sizes in (("gemm", "4:256"), ("wave", "1024:65536")):
        options = ("--sizes", sizes, *FAST.split(), SPEEDS)
        said = project.verb("measure", "speeds", kernel, *layout, *options)
        assert "of 2 kinds of processes" in said
    for kernel, blocks in (("gemm", 16), ("wave", 512)):
        options = ("--speeds", SPEEDS, "--platform", "local", "--kernel", kernel)
        out = f"params/partitions/hybrid-{kernel}.csv"
        project.verb("partition", *options, "--blocks", blocks, *layout, "-o", out)
    rows = read_table(project.compare("hybrid") / "comparison.csv", COMPARISON)
    project.verb("report", "--in", "results/hybrid")
    assert set(rows["model"]) == {"taulop", "hloggp", "recommended"}
    assert rows["seconds"].notna().all()
    assert (rows["measured"] > 0).all()
    workbook = openpyxl.load_workbook(project.folder / "reports/hybrid/hybrid.xlsx", read_only=True)
    cells = [str(value) for sheet in workbook for row in sheet.values for value in row]
    assert any(cell.startswith("rank 0: opencl, ") for cell in cells)
    assert "node/gpu" in cells
    assert "0 GPU</text>" in (project.folder / "reports/hybrid/index.html").read_text()
