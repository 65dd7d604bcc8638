"""Which jobs run again after an edit of the code, on a copy of the workflow."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import ROOT, SMALL, Project

MORE_BYTES = """
from dataclasses import replace
OTHERS = tuple(entry for entry in ALGORITHM if entry.name != "bcast-linear")
(LINEAR,) = set(ALGORITHM) - set(OTHERS)
ALGORITHM = (*OTHERS, replace(LINEAR, build=lambda ranks, bytes: linear(ranks, bytes + 1)))
"""
VERBS = ("compiling", "measuring", "collecting", "fitting", "predicting", "comparing", "writing")


class Clone:
    """A copy of the workflow, which a test may edit, with a complete project whose results are
    newer than all files. One more model is fitted to the same probes."""

    def __init__(self, folder: Path, finished: Path):
        self.folder, self.as_made = folder / "clone", folder / "as made"
        for name in ("workflow", "profiles", "build/smpi", "build/replay"):
            shutil.copytree(
                ROOT / name,
                self.folder / name,
                ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
            )
        shutil.copy2(ROOT / "Snakefile", self.folder)
        project = Project(self.folder / "project", finished)
        shutil.rmtree(project.folder / ".snakemake")  # which knows files of ours by their paths
        project.experiment("small", SMALL.replace("[loggp]", "[loggp, plogp]"))
        project.compare("small")
        project.verb("report", "--in", "results/small")
        shutil.copytree(self.folder, self.as_made)

    def restore(self) -> None:
        """Restore the clone in the same folder, since Snakemake identifies inputs by their
        paths."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.as_made, self.folder)

    def run(self, *options: str) -> str:
        command = [
            sys.executable,
            "-m",
            "snakemake",
            "--snakefile",
            self.folder / "Snakefile",
            "--directory",
        ]
        command += [
            self.folder / "project",
            "--workflow-profile",
            self.folder / "profiles/default",
            "--cores",
            "2",
        ]
        command += [*options, "--config", "experiment=small"]
        environment = os.environ | {"PYTHONPATH": str(self.folder / "workflow")}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def edit(self, path: str, more: str = "") -> None:
        with (self.folder / path).open("a") as stream:
            stream.write(more or ("\n# edited\n" if path.endswith(".py") else "\n/* edited */\n"))

    def after_edit(self, path: str, more: str = "") -> set[str]:
        """Return the jobs that would run after a comment or `more` is appended to a file, such as
        `fitting plogp`."""
        self.edit(path, more)
        lines = [line.strip() for line in self.run("--dry-run").splitlines()]
        messages = [line.partition(": ")[2] for line in lines if line.startswith("Job ")]
        return {" ".join(message.split()[:2]) for message in messages if message.startswith(VERBS)}


@pytest.fixture(scope="module")
def cloned_project(tmp_path_factory, whole_run):
    return Clone(tmp_path_factory.mktemp("code"), whole_run)


@pytest.fixture
def after_edit(cloned_project):
    yield cloned_project.after_edit
    cloned_project.restore()


def test_editing_a_family_refits_only_that_family(cloned_project, after_edit):
    family = "workflow/commodel/models/families/plogp.py"
    jobs = {"fitting 2", "predicting with", "comparing predictions", "writing the"}
    assert after_edit(family) == jobs
    kept = [
        line
        for line in cloned_project.run("--until", "fit").splitlines()
        if line.endswith("is kept")
    ]
    assert [line.partition(":")[0] for line in kept] == ["loggp"]


def test_editing_report_code_only_writes_the_report_again(after_edit):
    assert after_edit("workflow/commodel/reports/html/page.py") == {"writing the"}


def test_editing_the_probes_measures_again(after_edit):
    jobs = after_edit("workflow/native/probes/prtt.c")
    assert "compiling the" in jobs
    assert any(job.startswith("measuring loggp-64-probes") for job in jobs)


def test_an_algorithm_that_sends_something_else_is_measured_again_alone_and_one_with_a_comment_is_not(
    after_edit,
):
    linear = "workflow/commodel/patterns/algorithms/bcast.py"
    assert not any(
        job.startswith(("compiling", "measuring", "collecting", "fitting"))
        for job in after_edit(linear)
    )
    jobs = after_edit(linear, MORE_BYTES)
    assert {"measuring loggp-64-upto8n", "measuring loggp-64-upto16n"} <= {
        job.rsplit("-", 1)[0] for job in jobs
    }
    assert not any("probes" in job or "-7n" in job for job in jobs)
