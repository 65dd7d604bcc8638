"""Overlay networks measured on a real Slurm: a step a process, each on the node that the plan says. The names of the
lab's nodes do not resolve: processes listen where their machine is."""

import json

import pandas as pd
import pytest

from commodel.platforms.build import build
from commodel.platforms.tools import ROOT

pytestmark = pytest.mark.lab

OVERLAY = "launcher: slurm\nsubstrate: overlay\nnodes: 4\ncores: 2\n"
CAMPAIGN = """
platform: lab
families: [logp-tan]
probe_bytes: [64]
measure: {precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.2, passes: 1, warmup: 1}
matrix:
  - axes: {operation: [reduce, bcast], topology: ["flat:3", "kary:2^2"], layout: ["block:2", "cyclic:2"], bytes: 1KiB}
"""


def test_an_overlay_from_the_plan_to_the_workbook(project):
    build(ROOT, "overlay")
    (ROOT / "build" / "overlay" / "built").touch()
    project.write(CAMPAIGN, OVERLAY)
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 0, said
    assert (project.folder / "reports/mine/mine.xlsx").exists()
    compared = pd.read_csv(project.folder / "results/mine/comparison.csv")
    assert len(set(compared.point)) == 8
    assert compared.measured.gt(0).all()
    for batch in (batch for batch in project.plan.batches if batch.points):
        for path in project.raw(batch).glob("overlay-bench-*.json"):
            assert len(set(json.loads(path.read_text())["hosts"])) == batch.nodes
    assert project.slurm.jobs() == []
    assert project.slurm.processes("overlay-") == []
