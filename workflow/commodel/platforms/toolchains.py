"""Toolchains: native programs that one compiler builds into one folder (`list_toolchains`), and the
digest of their sources (`compute_native_digest`).

Extensions add folders to a toolchain, or bring toolchains of their own: `Native` of
`commodel.extensions`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from commodel.extensions import Native, list_natives, report_problem
from commodel.platforms.tools import NATIVE

MPI_TOOLCHAINS = ("mpi", "smpi")  # compiled by an MPI's compiler
LITERALS_AND_COMMENTS = re.compile(
    rb"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|/\*.*?\*/|//[^\n]*""", re.DOTALL
)


@dataclass(frozen=True)
class Toolchain:
    """Native programs in one build folder."""

    compiler: str  # program that compiles them
    sentence: str  # for the help of `commodel build`
    folders: tuple[Path, ...]  # compiled in this order, each by its Makefile
    sources: tuple[tuple[Path, str], ...]  # folders with patterns of files in them
    # MODULE:FUNCTION: each returns further variables of make by name
    settings: tuple[str, ...] = ()

    def add(self, folder: Path, native: Native) -> Toolchain:
        """Return the toolchain with programs of an extension, whose package is in `folder`."""
        return replace(
            self,
            folders=(*self.folders, *(folder / part for part in native.folders)),
            sources=(
                *self.sources,
                *((NATIVE, pattern) for pattern in native.core_sources),
                *((folder, pattern) for pattern in native.sources),
            ),
            settings=(*self.settings, *([native.settings] if native.settings else [])),
        )

    def list_sources(self) -> list[Path]:
        """Return the files of all patterns, each once."""
        paths: list[Path] = []
        for folder, pattern in self.sources:
            paths += sorted(folder.glob(pattern))
        return list(dict.fromkeys(paths))


def _make(
    compiler: str,
    sentence: str,
    root: Path,
    folders: tuple[str, ...],
    sources: tuple[str, ...],
    settings: str = "",
) -> Toolchain:
    """Return a toolchain whose paths are relative to one folder."""
    empty = Toolchain(compiler=compiler, sentence=sentence, folders=(), sources=())
    return empty.add(root, Native("", folders, sources, settings=settings))


PROGRAMS = ("Makefile", "programs.mk", "harness/*.[ch]", "player/*.[ch]", "probes/*.[ch]")
CORE = {
    "mpi": _make(
        "mpicc",
        "Probes, player and kernels, with the MPI library here (default).",
        NATIVE,
        (".",),
        PROGRAMS,
    ),
    "smpi": _make("smpicc", "The same programs for SimGrid.", NATIVE, (".",), PROGRAMS),
    "replay": _make(
        "cc",
        "The library that replays schedules, for this installation.",
        NATIVE,
        ("replay",),
        ("replay/*.[ch]", "replay/Makefile"),
    ),
}


@lru_cache
def list_toolchains() -> dict[str, Toolchain]:
    """Return the toolchains of the core and of extensions by name."""
    toolchains = dict(CORE)
    for name, folder, native in list_natives():
        known = toolchains.get(native.toolchain)
        if known is None and not native.compiler:
            report_problem(name, f"found toolchain '{native.toolchain}' without a compiler")
        elif known is not None and native.compiler:
            report_problem(name, f"found toolchain '{native.toolchain}', which another package has")
        else:
            first = known or Toolchain(
                compiler=native.compiler, sentence=native.sentence, folders=(), sources=()
            )
            toolchains[native.toolchain] = first.add(folder, native)
    return toolchains


def list_native_sources(toolchain: str) -> list[Path]:
    """Return the C sources and makefiles of a build."""
    return list_toolchains()[toolchain].list_sources()


@lru_cache
def compute_native_digest(substrate: str = "mpi") -> str:
    """Return the digest of the code that measures: another player makes other measurements,
    comments do not."""
    hashed = hashlib.blake2b(digest_size=6)
    for path in list_native_sources(substrate):
        content = path.read_bytes()
        code = content if path.name == "Makefile" else LITERALS_AND_COMMENTS.sub(rb"\1 ", content)
        hashed.update(path.name.encode() + b"\0" + b" ".join(code.split()))
    return hashed.hexdigest()
