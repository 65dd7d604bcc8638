"""Toolchains for tests that build or run something: made once, shared by all tests of a session."""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

from commodel.platforms.build import build, programs
from commodel.platforms.tools import ROOT, find
from tests.once import made_once

settings.register_profile("shared machine", deadline=None)  # a slow moment of the machine is not a failure
settings.load_profile("shared machine")

# A shell starts what it puts into the background deaf to Ctrl-C, as nohup does to SIGHUP, and all that tests start
# would inherit that. Other handlers are not inherited.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler)


@pytest.fixture(scope="session")
def simgrid_programs(tmp_path_factory):
    """The native programs for SimGrid; a machine without SimGrid skips the tests that simulate."""
    if find("smpicc") is None:
        pytest.skip("no SimGrid here")
    return built(tmp_path_factory, "smpi")


@pytest.fixture(scope="session")
def mpi_programs(tmp_path_factory):
    return built(tmp_path_factory, "mpi")


def built(factory: pytest.TempPathFactory, toolchain: str) -> Path:
    """By one worker at a time: all of them build in the same folder."""
    made_once(factory, f"built-{toolchain}", lambda _: build(ROOT, toolchain))
    return programs(ROOT, toolchain)


def pytest_collection_modifyitems(items):
    """Whole campaigns first: the files that take longest should not be what everybody waits for in the end."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/workflow/"))
