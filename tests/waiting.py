"""Waits for something to come about, as long as that may take on a busy machine."""

import subprocess
import time
from collections.abc import Callable


def until(what: Callable[[], object], seconds: float = 300, by: subprocess.Popen | None = None) -> object:
    """Waits until `what()` is true, and returns it. What a process brings about cannot come once that has ended."""
    end = time.monotonic() + seconds
    while not (outcome := what()):
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        assert by is None or by.poll() is None, f"process {by.pid} ended first, with {by.returncode}"
        time.sleep(0.02)
    return outcome
