"""Fixtures that start the native programs on this machine or on a simulated cluster."""

import csv
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from commodel.patterns.schedule_files import PLAYER_COLUMNS
from commodel.platforms.tools import find_tool
from tests.starting import environment, mpiexec

HERE = Path(__file__).parent

# SimGrid as LogGP: L = 10 us (two links), o_s = o_r = g = 1.5 us, G = 0.1 ns/B.
LOGGP = [
    "smpi/lat-factor:0:1",
    "smpi/bw-factor:0:1",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "smpi/os:0:1.5e-6:0",
    "smpi/ois:0:1.5e-6:0",
    "smpi/or:0:1.5e-6:0",
    "smpi/simulate-computation:no",
    "smpi/wtime:0",  # a reading of the clock costs 10 ns otherwise
    "smpi/async-small-thresh:1000000000",  # a message travels before its receive is posted
    "smpi/send-is-detached-thresh:1000000000",  # a send never waits for its receive
    "smpi/host-speed:1Gf",  # only silences a warning
]


@dataclass(frozen=True)
class Result:
    code: int
    out: Path
    err: str
    stdout: str

    def rows(self, case):
        with open(self.out / f"{case}.csv", newline="") as file:
            return list(csv.DictReader(file))

    def seconds(self, case):
        return [float(row["seconds"]) for row in self.rows(case) if row["valid"] == "1"]

    def median(self, case):
        values = sorted(self.seconds(case))
        return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2

    @property
    def errors(self):
        """Return the error lines that the program wrote."""
        return [
            line
            for line in self.err.splitlines()
            if line.startswith("error: ") or ".c:" in line.split(" ")[0]
        ]

    def files(self):
        return sorted(path.name for path in self.out.iterdir()) if self.out.exists() else []


def write_case_file(path, text):
    """Write `text` without the leading and trailing blanks of its lines."""
    path.write_text("".join(line.strip() + "\n" for line in text.strip().splitlines()))
    return path


@pytest.fixture
def write_schedule():
    """write_schedule(path, rows): rows are (step, kind, rank, peer, bytes, seconds[, runs[, wait,
    peer_step, peer_wait]]); fields that do not apply are empty."""

    def write(path, rows):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(PLAYER_COLUMNS)
            for row in rows:
                step, kind, rank, peer, bytes, seconds, runs, wait, peer_step, peer_wait = (
                    *row,
                    "",
                    "",
                    "",
                    "",
                )[:10]
                writer.writerow(
                    [step, wait, kind, rank, peer, peer_step, peer_wait, bytes, seconds, runs]
                )

    return write


# What a rank does that waits: it lets others have its processor, where two would fight for one. Of
# libfabric's providers Open MPI 4.1 takes `net` on a machine that has nothing better, which never
# delivers some of many messages in flight (Debian 12).
SOUND = {"OMPI_MCA_pml": "ob1"}
PATIENT = {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


def _start(prefix, build, folder, program, cases, out, options, **settings):
    case_file = (
        cases if isinstance(cases, Path) else write_case_file(folder / f"{out}.cases.csv", cases)
    )
    command = [
        *prefix,
        str(build / program),
        "--cases",
        str(case_file),
        "--out",
        str(folder / out),
        *map(str, options),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
        env=SOUND | environment() | settings,
    )
    return Result(done.returncode, folder / out, done.stderr, done.stdout)


@pytest.fixture(scope="session")
def relinked(mpi_programs, tmp_path_factory):
    """relinked(file, programs): return a folder of these programs, linked with a C file that
    intercepts MPI calls, in this folder unless it has a path."""

    def link(file, programs):
        folder = tmp_path_factory.mktemp("relinked")
        between, compiler = folder / f"{Path(file).name}.o", find_tool("mpicc")
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]
        subprocess.run([compiler, *flags, "-c", HERE / file, "-o", between], check=True)
        objects = set((mpi_programs / "obj").glob("*/*.o"))
        mains = {path for path in objects if (mpi_programs / path.stem).exists()}
        for main in mains:
            parts = [
                path
                for path in objects - mains
                if path.parent.name in ("harness", main.parent.name)
            ]
            libraries = ["-fopenmp", "-ldl", "-lm"] if main.parent.name == "programs" else []
            if main.stem in programs:
                command = [compiler, between, main, *parts, *libraries, "-o", folder / main.stem]
                subprocess.run(command, check=True)
        return folder

    return link


@pytest.fixture
def start(tmp_path):
    """start(ranks, build, program, cases, *options): run a program on this machine, with at most
    two ranks."""

    def run(ranks, build, program, cases, *options, out="samples"):
        assert ranks <= 2
        return _start([mpiexec(), "-n", str(ranks)], build, tmp_path, program, cases, out, options)

    return run


@pytest.fixture
def at_once():
    """at_once(check, names): call check(number, name) for all names in six threads, because aborted
    MPI programs end slowly."""

    def run(check, names):
        with ThreadPoolExecutor(6) as pool:
            failures = {name: pool.submit(check, number, name) for number, name in enumerate(names)}
        failures = {
            name: str(error) for name, done in failures.items() if (error := done.exception())
        }
        assert not failures

    return run


@pytest.fixture
def oversubscribed(mpi_programs, tmp_path):
    """Run cases with more ranks than cores, one sample each, for results that do not depend on
    time.

    Call it as oversubscribed(ranks, program, cases, build=…, VARIABLE=…).
    """

    def run(ranks, program, cases, build=None, out="samples", **variables):
        options = ["--sync", "barrier", "--warmup", 1, "--min-samples", 1, "--max-samples", 1]
        starts = [mpiexec(), "-n", str(ranks)]
        return _start(
            starts,
            build or mpi_programs,
            tmp_path,
            program,
            cases,
            out,
            options,
            **PATIENT,
            **variables,
        )

    return run


@pytest.fixture
def real(mpi_programs, start):
    """real(ranks, program, cases, *options): run a program of the MPI build."""
    return lambda ranks, program, cases, *options, **more: start(
        ranks, mpi_programs, program, cases, *options, **more
    )


@pytest.fixture
def simulated(simgrid_programs, tmp_path):
    """simulated(ranks, program, cases, *options): run a program on the simulated LogGP cluster;
    `settings` changes SimGrid settings."""
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"n{i}\n" for i in range(64)))

    def run(ranks, program, cases, *options, out="samples", settings=()):
        flags = [f"--cfg={flag}" for flag in (*LOGGP, *settings)] + ["--log=root.thres:critical"]
        prefix = [
            find_tool("smpirun"),
            "-np",
            str(ranks),
            "-platform",
            str(HERE / "loggp64.xml"),
            "-hostfile",
            str(hosts),
            *flags,
        ]
        return _start(prefix, simgrid_programs, tmp_path, program, cases, out, options)

    return run


@pytest.fixture
def load_json():
    return lambda path: json.loads(Path(path).read_text())
