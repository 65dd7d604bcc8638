"""Memory that was freed, given back to the system."""

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Between things that are still in use glibc keeps what was freed: a hundred megabytes and more after the copies
    that one makes of a large table. Other libraries have nothing to ask for it, and most need not be asked."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
