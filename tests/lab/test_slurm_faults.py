"""What goes wrong on a real Slurm: jobs, drivers, steps and nodes that are lost, and MPIs that do not fit srun."""

import os
import signal

import pytest

from tests.lab.slurm_lab import PLATFORM, processes, project, slurm, until  # noqa: F401

pytestmark = pytest.mark.lab

# Each case takes a quarter of a second: time to interfere.
SLOW = """
platform: lab
families: [pram]
library: false
measure: {sync: barrier, precision: 0.01%, min_samples: 6, max_samples: 1e6, seconds: 0.25, passes: 1, warmup: 1}
matrix:
  - axes: {operation: [bcast, reduce], algorithm: [linear, binomial], bytes: [1, 8, 64, 512], ranks: RANKS}
    zips: {placement: {ranks_per_node: [1]}}
"""


@pytest.fixture
def batch(project):  # noqa: F811
    """Sixteen points over two nodes."""
    project.write(SLOW.replace("RANKS", "2"))
    return project.plan.batches[-1]


def interrupted(project, batch, strike) -> None:  # noqa: F811
    """A batch that is struck in its middle measures in its next attempt what was missing, and nothing else."""
    job = project.submit(batch)
    before = until(lambda: len(found := project.measured(batch)) > 3 and found)
    strike(job)
    project.slurm.ended(job)
    before = project.measured(batch)
    assert 3 < len(before) < len(batch.ids)
    job = project.submit(batch)
    assert project.slurm.ended(job) == "COMPLETED", project.log(job)
    after = project.measured(batch)
    assert set(after) == set(batch.ids)
    assert {case: after[case] for case in before} == before  # not measured again


def kill(*words: str) -> None:
    for process in processes(*words):
        os.kill(process, signal.SIGKILL)


def test_killed_driver(project, batch):  # noqa: F811
    interrupted(project, batch, lambda job: kill("commodel measure", batch.name))


def test_cancelled_job(project, batch):  # noqa: F811
    interrupted(project, batch, lambda job: project.slurm("scancel", job))


def test_killed_stepd(project, batch):  # noqa: F811
    interrupted(project, batch, lambda job: kill(f"slurmstepd: [{job}.batch]"))


def test_missing_plug_in(project, batch):  # noqa: F811
    project.write(SLOW.replace("RANKS", "2"), PLATFORM.replace("pmi2", "nosuch"))
    job = project.submit(project.plan.batches[-1])
    assert project.slurm.ended(job) == "FAILED"
    said = project.log(job).splitlines()[-1]
    assert "lab.yaml:4: slurm.mpi: srun has no MPI plug-in 'nosuch'" in said
    assert "pmi2" in said.partition("offers: ")[2]


def test_a_world_of_one(project, batch):  # noqa: F811
    project.write(SLOW.replace("RANKS", "2"), PLATFORM.replace("pmi2", "none"))
    job = project.submit(project.plan.batches[-1])
    assert project.slurm.ended(job) == "FAILED"
    said = [line for line in project.log(job).splitlines() if line.startswith("commodel: ")]
    assert len(said) == 1
    assert "each of the 2 processes started believes that it is rank 0 of 1" in said[0]
