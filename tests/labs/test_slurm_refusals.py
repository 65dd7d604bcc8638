"""Settings that Slurm refuses for every job: the run ends at the first refusal, before a second job
is submitted."""

import shutil

import pytest

from commodel.platforms.tools import ROOT
from tests.labs.slurm_lab import PLATFORM
from tests.labs.test_slurm_campaign import MEASURE

pytestmark = pytest.mark.lab

EXPERIMENT = f"""
platform: lab
models: [hockney]
library: false
probe_bytes: [1, 1KiB]
{MEASURE}
matrix:
  - axes: {{operation: bcast, algorithm: linear, ranks: [2, 4], bytes: 8}}
    zips: {{placement: {{ranks_per_node: [1]}}}}
"""


def submitted(project) -> set[str]:
    """Return the jobs that Slurm knows. It forgets those that ended some minutes ago."""
    return set(project.slurm.jobs("all"))


def test_a_partition_that_does_not_exist_ends_the_run_at_the_first_job(project):
    """Neither the survey, nor the batches without it, are submitted again."""
    project.write(EXPERIMENT)
    (project.folder / "profiles").unlink()
    shutil.copytree(ROOT / "profiles", project.folder / "profiles")
    with (project.folder / "profiles/slurm/config.yaml").open("a") as stream:
        stream.write("default-resources:\n  slurm_partition: nosuch\n")
    before = submitted(project)
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 1, said
    refusal, ending = (line for line in said.splitlines() if line.startswith("commodel: "))
    assert refusal.startswith(
        "commodel: sbatch refuses the job: invalid partition specified: nosuch; "
    )
    assert "; no further job is submitted; " in refusal
    assert ending == "commodel: the run failed; its output is in results/mine/run.log"
    assert not (project.folder / "results/mine/unsurveyed.log").exists()
    assert submitted(project) <= before


@pytest.mark.parametrize(
    "command",
    ["commodel run mine --profile slurm", "snakemake --profile slurm --config experiment=mine"],
)
def test_an_mpi_plug_in_that_slurm_lacks_is_refused_before_jobs_are_submitted(project, command):
    project.write(EXPERIMENT, PLATFORM.replace("pmi2", "nosuch"))
    before = submitted(project)
    code, said = project.run(*command.split())
    assert code in (1, 2), said
    (line,) = (line for line in said.splitlines() if "srun has no MPI plug-in 'nosuch'" in line)
    assert "lab.yaml:4: slurm.mpi: " in line
    assert "pmi2" in line.partition("offers: ")[2]
    assert submitted(project) <= before
