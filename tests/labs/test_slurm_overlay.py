"""Overlay networks on a real Slurm, measured and in both modes of start.

srun starts one step for each process or one step for all, each process on its planned node, or
back-ends of one step attach by the connection file. The lab's node names do not resolve, so
processes listen on their machine's address. The front-end reports killed processes, and no process
or step that depends on them is left."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from tests.labs.slurm_lab import Slurm
from tests.overlay.conftest import Tool
from tests.processes import command_name, kill
from tests.waiting import until

pytestmark = pytest.mark.lab

OVERLAY = "launcher: slurm\nsubstrate: overlay\nnodes: 4\ncores: 2\n"
CAMPAIGN = """
platform: lab
models: [logp-tan]
probe_bytes: [64]
measure: {precision: 50%, min_samples: 6, max_samples: 10, seconds: 0.2, passes: 1, warmup: 1}
matrix:
  - axes: {operation: [reduce, bcast], topology: ["flat:3", "kary:2^2"], layout: ["block:2", "cyclic:2"], bytes: 1KiB}
"""


def test_an_overlay_from_the_plan_to_the_workbook(project):
    build_toolchain(ROOT, "overlay")
    (ROOT / "build" / "overlay" / "built").touch()
    project.write(CAMPAIGN, OVERLAY)
    code, said = project.run("commodel", "run", "mine", "--profile", "slurm")
    assert code == 0, said
    assert (project.folder / "reports/mine/mine.xlsx").exists()
    compared = pd.read_csv(project.folder / "results/mine/comparison.csv")
    assert len(set(compared.point)) == 8
    assert compared.measured.gt(0).all()
    for batch in (batch for batch in project.plan.batches if batch.points):
        for path in project.raw(batch).glob("overlay-bench-*.json"):
            assert len(set(json.loads(path.read_text())["hosts"])) == batch.nodes
    assert project.slurm.jobs() == []
    assert project.slurm.processes("overlay-") == []


TREE = "n0:0 => n1:0 n2:0 ;\nn1:0 => n1:1 n3:0 ;\nn2:0 => n2:1 n3:1 ;\n"
STEP = ("srun", "--overlap", "--mpi=none")  # beside the steps that are there
STARTERS = {
    "srun": (*STEP, "-N2", "-n4", "-w", "n2,n3"),
    "pmi2": ("srun", "--overlap", "--mpi=pmi2", "-N2", "-n4", "-w", "n2,n3"),
    "hydra": ("mpiexec.hydra", "-launcher", "slurm", "-hosts", "n2,n3", "-n", "4"),
}
ONE_STEP = "one step"  # srun starts all of it at once
CONTINUING, STOPPING = range(2)  # streams of every tree


@dataclass
class Tree:
    """A running tree in one allocation. Losses are detected by closed connections, since the time
    limit for silence is 1000 s."""

    slurm: Slurm
    job: str
    tool: Tool
    file: Path
    others: subprocess.Popen | None  # what starts the back-ends, in mode 2

    def tasks(self, name: str, node: str) -> list[int]:
        return [
            process for process in self.slurm.processes(node=node) if command_name(process) == name
        ]

    def steps(self) -> list[str]:
        listed = self.slurm(
            "squeue", "--noheader", "--steps", f"--jobs={self.job}", "--format=%i"
        ).split()
        return [step for step in listed if not step.endswith((".batch", ".extern"))]

    def left(self) -> list[object]:
        """Return the tree's processes, steps and connection files that still exist."""
        processes = [*self.slurm.processes("drive"), *self.slurm.processes("overlay-node")]
        return [*processes, *self.steps(), *self.file.parent.glob(f"{self.file.name}*")]

    def back_ends(self) -> dict[int, int]:
        """Return the process id of each back-end."""
        self.tool.execute_ok("open none 2 0 0")
        self.tool.execute_ok("tell 2 facts 0")
        answers = [self.tool.execute_ok("recv 2 60") for _ in range(4)]
        return {answer["source"]: answer["values"][0] for answer in answers}


