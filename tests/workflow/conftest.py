"""A separate project folder for each test: platforms, experiments and results, with the clone's
workflow."""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.plan.planning import load_plan
from tests.once import made_once
from tests.processes import family, kill
from tests.workflow.barrier import Barrier

ROOT = Path(__file__).parents[2]
SMALL = """
title: a small one
platform: loggp-64
models: [loggp]
probes: [prtt, work]
measure: {precision: 5%, min_samples: 6, max_samples: 20, seconds: 1, warmup: 1}
probe_bytes: [1, 64, 1024, 16384]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [8, 16], bytes: [8, 1KiB]}
  - axes: {operation: reduce, topology: ["flat:7", "kary:2^2"], bytes: 8}
"""
# Plain Snakemake, as a user calls it who has not heard of `commodel run`.
PLAIN = [
    "--snakefile",
    ROOT / "Snakefile",
    "--workflow-profile",
    ROOT / "profiles" / "default",
    "--cores",
    "2",
]
PLAIN += ["--config", "experiment=small"]


class Project:
    """A folder with an experiment, in which commands run as a user runs them."""

    def __init__(self, folder: Path, like: Path | None = None):
        """Make a new project, or a copy of the project `like` with the modification times of its
        files. Where `like` is the folder itself, it is used as it is."""
        self.folder, self.environment = folder, dict(os.environ)
        self.started: list[subprocess.Popen] = []
        if like:
            if like != folder:
                shutil.copytree(like, folder, dirs_exist_ok=True)
            return
        for name in ("platforms", "experiments"):
            (folder / "params" / name).mkdir(parents=True)
        for path in (ROOT / "params" / "platforms").iterdir():
            shutil.copy(path, folder / "params" / "platforms")
        for name in ("loggp-64.*", "two-types.*"):
            for path in (ROOT / "tests" / "workflow").glob(name):
                shutil.copy(path, folder / "params" / "platforms")
        self.experiment("small", SMALL)

    def experiment(self, name: str, text: str) -> Path:
        path = self.folder / "params" / "experiments" / f"{name}.yaml"
        path.write_text(text)
        return path

    def commodel(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        return self.ended(self.start("commodel", *arguments), code)

    def snakemake(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        return self.ended(self.start("snakemake", *PLAIN, *arguments), code)

    def verb(self, *arguments: object) -> str:
        """Run a verb in this process, which has imported its modules already, and return its
        output."""
        with chdir(self.folder):
            result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    def measure(self, experiment: str, batch: str) -> str:
        raw = f"results/{experiment}/raw/{batch}"
        return self.verb(
            "measure", "--in", f"results/{experiment}/plan.json", "--batch", batch, "--out", raw
        )

    def compare(self, experiment: str) -> Path:
        """Run all stages of an experiment up to its comparison and return the results folder."""
        results = Path("results", experiment)
        self.verb("plan", experiment, "--write")
        plan = load_plan(self.folder / results / "plan.json")
        for batch in plan.batches:
            self.measure(experiment, batch.name)
        observations, plan_file = results / "observations.csv", results / "plan.json"
        self.verb("collect", "--in", plan_file, "--out", observations)
        # As in a run: a job for the models of a platform, and one for all predictions.
        models = [word for name in plan.models for word in ("--model", name)]
        sets: list[str | Path] = []
        for platform in plan.platforms:
            out = results / "fitted" / platform
            (self.folder / out).mkdir(parents=True, exist_ok=True)
            self.verb("fit", "probes", plan_file, *models, "--platform", platform, "--out", out)
            sets += [word for name in plan.models for word in ("--params", out / f"{name}.yaml")]
        predictions = results / "predictions"
        (self.folder / predictions).mkdir(exist_ok=True)
        self.verb("predict", "plan", plan_file, *sets, "--out", predictions)
        self.verb("compare", "--in", results, "--out", results / "comparison.csv")
        return self.folder / results

    def start(self, module: str, *arguments: str, **settings) -> subprocess.Popen:
        """Start a command in a separate session, so that all its processes can be killed."""
        command = [sys.executable, "-m", module, *map(str, arguments)]
        pipes = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        self.started.append(
            subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
                **pipes | settings,
            )
        )
        return self.started[-1]

    def ended(self, process: subprocess.Popen, code: int = 0) -> subprocess.CompletedProcess:
        stdout, stderr = process.communicate(timeout=900)
        assert process.returncode == code, stdout + stderr
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def raw_files(self) -> dict[str, int]:
        """Return the modification time of every raw sample file."""
        return {path.name: path.stat().st_mtime_ns for path in raw_paths(self.folder)}

    def victim(self) -> Path:
        """Return a raw file that the test may damage."""
        return next(
            path
            for path in raw_paths(self.folder)
            if path.parent.name.startswith("loggp-64-upto8n-")
        )

    def lose(self, raw: Path) -> None:
        """Remove a raw file and the mark that its batch is done."""
        raw.unlink()
        raw.with_name("done").unlink()

    def rows(self, name: str) -> list[dict]:
        """Return the rows of a table of the results."""
        with (self.folder / "results/small" / name).open() as stream:
            return list(csv.DictReader(stream))

    def barrier(self) -> Barrier:
        """Put a new barrier in front of the simulator, for all commands started later."""
        made = Barrier(self.folder / "barrier", "smpirun")
        self.environment |= {"PATH": f"{made.folder}:{os.environ['PATH']}"}
        return made


def raw_paths(folder: Path) -> list[Path]:
    """Return the paths of all raw sample files of a project."""
    return sorted(folder.glob("results/*/raw/*/????????????.csv"))


def samples(folder: Path) -> dict[str, bytes]:
    """Return the content of every raw sample file by name."""
    return {path.name: path.read_bytes() for path in raw_paths(folder)}


class Messages(list):
    """A display of a run that keeps what stays."""

    show_message = list.append

    def show_progress(self, text: str, last: bool = False) -> None:
        pass

    def clear(self) -> None:
        pass


@pytest.fixture
def project(tmp_path, simgrid_programs):
    yield from ending(Project(tmp_path))


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory, simgrid_programs):
    """Return a project whose experiment is complete; the file `printed` has the output of the run.
    Tests must not change it, but copy it."""

    def run(folder: Path) -> None:
        (folder / "printed").write_text(Project(folder).commodel("run", "small").stdout)

    return made_once(tmp_path_factory, "whole-run", run)


@pytest.fixture
def finished(tmp_path, whole_run):
    """Yield a copy of the project whose experiment is complete."""
    yield from ending(Project(tmp_path, whole_run))


def ending(made: Project) -> Iterator[Project]:
    yield made
    for process in made.started:  # only after a test that failed is one still there
        kill_all(process)


def kill_all(process: subprocess.Popen) -> None:
    """Kill a process and all its descendants with SIGKILL."""
    kill(family(process.pid) if process.poll() is None else ())
    process.communicate()
