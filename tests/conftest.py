"""Programs for tests that build or run native code: built once, shared by all tests of a
session."""

import gc
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from commodel.platforms.build import build_toolchain, get_program_folder
from commodel.platforms.tools import ROOT, find_tool
from tests.once import made_once
from tests.overlay import building as overlay
from tests.processes import arguments, await_end, kill

# A slow moment of the machine is not a failure. What holds of a commit once holds of it again:
# `make test-random` looks for new examples.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("same examples")

TEST_RUN = "COMMODEL_TEST_RUN"  # environment variable of all that a run of the tests starts
MISSING = re.compile(r"no (\w+) here$")  # the reason of a test that is skipped without a program
# environment variable: without one of these, the run fails
NEEDED_PROGRAMS = "COMMODEL_NEEDED_PROGRAMS"
LEFT_SECONDS = 20.0  # seconds after the tests in which processes may end
LONGEST = (
    "tests/workflow/",
    "tests/test_docs_commands",
    "tests/test_extensions",
    "tests/tune/test_native_library",
    *(f"tests/labs/test_slurm_{name}" for name in ("survey", "docs", "campaign")),
)

# Tables have 100 columns without a terminal, whatever the terminal or the runner of the tests says
# of its own width.
os.environ.pop("COLUMNS", None)

# A shell starts what it puts into the background deaf to Ctrl-C, as nohup does to SIGHUP, and all
# that tests start would inherit that. Other handlers are not inherited.
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
    """Return the folder of the overlay network and its test programs with sanitizers, for its tests
    and for fuzzing."""
    if find_tool("cc") is None:
        pytest.skip("no cc here")
    make = partial(overlay.build, flags=overlay.CHECKED, programs=("drive", "parts", "hostile"))
    return made_once(tmp_path_factory, "overlay-checked", make)


def built(factory: pytest.TempPathFactory, toolchain: str) -> Path:
    """Build a toolchain in one worker only, since all workers build in the same folder."""
    made_once(factory, f"built-{toolchain}", lambda _: build_toolchain(ROOT, toolchain))
    return get_program_folder(ROOT, toolchain)


def pytest_collection_modifyitems(items):
    """Run whole campaigns first, since the slowest files would otherwise run last on a single
    worker."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_configure(config):
    """Mark all that the tests start, in this process or in its workers, which inherit the
    variable."""
    if not hasattr(config, "workerinput"):
        os.environ[TEST_RUN] = f"{ROOT}:{os.getpid()}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Fail if a needed program was missing, or if a process that the tests started is left. Print
    the command line of such a process, and kill it."""
    if hasattr(session.config, "workerinput"):
        return
    render = sys.modules.get("commodel.reports.pictures.render")
    if render:  # it would end with this process
        render.end_drawing()
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    needed = os.environ.get(NEEDED_PROGRAMS, "").split()
    if reporter and not set(needed).isdisjoint(list_missing_programs(reporter)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    left = await_end(f"{TEST_RUN}={os.environ[TEST_RUN]}", LEFT_SECONDS)
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        lines = [f"{process} {' '.join(arguments(process))}" for process in left]
        for line in ["", "processes that the tests started are left:", *lines]:
            session.config.get_terminal_writer().line(line, red=True)
        kill(left)


def list_missing_programs(terminalreporter) -> dict[str, int]:
    """Return the programs that were missing, each with the number of tests that were skipped for
    it."""
    reasons = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    found = [match[1] for match in map(MISSING.search, reasons) if match]
    return {name: found.count(name) for name in sorted(set(found))}


def pytest_terminal_summary(terminalreporter):
    """Name the programs that were missing at the end of the run."""
    for name, count in list_missing_programs(terminalreporter).items():
        terminalreporter.line(
            f"missing here: {name}, which {count} test{'s' * (count > 1)} need{'s' * (count == 1)}"
        )


def pytest_collection_finish():
    """Exclude the collected tests from garbage collection, since all of them are kept until the
    end. Collect rarely: few tests make cycles, and each collection looks at all modules."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
