"""Faults on a real Slurm: lost jobs, drivers, steps and nodes, and MPIs that do not match srun."""

import csv
import os
import signal

import pytest

from tests.labs.slurm_lab import PLATFORM, make_project, running_slurm
from tests.processes import kill
from tests.waiting import until

pytestmark = pytest.mark.lab

# Each case takes a quarter of a second: time to interfere.
SLOW = """
platform: lab
models: [pram]
probes: [work]
library: false
survey: false
measure: {sync: barrier, precision: 0.01%, min_samples: 6, max_samples: 1e6, seconds: 0.25, passes: 1, warmup: 1,
  timeout: 3 s}
matrix:
  - axes: {operation: [bcast, reduce], algorithm: [linear, binomial], bytes: [1, 8, 64, 512], ranks: RANKS}
    zips: {placement: {ranks_per_node: [1]}}
"""


RUN = "commodel run mine --profile slurm"


@pytest.fixture
def batch(project):
    """Sixteen points over two nodes."""
    project.write(SLOW.replace("RANKS", "2"))
    return project.plan.batches[-1]


@pytest.fixture(scope="module", autouse=True)
def at_its_limit(request):
    """Let the job of the slow test reach its time limit while the other tests run."""
    if any("limited" in item.fixturenames for item in request.session.items):
        request.getfixturevalue("limited")


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """Submit a job of one minute whose ranks hang."""
    with running_slurm() as slurm:
        project = make_project(slurm, tmp_path_factory.mktemp("limited"))
        project.write(SLOW.replace("RANKS", "2").replace("timeout: 3 s", "timeout: 10min"))
        batch = project.plan.batches[-1]
        job = project.submit(batch, "--time=1")
        until(lambda: len(project.measured(batch)) > 3)
        for rank in project.ranks():
            os.kill(rank, signal.SIGSTOP)
        yield project, batch, job, project.measured(batch)


def check_interrupted_batch(project, batch, strike) -> None:
    """Interrupt a running batch by `strike(job)`; check that the next attempt measures exactly the
    missing cases."""
    job = project.submit(batch)
    before = until(lambda: len(cases := project.measured(batch)) > 3 and cases)
    strike(job)
    project.slurm.ended(job)
    before = project.measured(batch)
    assert 3 < len(before) < len(batch.ids)
    job = project.submit(batch)
    assert project.slurm.ended(job) == "COMPLETED", project.log(job)
    after = project.measured(batch)
    assert set(after) == set(batch.ids)
    assert {case: after[case] for case in before} == before  # not measured again


def test_killed_driver(project, batch):
    check_interrupted_batch(
        project, batch, lambda job: kill(project.slurm.processes("commodel measure", batch.name))
    )


def test_cancelled_job(project, batch):
    check_interrupted_batch(project, batch, lambda job: project.slurm("scancel", job))


@pytest.mark.own_slurm(losses=True)
def test_lost_step(project, batch):
    """The slurmstepd of the ranks' step is killed on each node. The step cannot end, but its ranks
    and the job end, and the next job completes the batch."""
    check_interrupted_batch(
        project, batch, lambda job: kill(project.slurm.processes(f"slurmstepd: [{job}.0]"))
    )
    until(lambda: not project.ranks())


@pytest.mark.own_slurm(losses=True)
def test_dead_node(project, batch):
    """The job fails with its node; the next job completes the batch on other nodes."""
    check_interrupted_batch(
        project, batch, lambda job: project.slurm.lose(project.slurm.nodes_of(job)[0])
    )


def test_a_batch_that_did_not_finish(project, batch):
    """The table of unmeasured cases has each missing case, with the reason."""
    probes = project.plan.batches[0]
    assert project.slurm.ended(project.submit(probes)) == "COMPLETED"
    job = project.submit(batch)
    until(lambda: len(project.measured(batch)) > 3)
    project.slurm("scancel", job)
    project.slurm.ended(job)
    paths = ["--in", "results/mine/plan.json", "--out", "results/mine/observations.csv"]
    code, said = project.run("commodel", "collect", "--unfinished", *paths)
    rows = {
        row["id"]: row
        for row in csv.DictReader((project.folder / "results/mine/unmeasured.csv").open())
    }
    assert {"unfinished"} == {row["status"] for row in rows.values()}, (code, said)
    assert set(rows) >= set(batch.ids) - set(project.measured(batch))
    assert any(
        "1 attempt, the last one: error: stopped from outside" in row["reason"]
        for row in rows.values()
    )


