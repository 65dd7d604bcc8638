"""The proof that Slurm starts MPI programs, in a real Slurm."""

import json
import re
from itertools import pairwise

import pytest

from tests.labs.slurm_lab import PLATFORM
from tests.labs.test_slurm_survey import EXPERIMENT

pytestmark = pytest.mark.lab


def check(project, *options):
    code, text = project.run("commodel", "doctor", "--slurm", *options)
    return code, " ".join(text.split())


def test_a_job_proves_the_start_and_names_what_is_wrong(project):
    _, text = check(project)
    print(text)
    assert "Slurm starts MPI programs" in text
    assert "4 of 4 ranks by srun --mpi=pmi2 (srun --mpi=list)" in text
    assert "2 on n0, 2 on n1" in text
    assert "whole nodes (OverSubscribe=NO)" in text
    assert re.search(r"between nodes (ok )?\S+ µs a message; provider", text)
    assert not project.slurm.jobs()
    # Slurm has no such protocol, so the other one is tried, too
    project.write("", PLATFORM.replace("pmi2", "pmix_v9"))
    code, text = check(project)
    print(text)
    assert code == 1
    assert "start wrong" in text
    assert "`slurm: {mpi: pmi2}`" in text


def test_a_job_without_free_nodes_is_cancelled(project):
    project.slurm("sbatch", "--exclusive", "--nodes=4", "--output=/dev/null", "--wrap", "sleep 60")
    code, text = check(project, "--wait", "4")
    assert code == 1
    assert "is still pending (Resources) and was cancelled" in text
    assert len(project.slurm.jobs()) == 1


def test_inside_an_allocation_all_is_measured_there_without_further_jobs(project):
    """One batch runs after another: they would share the nodes."""
    allocation = ("salloc", "--nodes=4", "--exclusive", "--no-shell", "--job-name=mine")
    project.slurm(*allocation)
    job = project.slurm.jobs()[0]
    names = project.slurm("squeue", "--noheader", f"--jobs={job}", "--format=%N")
    inside = f"SLURM_JOB_ID={job} SLURM_JOB_NODELIST={names} commodel"
    code, said = project.run("sh", "-c", f"{inside} init here --here")
    assert code == 0, said
    assert "4 nodes of this Slurm job: 2 × 1 cores; srun --mpi=pmi2" in said
    path = project.folder / "here/params/experiments/here.yaml"
    path.write_text(EXPERIMENT.replace("platform: lab", "platform: here"))
    code, said = project.run("sh", "-c", f"{inside} -C here run here")
    assert code == 0, said
    print(said)
    assert project.slurm.jobs() == [job]
    raw = project.folder / "here/results/here/raw"
    recorded = [json.loads(file.read_text()) for file in raw.glob("*/provenance.json")]
    assert len(recorded) >= 3
    assert {entry["slurm_job"] for entry in recorded} == {job}
    # a batch is done before the next one begins
    spans = []
    for folder in raw.iterdir():
        times = [file.stat().st_mtime for file in folder.glob("*.csv")]
        spans.append((min(times), max(times)))
    spans.sort()
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
