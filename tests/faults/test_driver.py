"""A driver that is killed, interrupted or out of time: its samples are kept, and the next driver
measures only the rest."""

import platform
import signal
import time

import pytest

from commodel.platforms.mpi_libraries import find_kind, find_library_version
from tests.processes import still_there
from tests.waiting import until


@pytest.mark.alone
def test_after_a_killed_driver_the_next_one_measures_only_missing_passes(campaign, mpi_programs):
    here = campaign(passes=2)
    with here.start() as driver:
        until(lambda: len(here.pass_samples(2)) >= 2, by=driver)
        ranks = here.ranks(driver)
        here.note_shared_files(driver)
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    (attempt,) = here.state()["attempts"]
    assert attempt["ended"] is None
    assert attempt["pid"] == driver.pid
    assert attempt["nodes"] == [platform.node()]
    assert not still_there(ranks)
    if find_kind(find_library_version([str(mpi_programs / "player")])) != "Open MPI":
        # Open MPI's mpiexec is alone then, and removes them in four cases of five
        assert not here.left_behind()
    kept = {path: path.stat().st_mtime_ns for number in (1, 2) for path in pass_files(here, number)}
    assert len(kept) >= 4 + 2
    seen = {}
    with here.start() as driver:
        while driver.poll() is None:
            for path in [*pass_files(here, 1), *pass_files(here, 2)]:
                seen[path] = when(path) or seen.get(path)
            time.sleep(0.01)
        complaints = driver.communicate()[1]
    assert driver.returncode == 0, complaints
    assert {path: seen[path] for path in kept} == kept
    assert here.samples() == here.ids
    assert [attempt["outcome"] for attempt in here.state()["attempts"]] == ["", "done"]
    for path in here.raw.glob("*.csv"):
        assert {line.split(",")[1] for line in path.read_text().splitlines()[1:]} == {"1", "2"}


def pass_files(here, number):
    return sorted((here.raw / f".pass-{number}").glob("[!.]*.csv"))


def when(path):
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_sigint_end_the_driver_cleanly(campaign, number):
    here = campaign()
    with here.start() as driver:
        until(here.pass_samples, by=driver)
        ranks = here.ranks(driver)
        here.note_shared_files(driver)
        driver.send_signal(number)
        driver.communicate(timeout=600)
    assert driver.returncode == 128 + number
    assert not still_there(ranks)
    assert not here.left_behind()
    (attempt,) = here.state()["attempts"]
    assert attempt["ended"] >= attempt["started"]
    assert attempt["outcome"] == "error: stopped from outside"
    assert not here.markers()
    done = here.pass_samples()
    assert done
    here.measure()
    assert here.samples() == here.ids


def test_a_case_that_takes_the_whole_job_down_twice_is_not_tried_a_third_time(campaign):
    here = campaign(points=2, seconds="1 s")  # so that it is hit in the middle
    first = ""
    for _ in range(2):
        with here.start() as driver:
            ranks = until(lambda: here.now() and here.ranks(driver), by=driver)
            first = here.now()
            driver.send_signal(signal.SIGKILL)
            driver.communicate()
        assert not still_there(ranks)
    here.measure()
    (marker,) = here.markers().values()
    assert marker["id"] == first
    assert (marker["status"], marker["attempt"]) == ("crash", 3)
    assert "ended without a message" in marker["reason"]
    assert here.samples() == here.ids - {first}
    (here.raw / f"{first}.unmeasured.json").unlink()
    here.measure()  # who removes the marker wants it tried again
    assert here.samples() == here.ids


@pytest.mark.alone
def test_at_the_time_limit_unmeasured_cases_are_marked_and_passes_are_kept(campaign):
    """Three passes over four points take about 4 s; the driver has 3 s, which is 5 % of one
    minute."""
    here = campaign(passes=3, samples=1000000, seconds="1 s", budget="1 min")
    assert here.batch["budget"] == 60
    here.measure_in(0.05)
    passes = {
        path.stem: {line.split(",")[1] for line in path.read_text().splitlines()[1:]}
        for path in here.raw.glob("*.csv")
    }
    assert passes
    assert any(len(numbers) < 3 for numbers in passes.values()) or here.markers()
    assert set(here.markers()) == here.ids - here.samples()
    assert {marker["status"] for marker in here.markers().values()} <= {"budget"}
    (attempt,) = here.state()["attempts"]
    assert attempt["outcome"] == "done"
    assert attempt["ended"] < attempt["deadline"]


@pytest.mark.alone
def test_without_time_for_one_pass_the_rest_is_marked(campaign):
    here = campaign(points=7, samples=1000000, seconds="0.5 s", budget="1 min")
    here.measure_in(0.05)
    assert here.samples()
    assert set(here.markers()) == here.ids - here.samples()
    assert {marker["status"] for marker in here.markers().values()} == {"budget"}


def test_a_second_driver_is_refused_naming_the_first_process(campaign):
    here = campaign(seconds="10 s")
    with here.start() as driver:
        until(here.now, by=driver)
        refused = here.measure(code=2)
        driver.terminate()
        driver.communicate(timeout=600)
    assert "another measurement of this batch is at work already: " in refused.stderr
    assert f", process {driver.pid}, since " in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert [attempt["pid"] for attempt in here.state()["attempts"]] == [driver.pid]


def test_samples_of_a_pass_that_a_lost_machine_tore_are_taken_again(campaign):
    here = campaign(points=4, samples=10, seconds="0.1 s")
    here.measure()
    *torn, other = sorted(here.ids)
    (here.raw / ".pass-1").mkdir()
    for case, text in zip(torn, ("", "id,sample,seconds,skew,valid,stop\n", "half"), strict=True):
        (here.raw / f"{case}.csv").unlink()
        (here.raw / ".pass-1" / f"{case}.csv").write_text(text)
    here.measure()
    assert here.samples() == {*torn, other}
    for case in torn:
        header, *rows = (here.raw / f"{case}.csv").read_text().splitlines()
        assert header == (here.raw / f"{other}.csv").read_text().splitlines()[0]
        assert rows
        assert all(
            row.startswith(f"{case},1,") and row.split(",")[-2] == str(len(rows)) for row in rows
        )
