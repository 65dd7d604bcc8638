"""Compilation of the native programs (`build`): build/mpi with the MPI at hand, build/smpi with SimGrid's compiler."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.files.atomic import write_text
from commodel.platforms.mpi_libraries import library_of, mismatch
from commodel.platforms.tools import NATIVE, find, find_sibling

COMPILERS = {"mpi": "mpicc", "smpi": "smpicc", "overlay": "cc", "mrnet": "c++", "replay": "cc"}
MRNET = "mrnet_commnode"  # the program of its internal processes, in bin of where it is installed
MRNET_PARTS = ("include/mrnet/MRNet.h", "lib/libmrnet.*", "lib/libxplat.*")
OF_AN_MPI = ("mpiexec", "mpirun")
PARTS = {
    "overlay": ("overlay", "bench"),
    "mrnet": ("overlay", "bench", "mrnet"),
    "replay": ("replay",),
}  # made one after the other


def programs(root: Path, toolchain: str) -> Path:
    """Return the folder of a toolchain's programs."""
    return root / "build" / toolchain


def starter(toolchain: str, names: Iterable[str]) -> str | None:
    """Return one of the starters.

    An MPI's own starter is the one in the compiler's folder, so that programs and starter belong together. Others, such
    as srun and SimGrid's, are found on PATH.
    """
    beside_compiler = [find_sibling(COMPILERS[toolchain], name) for name in names if name in OF_AN_MPI]
    return next(filter(None, [*beside_compiler, *map(find, names)]), None)


def compiler_note(root: Path, toolchain: str) -> Path:
    """Return a file that becomes newer than the programs when the compiler changes."""
    note = programs(root, toolchain) / "compiler"
    identity = _identity(toolchain)
    if not (identity or note.exists()):
        raise UserError(f"no {COMPILERS[toolchain]} found; see commodel doctor")
    if identity and not (note.exists() and note.read_text(encoding="utf-8").strip() == identity):
        write_text(note, f"{identity}\n")
    return note


def _identity(toolchain: str) -> str:
    """Return what distinguishes compilers under the same path.

    On distributions, /usr/bin/mpicc links to the preferred MPI's compiler, and packages are upgraded in place. All
    links count, since the last one of Open MPI leads to the same program for every language.
    """
    if not (path := find(COMPILERS[toolchain])):
        return ""
    links = [Path(path)]
    while links[-1].is_symlink():
        links.append(links[-1].parent / links[-1].readlink())
    state = links[-1].stat()
    return " ".join(map(str, [*links, state.st_size, int(state.st_mtime)]))


def refuse_foreign(root: Path, starter: str, slurm_mpi: str = "") -> None:
    """Raise an error for programs of one kind of MPI and a starter of another, which would run each rank as rank 0 of
    1."""
    if not (why := mismatch(library_of([str(programs(root, "mpi") / "player")]), starter, slurm_mpi)):
        return
    name = Path(starter).name
    if slurm_mpi:
        advice = "say mpi: pmix in section slurm of the platform file"
    elif find_sibling(COMPILERS["mpi"], name) == starter:  # which has not compiled them
        advice = "call commodel build mpi"
    else:
        advice = f"put the mpicc and the {name} of one MPI first on PATH, and call commodel build mpi"
    raise UserError(f"the native programs have {why}; {advice}")


def _mrnet() -> Path:
    """Return the folder where MRNet is installed."""
    wanted = "wanted MRNet as its make install lays it out: bin, include and lib in one folder, whose bin is on PATH"
    if (commnode := find(MRNET)) is None:
        raise UserError(f"found no {MRNET} on PATH, {wanted}; see commodel doctor")
    folder = Path(commnode).resolve().parents[1]
    for part in MRNET_PARTS:
        if not any(folder.glob(part)):
            raise UserError(f"{folder}: found no {part}, {wanted}")
    return folder


def build(root: Path, toolchain: str) -> Path:
    """Compile what has changed."""
    compiler = find(COMPILERS[toolchain])
    if compiler is None:
        raise UserError(f"no {COMPILERS[toolchain]} found; see commodel doctor")
    folder = programs(root, toolchain)
    with_compiler = [f"CC={find('cc')}", f"CXX={compiler}"] if toolchain in PARTS else [f"MPICC={compiler}"]
    if toolchain == "mrnet":
        with_compiler += [f"MRNET={_mrnet()}", "SUBSTRATE=MRNet", "PROGRAM=mrnet-bench"]
    for part in PARTS.get(toolchain, (".",)):
        command = ["make", "-j2", "-C", str(NATIVE / part), *with_compiler, f"BUILD={folder.resolve()}"]
        command.append(f"IDENTITY={_identity(toolchain)}")
        run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if run.returncode:
            errors = run.stderr.splitlines()
            lines = [line for line in errors if "error" in line.lower()] or errors[-1:]
            raise UserError(f"the native programs do not compile with {compiler}: {one_line(' '.join(lines[:2]))}")
    return folder
