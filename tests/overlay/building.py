"""Compiles the test programs of the overlay network, and where other flags are wanted the network too."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from commodel.platforms.tools import NATIVE

HERE = Path(__file__).parent
SOURCES = NATIVE / "overlay"
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
# The sanitizers of addresses, of leaks and of undefined behaviour.
CHECKED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
PROGRAMS = {"drive": ["drive.c", "answers.c"], "parts": ["parts.c"], "speed": ["speed.c", "bare.c"]}
PROGRAMS |= {"hostile": ["hostile.c"], "threads": ["threads.c"]}


def run_clean(command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=300, **more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def build(folder: Path, flags: str, programs: Iterable[str]) -> None:
    """The library and these programs."""
    run_clean(["make", "-j2", "-C", SOURCES, f"BUILD={folder}", f"CFLAGS={flags}"])
    link(folder, flags, programs)


def build_filters(source: Path, out: Path, flags: str = "") -> Path:
    """Return the shared object of a C file's filters."""
    run_clean(["cc", *FLAGS, *flags.split(), "-shared", "-fPIC", "-I", SOURCES, source, "-o", out])
    return out


def link(folder: Path, flags: str, programs: Iterable[str]) -> None:
    """With the library that is there. What a program defines itself, as `hostile` does, is not taken from it."""
    for name in programs:
        sources = [HERE / file for file in PROGRAMS[name]]
        libraries = [folder / "liboverlay.a", "-ldl", "-lm", "-lpthread", "-rdynamic", "-o", folder / name]
        run_clean(["cc", *FLAGS, *flags.split(), "-I", SOURCES, *sources, *libraries])
