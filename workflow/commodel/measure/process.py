"""Runs a launcher so that nothing of it is left when it ends, is stopped, or its parent dies."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from commodel.files.paths import AnyPath

LOOK = 0.5  # seconds between two looks at what is running
GRACE = 10  # seconds to end after SIGTERM: srun kills its step in that time, also on other nodes


def run(
    argv: list[str], log: AnyPath, watch: Callable[[], str] = lambda: "", settings: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Runs a launcher in a session of its own, so that Ctrl-C, a termination and `watch` reach every rank; and so that
    the launcher is terminated even if this process is killed outright. `watch` is asked again and again whether to go
    on: what it says is why not. `settings` are in its environment where the user has set nothing else. Returns the
    launcher's code, and that word, empty if it ended by itself."""
    end_on_termination()  # so that `finally` below is reached
    with log.open("wb") as stream:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env={**(settings or {}), **os.environ, "OMP_NUM_THREADS": "1"},
            cwd=log.parent.resolve(),
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            return _ended(process, watch)
        finally:
            _end(process)


def _ended(process: subprocess.Popen, watch: Callable[[], str]) -> tuple[int, str]:
    while True:
        try:
            return process.wait(LOOK), ""
        except subprocess.TimeoutExpired:
            if why := watch():
                _end(process)
                return process.returncode, why


def _end(process: subprocess.Popen) -> None:
    """The launcher passes SIGTERM on, but a stopped rank does not hear it: what is left of the group is killed."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # nothing is left of it
        os.killpg(group, number)


def end_on_termination() -> None:
    """SIGTERM ends this process as an exception does, once: what it then cleans up is not cut short by a second."""

    def end(number, frame):
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _die_with_parent() -> None:
    """Linux: the kernel sends this process SIGTERM when its parent is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1: PR_SET_PDEATHSIG