def test_killed_and_hung_ranks(project, batch):
    """A killed and a stopped rank lose only their current cases; no rank is left after the job."""
    job = project.submit(batch)
    until(lambda: len(project.measured(batch)) > 3)
    os.kill(project.ranks()[0], signal.SIGKILL)
    until(lambda: project.unmeasured(batch) and project.ranks())
    until(lambda: len(project.measured(batch)) > 8)
    os.kill(project.ranks()[0], signal.SIGSTOP)
    assert project.slurm.ended(job) == "COMPLETED", project.log(job)
    assert sorted(project.unmeasured(batch).values()) == ["crash", "timeout"], project.log(job)
    assert set(project.measured(batch)) == set(batch.ids) - set(project.unmeasured(batch))
    assert project.ranks() == []


@pytest.mark.parametrize(
    "command",
    ["snakemake --profile slurm --until {raw}/done --config experiment=mine", RUN],
    ids=["snakemake", "run"],
)
def test_interrupt(project, batch, command):
    """Ctrl-C cancels the jobs; cases measured before keep their samples."""
    raw = f"results/mine/raw/{batch.name}"
    process = project.start(*command.format(raw=raw).split())
    until(lambda: len(project.measured(batch)) > 3)
    before = project.measured(batch)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode, said
    until(lambda: not project.slurm.jobs() and not project.ranks(), 60)
    after = project.measured(batch)
    assert {case: after[case] for case in before} == before
    assert len(after) < len(batch.ids)
    # written after the ranks are gone
    until(lambda: project.state(batch)["attempts"][-1]["outcome"], 60)
    assert project.state(batch)["attempts"][-1]["outcome"] == "error: stopped from outside"


def test_missing_plug_in(project, batch):
    project.write(SLOW.replace("RANKS", "2"), PLATFORM.replace("pmi2", "nosuch"))
    job = project.submit(project.plan.batches[-1])
    assert project.slurm.ended(job) == "FAILED"
    complaint = project.log(job).splitlines()[-1]
    assert "lab.yaml:4: slurm.mpi: srun has no MPI plug-in 'nosuch'" in complaint
    assert "pmi2" in complaint.partition("offers: ")[2]


def test_a_world_of_one(project, batch):
    project.write(SLOW.replace("RANKS", "2"), PLATFORM.replace("pmi2", "none"))
    job = project.submit(project.plan.batches[-1])
    assert project.slurm.ended(job) == "FAILED"
    complaints = [line for line in project.log(job).splitlines() if line.startswith("commodel: ")]
    assert len(complaints) == 1
    assert "each of the 2 processes is rank 0 of 1" in complaints[0]


@pytest.mark.slow  # Slurm's limits are whole minutes
def test_time_limit(limited):
    """Slurm ends the job at its time limit; the next job measures the missing cases."""
    project, batch, job, before = limited
    assert project.slurm.ended(job) == "TIMEOUT"
    assert project.state(batch)["attempts"][-1]["outcome"] == "error: stopped from outside"
    again = project.submit(batch)
    assert project.slurm.ended(again) == "COMPLETED", project.log(again)
    after = project.measured(batch)
    assert {case: after[case] for case in before} == before
    assert set(after) == set(batch.ids)


@pytest.mark.own_slurm(losses=True)
def test_node_taken_away(project, batch):
    """Slurm requeues the job when a node goes down; the job completes on other nodes, none of them
    drained."""
    drained, *_ = project.slurm("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()
    project.slurm("scontrol", "update", f"nodename={drained}", "state=drain", "reason=test")
    done = f"results/mine/raw/{batch.name}/done"
    process = project.start(
        "snakemake", "--profile", "slurm", "--config", "experiment=mine", "--", done
    )
    until(lambda: len(project.measured(batch)) > 3)
    before, job = project.measured(batch), project.state(batch)["attempts"][-1]["job"]
    used = project.slurm.nodes_of(job)
    assert drained not in used
    project.slurm("scontrol", "update", f"nodename={used[0]}", "state=down", "reason=test")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert not {drained, used[0]} & set(project.slurm.nodes_of(job))
    first, second = project.state(batch)["attempts"]
    assert (first["job"], second["job"], second["outcome"]) == (job, job, "done")
    assert first["nodes"]
    assert second["nodes"]
    assert set(first["nodes"]) <= set(used)
    assert set(second["nodes"]) <= set(project.slurm.nodes_of(job))
    after = project.measured(batch)
    assert {case: after[case] for case in before} == before
    assert set(after) == set(batch.ids)