@pytest.fixture
def start(slurm, overlay_programs, tmp_path) -> Iterator:
    """Return start(mode), which starts a tree by srun or with back-ends started by one of
    STARTERS."""
    job = slurm(
        "sbatch",
        "--parsable",
        "--nodes=4",
        "--exclusive",
        "--output=/dev/null",
        "--wrap",
        "exec sleep 1000",
    )
    until(lambda: slurm.state(job) == "RUNNING")
    file, topology, drive = (
        tmp_path / "connection",
        tmp_path / "topology",
        overlay_programs / "drive",
    )
    topology.write_text(TREE)
    started = []

    def begin(starter: str) -> Tree:
        one_step = starter == ONE_STEP
        if (
            starter
            and not one_step
            and not shutil.which(STARTERS[starter][0], path=slurm.environment["PATH"])
        ):
            pytest.skip(f"no {STARTERS[starter][0]} here")
        environment = slurm.environment | {
            "SLURM_JOB_ID": job,
            "SLURM_OVERLAP": "1",
            "DRIVE_SILENCE": "1000",
        }
        environment["DRIVE_LAUNCH"] = f"{' '.join(STEP)} -N1 -n1 -w {{host}}"
        front_end = environment | ({"DRIVE_FILE": str(file)} if starter else {})
        if one_step:
            launch = (
                f"env -u SLURM_JOB_NODELIST {' '.join(STEP)} -n{{tasks}} -m arbitrary -w {{hosts}}"
            )
            front_end |= {"DRIVE_STEP": "1", "DRIVE_LAUNCH": launch}
        tool = Tool(
            [*STEP, "-N1", "-n1", "-w", "n0", drive, topology], tmp_path / "errors", front_end
        )
        others = None
        if starter and not one_step:
            back_end = [*STARTERS[starter], drive, "back-end"]
            with (tmp_path / "others").open("w") as errors:
                others = subprocess.Popen(
                    list(map(str, back_end)),
                    env=environment | {"OVERLAY_CONNECTION": str(file)},
                    stdin=subprocess.DEVNULL,
                    stderr=errors,
                )
        if starter:
            waits = tool.answer()
            assert waits["code"] == "waiting", (waits, tool.read_stderr())
        started.append(Tree(slurm, job, tool, file, others))
        comes_up = tool.answer()
        assert comes_up.get("backends") == 4, (
            comes_up,
            tool.read_stderr(),
            slurm("sinfo", "--long", "--Node"),
        )
        assert len(started[0].steps()) == (2 if one_step else 4 if starter else 7)
        tool.execute_ok("open concat 0 0 0")
        tool.execute_ok("open sum 0 0 1")
        return started[0]

    yield begin
    for tree in started:
        kill([tree.tool.process.pid, *([tree.others.pid] if tree.others else [])])


MODES = pytest.mark.parametrize(
    "starter", ["", "srun", ONE_STEP], ids=["mode 1", "mode 2", ONE_STEP]
)


@pytest.mark.parametrize("starter", ["", *STARTERS, ONE_STEP])
def test_a_tree_comes_up_works_and_ends(start, starter):
    tree = start(starter)
    tree.tool.execute_ok(f"ask {CONTINUING} 7 1 1 %s")
    assert [text[:2] for text in tree.tool.execute_ok(f"recv {CONTINUING} 60")["values"][0]] == [
        "b0",
        "b1",
        "b2",
        "b3",
    ]
    assert len({*tree.back_ends().values()}) == 4
    assert tree.tool.end() == 0
    assert not tree.others or tree.others.wait(60) == 0
    until(lambda: not tree.left(), 60)
    assert "overlay:" not in tree.tool.read_stderr()


@MODES
def test_a_killed_back_end_is_reported_and_the_rest_goes_on_or_stops(start, starter):
    tree = start(starter)
    tool, back_ends = tree.tool, tree.back_ends()
    kill([back_ends[2]])
    assert tool.wait_for_losses(1) == [2]
    assert tool.execute_ok(f"missing {CONTINUING}")["missing"] == [2]
    stopped = tool.execute(f"recv {STOPPING} 60")
    assert (stopped["code"], "lost n" in stopped["error"]) == ("lost", True)
    tool.execute_ok(f"ask {CONTINUING} 3 1 1 %d")
    assert tool.execute_ok(f"recv {CONTINUING} 60")["leaves"] == 3
    until(lambda: back_ends[2] not in tree.slurm.processes("drive"), 60)
    assert tool.end() == 0
    assert not tree.others or tree.others.wait(60) == 137
    until(lambda: not tree.left(), 60)


@MODES
def test_back_ends_of_a_killed_internal_process_attach_to_the_front_end(start, starter):
    tree = start(starter)
    tool, back_ends = tree.tool, tree.back_ends()
    tool.execute_ok(f"ask {CONTINUING} 7 1 1 %d")  # all have read the first packet of their parent
    assert tool.execute_ok(f"recv {CONTINUING} 60")["leaves"] == 4
    internal = tree.tasks("overlay-node", "n1")
    assert len(internal) == 1
    kill(internal)
    tool.execute_ok(f"ask {CONTINUING} 3 1 1 %d")
    assert tool.execute_ok(f"recv {CONTINUING} 60")["leaves"] == 4
    assert {*back_ends.values()} <= {*tree.slurm.processes("drive")}
    assert tool.end() == 0
    assert not tree.others or tree.others.wait(60) == 0
    until(lambda: not tree.left(), 60)


def test_a_back_end_that_hangs_leaves_no_step(start):
    tree = start("")
    hung = tree.back_ends()[2]
    tree.tool.execute_ok("tell 2 stop 0 2")
    until(lambda: Path(f"/proc/{hung}/stat").read_text().rpartition(")")[2].split()[0] == "T", 60)
    assert tree.tool.end() == 0
    assert "n2:1 does not end: killed" in tree.tool.read_stderr()
    until(lambda: not tree.left(), 60)


@MODES
def test_nothing_outlives_a_killed_front_end(start, starter):
    tree = start(starter)
    front_end = tree.tasks("drive", "n0")
    assert len(front_end) == 1
    kill(front_end)
    assert tree.tool.process.wait(60) == 137
    assert not tree.others or tree.others.wait(60) == 0
    until(lambda: not tree.left(), 60)
