"""The MPI of all labs: the MPICH of envs/mpi.lock, whatever else is installed on the machine or stands on PATH."""

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
    """The folder of its programs: this environment's, if it was installed there, else one of its own."""
    beside_python = Path(sys.executable).parent
    if (beside_python / "mpicc").exists():
        return beside_python
    own = ROOT / "build" / "lab-mpich"
    if not (own / "bin" / "mpicc").exists():
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--prefix", own, "--ignore-installed", "-r", LOCK], check=True, timeout=600)
    return own / "bin"


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
