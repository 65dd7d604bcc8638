"""Runs a snakemake command as a process of its own, and passes on what should stop it."""

import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from commodel.errors import UserError
from commodel.files.safe_paths import AnyPath
from commodel.platforms.slurm import STOP_FILE
from commodel.results.campaign import HANDED_DOWN

BETWEEN_LOOKS = 2.0  # seconds between two looks at how far it is
PATIENCE = 60.0  # seconds that Snakemake has for cancelling its jobs before it is asked again
GIVING_UP = 90.0  # seconds after which it is not asked any more
STOPPING = "commodel: stopping: jobs are being cancelled, which may take a minute"
STOPPERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Stop:
    """A signal that this process got."""

    number: int
    when: float  # on the clock that never steps


def wait(command: list[str]) -> int:
    """Ctrl-C reaches Snakemake too; it stops its jobs, and only then is there anything to return."""
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def run_snakemake(
    command: list[str],
    log: AnyPath,
    show: Callable[[str], None],
    tick: Callable[[], None],
    hold: TextIO | None = None,
) -> tuple[int, int]:
    """Runs Snakemake in a process group of its own, keeps in `log` all that it and jobs of this machine print, hands on
    each line, and calls `tick` now and then. However this process is asked to stop, Snakemake is asked as by Ctrl-C: it
    cancels its jobs, and what they say to that is kept only. Jobs that only start then find a file that stops them.
    One that does not end is killed. It shares the `hold` on its folder. Returns Snakemake's code, and the signal that
    stopped it or 0."""
    stop_file = log.with_name(f"{log.stem}.stop")
    stop_file.unlink(missing_ok=True)
    shared = [hold.fileno()] if hold else []
    with log.open("wb", buffering=0) as kept:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {STOP_FILE: os.path.abspath(str(stop_file)), HANDED_DOWN: "".join(map(str, shared))},
            pass_fds=shared,
            process_group=0,
        )
        with process, _passed_on(process, stop_file) as stopped:

            def look() -> None:
                if stopped:
                    show(STOPPING)
                    if time.monotonic() - stopped[0].when > GIVING_UP and process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                tick()

            for line in _lines(process, look):
                with suppress(OSError):  # a full disk is for the jobs to complain about
                    kept.write(line)
                if not stopped:
                    show(line.decode(errors="replace").rstrip("\n"))
    return process.returncode, stopped[0].number if stopped else 0


def _lines(process: subprocess.Popen, tick: Callable[[], None]) -> Iterator[bytes]:
    """What a process prints until it has ended; what outlives it may keep the pipe open."""
    pipe, rest, due = process.stdout, b"", 0.0
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        ended = False
        while not ended:
            ended = process.poll() is not None  # before reading: what it printed last is in the pipe by then
            if not ended:
                waiting.select(BETWEEN_LOOKS)
            while chunk := pipe.read(1 << 16):
                *lines, rest = (rest + chunk).splitlines(keepends=True)
                yield from lines
                if rest.endswith(b"\n"):
                    yield rest
                    rest = b""
            if time.monotonic() >= due:
                tick()
                due = time.monotonic() + BETWEEN_LOOKS
    if rest:
        yield rest + b"\n"


@contextmanager
def _passed_on(process: subprocess.Popen, stop_file: AnyPath) -> Iterator[list[Stop]]:
    """While it lasts, what should stop this process stops that one's group; what was ignored (nohup) still is. Only
    once: a second Ctrl-C would end the scancel that the first one has started, and leave the jobs in the queue. The
    file is there at once: that process may be gone long before the next look, and a job that it handed in not yet."""
    stopped: list[Stop] = []
    passed = -math.inf

    def stop(number: int, frame: object) -> None:
        nonlocal passed
        stopped.append(Stop(number, time.monotonic()))
        if time.monotonic() >= passed + PATIENCE and process.poll() is None:
            passed = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
        with suppress(OSError, UserError):
            stop_file.touch()

    before = {number: signal.getsignal(number) for number in STOPPERS}
    taken = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in taken:
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        if process.poll() is None:  # an error of this process's own
            os.killpg(process.pid, signal.SIGINT)
        for number, handler in taken.items():
            signal.signal(number, handler)
