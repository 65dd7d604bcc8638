"""Fixtures of the Slurm lab: a real Slurm of four nodes, and projects that measure on it."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from commodel.plan.planning import make_plan, write_plan
from commodel.platforms.build import build_toolchain
from commodel.platforms.tools import ROOT
from commodel.records import Batch, Plan
from tests.processes import kill
from tests.waiting import until

HERE = Path(__file__).parent
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
PLATFORM = "launcher: slurm\nnodes: 4\ncores: 2\nslurm: {mpi: pmi2}\n"


@dataclass(frozen=True)
class Slurm:
    folder: Path
    environment: dict[str, str]
    # what starts a command where the controller runs, if that is elsewhere
    inside: tuple[object, ...] = ()

    def __call__(self, *command: object) -> str:
        run = subprocess.run(
            list(map(str, (*self.inside, *command))),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    def jobs(self, state: str = "running,pending,completing") -> list[str]:
        return self("squeue", "--noheader", f"--states={state}", "--format=%A").split()

    def state(self, job: str) -> str:
        return re.search(r"JobState=(\S+)", self("scontrol", "show", "job", job))[1]

    def nodes_of(self, job: str) -> list[str]:
        listed = self("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%N")
        return self("scontrol", "show", "hostnames", listed).split()

    def ended(self, job: str) -> str:
        return until(
            lambda: (state := self.state(job)) not in ("RUNNING", "PENDING", "COMPLETING") and state
        )

    def processes(self, *words: str, node: str = "") -> list[int]:
        """Return the processes of this Slurm's jobs and steps (of one node, if given) with all
        these words in their command line."""
        numbers = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environment, line = (
                    (process / name).read_text(errors="replace") for name in ("environ", "cmdline")
                )
                here = not node or f"SLURMD_NODENAME={node}\0" in environment
                if (
                    here
                    and f"{self.folder}/" in environment
                    and all(word in line.replace("\0", " ") for word in words)
                ):
                    numbers.append(int(process.name))
        return numbers

    def lose(self, node: str) -> None:
        """Kill a node's slurmd and all processes on the node, as a power failure would."""
        kill([int((self.folder / f"slurmd-{node}.pid").read_text()), *self.processes(node=node)])

    @contextmanager
    def outage(self, number: signal.Signals) -> Iterator[None]:
        """Kill or stop the controller for the duration of a block; then restart or continue it. It
        is killed after it has saved its state: it takes a job that it does not know to run for a
        duplicate, and drains the node."""
        saved, start = self.folder / "state" / "job_state", time.time()
        until(lambda: saved.exists() and saved.stat().st_mtime > start)
        process = int((self.folder / "slurmctld.pid").read_text())
        os.kill(process, number)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT) if number == signal.SIGSTOP else self("slurmctld")


