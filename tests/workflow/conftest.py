"""A project folder of its own for each test: platforms and experiments beside results, the clone's workflow."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = """
title: a small one
platform: loggp-64
families: [hockney, loggp]
measure: {precision: 5%, min_samples: 6, max_samples: 20, seconds: 1, warmup: 1}
probe_bytes: [1, 64, 1024, 16384]
matrix:
  - axes: {operation: bcast, algorithm: [linear, binomial], ranks: [8, 16], bytes: [8, 1KiB]}
  - axes: {operation: reduce, topology: ["flat:7", "kary:2^2"], bytes: 8}
"""


class Project:
    """A folder with an experiment, and commands run in it as a user would."""

    def __init__(self, folder: Path):
        self.folder = folder
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

    def commodel(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "commodel", *map(str, arguments)]
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)
        assert code is None or run.returncode == code, run.stdout + run.stderr
        return run

    def raw_files(self) -> dict[str, int]:
        """Every raw sample file with the time it was written."""
        return {path.name: path.stat().st_mtime_ns for path in self.folder.glob("results/*/raw/*/????????????.csv")}


@pytest.fixture
def project(tmp_path, simgrid_programs):
    return Project(tmp_path)
