"""The proof that Slurm starts MPI programs, in a real Slurm."""

import re

import pytest

from tests.labs.slurm_lab import PLATFORM

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
