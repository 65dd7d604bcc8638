"""Finish times of LogGOPS in the convention of LogGOPSim, compared with the simulator.

Usage: `python -m benchmarks.loggopsim FOLDER`. FOLDER has the programs LogGOPSim and txt2bin.
`--record CSV` writes a selection of the finish times for the tests.

Every algorithm of the catalogue is exported as GOAL at several ranks and sizes, and simulated with
several parameters. A line is printed for each relative difference above 10⁻⁶. The exit code is 1 if
more than 1 % of the runs differ.
"""

import csv
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measuring import time_task
from commodel.errors import UserError
from commodel.interchange.goal import format_goal
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule
from tests.patterns.catalogue import ALGORITHMS, TREE_OPERATIONS, point

RANKS = (2, 3, 5, 8, 16, 33)
SIZES = (0, 8, 1000, 70_000)
TREES = ("flat:5", "flat:33", "chain:4", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2")
GAMMA = 3  # ns/B
RECORDED_ROWS = 300
MAX_RECORDED_MESSAGES = 1000  # messages of a schedule whose times are recorded
UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class Machine:
    """Parameters of LogGOPS: L, o, g in ns, G and O in ns/B, S in bytes."""

    L: int
    o: int
    g: int
    G: int
    O: int
    S: int


MACHINES = (
    Machine(2500, 1500, 1000, 6, 0, 65535),  # the simulator's own
    Machine(1000, 100, 500, 2, 0, UNLIMITED),
    Machine(5000, 300, 4000, 1, 3, UNLIMITED),
    Machine(1000, 100, 2000, 50, 10, 500),
    Machine(10_000, 1500, 1500, 0, 0, 0),
)


@dataclass(frozen=True)
class Case:
    operation: str
    alternative: str  # an algorithm or a tree
    ranks: int
    bytes: int

    def build_schedule(self) -> Schedule:
        whole = ALGORITHMS if (self.operation, self.alternative) in ALGORITHMS else ()
        where = (
            {"algorithm": self.alternative, "ranks": self.ranks}
            if whole
            else {"topology": self.alternative}
        )
        return build_schedule(point(self.operation, bytes=self.bytes, **where)).whole


def list_cases() -> Iterator[tuple[Case, Schedule]]:
    for size in SIZES:
        wanted = [Case(*algorithm, ranks, size) for ranks in RANKS for algorithm in ALGORITHMS]
        for case in (
            *wanted,
            *(Case(operation, tree, 0, size) for operation in TREE_OPERATIONS for tree in TREES),
        ):
            try:
                yield case, case.build_schedule()
            except UserError:  # not for so many ranks, or not for this size
                continue


def predict_finish_times(pattern: Schedule, machine: Machine) -> np.ndarray:
    """Return the finish time of every rank in ns."""
    texts = [f"{name}={value}ns" for name, value in zip("LogGO", astuple(machine), strict=False)]
    parameters = make_given_set(
        "loggops", [*texts, f"S={machine.S}", f"gamma={GAMMA}ns", "convention=loggopsim"]
    )
    entry = find_family("loggops")
    return entry.predict(pattern, complete_values(entry, Values.of(parameters)))[0] * 1e9


def simulate_finish_times(tools: Path, binary: Path, machine: Machine) -> np.ndarray:
    """Return the simulated finish times in ns: of all ranks if there are at most 16, else of the
    last one only."""
    options = [f"-{name}{value}" for name, value in zip("LogGOS", astuple(machine), strict=True)]
    run = subprocess.run(
        [tools / "LogGOPSim", "-f", binary, *options], capture_output=True, text=True, check=True
    )
    hosts = re.findall(r"^Host \d+: (\d+)", run.stdout, re.MULTILINE)
    return np.array(
        hosts or re.findall(r"Maximum finishing time at host \d+: (\d+)", run.stdout), dtype=float
    )


def compare(tools: Path, record: Path | None) -> int:
    rows, runs, differing, spent = [], 0, 0, 0.0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor() as pool:
        for case, pattern in list_cases():
            text, binary = Path(name) / "goal", Path(name) / "binary"
            text.write_text(format_goal(pattern, GAMMA * 1e-9) + "\n")
            subprocess.run(
                [tools / "txt2bin", "-i", text, "-o", binary], capture_output=True, check=True
            )
            theirs = pool.map(
                lambda machine, binary=binary: simulate_finish_times(tools, binary, machine),
                MACHINES,
            )
            for machine, wanted in zip(MACHINES, theirs, strict=True):
                seconds, ours = time_task(
                    partial(predict_finish_times, pattern, machine), time.process_time
                )
                spent += seconds
                ours = ours if len(wanted) == len(ours) else ours.max(keepdims=True)
                runs += 1
                if pattern.messages <= MAX_RECORDED_MESSAGES:
                    rows.append((*astuple(case), *astuple(machine), f"{wanted.max():.0f}"))
                if not np.allclose(ours, wanted, rtol=1e-6, atol=1e-3):
                    differing += 1
                    print(f"{case} {machine}: {ours.max():.3f} ns, LogGOPSim {wanted.max():.0f} ns")
    share = 1 - differing / runs
    print(
        f"{runs} runs of {runs // len(MACHINES)} exports: {share:.2%} equal; {spent:.1f} s of processor"
    )
    if record:
        chosen = np.linspace(0, len(rows) - 1, RECORDED_ROWS).astype(int)
        with record.open("w", newline="") as file:
            head = (
                "operation",
                "alternative",
                "ranks",
                "bytes",
                "L",
                "o",
                "g",
                "G",
                "O",
                "S",
                "finish",
            )
            csv.writer(file, lineterminator="\n").writerows(
                [head, *(rows[number] for number in chosen)]
            )
    return 0 if share >= 0.99 else 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    out = Path(arguments.pop(arguments.index("--record") + 1)) if "--record" in arguments else None
    folders = [argument for argument in arguments if argument != "--record"]
    if len(folders) != 1:
        sys.exit("usage: loggopsim.py FOLDER [--record CSV]")
    sys.exit(compare(Path(folders[0]), out))
