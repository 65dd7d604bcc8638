"""The MPI library that output or a name states, with its version (`find_library`)."""

import re
from collections.abc import Iterable

VERSION = r"[ :v_=/-]{0,12}(?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:rc[0-9]{1,2})?)?"
# By the name that tables show, the first one that occurs; MPICH is a part of other names.
LIBRARIES = {
    "HPC-X": r"hpc-?x",
    "Open MPI": r"open[ -]?mpi|ompi",
    "MVAPICH": r"mvapich[0-9]?(?:-plus)?(?: Version)?",
    "Cray MPICH": r"cray[ _-]?mpich",
    "Intel MPI": r"intel(?:\(R\))?[ _-]?mpi(?! benchmarks)(?: library)?(?: version)?|impi",
    "Spectrum MPI": r"(?:ibm )?spectrum[ _-]?mpi",
    "MPICH": r"mpich(?: version)?",
}
PATTERNS = {
    name: re.compile(rf"(?<![a-z0-9])(?:{words}){VERSION}", re.IGNORECASE)
    for name, words in LIBRARIES.items()
}


def find_library(text: str, names: Iterable[str]) -> str:
    """Return the library that the text of a file states, else the name of the file or of the
    nearest folder, such as `Open MPI 4.1.5`; empty if none does."""
    for part in (text, *names):
        found = _find_name(part)
        if found:
            return found
    return ""


def _find_name(text: str) -> str:
    """Return the library that a text states; a mention with a version goes before one without."""
    without_version = ""
    for name, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            if match["version"]:
                return f"{name} {match['version']}"
            without_version = without_version or name
    return without_version
