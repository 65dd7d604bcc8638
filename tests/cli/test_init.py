"""commodel init: it makes a project, overwrites no existing one, and the installed workflow runs in
the project."""

import re
import subprocess
import sys
from contextlib import chdir

import pytest

from commodel.api.projects import COPIED_FILES
from commodel.plan.config import load_experiment, load_platform
from commodel.platforms.tools import ROOT
from tests.cli.running import run


@pytest.fixture
def new_project(tmp_path):
    run(f"init {tmp_path}/own")
    return tmp_path / "own"


def test_files_of_a_new_project_load_and_the_demo_can_be_planned(new_project):
    for path in new_project.glob("params/experiments/*.yaml"):
        load_experiment(path)
    for path in new_project.glob("params/platforms/*.yaml"):
        load_platform(path)
    with chdir(new_project):
        assert "node-hours" in run("plan demo").stdout


def test_editors_find_the_schemas(new_project):
    for path in new_project.glob("params/*/*.yaml"):
        schema = re.search(r"\$schema=(\S+)", path.read_text(encoding="utf-8"))
        assert (path.parent / schema[1]).is_file()


def test_nothing_is_written_over(new_project):
    (new_project / "params/platforms/cluster.yaml").write_text("mine")
    (new_project / "Snakefile").unlink()
    assert "nothing was written" in run(f"init {new_project}", code=2).stderr
    assert (new_project / "params/platforms/cluster.yaml").read_text() == "mine"
    assert not (new_project / "Snakefile").exists()


def test_init_keeps_identical_files_and_a_snakefile_in_the_workflow_folder(new_project):
    """A folder made by snakedeploy has the profiles already, and its Snakefile in workflow/."""
    before = {path: path.read_bytes() for path in new_project.rglob("*") if path.is_file()}
    assert "a project" in run(f"init {new_project}").stdout
    assert {path: path.read_bytes() for path in new_project.rglob("*") if path.is_file()} == before
    (new_project / "workflow").mkdir()
    (new_project / "Snakefile").rename(new_project / "workflow/Snakefile")
    run(f"init {new_project}")
    assert not (new_project / "Snakefile").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("file", "file/own"):
        assert (
            "file: found a file, wanted a folder" in run(f"init {tmp_path}/{name}", code=2).stderr
        )


def test_the_files_are_the_project_s_own(new_project):
    for name in COPIED_FILES:
        assert (new_project / name).read_text().splitlines()[1:] == (
            ROOT / name
        ).read_text().splitlines()[1:]


def test_plain_snakemake_plans_there(new_project):
    """The user calls snakemake with the name of the experiment only, without --snakefile."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "1",
        "--dry-run",
        "--config",
        "experiment=sample",
    ]
    done = subprocess.run(command, cwd=new_project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^report +1$", done.stdout + done.stderr, re.MULTILINE), "what it would run"
    assert not (new_project / "results/sample/plan.json").exists()  # a dry run writes nothing


def test_the_error_for_an_included_file_gives_a_working_copy_command(new_project, monkeypatch):
    monkeypatch.chdir(new_project)
    platforms = [("platform", name) for name in ("fat-tree-64", "trunks-72", "dragonfly-96")]
    for kind, name in [("experiment", "networks"), *platforms]:
        said = run("plan networks", code=2).stderr
        copy = said.partition(f"unknown {kind} '{name}'; commodel includes one of that name: ")[2]
        subprocess.run(["sh", "-c", copy], check=True)
    assert "points and" in run("plan networks").stdout
    said = run("plan infiniband-64", code=2).stderr
    copy = said.partition("unknown experiment 'infiniband-64'; a platform has this name: ")[2]
    subprocess.run(["sh", "-c", copy], check=True)
    assert "write `platform: infiniband-64`" in run("plan infiniband-64", code=2).stderr
