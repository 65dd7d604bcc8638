"""The job script of the documentation in a real Grid Engine of one host, which has two slots."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml

from commodel.platforms.tools import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.slow]
LAB = ROOT / "tests" / "labs" / "gridengine.sh"
JOB_SECONDS = 900
EXPERIMENT = """
platform: here
models: [hockney]
measure: {precision: 20%, min_samples: 4, max_samples: 20, seconds: 0.2, warmup: 1}
probe_bytes: [8, 1KiB]
matrix:
  - axes: {operation: bcast, algorithm: linear, ranks: 2, bytes: [8, 1KiB]}
"""


@pytest.fixture(scope="module")
def environment():
    """Start a Grid Engine, and return the variables of its users."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [name for name in ("sge_qmaster", "sge_execd") if not shutil.which(name, path=path)]
    if os.geteuid() or missing:
        pytest.skip("needs root, and tests/labs/packages-gridengine.txt")
    folder = tempfile.mkdtemp(prefix="sge-")
    try:
        up = subprocess.run([LAB, "up", folder], check=True, timeout=60, stdout=subprocess.PIPE)
        variables = dict(re.findall(r"(SGE_\w+)=(\S+)", up.stdout.decode()))
        yield os.environ | variables | {"PATH": f"{ROOT / '.venv' / 'bin'}:{path}"}
    finally:
        subprocess.run([LAB, "down", folder], check=True, timeout=60)


def read_documented_script() -> str:
    """Return the job script for Grid Engine, with the slots and resources of the lab."""
    text = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    script = re.search(r"```bash\n(#!/bin/bash\n#\$ .*?)```", text, re.DOTALL)[1]
    assert "-pe mpi 64 -l exclusive=true " in script
    return script.replace("-pe mpi 64 -l exclusive=true ", "-pe mpi 2 ")


def submit(folder: Path, environment: dict[str, str], script: str) -> str:
    """Run a job until it ends, and return what it printed."""
    (folder / "job.sh").write_text(script)
    command = ["qsub", "-sync", "y", "-V", "-j", "y", "-o", "log", "job.sh"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        timeout=JOB_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = (folder / "log").read_text()
    assert done.returncode == 0, done.stderr + printed
    (folder / "log").unlink()
    return printed


def test_the_documented_job_script_measures_a_campaign(environment, tmp_path):
    script = read_documented_script()
    described = submit(tmp_path, environment, script.replace("run here", "plan here"))
    assert "1 host of this Grid Engine job, 2 ranks on each at most" in described
    platform = yaml.safe_load((tmp_path / "params/platforms/here.yaml").read_text())
    assert (platform["launcher"], platform["nodes"], platform["cores"]) == ("hosts", 1, 2)
    (tmp_path / "params/experiments/here.yaml").write_text(EXPERIMENT)
    printed = submit(tmp_path, environment, script)
    assert "here.yaml: edited, kept" in printed
    assert (tmp_path / "reports/here/index.html").exists()
    assert "hockney" in printed
    # outside of a job, there are no hosts
    command = ["commodel", "run", "here", "--retry"]
    shutil.rmtree(tmp_path / "results/here/raw")
    refused = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "this process is in none" in refused.stderr
