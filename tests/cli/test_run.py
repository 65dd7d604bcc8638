"""commodel run before Snakemake starts: calls that are refused, and the lock of the results
folder."""

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.errors import UserError
from commodel.platforms.tools import ROOT
from commodel.results.campaign import open_lock

RUN_WITH_DISPLAY = "commodel.api.campaigns.run_with_display"
EXPERIMENT = """
platform: PLATFORM
models: [pram]
library: false
matrix: [axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}]
"""
PLATFORMS = {
    "local": "launcher: local\nnodes: 1\ncores: 2\n",
    "lab": "launcher: slurm\nnodes: 2\ncores: 1\nslurm: {mpi: pmi2}\n",
}


PROFILE = ["--profile", "slurm"]
PROGRAMS = {
    "srun": "echo 'MPI plugin types are...'; echo none; echo pmi2",
    "sbatch": "echo asked >> submitted; exit 1",
    "scontrol": "exit 0",
}


@pytest.fixture
def slurm(project, monkeypatch):
    """Return a function that puts programs of Slurm on PATH. Until then, no other program of Slurm
    is found."""
    find = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **options: None if name in PROGRAMS else find(name, **options)
    )

    def put(**programs):
        for name, script in programs.items():
            Path("bin").mkdir(exist_ok=True)
            Path("bin", name).write_text(f"#!/bin/sh\n{script}\n")
            Path("bin", name).chmod(0o755)
        monkeypatch.setattr(shutil, "which", find)
        monkeypatch.setenv("PATH", f"{Path('bin').absolute()}:{os.environ['PATH']}")

    return put


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("SLURM_JOB_ID", "SNAKEMAKE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for kind in ("platforms", "experiments"):
        Path("params", kind).mkdir(parents=True)
    for name, text in PLATFORMS.items():
        Path(f"params/platforms/{name}.yaml").write_text(text)
        Path(f"params/experiments/on-{name}.yaml").write_text(EXPERIMENT.replace("PLATFORM", name))


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_an_unknown_profile_is_refused_before_anything_is_done(project, options):
    result = CliRunner().invoke(main, ["run", "on-lab", "--profile", "slrum", *options])
    assert result.exit_code == 2
    assert result.stderr == "commodel: unknown profile 'slrum'; did you mean 'slurm'?\n"
    assert result.stdout == ""
    assert not Path("results").exists()


@pytest.mark.parametrize("profile", [[], ["--profile", "local"]], ids=["none", "local"])
def test_a_platform_under_slurm_is_refused_without_a_profile_that_submits_jobs(
    project, monkeypatch, profile
):
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    result = CliRunner().invoke(main, ["run", "on-lab", *profile])
    assert result.exit_code == 2, result.output
    message = "platform 'lab' is measured inside Slurm jobs, which no profile submits; "
    assert result.stderr == f"commodel: {message}wanted: commodel run on-lab --profile slurm\n"
    assert not Path("results/on-lab/plan.json").exists()


def test_without_sbatch_nothing_is_tried(slurm, monkeypatch):
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    result = CliRunner().invoke(main, ["run", "on-lab", *PROFILE])
    message = (
        "no sbatch on PATH, by which profile 'slurm' submits jobs; wanted: a login node of the "
        "cluster"
    )
    assert (result.exit_code, result.stderr, result.stdout) == (2, f"commodel: {message}\n", "")
    assert not Path("results/on-lab/plan.json").exists()


def test_a_machine_with_slurms_commands_outside_of_a_cluster_is_refused(slurm, monkeypatch):
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    error = "scontrol: fatal: Could not establish a configuration source"
    slurm(**PROGRAMS | {"scontrol": f"echo '{error}' >&2; exit 1"})
    result = CliRunner().invoke(main, ["run", "on-lab", *PROFILE])
    assert result.exit_code == 2
    assert result.stderr.startswith("commodel: found no configuration of Slurm on this machine")
    assert result.stderr.count("\n") == 1


def test_an_mpi_plug_in_that_slurm_lacks_is_refused_before_jobs_are_submitted(slurm, monkeypatch):
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    slurm(**PROGRAMS)
    path = Path("params/platforms/lab.yaml")
    path.write_text(path.read_text().replace("pmi2", "pmix"))
    result = CliRunner().invoke(main, ["run", "on-lab", *PROFILE])
    message = (
        "lab.yaml:4: slurm.mpi: srun has no MPI plug-in 'pmix'; srun --mpi=list offers: none, pmi2"
    )
    assert (result.exit_code, result.stderr.rpartition("/")[2]) == (2, f"{message}\n")
    assert not Path("submitted").exists()


REFUSED = (
    "echo 'sbatch: error: Batch job submission failed: Invalid account or account/partition "
    "combination "
)
REFUSED += "specified' >&2; echo asked >> submitted; exit 1"


def test_a_refused_account_ends_the_run_at_the_first_job(slurm):
    """The survey is the first job. It has not failed: no job is submitted again, neither for it nor
    without it."""
    slurm(**PROGRAMS | {"sbatch": REFUSED}, squeue="", sinfo="echo '*normal'", sacct="")
    result = CliRunner().invoke(main, ["run", "on-lab", *PROFILE])
    lines = [line for line in result.stderr.splitlines() if line.startswith("commodel: ")]
    refusal, ending = lines
    message = (
        "Batch job submission failed: Invalid account or account/partition combination specified"
    )
    hint = "see profiles/README.md for a site's settings"
    assert (
        refusal
        == f"commodel: sbatch refuses the job: {message}; no further job is submitted; {hint}"
    )
    assert ending == "commodel: the run failed; its output is in results/on-lab/run.log"
    assert result.exit_code == 1
    assert Path("submitted").read_text() == "asked\n"
    assert not Path("results/on-lab/unsurveyed.log").exists()


@pytest.mark.parametrize(
    ("name", "profile", "environment"),
    [
        ("on-lab", ["--profile", "slurm"], {}),
        ("on-lab", ["--profile", "params"], {}),  # a folder: a profile of the site
        ("on-lab", [], {"SLURM_JOB_ID": "7"}),
        ("on-local", [], {}),
    ],
)
def test_the_results_folder_is_locked_while_snakemake_starts(
    slurm, monkeypatch, name, profile, environment
):
    """A second run would truncate the log of the first."""
    logs = []
    slurm(**PROGRAMS)

    def run_with_display(campaign, command, log, display, is_enough=None):
        with (
            pytest.raises(UserError, match="it is at work already"),
            open_lock(campaign.folder, "it"),
        ):
            pass
        assert not campaign.lock.closed
        logs.append(log)
        return 7

    monkeypatch.setattr(RUN_WITH_DISPLAY, run_with_display)
    result = CliRunner(env=environment).invoke(main, ["run", name, *profile])
    assert (result.exit_code, logs) == (7, ["run"]), result.output
    with open_lock(Path("results", name), "it"):
        pass


def test_an_experiment_may_be_in_any_folder(project):
    Path("elsewhere").mkdir()
    Path("params/experiments/on-local.yaml").rename("elsewhere/mine.yaml")
    result = CliRunner().invoke(main, ["plan", "elsewhere/mine.yaml", "--write"])
    assert result.exit_code == 0, result.output
    assert Path("results/mine/inputs/experiments/mine.yaml").read_text() == EXPERIMENT.replace(
        "PLATFORM", "local"
    )


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_a_missing_compiler_is_reported_with_platforms_that_need_none(
    project, monkeypatch, options
):
    monkeypatch.setattr(
        "commodel.plan.planning.find_tool", lambda program: None if program == "mpicc" else program
    )
    monkeypatch.setattr("commodel.plan.planning.find_build_root", Path.cwd)
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    for name in ("fast-ethernet-32.yaml", "fast-ethernet-32.xml"):
        shutil.copy(ROOT / "params/platforms" / name, "params/platforms")
    other_block = (
        ", {platform: fast-ethernet-32, axes: {operation: bcast, algorithm: linear, ranks: 2, "
        "bytes: 8}}]\n"
    )
    Path("params/experiments/both.yaml").write_text(
        EXPERIMENT.replace("PLATFORM", "local").rstrip("]\n") + other_block
    )
    local_only, both = (
        CliRunner().invoke(main, ["run", name, *options]) for name in ("on-local", "both")
    )
    message = "commodel: no mpicc found, which platform 'local' needs: see commodel doctor"
    assert (local_only.exit_code, local_only.stderr) == (2, f"{message}\n")
    assert (both.exit_code, both.stderr) == (
        2,
        f"{message}; without it: commodel run both --only fast-ethernet-32\n",
    )
