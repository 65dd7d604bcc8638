"""Wait for a condition, for as long as a busy machine may need."""

import subprocess
import time
from collections.abc import Callable


def until(
    condition: Callable[[], object], seconds: float = 300, by: subprocess.Popen | None = None
) -> object:
    """Wait until `condition()` is true and return its value. Fail if the process `by`, which is to
    cause it, has ended."""
    end = time.monotonic() + seconds
    while not (outcome := condition()):
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        assert by is None or by.poll() is None, (
            f"process {by.pid} ended first, with {by.returncode}"
        )
        time.sleep(0.02)
    return outcome
