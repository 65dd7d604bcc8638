"""Compiles pure_parts.c with the harness of the build and runs it without mpiexec."""

import subprocess
from pathlib import Path

from commodel.platforms.tools import find

HERE = Path(__file__).parent
PARTS = ("schedule", "deal", "room")
NATIVE = HERE.parents[1] / "workflow" / "native"


def test_pure_parts(mpi_programs, tmp_path, write_schedule):
    write_schedule(tmp_path / "schedule.csv", [(0, "send", 1, 3, 8, ""), (2, "compute", 2, "", "", 0.5)])
    objects = [*(mpi_programs / "obj/harness").glob("*.o"), *(mpi_programs / f"obj/player/{name}.o" for name in PARTS)]
    folders = ["-I", NATIVE / "harness", "-I", NATIVE / "player"]
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    program = tmp_path / "pure_parts"
    command = [find("mpicc"), *warnings, *folders, HERE / "pure_parts.c", *objects, "-o", program]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program, tmp_path / "schedule.csv"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