@contextmanager
def running_slurm(topology: str = "", losses: bool = False) -> Iterator[Slurm]:
    """Start a separate Slurm, with this text of topology.conf if any; in the end, remove it and all
    processes of its jobs. With `losses`, the Slurm detects lost nodes within seconds."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if os.geteuid() or missing:
        pytest.skip(
            f"no {', '.join(missing)} here: tests/labs/packages-slurm.txt"
            if missing
            else "needs root"
        )
    build_toolchain(ROOT, "mpi")
    (ROOT / "build" / "mpi" / "built").touch()
    # a terminated test run takes its Slurm down too
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    if topology:
        (folder / "topology.conf").write_text(topology)
    try:
        patience = {"LAB_LOSSES": "yes"} if losses else {}
        subprocess.run(
            [HERE / "slurm.sh", "up", folder], env=os.environ | patience, check=True, timeout=60
        )
        variables = {
            "PATH": f"{folder / 'bin'}:{ROOT / '.venv' / 'bin'}:{path}",
            "SLURM_CONF": f"{folder / 'slurm.conf'}",
        }
        # Nodes on one machine share no memory; and UCX's addresses can be too long for PMI-2.
        inside = (
            (HERE / "network.sh", "run", os.environ["LAB_NETWORK"])
            if "LAB_NETWORK" in os.environ
            else ()
        )
        yield Slurm(
            folder,
            os.environ | variables | {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi"},
            inside,
        )
    finally:
        subprocess.run([HERE / "slurm.sh", "down", folder], check=True, timeout=60)


@pytest.fixture(scope="session")
def shared_slurm():
    with running_slurm() as shared:
        yield shared


@pytest.fixture
def slurm(request):
    """Yield the Slurm that all tests share, or a separate one if the test is marked `own_slurm`."""
    marker = request.node.get_closest_marker("own_slurm")
    if marker:
        with running_slurm(**marker.kwargs) as separate:
            yield separate
        return
    shared = request.getfixturevalue("shared_slurm")
    yield shared
    shared("scancel", "--user=root")
    until(lambda: not shared.jobs())


@dataclass(frozen=True)
class Project:
    """A folder for campaigns with the profiles of a clone: `snakemake --profile slurm` works in
    it."""

    folder: Path
    slurm: Slurm

    def write(self, experiment: str, platform: str = PLATFORM) -> None:
        for kind, name, text in (
            ("platforms", "lab", platform),
            ("experiments", "mine", experiment),
        ):
            path = self.folder / "params" / kind / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    @property
    def plan(self) -> Plan:
        here = Path.cwd()
        os.chdir(self.folder)
        try:
            plan = make_plan("mine", Path())
            write_plan(plan, "mine", Path())
            return plan
        finally:
            os.chdir(here)

    def raw(self, batch: Batch) -> Path:
        return self.folder / "results" / "mine" / "raw" / batch.name

    def measured(self, batch: Batch) -> dict[str, list[str]]:
        """Return the samples of each case that has samples, in any pass."""
        named = ((path.name.partition(".")[0], path) for path in self.raw(batch).rglob("*.csv"))
        files = {case: path for case, path in named if case in batch.ids}
        return {
            case: [row["seconds"] for row in csv.DictReader(path.open())]
            for case, path in files.items()
        }

    def unmeasured(self, batch: Batch) -> dict[str, str]:
        """Return the status of each case that was given up."""
        files = self.raw(batch).glob("*.unmeasured.json")
        return {
            marker["id"]: marker["status"]
            for marker in (json.loads(path.read_text()) for path in files)
        }

    def ranks(self) -> list[int]:
        """Return the process ids of native programs that run in this project's folder."""
        numbers = []
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    self.folder in (path / "cwd").readlink().parents
                    and (path / "exe").readlink().parent.name == "mpi"
                ):
                    numbers.append(int(path.name))
        return sorted(numbers)

    def state(self, batch: Batch) -> dict:
        return json.loads((self.raw(batch) / "state.json").read_text())

    def submit(self, batch: Batch, *options: str) -> str:
        """Submit the job of a batch with sbatch and return its id. The environment is that of a
        Snakemake job."""
        forget = (
            "for v in $(env | grep -o '^SLURM_[A-Z_]*'); do [ $v = SLURM_JOB_ID ] || unset $v; done"
        )
        command = (
            f"commodel measure --in results/mine/plan.json --batch {batch.name} --out "
            f"results/mine/raw/{batch.name}"
        )
        size = [f"--nodes={batch.nodes}", f"--ntasks={batch.ranks}", "--exclusive", "--no-requeue"]
        log = ["--output", self.folder / "%j.log", "--chdir", self.folder]
        return self.slurm(
            "sbatch", "--parsable", *size, *log, *options, "--wrap", f"{forget}; exec {command}"
        )

    def log(self, job: str) -> str:
        return (self.folder / f"{job}.log").read_text()

    def start(self, *command: str) -> subprocess.Popen:
        """Start a command in a separate process group, as a terminal does."""
        return subprocess.Popen(
            [*self.slurm.inside, *command],
            cwd=self.folder,
            env=self.slurm.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )

    def measure(self, until: str = "collect", *settings: str) -> None:
        """Run the jobs up to those of a rule, or up to a file: all that measure and none that report."""
        command = ["snakemake", "--profile", "slurm", "--until", until]
        code, said = self.run(*command, "--config", "experiment=mine", *settings)
        assert code == 0, said

    def run(self, *command: str) -> tuple[int, str]:
        process = self.start(*command)
        try:
            said, _ = process.communicate(timeout=600)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, said


def make_project(slurm: Slurm, folder: Path) -> Project:
    for name in ("Snakefile", "profiles", "slurm", "workflow"):
        (folder / name).symlink_to(ROOT / name)
    return Project(folder, slurm)


@pytest.fixture
def project(slurm, tmp_path):
    return make_project(slurm, tmp_path)
