"""The native readers, built with the sanitizers of addresses and of undefined behaviour, and fed one file at a time."""

import os
import resource
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from commodel.errors import UserError
from commodel.platforms.tools import ROOT, find_tool

NATIVE = ROOT / "workflow" / "native"
PARTS = ("harness/cases.c", "harness/text.c", "harness/errors.c", "player/schedule.c", "kernels/partition.c")
CLEAN = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1"]
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
REFUSED = 2


@lru_cache
def folder() -> tempfile.TemporaryDirectory:
    """Gone when the tests are."""
    return tempfile.TemporaryDirectory(prefix="commodel-fuzz-")


@lru_cache
def program() -> Path:
    built = Path(folder().name) / "parsers"
    include = ["-I", NATIVE / "harness", "-I", NATIVE / "player", "-I", NATIVE / "kernels"]
    sources = [Path(__file__).with_name("parsers.c"), *(NATIVE / part for part in PARTS)]
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", *CLEAN]
    done = subprocess.run([find_tool("mpicc"), *flags, *include, *sources, "-o", built], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


def read(kind: str, path: Path) -> None:
    """A value, or one line and the code of a user's mistake; a sanitizer's report is neither."""
    settings = {"env": os.environ | OPTIONS, "timeout": 120, "preexec_fn": all_addresses}
    done = subprocess.run([program(), kind, path], capture_output=True, **settings)
    said = done.stderr.decode(errors="replace")
    if done.returncode == REFUSED:
        assert said.count("\n") == 1, said
        raise UserError(said)
    assert done.returncode == 0, said


def all_addresses() -> None:
    """The sanitizer lays out terabytes that it never touches."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
