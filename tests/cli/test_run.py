"""commodel run before Snakemake starts: calls that are refused, and the lock of the results folder."""

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
families: [pram]
library: false
matrix: [axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}]
"""
PLATFORMS = {
    "local": "launcher: local\nnodes: 1\ncores: 2\n",
    "lab": "launcher: slurm\nnodes: 2\ncores: 1\nslurm: {mpi: pmi2}\n",
}


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
def test_a_platform_under_slurm_is_refused_without_a_profile_that_submits_jobs(project, monkeypatch, profile):
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    result = CliRunner().invoke(main, ["run", "on-lab", *profile])
    assert result.exit_code == 2, result.output
    message = "platform 'lab' is measured inside Slurm jobs, which no profile submits; "
    assert result.stderr == f"commodel: {message}wanted: commodel run on-lab --profile slurm\n"
    assert not Path("results/on-lab/plan.json").exists()


@pytest.mark.parametrize(
    ("name", "profile", "environment"),
    [
        ("on-lab", ["--profile", "slurm"], {}),
        ("on-lab", ["--profile", "params"], {}),  # a folder: a profile of the site
        ("on-lab", [], {"SLURM_JOB_ID": "7"}),
        ("on-local", [], {}),
    ],
)
def test_the_results_folder_is_locked_while_snakemake_starts(project, monkeypatch, name, profile, environment):
    """A second run would truncate the log of the first."""
    logs = []

    def run_with_display(campaign, command, log, quiet):
        with pytest.raises(UserError, match="it is at work already"), open_lock(campaign.folder, "it"):
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
    assert Path("results/mine/inputs/experiments/mine.yaml").read_text() == EXPERIMENT.replace("PLATFORM", "local")


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["run", "dry run"])
def test_a_missing_compiler_is_reported_with_platforms_that_need_none(project, monkeypatch, options):
    monkeypatch.setattr("commodel.plan.planning.find_tool", lambda program: None if program == "mpicc" else program)
    monkeypatch.setattr("commodel.plan.planning.find_build_root", Path.cwd)
    monkeypatch.setattr(RUN_WITH_DISPLAY, lambda *arguments: pytest.fail("Snakemake was started"))
    for name in ("fast-ethernet-32.yaml", "fast-ethernet-32.xml"):
        shutil.copy(ROOT / "params/platforms" / name, "params/platforms")
    other_block = ", {platform: fast-ethernet-32, axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: 8}}]\n"
    Path("params/experiments/both.yaml").write_text(EXPERIMENT.replace("PLATFORM", "local").rstrip("]\n") + other_block)
    local_only, both = (CliRunner().invoke(main, ["run", name, *options]) for name in ("on-local", "both"))
    message = "commodel: no mpicc found, which platform 'local' needs: see commodel doctor"
    assert (local_only.exit_code, local_only.stderr) == (2, f"{message}\n")
    assert (both.exit_code, both.stderr) == (2, f"{message}; without it: commodel run both --only fast-ethernet-32\n")
