"""External programs that commodel starts (`find_tool`, `run_tool`): their paths and versions.
Nothing is installed."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from commodel.sources import INSTALLED, ROOT

NATIVE = ROOT / "workflow" / "native"
# unpacked there by the bootstrap script where there is no root
PRIVATE_SIMGRID = ROOT / ".simgrid" / "usr"


def find_build_root() -> Path:
    """Return the folder below which programs are compiled: the clone, or the project if an
    installation is shared."""
    return Path.cwd() if ROOT == INSTALLED else ROOT


@lru_cache
def find_tool(program: str) -> str | None:
    """Return the path of a program: from PATH first, then from this environment, then from the
    private folder."""
    beside_python = str(Path(sys.executable).parent)
    directories = (None, beside_python, str(PRIVATE_SIMGRID / "bin"))
    return next(
        (path for directory in directories if (path := shutil.which(program, path=directory))), None
    )


def find_sibling(program: str, other: str) -> str | None:
    """Return `other` from the folder of `program`, so that a compiler and its starter belong
    together."""
    path = find_tool(program)
    return path and shutil.which(other, path=str(Path(path).parent))


@dataclass(frozen=True)
class Reply:
    """The output of a program, and why it failed (empty if it did not)."""

    output: str
    errors: str
    failure: str


def run_tool(command: Sequence[str], seconds: float) -> Reply:
    """Run a program that ends at once and reads no input."""
    name = Path(command[0]).name
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Reply("", "", f"{name} timed out after {seconds:.0f} s")
    except OSError as error:
        return Reply("", "", f"{name}: {error.strerror}")
    return Reply(
        run.stdout, run.stderr, f"{name} ended with code {run.returncode}" if run.returncode else ""
    )


def read_version(command: list[str]) -> str:
    """Return the first line with a version number that a version command prints, or why there is
    none."""
    reply = run_tool(command, 20)
    lines = (reply.output + reply.errors).splitlines()
    if not lines and reply.failure:
        return f"does not answer: {reply.failure}"
    return next(
        (" ".join(line.split()) for line in lines if re.search(r"[0-9]+\.[0-9]", line)),
        "prints no version",
    )


@dataclass(frozen=True)
class Tool:
    """A program, what it is needed for, and how to install it."""

    name: str
    program: str
    version_arguments: tuple[str, ...]
    purpose: str
    installation: str


TOOLS = (
    Tool(
        "C compiler",
        "cc",
        ("--version",),
        "building the probes, the player and networks over TCP",
        "apt-get install gcc",
    ),
    Tool(
        "MPI compiler",
        "mpicc",
        ("--version",),
        "measuring on this machine and on clusters",
        "make setup (pip: mpich)",
    ),
    Tool(
        "MPI starter",
        "mpiexec",
        ("--version",),
        "measuring on this machine",
        "make setup (pip: mpich)",
    ),
    Tool(
        "SimGrid compiler",
        "smpicc",
        ("--version",),
        "simulated platforms",
        "make setup (apt: libsimgrid-dev)",
    ),
    Tool(
        "SimGrid starter",
        "smpirun",
        ("-version",),
        "simulated platforms",
        "make setup (apt: libsimgrid-dev)",
    ),
    Tool(
        "Slurm",
        "srun",
        ("--version",),
        "--profile slurm: real clusters",
        "your cluster's login node",
    ),
    Tool(
        "Apptainer",
        "apptainer",
        ("--version",),
        "probes packaged in a container image",
        "your cluster, or its own site",
    ),
    Tool(
        "make", "make", ("--version",), "building the probes and the player", "apt-get install make"
    ),
)
