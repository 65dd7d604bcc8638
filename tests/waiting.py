"""Waits for something to come about, as long as that may take on a busy machine."""

import time
from collections.abc import Callable


def until(what: Callable[[], object], seconds: float = 300) -> object:
    """Waits until `what()` is true, and returns it."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, f"waited {seconds} s in vain"
        time.sleep(0.02)
    return found
