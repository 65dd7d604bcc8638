"""Kinds of MPI: that of a program (`library_of`), that of a starter (`kind`), and whether they are compatible
(`mismatch`).

Versions of one kind start each other's programs: MPICH 4.0 and 5.0, Open MPI 4.1 and 5.0. With two kinds, every rank
becomes rank 0 of 1.
"""

import json
import re
from pathlib import Path

from commodel.errors import UserError
from commodel.platforms.tools import run_tool

# How an MPI library names itself, and how the starter does that understands it.
KINDS = {
    "MPICH": re.compile(r"MPICH|MVAPICH|Intel\(R\) MPI|HYDRA", re.IGNORECASE),
    "Open MPI": re.compile(r"Open MPI|OpenRTE|PRRTE", re.IGNORECASE),
}
NEEDS_PMIX = re.compile(r"Open MPI v([5-9]|\d\d)\.")  # older ones may have been built for PMI-2, too


def kind(text: str) -> str:
    """Return MPICH or Open MPI; '' for starters of either, such as srun, and for unknown ones."""
    return next((name for name, pattern in KINDS.items() if pattern.search(text)), "")


def library_of(command: list[str]) -> str:
    """Return the MPI library that a native program loads; '' if it does not start without its starter."""
    try:
        return str(json.loads(_printed([*command, "--describe"]))["mpi"])
    except (ValueError, KeyError, TypeError):
        return ""


def kind_of_starter(starter: str) -> str:
    return kind(_printed([starter, "--version"]))


def mismatch(library: str, starter: str, slurm_mpi: str = "") -> str:
    """Return why a starter cannot start programs of a library as one job; '' if it can, as far as is known.

    `slurm_mpi` is srun's protocol. Facts unknown here, such as whether an MPICH has PMIx, are checked by the ranks
    before they measure.
    """
    own, wanted = kind(library), kind_of_starter(starter)
    if own and wanted and own != wanted:
        return f"{own} ({library}), but {starter} is of {wanted}: every rank would believe that it is rank 0 of 1"
    if slurm_mpi == "pmi2" and NEEDS_PMIX.search(library):
        return f"Open MPI ({library}), which has no pmi2: every rank would believe that it is rank 0 of 1"
    return ""


def _printed(command: list[str]) -> str:
    """Return what a command prints, or '' if it does not end well."""
    reply = run_tool(command, 60)
    return "" if reply.failure else reply.output


def shared_library(program: Path) -> Path:
    """Return the file of the MPI library that a native program loads."""
    lines = re.findall(r"^\s*libmpi\S* => (/\S.*) \(0x", _printed(["ldd", str(program)]), re.MULTILINE)
    if not lines:
        raise UserError("found no MPI library that this program loads", file=program)
    return Path(lines[0])
