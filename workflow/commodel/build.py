"""Compiles the native programs: build/mpi with the MPI at hand, build/smpi with SimGrid's compiler."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.tables import write_text
from commodel.toolchain import NATIVE, beside, find

COMPILERS = {"mpi": "mpicc", "smpi": "smpicc"}


def programs(root: Path, toolchain: str) -> Path:
    """The folder of the programs that a toolchain built."""
    return root / "build" / toolchain


def starter(toolchain: str, names: Iterable[str]) -> str | None:
    """One of the starters. Of an MPI the one beside the compiler, so that programs and what starts them belong
    together; else, as of srun and of SimGrid, of which there is one only, what PATH has."""
    beside_compiler = [beside(COMPILERS["mpi"], name) for name in names] if toolchain == "mpi" else []
    return next(filter(None, [*beside_compiler, *map(find, names)]), None)


def compiler_note(root: Path, toolchain: str) -> Path:
    """A file that is younger than the programs when another compiler than theirs is at hand now."""
    note = programs(root, toolchain) / "compiler"
    found = find(COMPILERS[toolchain])
    if found and not (note.exists() and note.read_text(encoding="utf-8").strip() == found):
        write_text(note, f"{found}\n")
    return note


def refuse_foreign(root: Path, toolchain: str, starter: str) -> None:
    """Programs of one MPI that another's starter runs are so many times rank 0 of 1."""
    command = programs(root, toolchain) / "obj" / "command"
    compiler = shutil.which(COMPILERS[toolchain], path=Path(starter).parent)
    if compiler and command.exists() and (built := command.read_text(encoding="utf-8").split()[0]) != compiler:
        raise UserError(
            f"found programs that {built} compiled, wanted those of {compiler}, which is beside {starter}; "
            f"call commodel build {toolchain}"
        )


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
