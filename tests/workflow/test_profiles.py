"""Profiles of Snakemake with which the workflow is read, without starting a job."""

import subprocess
import sys

from tests.cli.running import run


def test_a_profile_that_submits_jobs_need_not_name_a_number_of_cores(tmp_path, monkeypatch):
    """A dry run would assume one core."""
    monkeypatch.chdir(tmp_path)
    run("init .")
    command = [sys.executable, "-m", "snakemake", "--summary", "--profile", "profiles/slurm"]
    command += ["--config", "experiment=sample"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "results/sample/fitted/fast-ethernet-32/loggp.yaml" in done.stdout
