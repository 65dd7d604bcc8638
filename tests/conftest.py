"""Toolchains for tests that build or run something: made once, shared by all tests of a session."""

import pytest
from hypothesis import settings

from commodel.build import build
from commodel.toolchain import ROOT, find

settings.register_profile("shared machine", deadline=None)  # a slow moment of the machine is not a failure
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def simgrid_programs():
    """The native programs for SimGrid; a machine without SimGrid skips the tests that simulate."""
    if find("smpicc") is None:
        pytest.skip("no SimGrid here")
    return build(ROOT, "smpi")


@pytest.fixture(scope="session")
def mpi_programs():
    return build(ROOT, "mpi")
