"""Profiles of Snakemake with which the workflow is planned, without starting a job."""

import subprocess
import sys

from tests.cli.running import run


def test_a_profile_that_submits_jobs_need_not_name_a_number_of_cores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("init .")
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--profile", "profiles/slurm"]
    command += ["--config", "experiment=sample"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rule fit:" in done.stdout + done.stderr
