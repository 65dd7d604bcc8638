"""The native readers, executable with AddressSanitizer and UndefinedBehaviorSanitizer; each run
reads one file."""

import os
import resource
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from commodel.errors import UserError
from commodel.platforms.tools import ROOT, find_tool

NATIVE = ROOT / "workflow" / "native"
KERNELS = ROOT / "workflow/commodel_kernels/native/programs"
PARTS = ("harness/cases.c", "harness/text.c", "harness/errors.c", "player/schedule.c")
SANITIZERS = [
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
]
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
REFUSED = 2


@lru_cache
def folder() -> tempfile.TemporaryDirectory:
    """Return a folder that is removed when the tests end."""
    return tempfile.TemporaryDirectory(prefix="commodel-fuzz-")


@lru_cache
def program() -> Path:
    executable = Path(folder().name) / "parsers"
    include = ["-I", NATIVE / "harness", "-I", NATIVE / "player", "-I", KERNELS]
    sources = [
        Path(__file__).with_name("parsers.c"),
        *(NATIVE / part for part in PARTS),
        KERNELS / "partition.c",
    ]
    flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", *SANITIZERS]
    done = subprocess.run(
        [find_tool("mpicc"), *flags, *include, *sources, "-o", executable],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return executable


def read(kind: str, path: Path) -> None:
    """Read a file. Raise a UserError if it is refused in one line; fail if a sanitizer reports an
    error."""
    settings = {"env": os.environ | OPTIONS, "timeout": 120, "preexec_fn": remove_address_limit}
    done = subprocess.run([program(), kind, path], capture_output=True, **settings)
    message = done.stderr.decode(errors="replace")
    if done.returncode == REFUSED:
        assert message.count("\n") == 1, message
        raise UserError(message)
    assert done.returncode == 0, message


def remove_address_limit() -> None:
    """Allow any address space: the sanitizer reserves terabytes that it never uses."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
