"""Every program tells what it is, without MPI running."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from commodel.platforms.tools import find

HERE = Path(__file__).parent


COLUMNS = {
    "pingpong": ["bytes"],
    "prtt": ["n", "delay", "late", "bytes"],
    "fan": ["direction", "how", "n", "bytes", "answer"],
    "chain": ["height", "bytes"],
    "pairs": ["pairs", "bytes"],
    "stream": ["senders", "each", "bytes"],
    "post": ["how", "n", "bytes"],
    "hrelation": ["procs", "h", "bytes"],
    "memcopy": ["path", "bytes"],
    "overlap": ["what", "messages", "bytes"],
    "flood": ["what", "senders", "packets", "bytes"],
    "work": ["bytes"],
    "player": ["schedule", "finish"],
    "library": ["operation", "bytes"],
    "verify": ["collective", "input", "communicator", "bytes"],
    "summa": ["partition", "bytes", "iteration", "overlapped", "barrier", "compute"],
    "wave2d": ["partition", "bytes", "compute"],
    "speed": ["kernel", "width", "height", "bytes", "watched"],
}
KINDS = {
    "player": "player",
    "library": "player",
    "verify": "player",
    "summa": "kernel",
    "wave2d": "kernel",
    "speed": "kernel",
}


def contract(text, program):
    description = json.loads(text)
    assert set(description) == {
        "name",
        "title",
        "kind",
        "columns",
        "min_ranks",
        "counts",
        "streams",
        "compiler",
        "flags",
        "mpi",
    }
    assert description["name"] == program
    assert description["kind"] == KINDS.get(program, "probe")
    assert [column["name"] for column in description["columns"]] == COLUMNS[program]
    assert all(set(column) == {"name", "unit", "meaning"} and column["meaning"] for column in description["columns"])
    assert description["min_ranks"] >= 1
    assert description["counts"] is (program == "flood")
    assert description["streams"] is (program in ("player", "library"))
    assert description["flags"]
    assert description["mpi"]
    return description


@pytest.mark.parametrize("program", COLUMNS)
def test_describe(mpi_programs, program):
    done = subprocess.run([mpi_programs / program, "--describe"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contract(done.stdout, program)["compiler"].startswith(find("mpicc"))


def test_describe_under_simgrid(simgrid_programs, tmp_path):
    (tmp_path / "hosts").write_text("n0\n")
    command = [find("smpirun"), "-np", "1", "-platform", HERE / "loggp64.xml", "-hostfile", tmp_path / "hosts"]
    for program in COLUMNS:
        done = subprocess.run([*command, simgrid_programs / program, "--describe"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert contract(done.stdout, program)["compiler"].startswith(find("smpicc"))


def test_every_program_is_covered(mpi_programs):
    files = [path for path in mpi_programs.iterdir() if path.is_file()]
    assert {path.name for path in files if os.access(path, os.X_OK)} == set(COLUMNS)
