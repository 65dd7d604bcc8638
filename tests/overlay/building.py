"""Compile the test programs of the overlay network, and the network itself if other compiler flags
are given."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from commodel.platforms.tools import ROOT

HERE = Path(__file__).parent
SOURCES = ROOT / "workflow/commodel_overlay/native/overlay"
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
# The sanitizers of addresses, of leaks and of undefined behaviour.
CHECKED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
PROGRAMS = {"drive": ["drive.c", "answers.c"], "parts": ["parts.c"], "speed": ["speed.c", "bare.c"]}
PROGRAMS |= {"hostile": ["hostile.c"], "threads": ["threads.c"]}


def run_clean(command, **more):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=300, **more
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def build(folder: Path, flags: str, programs: Iterable[str]) -> None:
    """Build the library and these programs with these compiler flags."""
    run_clean(["make", "-j2", "-C", SOURCES, f"BUILD={folder}", f"CFLAGS={flags}"])
    link(folder, flags, programs)


def build_filters(source: Path, out: Path, flags: str = "") -> Path:
    """Return the shared object of a C file's filters."""
    run_clean(["cc", *FLAGS, *flags.split(), "-shared", "-fPIC", "-I", SOURCES, source, "-o", out])
    return out


def link(folder: Path, flags: str, programs: Iterable[str]) -> None:
    """Link programs with the existing library. Functions that a program defines, as `hostile` does,
    replace the library's."""
    for name in programs:
        sources = [HERE / file for file in PROGRAMS[name]]
        libraries = [
            folder / "liboverlay.a",
            "-ldl",
            "-lm",
            "-lpthread",
            "-rdynamic",
            "-o",
            folder / name,
        ]
        run_clean(["cc", *FLAGS, *flags.split(), "-I", SOURCES, *sources, *libraries])
