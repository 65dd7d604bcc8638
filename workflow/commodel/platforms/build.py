"""Compilation of the native programs (`build_toolchain`), e.g. into build/mpi with the installed
MPI, into build/smpi with SimGrid's compiler."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from commodel.errors import UserError, make_printable
from commodel.extensions import load_function
from commodel.files.atomic import write_text
from commodel.platforms.mpi_libraries import explain_mismatch, find_library_version
from commodel.platforms.toolchains import MPI_TOOLCHAINS, list_toolchains
from commodel.platforms.tools import NATIVE, find_sibling, find_tool

MPI_STARTERS = ("mpiexec", "mpirun")


def get_program_folder(root: Path, toolchain: str) -> Path:
    """Return the folder of a toolchain's programs."""
    return root / "build" / toolchain


def find_starter(toolchain: str, names: Iterable[str]) -> str | None:
    """Return one of the starters.

    The starter of an MPI is searched first in the compiler's folder, so that it is of the same MPI
    as the programs. Others, such as srun and smpirun, are found on PATH."""
    compiler = list_toolchains()[toolchain].compiler
    starters_of_compiler = [find_sibling(compiler, name) for name in names if name in MPI_STARTERS]
    return next(filter(None, [*starters_of_compiler, *map(find_tool, names)]), None)


def note_compiler(root: Path, toolchain: str) -> Path:
    """Record the compiler in a file, and return the file. It becomes newer than the programs when
    the compiler changes."""
    note = get_program_folder(root, toolchain) / "compiler"
    identity = _identify_compiler(toolchain)
    if not (identity or note.exists()):
        raise UserError(f"no {list_toolchains()[toolchain].compiler} found; see commodel doctor")
    if identity and not (note.exists() and note.read_text(encoding="utf-8").strip() == identity):
        write_text(note, f"{identity}\n")
    return note


def _identify_compiler(toolchain: str) -> str:
    """Return a text that identifies the compiler: its chain of links, and size and time of the
    file.

    /usr/bin/mpicc may link to the compiler of any installed MPI, and packages are upgraded in
    place. All links are included, since Open MPI's compilers for all languages are links to one
    program.
    """
    path = find_tool(list_toolchains()[toolchain].compiler)
    if not path:
        return ""
    links = [Path(path)]
    while links[-1].is_symlink():
        links.append(links[-1].parent / links[-1].readlink())
    state = links[-1].stat()
    return " ".join(map(str, [*links, state.st_size, int(state.st_mtime)]))


def refuse_mismatched_starter(root: Path, starter: str, slurm_mpi: str = "") -> None:
    """Raise an error if programs and starter are of different MPIs: each rank would then run as
    rank 0 of 1."""
    why = explain_mismatch(
        find_library_version([str(get_program_folder(root, "mpi") / "player")]),
        starter,
        slurm_mpi,
    )
    if not why:
        return
    name = Path(starter).name
    if slurm_mpi:
        advice = "write mpi: pmix in section slurm of the platform file"
    # another compiler compiled the programs
    elif find_sibling(list_toolchains()["mpi"].compiler, name) == starter:
        advice = "call commodel build mpi"
    else:
        advice = (
            f"put the mpicc and the {name} of one MPI first on PATH, and call commodel build mpi"
        )
    raise UserError(f"the native programs have {why}; {advice}")


def build_toolchain(root: Path, toolchain: str) -> Path:
    """Compile the native programs of a toolchain whose sources have changed, and return their
    folder."""
    entry = list_toolchains()[toolchain]
    compiler = find_tool(entry.compiler)
    if compiler is None:
        raise UserError(f"no {entry.compiler} found; see commodel doctor")
    folder = get_program_folder(root, toolchain)
    settings = (
        {"MPICC": compiler}
        if toolchain in MPI_TOOLCHAINS
        else {"CC": find_tool("cc"), "CXX": compiler}
    )
    for place in entry.settings:
        settings |= load_function(place)()
    settings |= {
        "NATIVE": str(NATIVE),
        "BUILD": str(folder.resolve()),
        "IDENTITY": _identify_compiler(toolchain),
    }
    variables = [f"{name}={value}" for name, value in settings.items()]
    for source_folder in entry.folders:
        command = ["make", "-j2", "-C", str(source_folder), *variables]
        run = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if run.returncode:
            errors = run.stderr.splitlines()
            lines = [line for line in errors if "error" in line.lower()] or errors[-1:]
            raise UserError(
                f"the native programs do not compile with {compiler}: {make_printable(' '.join(lines[:2]))}"
            )
    return folder
