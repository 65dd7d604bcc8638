"""Programs for tests that build or run native code: built once, shared by all tests of a session."""

import gc
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from commodel.platforms.build import build_toolchain, get_program_folder
from commodel.platforms.tools import ROOT, find_tool
from tests.once import made_once
from tests.overlay import building as overlay

# A slow moment of the machine is not a failure. What holds of a commit once holds of it again: `make test-random` looks
# for new examples.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("same examples")

LONGEST = ("tests/workflow/", *(f"tests/lab/test_slurm_{name}" for name in ("survey", "docs", "campaign")))

# Tables have 100 columns without a terminal, whatever the terminal or the runner of the tests says of its own width.
os.environ.pop("COLUMNS", None)

# A shell starts what it puts into the background deaf to Ctrl-C, as nohup does to SIGHUP, and all that tests start
# would inherit that. Other handlers are not inherited.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler)


@pytest.fixture(scope="session")
def simgrid_programs(tmp_path_factory):
    """Return the folder of native programs for SimGrid; without SimGrid, skip the test."""
    if find_tool("smpicc") is None:
        pytest.skip("no SimGrid here")
    return built(tmp_path_factory, "smpi")


@pytest.fixture(scope="session")
def mpi_programs(tmp_path_factory):
    return built(tmp_path_factory, "mpi")


@pytest.fixture(scope="session")
def overlay_programs(tmp_path_factory):
    """Return the folder of the overlay network's library and programs, which need no MPI."""
    return built(tmp_path_factory, "overlay")


@pytest.fixture(scope="session")
def checked_programs(tmp_path_factory):
    """Return the folder of the overlay network and its test programs with sanitizers, for its tests and for fuzzing."""
    if find_tool("cc") is None:
        pytest.skip("no cc here")
    make = partial(overlay.build, flags=overlay.CHECKED, programs=("drive", "parts", "hostile"))
    return made_once(tmp_path_factory, "overlay-checked", make)


def built(factory: pytest.TempPathFactory, toolchain: str) -> Path:
    """Build a toolchain in one worker only, since all workers build in the same folder."""
    made_once(factory, f"built-{toolchain}", lambda _: build_toolchain(ROOT, toolchain))
    return get_program_folder(ROOT, toolchain)


def pytest_collection_modifyitems(items):
    """Run whole campaigns first, since the slowest files would otherwise run last on a single worker."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish():
    """Exclude the collected tests from garbage collection, since all of them are kept until the end."""
    gc.collect()
    gc.freeze()
