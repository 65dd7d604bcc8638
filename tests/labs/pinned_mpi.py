"""The MPI of all labs is the MPICH of envs/mpi.lock, independent of other MPIs of the machine or on
PATH."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commodel.platforms.tools import ROOT, find_tool

LOCK = ROOT / "envs" / "mpi.lock"


def programs() -> Path:
    """Return the folder of MPICH's programs: this environment's if it has MPICH, else a separate
    installation."""
    beside_python = Path(sys.executable).parent
    if (beside_python / "mpicc").exists():
        return beside_python
    separate = ROOT / "build" / "lab-mpich"
    if not (separate / "bin" / "mpicc").exists():
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "install", "--prefix", separate, "--ignore-installed", "-r", LOCK],
            check=True,
            timeout=600,
        )
    return separate / "bin"


@contextmanager
def first_on_path() -> Iterator[None]:
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{programs()}{os.pathsep}{before}"
    find_tool.cache_clear()
    try:
        yield
    finally:
        os.environ["PATH"] = before
        find_tool.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def pinned_mpi():
    with first_on_path():
        yield
