"""The switches of a real Slurm: what it says of them is read right, and stands beside what was measured."""

import json

import pytest

from commodel.platforms.slurm import node_levels
from tests.lab.slurm_lab import make_project, running_slurm

pytestmark = pytest.mark.lab

TREE = "SwitchName=s0 Nodes=n[0,2] LinkSpeed=100\nSwitchName=s1 Nodes=n[1,3]\nSwitchName=top Switches=s[0-1]\n"
EXPERIMENT = """
platform: lab
families: [hockney]
library: false
probe_bytes: [1, 1KiB]
measure: {sync: barrier, precision: 50%, min_samples: 6, max_samples: 6, seconds: 0.2, passes: 1}
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 4, bytes: 8}
"""


def test_the_nodes_of_a_job_are_mapped_to_their_switches(tmp_path):
    with running_slurm(TREE) as slurm:
        srun = str(slurm.folder / "bin" / "srun")
        assert node_levels(srun, ("n0", "n1", "n2", "n3")).settings == {"leaf": [0, 1, 0, 1]}
        assert node_levels(srun, ("n3", "n1", "n0")).settings == {"leaf": [0, 0, 1]}
        project = make_project(slurm, tmp_path)
        project.write(EXPERIMENT)
        code, said = project.run("snakemake", "--profile", "slurm", "--config", "experiment=mine")
        assert code == 0, said
        for batch in project.plan.batches:
            about = json.loads((project.raw(batch) / "provenance.json").read_text())
            leaf = {"n0": "s0", "n2": "s0", "n1": "s1", "n3": "s1"}
            first = {}
            expected = [first.setdefault(leaf[name], len(first)) for name in about["nodes"]]
            assert about["levels"] == {"leaf": expected}
            assert set(about["processors"]) <= {"cache", "socket"}


def test_a_slurm_that_knows_no_switches_gives_no_levels(slurm):
    assert not node_levels(str(slurm.folder / "bin" / "srun"), ("n0", "n1")).groups
