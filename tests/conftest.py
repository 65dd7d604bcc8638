"""Toolchains for tests that build or run something: made once, shared by all tests of a session."""

import signal

import pytest
from hypothesis import settings

from commodel.platforms.build import build
from commodel.platforms.tools import ROOT, find

settings.register_profile("shared machine", deadline=None)  # a slow moment of the machine is not a failure
settings.load_profile("shared machine")

# A shell starts what it puts into the background deaf to Ctrl-C, as nohup does to SIGHUP, and all that tests start
# would inherit that. Other handlers are not inherited.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler)


@pytest.fixture(scope="session")
def simgrid_programs():
    """The native programs for SimGrid; a machine without SimGrid skips the tests that simulate."""
    if find("smpicc") is None:
        pytest.skip("no SimGrid here")
    return build(ROOT, "smpi")


@pytest.fixture(scope="session")
def mpi_programs():
    return build(ROOT, "mpi")


def pytest_collection_modifyitems(items):
    """Whole campaigns first: the files that take longest should not be what everybody waits for in the end."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/workflow/"))
