"""Kinds of MPI, MPICH or Open MPI: that of a program's library, that of a starter such as mpiexec,
and whether they are compatible (`explain_mismatch`).

Versions of one kind start each other's programs: MPICH 4.0 and 5.0, Open MPI 4.1 and 5.0. With two
kinds, every rank becomes rank 0 of 1.
"""

import json
import re
from pathlib import Path

from commodel.errors import UserError
from commodel.platforms.tools import run_tool

# Texts by which the version of a library or starter identifies its kind.
KINDS = {
    "MPICH": re.compile(r"MPICH|MVAPICH|Intel\(R\) MPI|HYDRA", re.IGNORECASE),
    "Open MPI": re.compile(r"Open MPI|OpenRTE|PRRTE", re.IGNORECASE),
}
# Open MPI 5 and later; earlier versions may be built for PMI-2
WITHOUT_PMI2 = re.compile(r"Open MPI v([5-9]|\d\d)\.")


def find_kind(text: str) -> str:
    """Return `MPICH` or `Open MPI` from a version text; '' if unknown, or for srun, which starts
    programs of both."""
    return next((name for name, pattern in KINDS.items() if pattern.search(text)), "")


def find_library_version(command: list[str]) -> str:
    """Return the version text of the MPI library that a native program loads; '' if the program
    needs a starter."""
    try:
        return str(json.loads(_get_output([*command, "--describe"]))["mpi"])
    except (ValueError, KeyError, TypeError):
        return ""


def find_kind_of_starter(starter: str) -> str:
    return find_kind(_get_output([starter, "--version"]))


def explain_mismatch(library: str, starter: str, slurm_mpi: str = "") -> str:
    """Return why a starter cannot start programs of a library as one job; '' if no reason is known.

    `slurm_mpi` is the protocol by which srun starts MPI programs, such as pmi2. The ranks
    themselves check that they form one job before they measure.
    """
    program_kind = find_kind(library)
    starter_kind = find_kind_of_starter(starter)
    if program_kind and starter_kind and program_kind != starter_kind:
        text = f"{program_kind} ({library}), but {starter} is of {starter_kind}"
        return f"{text}: every rank would run as rank 0 of 1"
    if slurm_mpi == "pmi2" and WITHOUT_PMI2.search(library):
        return f"Open MPI ({library}), which has no pmi2: every rank would run as rank 0 of 1"
    return ""


def _get_output(command: list[str]) -> str:
    """Return the output of a command, or '' if it fails."""
    result = run_tool(command, 60)
    return "" if result.failure else result.output


def find_shared_library(program: Path) -> Path:
    """Return the file of the MPI library that a native program loads."""
    lines = re.findall(
        r"^\s*libmpi\S* => (/\S.*) \(0x", _get_output(["ldd", str(program)]), re.MULTILINE
    )
    if not lines:
        raise UserError("found no MPI library that this program loads", file=program)
    return Path(lines[0])
