"""Run the commands of README and docs, in the order of each page, in a project as a reader has it.

`make test-slow` runs the slow ones. NOT_RUN lists commands that no test runs, with the reason."""

import re
import shutil
import subprocess
import sys
from contextlib import chdir
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import make_plan
from commodel.platforms.tools import find_tool
from tests.docs_project import make_project, run_experiments
from tests.documented import ROOT, Command, files, of
from tests.once import made_once
from tests.workflow.conftest import Project

NOT_RUN = {
    r"commodel run .*--profile slurm|snakemake --profile slurm": "wants a Slurm: tests/labs/test_slurm_docs.py",
    r"commodel init .*--(slurm|here|hosts)": "describes machines: tests/platforms/test_{slurm,host}_site.py",
    r"commodel doctor --slurm": "wants a Slurm: tests/platforms/test_slurm_start.py",
    r"commodel .*hybrid": "wants GPUs: tests/kernels/test_hybrid.py, with pocl",
    r"snakemake --directory": "wants what snakedeploy has deployed: tests/labs/test_snakedeploy.py",
    r"make (setup|lint|test)$": ".ci/run and `make` itself call them: they are what runs this",
    r"make (demo|papers)": "calls `commodel run` for experiments that are run here",
    r"make wheel": "tests/test_wheel.py builds and checks one, without the download of what it wants",
    r"make container": "wants Apptainer: tests/labs/test_apptainer.py builds the image",
}
# These measure for minutes, or on a machine that is not here: what stands in their place.
SMALLER = {
    r"commodel tune ": {"mycluster": "desk", "64": "2", "8:1MiB:*16": "8", "10": "0.01", "8": "3"},
    r"commodel measure speeds ": {"16:4096": "16:64"},
    r"commodel (advise|predict) --platform fast-ethernet-32 ": {
        "fast-ethernet-32": "mycluster",
        "16": "8",
    },
}
# Each takes more than a second of a processor; `make test` leaves them out.
SLOW = (
    r"commodel run |commodel tune |commodel measure speeds ",
    r"commodel advise .*--(leaves|bytes)",
    r"commodel advise .*--cores",
    r"commodel fit table",
    r"commodel report |commodel predict --params report.xlsx",
)
MAILED = "FOLDER/inputs/experiments/mine.yaml"
COMMANDS = of("commodel")
OTHERS = [*of("snakemake"), *of("make")]
EXPERIMENTS = sorted(
    {
        command.words[2]
        for command in COMMANDS
        if command.words[1] == "run" and "hybrid" not in command.words
    }
    - {MAILED}
)


def reasons(command: Command) -> list[str]:
    return [pattern for pattern in NOT_RUN if re.match(pattern, " ".join(command.words))]


def is_slow(command: Command) -> bool:
    return any(re.match(pattern, " ".join(command.words)) for pattern in SLOW)


def words_of(command: Command) -> list[str]:
    """Return the arguments of a command, with smaller values where the test needs them."""
    others = [
        others for pattern, others in SMALLER.items() if re.match(pattern, " ".join(command.words))
    ]
    return [others[0].get(word, word) if others else word for word in command.words[1:]]


RUN = [command for command in COMMANDS if not reasons(command)]


@pytest.fixture(scope="module")
def project(tmp_path_factory, simgrid_programs):
    """Return a copy of the project for each worker of pytest. Files that one page leaves do not
    disturb another page."""
    made = made_once(tmp_path_factory, "docs-project", make_project)
    return Project(tmp_path_factory.mktemp("docs"), made)


@pytest.fixture(scope="module")
def complete_project(project, mpi_programs, overlay_programs):
    run_experiments(project, set(EXPERIMENTS) - {"cluster", "demo"})
    return project


def run_page(page: str, project: Project, *, slow: bool) -> None:
    for command in RUN:
        if command.page != page or (is_slow(command) and not slow):
            continue
        words = words_of(command)
        if words[0] == "run":
            project.commodel(*words, "--cores", "1")
            assert list((project.folder / "reports" / Path(words[1]).stem).glob("*.xlsx"))
            continue
        with chdir(project.folder):
            result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, f"{command.place}: {command.text}: {result.output}"
        written = [out for word, out in pairwise(command.words) if word in ("-o", "--out")]
        assert all((project.folder / out).exists() for out in written), (
            f"{command.place}: wrote no {written}"
        )


@pytest.mark.parametrize("page", sorted({command.page for command in RUN}))
def test_commands_of_a_page_work(page, project):
    run_page(page, project, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({command.page for command in RUN if is_slow(command)}))
def test_all_commands_of_a_page_work(page, complete_project):
    run_page(page, complete_project, slow=True)


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


def test_every_exception_from_running_documented_commands_is_in_use():
    used = {pattern for command in COMMANDS + OTHERS for pattern in reasons(command)}
    assert used == set(NOT_RUN)
    assert all(
        any(re.match(pattern, " ".join(command.words)) for command in RUN)
        for pattern in [*SLOW, *SMALLER]
    )
    for pattern, others in SMALLER.items():
        run_words = {
            word
            for command in RUN
            if re.match(pattern, " ".join(command.words))
            for word in command.words
        }
        assert set(others) <= run_words


def test_experiments_that_pages_run_are_there(monkeypatch):
    monkeypatch.chdir(ROOT)  # those of the docs' project are smaller
    assert all(find_config_file("experiment", name).exists() for name in EXPERIMENTS)


@pytest.mark.slow
def test_snakemake_s_commands_work(complete_project):
    """The order matters: --report needs a run before, after which a dry run has nothing to
    measure."""
    dry = []
    for command in OTHERS:
        if reasons(command) or command.words[0] != "snakemake":
            continue
        run = [sys.executable, "-m", *command.words]
        done = subprocess.run(
            run, cwd=complete_project.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command.place}: {command.text}: {done.stdout}{done.stderr}"
        if "-n" in command.words:
            dry.append("\nmeasure " in done.stdout)
        if "--report" in command.words:
            assert (complete_project.folder / command.words[-1]).exists()
    assert sorted(dry) == [False, True]


@pytest.mark.slow
def test_the_overlay_network_s_lines_work(tmp_path):
    """A shell runs all code blocks of the page."""
    if find_tool("cc") is None:
        pytest.skip("no cc here")
    if find_tool("pkg-config") is None:
        pytest.skip("no pkgconfig here")
    for name in ("workflow", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    block = "".join(
        re.findall(
            r"^```sh\n(.*?)^```", (ROOT / "docs/overlay.md").read_text(), re.DOTALL | re.MULTILINE
        )
    )
    run = subprocess.run(
        ["sh", "-euc", block], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert not [
        command for command in of("make") if not reasons(command) and command.text not in block
    ]
