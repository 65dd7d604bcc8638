"""Compiles the native programs: build/mpi with the MPI at hand, build/smpi with SimGrid's compiler."""

import subprocess
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.toolchain import NATIVE, find

COMPILERS = {"mpi": "mpicc", "smpi": "smpicc"}


def programs(root: Path, toolchain: str) -> Path:
    """The folder of the programs that a toolchain built."""
    return root / "build" / toolchain


def build(root: Path, toolchain: str) -> Path:
    """Compiles what has changed."""
    compiler = find(COMPILERS[toolchain])
    if compiler is None:
        raise UserError(f"no {COMPILERS[toolchain]} found; see commodel doctor")
    folder = programs(root, toolchain)
    command = ["make", "-j2", "-C", str(NATIVE), f"MPICC={compiler}", f"BUILD={folder.resolve()}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if "error" in line.lower()] or run.stderr.splitlines()[-1:]
        raise UserError(f"the native programs do not compile with {compiler}: {one_line(' '.join(lines[:2]))}")
    return folder
