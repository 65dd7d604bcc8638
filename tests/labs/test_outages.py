"""Slurm's controller is killed or stopped for some time, or Slurm holds a job: runs wait, lose no
samples, and can be stopped."""

import os
import re
import signal

import pytest

from tests.labs.test_slurm_faults import RUN, SLOW
from tests.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.own_slurm]

AWAYS = pytest.mark.parametrize("away", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])


@pytest.fixture
def batch(project):
    """Return a batch of sixteen points over two nodes in two passes; the second pass starts in or
    after the outage."""
    project.write(SLOW.replace("RANKS", "2").replace("passes: 1", "passes: 2"))
    return project.plan.batches[-1]


def log(project) -> str:
    path = project.folder / "results/mine/run.log"
    return path.read_text() if path.exists() else ""


@AWAYS
def test_a_run_survives_an_outage(project, batch, away):
    process = project.start(*RUN.split())
    until(lambda: len(project.measured(batch)) > 3)
    with project.slurm.outage(away):
        until(lambda: "commodel: Slurm's controller does not answer since " in log(project))
        until(lambda: not project.ranks())
        assert process.poll() is None
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert (
        len(
            re.findall(
                r"^commodel: Slurm's controller (?:does not answer|answers again)",
                said,
                re.MULTILINE,
            )
        )
        == 2
    )
    assert set(project.measured(batch)) == set(batch.ids)
    assert [attempt["outcome"] for attempt in project.state(batch)["attempts"]] == ["done"]
    assert "reports/mine/mine.xlsx" in said


@pytest.mark.parametrize(
    ("number", "away"),
    [(signal.SIGTERM, signal.SIGKILL), (signal.SIGINT, signal.SIGSTOP)],
    ids=["SIGTERM", "Ctrl-C"],
)
def test_a_run_can_be_stopped_in_an_outage(project, batch, number, away):
    process = project.start(*RUN.split())
    until(lambda: len(project.measured(batch)) > 3)
    with project.slurm.outage(away):
        os.kill(process.pid, number)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 128 + number, said
        left = re.search(
            r"jobs may still be in Slurm's queue .*; once it answers: (scancel --name \S+)$",
            said,
            re.MULTILINE,
        )
        assert left, said
        until(lambda: not project.ranks(), 60)  # Slurm's help is not needed for that
    project.slurm(*left[1].split())
    until(lambda: not project.slurm.jobs())  # Slurm tells its nodes again after minutes
    assert project.state(batch)["attempts"][-1]["outcome"] == "error: stopped from outside"


def test_a_run_reports_a_held_job_and_continues_after_its_release(project, batch):
    process = project.start(*RUN.split())
    until(lambda: len(project.measured(batch)) > 3)
    (job,) = project.slurm.jobs("running")
    project.slurm("scontrol", "requeuehold", job)
    until(lambda: f"commodel: job {job} is held; Slurm says " in log(project), 60)
    assert f"to continue: scontrol release {job}\n" in log(project)
    project.slurm("scontrol", "release", job)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert set(project.measured(batch)) == set(batch.ids)
    assert said.count("is held") == 1
