"""Two campaigns on the same results: the second is refused and names the process that runs, for
both commands."""

import os
import shutil

import pytest

from commodel.results.campaign import open_lock
from tests.processes import family
from tests.workflow.conftest import PLAIN, kill_all, samples

STARTS = {"commodel": ("commodel", "run", "small"), "snakemake": ("snakemake", *PLAIN)}


@pytest.mark.parametrize(
    ("first", "then"),
    [("commodel", "snakemake"), pytest.param("snakemake", "commodel", marks=pytest.mark.slow)],
)
def test_the_second_is_refused_with_the_name_of_the_holder_and_works_once_that_is_killed(
    finished, first, then
):
    """The first run measures a batch again whose raw file was removed, although there is a report.
    It is killed with all its processes."""
    project, barrier = finished, finished.barrier()
    before, measured = project.raw_files(), samples(project.folder)
    victim = project.victim()
    project.lose(victim)
    barrier.lower()
    at_work = project.start(*STARTS[first])
    barrier.await_one(at_work)
    plan, experiment = (
        project.folder / "results/small/plan.json",
        project.folder / "params/experiments/small.yaml",
    )
    planned, written = plan.read_bytes(), experiment.read_text()
    project.experiment("small", f"{written}seed: 7\n")
    holder = (project.folder / "results/small/.holder").read_text().strip()
    assert f"on {os.uname().nodename}, process " in holder
    assert int(holder.partition("process ")[2].partition(",")[0]) in family(at_work.pid)

    second = project.commodel("run", "small", code=2)
    assert (
        second.stderr
        == f"commodel: results/small: another run of this experiment is at work already: {holder}\n"
    )
    assert holder in project.snakemake(code=1).stderr
    assert "This was a dry-run" in project.snakemake("--dry-run").stdout
    assert holder in project.verb("status", "small")
    assert plan.read_bytes() == planned
    assert at_work.poll() is None

    kill_all(at_work)
    barrier.lift()
    project.experiment("small", written)
    shutil.rmtree(project.folder / "reports")
    until = ("--until", "collect") if then == "snakemake" else ()
    project.ended(project.start(*STARTS[then], *until))
    assert until or (project.folder / "reports/small/small.xlsx").exists()
    assert "no run is active" in project.verb("status", "small")
    after = project.raw_files()
    assert {name for name in after if after[name] != before[name]} == {victim.name}
    assert samples(project.folder) == measured


def test_a_job_of_the_workflow_neither_plans_nor_is_kept_out(project):
    """As Snakemake's Slurm executor starts one on a node, while the run that wants it holds the
    folder."""
    project.verb("plan", "small", "--write")
    plan = project.folder / "results/small/plan.json"
    before = plan.read_bytes()
    project.experiment(
        "small", (project.folder / "params/experiments/small.yaml").read_text() + "seed: 7\n"
    )
    name = next(
        path.stem for path in (project.folder / "results/small/batches").glob("loggp-64-upto16n-*")
    )
    job = [
        "--mode",
        "remote",
        "--nolock",
        "--no-hooks",
        "--force",
        "--target-jobs",
        f"measure:batch={name}",
    ]
    with open_lock(project.folder / "results/small", "it"):
        project.snakemake(*job, "--allowed-rules", "measure")
    assert len(project.raw_files()) == 6
    assert plan.read_bytes() == before
