"""The promise of the workflow's inputs, on a copy of the code: what an edit makes run again, and what it does not."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.workflow.conftest import ROOT

MORE_BYTES = """
from dataclasses import replace
ALGORITHM = replace(ALGORITHM, build=lambda ranks, bytes, argument: build(ranks, bytes + 1, argument))
"""
VERBS = ("compiling", "measuring", "collecting", "fitting", "predicting", "comparing", "writing")


@pytest.fixture
def clone(project, tmp_path):
    """The project run once with a copy of the workflow, whose files a test may edit."""
    copy = tmp_path / "clone"
    for name in ("workflow", "profiles", "build"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy2(ROOT / "Snakefile", copy)

    def run(*options) -> str:
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(copy / "Snakefile"), "--directory"]
        command += [str(project.folder), "--workflow-profile", str(copy / "profiles/default"), "--cores", "2"]
        command += ["--config", "experiment=small", *options]
        environment = os.environ | {"PYTHONPATH": str(copy / "workflow")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("--quiet", "all")

    def after_edit(path: str, more: str = "") -> set[str]:
        """The jobs that would run after a comment, or something else, is added to a file, as `fitting hockney`."""
        with (copy / path).open("a") as stream:
            stream.write(more or ("\n# edited\n" if path.endswith(".py") else "\n/* edited */\n"))
        messages = [
            line.partition(": ")[2] for line in run("--dry-run").splitlines() if line.strip().startswith("Job ")
        ]
        return {" ".join(message.split()[:2]) for message in messages if message.startswith(VERBS)}

    return after_edit


def test_editing_a_family_refits_only_that_family(clone):
    assert clone("workflow/commodel/models/families/hockney.py") == {
        "fitting hockney",
        "predicting with",
        "comparing predictions",
        "writing the",
    }


def test_editing_the_report_only_writes_it_again(clone):
    assert clone("workflow/commodel/report/html/page.py") == {"writing the"}


def test_editing_the_probes_measures_again(clone):
    found = clone("workflow/native/probes/prtt.c")
    assert "compiling the" in found
    assert any(job.startswith("measuring loggp-64-probes") for job in found)


def test_an_algorithm_that_sends_something_else_is_measured_again_alone_and_one_with_a_comment_is_not(clone):
    linear = "workflow/commodel/patterns/algorithms/bcast_linear.py"
    assert not any(job.startswith(("compiling", "measuring", "collecting", "fitting")) for job in clone(linear))
    found = clone(linear, MORE_BYTES)
    assert {"measuring loggp-64-8n", "measuring loggp-64-16n"} <= {job.rsplit("-", 1)[0] for job in found}
    assert not any("probes" in job or "-7n" in job for job in found)
