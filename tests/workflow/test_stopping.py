"""A campaign that is stopped in any way: its jobs end, no incomplete file remains, and the next run
continues."""

import os
import pty
import signal
import sys
import time

import pytest

from commodel.api.snakemake_runs import STOPPING_TEXT, run_snakemake
from commodel.plan.planning import load_plan
from tests.processes import family, still_there

STOPPED = """
import signal, subprocess, sys, time
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
print("at work", flush=True)
while not got:
    time.sleep(0.01)
"""
SLOW_TO_STOP = f"""{STOPPED}
time.sleep(3)
print(len(got), "asked to stop", flush=True)
"""
STARTS_A_JOB_TOO_LATE = f"""{STOPPED}
job = "import time; from commodel.platforms.slurm import check_stop\\nwhile True: check_stop(); time.sleep(0.1)"
print("the job ended with", subprocess.run([sys.executable, "-c", job]).returncode, flush=True)
"""
ENDS_AT_ONCE = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: exit(1))
print("begins", flush=True)
time.sleep(0.2)
print("at work", flush=True)
time.sleep(60)
"""


def test_ctrl_c_stops_all_jobs_and_costs_nothing_that_is_done(finished):
    """On a terminal, the progress line is rewritten, and erased at the end."""
    project, barrier = finished, finished.barrier()
    before = project.raw_files()
    path = project.folder / "params/experiments/small.yaml"
    path.write_text(path.read_text().replace("bytes: [8, 1KiB]", "bytes: [8, 1KiB, 2KiB]"))
    barrier.lower()
    project.environment["COLUMNS"] = "120"
    screen, terminal = pty.openpty()
    at_work = project.start(
        "commodel", "run", "small", stdin=terminal, stdout=terminal, stderr=terminal
    )
    barrier.await_one(at_work)
    os.close(terminal)
    shown = b""
    while b"running" not in shown:  # the end of the line
        shown += os.read(screen, 4096)
    started = family(at_work.pid)
    assert len(started) > 3  # Snakemake, a shell, the driver, the program
    os.kill(at_work.pid, signal.SIGINT)
    try:
        while chunk := os.read(screen, 4096):
            shown += chunk
    except OSError:  # nobody has the terminal any more
        pass
    assert at_work.wait() == 130
    lines = [
        line.rpartition("\r\x1b[K") for line in shown.decode().replace("\r\n", "\n").split("\n")
    ]
    rewritten = [line for before, mark, _ in lines if mark for line in before.split("\r\x1b[K")]
    assert any("35 of 41 measured" in line and "expected end" in line for line in rewritten)
    left = [line for _, _, line in lines if line]
    assert not any(" measured" in line for line in left[:-1] if "expected end" in line)
    assert (
        left[-1]
        == "commodel: stopped by Ctrl-C; measured cases are kept, and the next run continues"
    )
    assert "Error" not in shown.decode()
    assert "Traceback" not in shown.decode()
    assert not still_there(started)
    assert not list(project.folder.glob("results/**/.*.tmp"))
    assert project.raw_files() == before
    assert "stopped from outside" in " ".join(project.verb("status", "small").split())
    barrier.lift()
    for batch in load_plan(project.folder / "results/small/plan.json").batches:
        project.measure("small", batch.name)
    after = project.raw_files()
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 4 + 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_the_jobs_as_ctrl_c_does(tmp_path, number):
    """The signals are those of a batch system and of a closed terminal."""
    waits = "import time; print('at work', flush=True); time.sleep(100)"

    def on_line(line: str) -> None:
        if line == "at work":
            os.kill(os.getpid(), number)

    assert run_snakemake(
        [sys.executable, "-c", waits], tmp_path / "log", on_line, lambda: None
    ) == (
        -signal.SIGINT,
        number,
    )


def test_a_run_that_has_measured_enough_stops_its_jobs_without_a_signal(tmp_path):
    waits = "import time; print('at work', flush=True); time.sleep(100)"
    lines = []
    ended = run_snakemake(
        [sys.executable, "-c", waits],
        tmp_path / "log",
        lines.append,
        lambda: "at work" in lines,
    )
    assert ended == (-signal.SIGINT, 0)
    assert lines == ["at work"]
    assert (tmp_path / "log.stop").exists()


def test_a_second_ctrl_c_does_not_interrupt_the_cancelling(tmp_path):
    """A second Ctrl-C would end scancel and leave jobs in the queue."""
    lines = []

    def on_line(line: str) -> None:
        lines.append(line)
        for _ in range(2 if line == "at work" else 0):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)

    assert run_snakemake(
        [sys.executable, "-c", SLOW_TO_STOP], tmp_path / "log", on_line, lambda: None
    ) == (
        0,
        signal.SIGINT,
    )
    assert (tmp_path / "log").read_text() == "at work\n1 asked to stop\n"
    assert set(lines) == {"at work", STOPPING_TEXT}


def test_a_job_that_starts_when_the_others_are_stopped_stops_too(tmp_path):
    def on_line(line: str) -> None:
        if line == "at work":
            os.kill(os.getpid(), signal.SIGINT)

    command = [sys.executable, "-c", STARTS_A_JOB_TOO_LATE]
    assert run_snakemake(command, tmp_path / "log", on_line, lambda: None) == (0, signal.SIGINT)
    assert (tmp_path / "log").read_text() == "at work\nthe job ended with 130\n"
    assert run_snakemake(
        [sys.executable, "-c", "print('at work')"], tmp_path / "log", print, lambda: None
    ) == (0, 0)
    assert not list(tmp_path.glob("*.stop"))  # the next run is not stopped by it


def test_a_job_that_outlives_snakemake_is_stopped_too(tmp_path):
    """Snakemake may end before the next poll, and a submitted Slurm job may begin later."""

    def on_line(line: str) -> None:
        if line == "at work":
            os.kill(os.getpid(), signal.SIGINT)

    assert run_snakemake(
        [sys.executable, "-c", ENDS_AT_ONCE], tmp_path / "log", on_line, lambda: None
    ) == (
        1,
        signal.SIGINT,
    )
    assert (tmp_path / "log.stop").exists()
