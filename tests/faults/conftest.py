"""A small experiment on two real ranks of this machine, and functions that disturb its measurement
from outside."""

import json
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from commodel.cli import main
from commodel.measure.batch import measure_batch
from commodel.plan.planning import load_plan
from tests.processes import arguments, command_name, family, read_text
from tests.waiting import until

SHARED_MEMORY = Path("/dev/shm")

PLATFORM = "launcher: local\nnodes: 1\ncores: 2\n"
EXPERIMENT = """
platform: two-cores
models: [pram]
library: false
probes: auto
measure: {{precision: 0.1%, min_samples: {samples}, max_samples: 1000000, seconds: {seconds}, timeout: {timeout},
          passes: {passes}, warmup: 1, sync: barrier}}
batch: {{budget: {budget}}}
matrix:
  - axes: {{operation: bcast, algorithm: linear, ranks: 2, bytes: [{sizes}]}}
"""
SIZE = 256 << 10  # bytes, tens of microseconds


class Campaign:
    """One batch of points, each measured for about `seconds`: messages are so long that no machine
    takes all samples in less. Barriers align the ranks, since on a busy machine a common start time
    would make every sample late."""

    def __init__(self, folder: Path, points: int, **settings):
        self.root, self.session, self.shared = folder, folder / "session", set()
        self.session.mkdir()
        for kind in ("platforms", "experiments"):
            (folder / "params" / kind).mkdir(parents=True)
        (folder / "params/platforms/two-cores.yaml").write_text(PLATFORM)
        sizes = ", ".join(str(SIZE + number) for number in range(points))
        defaults = {
            "samples": 100000,
            "seconds": "0.3 s",
            "timeout": "600 s",
            "passes": 1,
            "budget": "8 h",
        }
        text = EXPERIMENT.format(sizes=sizes, **(defaults | settings))
        (folder / "params/experiments/faulty.yaml").write_text(text)
        with chdir(folder):
            planned = CliRunner().invoke(main, ["plan", "faulty", "--write"])
        assert planned.exit_code == 0, planned.output
        self.plan = json.loads((folder / "results/faulty/plan.json").read_text())
        (self.batch,) = [batch for batch in self.plan["batches"] if batch["points"]]
        self.raw = folder / "results/faulty/raw" / self.batch["name"]
        self.arguments = [
            "measure",
            "--in",
            "results/faulty/plan.json",
            "--batch",
            self.batch["name"],
        ]
        self.arguments += ["--out", str(self.raw.relative_to(folder))]

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "commodel", *arguments]

    def measure(self, code: int = 0) -> Result:
        """Measure in this process, which saves the start of another Python."""
        with chdir(self.root):
            done = CliRunner().invoke(main, self.arguments)
        assert done.exit_code == code, done.output
        return done

    def measure_in(self, part: float) -> None:
        """Measure in this process, with only this share of the batch's time before the margin at
        its end."""
        plan = load_plan(self.root / "results/faulty/plan.json")
        with chdir(self.root), patch("commodel.measure.batch.JOIN_MARGIN_SHARE", 1 - part):
            measure_batch(plan, plan.batch(self.raw.name), self.raw, lambda _: None)

    def start(self) -> subprocess.Popen:
        around = os.environ | {"TMPDIR": str(self.session)}
        command = self.command(*self.arguments)
        return subprocess.Popen(
            command, cwd=self.root, stderr=subprocess.PIPE, text=True, env=around
        )

    def now(self, number: int = 1) -> str:
        """Return the case that is being measured."""
        try:
            return (self.raw / f".pass-{number}/.now").read_text().strip()
        except FileNotFoundError:
            return ""

    def ranks(self, starter: subprocess.Popen) -> list[int]:
        """Return the process ids of the program that measures; programs that only print their
        version are excluded."""
        players = [process for process in family(starter.pid) if command_name(process) == "player"]
        # one that has just ended has none
        return [process for process in players if "--cases" in arguments(process)]

    def note_shared_files(self, driver: subprocess.Popen) -> None:
        """Add the files in shared memory that the ranks have mapped to `shared`, once MPICH has
        removed its temporary ones."""

        def read():
            maps = [
                line
                for rank in self.ranks(driver)
                for line in read_text(f"/proc/{rank}/maps").splitlines()
            ]
            files = {Path(line.split()[5]) for line in maps if f" {SHARED_MEMORY}/" in line}
            return (
                not any(path.name.startswith("mpich_shar_tmp") and path.exists() for path in files)
                and files
            )

        self.shared |= until(read, by=driver)

    def left_behind(self) -> list[Path]:
        """Return the files of stopped ranks in shared memory, and those of their launcher."""
        files = [path for path in self.session.rglob("*") if not path.is_dir()]
        return [path for path in self.shared if path.exists()] + files

    def samples(self) -> set[str]:
        return {path.name.partition(".")[0] for path in self.raw.glob("*.csv")}

    def pass_samples(self, number: int = 1) -> set[str]:
        return {path.stem for path in (self.raw / f".pass-{number}").glob("[!.]*.csv")}

    def markers(self) -> dict[str, dict]:
        markers = [json.loads(path.read_text()) for path in self.raw.glob("*.unmeasured.json")]
        return {marker["id"]: marker for marker in markers}

    def state(self) -> dict:
        return json.loads((self.raw / "state.json").read_text())

    @property
    def ids(self) -> set[str]:
        return set(
            (self.root / f"results/faulty/batches/{self.batch['name']}.txt").read_text().split()
        )


@pytest.fixture
def campaign(tmp_path, mpi_programs):
    """campaign(points, **settings): a planned experiment in a folder of its own."""
    return lambda points=4, **settings: Campaign(tmp_path, points, **settings)
