"""Fixtures that start the native programs of the kernels, the project of a campaign, and the
comparison of a study."""

import ctypes
import subprocess

import pytest

from commodel.platforms.tools import find_tool
from tests.kernels import gpus
from tests.native.conftest import at_once, oversubscribed, real, relinked, simulated, start
from tests.once import made_once
from tests.reports.conftest import comparison, fewer, small
from tests.workflow.conftest import project

__all__ = [
    "at_once",
    "comparison",
    "fewer",
    "oversubscribed",
    "project",
    "real",
    "relinked",
    "simulated",
    "small",
    "start",
]


@pytest.fixture(scope="session")
def opencl_library(tmp_path_factory):
    sources = (gpus.SOURCES / "opencl.c", gpus.SOURCES / "gpu.c")
    folder = made_once(
        tmp_path_factory,
        "opencl",
        lambda folder: gpus.compile_library(folder, "opencl.so", *sources),
    )
    return folder / "opencl.so"


@pytest.fixture
def gpu(opencl_library):
    """Return pocl's device, or skip the test."""
    gpu, problem = gpus.open_gpu(opencl_library, "opencl", 0, False)
    if gpu is None:
        pytest.skip(f"{problem}: no pocl here")
    if "no CLBlast" in gpus.describe(gpu):
        pytest.skip("no CLBlast here")
    yield gpu
    gpu.close(ctypes.addressof(gpu))


CHECKED = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"


@pytest.fixture(scope="session")
def sanitized(mpi_programs, tmp_path_factory):
    """Return a build of the kernels with the sanitizers for addresses and undefined behaviour."""
    programs = ("summa", "wave2d", "speed")

    def build(folder):
        how = [f"MPICC={find_tool('mpicc')}", f"BUILD={folder}", f"CFLAGS={CHECKED}"]
        how.append("EXTRA_FLAGS=-fopenmp")  # -O3 takes long
        targets = [folder / name for name in programs]
        subprocess.run(["make", "-s", "-j2", "-C", gpus.SOURCES.parent, *how, *targets], check=True)

    return made_once(tmp_path_factory, "checked", build)
