"""A project folder of its own for each test: platforms and experiments beside results, the clone's workflow."""

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
families: [loggp]
probes: [prtt, work]
measure: {precision: 5%, min_samples: 6, max_samples: 20, seconds: 1, warmup: 1}
probe_bytes: [1, 64, 1024, 16384]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [8, 16], bytes: [8, 1KiB]}
  - axes: {operation: reduce, topology: ["flat:7", "kary:2^2"], bytes: 8}
"""
# Plain Snakemake, as a user calls it who has not heard of `commodel run`.
PLAIN = ["--snakefile", ROOT / "Snakefile", "--workflow-profile", ROOT / "profiles" / "default", "--cores", "2"]
PLAIN += ["--config", "experiment=small"]


class Project:
    """A folder with an experiment, and commands run in it as a user would."""

    def __init__(self, folder: Path, like: Path | None = None):
        """Of a new folder, or of a copy of the one of another project, times of files and all."""
        self.folder, self.environment = folder, dict(os.environ)
        self.started: list[subprocess.Popen] = []
        if like:
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
        """What a verb prints. It runs in this process, which has loaded all that it needs."""
        with chdir(self.folder):
            result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    def measure(self, experiment: str, batch: str) -> str:
        raw = f"results/{experiment}/raw/{batch}"
        return self.verb("measure", "--in", f"results/{experiment}/plan.json", "--batch", batch, "--out", raw)

    def compare(self, experiment: str) -> Path:
        """Runs an experiment up to its comparison, one stage after the other. Returns the folder of its results."""
        results = Path("results", experiment)
        self.verb("plan", experiment, "--write")
        plan = load_plan(self.folder / results / "plan.json")
        for batch in plan.batches:
            self.measure(experiment, batch.name)
        observations, planned = results / "observations.csv", ("--plan", results / "plan.json")
        self.verb("collect", "--in", results / "plan.json", "--out", observations)
        for name in plan.families:
            sets = [results / "fitted" / platform / f"{name}.yaml" for platform in plan.platforms]
            for platform, out in zip(plan.platforms, sets, strict=True):
                of = ("--family", name, "--platform", platform)
                self.verb("fit", "--in", observations, *planned, *of, "--out", out)
            params = [word for path in sets for word in ("--params", path)]
            out = results / "predictions" / f"{name}.csv"
            self.verb("predict", "--family", name, *params, *planned, "--out", out)
        self.verb("compare", "--in", results, "--out", results / "comparison.csv")
        return self.folder / results

    def start(self, module: str, *arguments: str, **settings) -> subprocess.Popen:
        """One of the commands in a session of its own, so that all of it can be killed."""
        command = [sys.executable, "-m", module, *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.started.append(
            subprocess.Popen(command, cwd=self.folder, env=self.environment, start_new_session=True, **pipes | settings)
        )
        return self.started[-1]

    def ended(self, process: subprocess.Popen, code: int = 0) -> subprocess.CompletedProcess:
        stdout, stderr = process.communicate(timeout=900)
        assert process.returncode == code, stdout + stderr
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def raw_files(self) -> dict[str, int]:
        """Every raw sample file with the time it was written."""
        return {path.name: path.stat().st_mtime_ns for path in raw_paths(self.folder)}

    def victim(self) -> Path:
        """A raw file, for a test to spoil."""
        return next(path for path in raw_paths(self.folder) if path.parent.name.startswith("loggp-64-upto8n-"))

    def lose(self, raw: Path) -> None:
        """Removes a raw file, and the mark that its batch is done."""
        raw.unlink()
        raw.with_name("done").unlink()

    def rows(self, name: str) -> list[dict]:
        """A table of the experiment's results."""
        with (self.folder / "results/small" / name).open() as stream:
            return list(csv.DictReader(stream))

    def barrier(self) -> Barrier:
        """A new one in front of the simulator, for the commands that are started from now on."""
        made = Barrier(self.folder / "barrier", "smpirun")
        self.environment |= {"PATH": f"{made.folder}:{os.environ['PATH']}"}
        return made


def raw_paths(folder: Path) -> list[Path]:
    """Every raw sample file of a project's folder."""
    return sorted(folder.glob("results/*/raw/*/????????????.csv"))


def samples(folder: Path) -> dict[str, bytes]:
    """Every raw sample file with what it holds."""
    return {path.name: path.read_bytes() for path in raw_paths(folder)}


@pytest.fixture
def project(tmp_path, simgrid_programs):
    yield from ending(Project(tmp_path))


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory, simgrid_programs):
    """The folder of a project whose experiment was run to its end, and what that printed, in the file `printed`. Tests
    look at it, and take a copy to change anything."""

    def run(folder: Path) -> None:
        (folder / "printed").write_text(Project(folder).commodel("run", "small").stdout)

    return made_once(tmp_path_factory, "whole-run", run)


@pytest.fixture
def finished(tmp_path, whole_run):
    """A project whose experiment was run to its end."""
    yield from ending(Project(tmp_path, whole_run))


def ending(made: Project) -> Iterator[Project]:
    yield made
    for process in made.started:  # only after a test that failed is one still there
        kill_all(process)


def kill_all(process: subprocess.Popen) -> None:
    """A process and whatever it has started, outright."""
    kill(family(process.pid) if process.poll() is None else ())
    process.communicate()
