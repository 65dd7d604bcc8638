"""Runs a launcher so that nothing of it is left when it ends, is stopped, or its parent dies."""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

OUT_OF_TIME = 124  # the code that a process gets which is stopped at its limit


def run(argv: list[str], log: Path, limit: float) -> int:
    """Runs a launcher in a process group of its own, so that Ctrl-C, a termination and the time limit reach every rank;
    and so that the launcher is terminated even if this process is killed outright."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` below is reached
    with log.open("wb") as stream:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=environment,
            cwd=log.parent,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return OUT_OF_TIME
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _die_with_parent() -> None:
    """Linux: the kernel sends this process SIGTERM when its parent is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1: PR_SET_PDEATHSIG
