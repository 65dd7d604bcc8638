"""Kernels whose processes keep different numbers of cores, under srun: each is bound to its own, whatever Slurm would
bind it to, and the product verifies."""

import csv
import json

import pytest

pytestmark = pytest.mark.lab

EXPERIMENT = """
platform: lab
families: [hockney]
library: false
probe_bytes: [1, 1KiB]
measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.2, passes: 1, warmup: 1}
matrix:
  - axes: {operation: "summa:partition=params/p.csv", algorithm: paper, layout: "processes:params/l.csv", bytes: 8KiB}
  - axes: {operation: "wave2d:partition=params/p.csv", algorithm: paper, layout: "processes:params/l.csv", bytes: 8}
"""
PROCESSES = "rank,node,cores,device\n0,0,2,cpu\n1,1,1,cpu\n2,1,1,cpu\n"
PARTS = "rank,x,y,width,height\n0,0,0,4,8\n1,4,0,4,4\n2,4,4,4,4\n"


@pytest.fixture
def binding(monkeypatch):
    """Slurm binds each process to one processor of its node."""
    monkeypatch.setenv("LAB_TASKS", "task/affinity")


@pytest.mark.own_slurm
def test_processes_under_srun_keep_the_cores_of_their_layout(binding, project):
    assert project.slurm("srun", "-N1", "-n1", "nproc") == "1"
    project.write(EXPERIMENT)
    (project.folder / "params" / "l.csv").write_text(PROCESSES)
    (project.folder / "params" / "p.csv").write_text(PARTS)
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 0, said
    results = project.folder / "results" / "mine"
    for program in ("summa", "wave2d"):
        (meta,) = (json.loads(path.read_text()) for path in results.glob(f"raw/*/{program}-3r-*.json"))
        first, second, third = meta["cores"]
        assert (first, {second, third}) == ("0-1", {"0", "1"})
        assert meta["hosts"][0] != meta["hosts"][1] == meta["hosts"][2]
        assert meta["computing"].endswith("threads 2")
    with (results / "summary.csv").open(newline="") as stream:
        points = [row for row in csv.DictReader(stream) if row["kind"] == "point"]
    assert len(points) == 2
    assert all(float(row["computation"]) > 0 for row in points)
