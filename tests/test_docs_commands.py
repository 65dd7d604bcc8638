"""Commands that stand in README and docs are run, a page's in their order, in such a project as a reader would have.
What takes longer is left to `make test-slow`; what is not run at all stands in NOT_RUN, with the reason."""

import re
import shutil
import subprocess
import sys
from contextlib import chdir
from itertools import pairwise

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.plan.config import find, load_platform
from commodel.plan.make import make_plan
from tests.docs_project import complete, make_project
from tests.documented import ROOT, Command, files, of
from tests.once import made_once
from tests.workflow.conftest import Project

NOT_RUN = {
    r"commodel run .*--profile slurm": "wants a Slurm: tests/lab has one",
    r"commodel run ": "a whole campaign, minutes of it: here its plan is made, and tests/workflow runs small ones",
    r"commodel tune ": "measures an MPI library for minutes: tests/cli/test_tune.py",
    r"commodel speeds ": "computes on this machine for minutes: tests/measure/test_speeds.py",
}
# Each takes more than a second of a processor; `make test` leaves them out.
DEAR = (
    r"commodel advise .*--(leaves|bytes)",
    r"commodel configure .*--cores",
    r"commodel fit .*--points",
    r"commodel report |commodel predict --params report.xlsx",
)
MAILED = "FOLDER/inputs/experiments/mine.yaml"
COMMANDS = of("commodel")
EXPERIMENTS = sorted({command.words[2] for command in COMMANDS if command.words[1] == "run"} - {MAILED})


def reasons(command: Command) -> list[str]:
    return [pattern for pattern in NOT_RUN if re.match(pattern, " ".join(command.words))]


def is_dear(command: Command) -> bool:
    return any(re.match(pattern, " ".join(command.words)) for pattern in DEAR)


RUN = [command for command in COMMANDS if not reasons(command)]


@pytest.fixture(scope="module")
def project(tmp_path_factory, simgrid_programs):
    """A copy for each of pytest's workers: pages leave files there, but none that another page stumbles over."""
    made = made_once(tmp_path_factory, "docs-project", make_project)
    return Project(tmp_path_factory.mktemp("docs"), made)


@pytest.fixture(scope="module")
def complete_project(project):
    complete(project)
    return project


def run_page(page: str, project: Project, *, dear: bool) -> None:
    for command in RUN:
        if command.page != page or (is_dear(command) and not dear):
            continue
        with chdir(project.folder):
            result = CliRunner().invoke(main, command.words[1:])
        assert result.exit_code == 0, f"{command.place}: {command.text}: {result.output}"
        written = [out for word, out in pairwise(command.words) if word in ("-o", "--out")]
        assert all((project.folder / out).exists() for out in written), f"{command.place}: wrote no {written}"


@pytest.mark.parametrize("page", sorted({command.page for command in RUN}))
def test_commands_of_a_page_work(page, project):
    run_page(page, project, dear=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({command.page for command in RUN if is_dear(command)}))
def test_all_commands_of_a_page_work(page, complete_project):
    run_page(page, complete_project, dear=True)


def test_platforms_and_the_experiment_that_pages_show_are_right(tmp_path):
    folder = shutil.copytree(ROOT / "params", tmp_path / "params")
    for number, text in enumerate(files("docs/platforms.md")):
        (folder / f"platforms/shown-{number}.yaml").write_text(text, encoding="utf-8")
        load_platform(folder / f"platforms/shown-{number}.yaml")
        if "mycluster" in text:
            (folder / "platforms/mycluster.yaml").write_text(text, encoding="utf-8")
    (experiment,) = files("docs/matrix.md")
    (folder / "experiments/shown.yaml").write_text(experiment, encoding="utf-8")
    assert make_plan("shown", tmp_path).batches


def test_what_is_not_run_stands_in_the_docs():
    used = {pattern for command in COMMANDS for pattern in reasons(command)}
    assert used == set(NOT_RUN)
    assert all(any(re.match(pattern, " ".join(command.words)) for command in RUN) for pattern in DEAR)


def test_what_is_to_be_run_for_minutes_is_there(monkeypatch):
    monkeypatch.chdir(ROOT)  # experiments of the docs' project are small ones
    assert all(find("experiment", name).exists() for name in EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_to_be_run_for_minutes_can_be_planned(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert make_plan(name, ROOT).batches


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in of("snakemake") if "-n" in command.words])
def test_dry_runs_of_snakemake_work(command, project):
    arguments = [*command.words[1:], "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments], cwd=project.folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "measure" in run.stdout
