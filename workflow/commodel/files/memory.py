"""Memory that was freed, given back to the system."""

import ctypes
import gc
from contextlib import suppress


def give_back() -> None:
    """What refers to itself, as a written workbook does, waits for Python to look for it. And between things that are
    still in use glibc keeps what was freed: after copies of a large table a hundred megabytes and more. Other libraries
    have nothing to ask for it, and most need not be asked."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
