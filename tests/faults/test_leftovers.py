"""What ranks share on their machine is gone with them, however a measurement is stopped."""

import os
import signal
from pathlib import Path

import pytest

from commodel.platforms.mpi_libraries import kind, library_of
from tests.processes import still_there
from tests.waiting import until

pytestmark = pytest.mark.alone

SHARED = Path("/dev/shm")


def shared_by(ranks):
    """The files there that these processes have in memory, by the names that they were made under."""
    maps = [line for rank in ranks for line in Path(f"/proc/{rank}/maps").read_text().splitlines()]
    return {Path(line.split()[5]) for line in maps if f" {SHARED}/" in line}


def lasting(files):
    """These files, once none of them is one that MPICH makes for a moment, while its ranks find their shared memory."""
    return files and not any(path.name.startswith("mpich_shar_tmp") and path.exists() for path in files) and files


def end(driver, ranks, strike):
    """Ends the measurement, or brings a case down and lets the next ones be measured."""
    if strike in (signal.SIGINT, signal.SIGTERM):
        driver.send_signal(strike)
    elif strike == "a rank is killed":
        os.kill(ranks[-1], signal.SIGKILL)
    elif strike == "the driver is killed":
        driver.kill()
    else:
        os.kill(ranks[-1], signal.SIGSTOP)
    driver.communicate(timeout=600)


@pytest.mark.parametrize(
    "strike", [signal.SIGINT, signal.SIGTERM, "a rank is killed", "a rank hangs", "the driver is killed"]
)
def test_nothing_shared_outlives_a_stopped_measurement(campaign, mpi_programs, tmp_path, monkeypatch, strike):
    session = tmp_path / "session"
    session.mkdir()
    monkeypatch.setenv("TMPDIR", str(session))
    here = campaign(points=2, seconds="5 s", timeout="3 s")
    with here.start() as driver:
        ranks = until(lambda: here.now() and here.ranks(driver), by=driver)
        shared = until(lambda: lasting(shared_by(ranks)), by=driver)
        end(driver, ranks, strike)
    assert not still_there(ranks)
    if strike == "the driver is killed" and kind(library_of([str(mpi_programs / "player")])) == "Open MPI":
        return  # its mpiexec is alone then, and removes them in four cases of five
    assert not [path for path in shared if path.exists()]
    assert not [path for path in session.rglob("*") if not path.is_dir()]
