"""Processes that outlive the launcher that started them: `adopt_orphans` ends them.

A rank leaves the session of its launcher, so no signal to a group reaches it. The kernel makes this
process the parent of each descendant whose parent ends, as long as the block runs.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Environment variable of all that a launcher starts: the id of the process that measures. In a
# notebook, other children of this process have no such variable, and are left alone.
MEASURED_BY = "COMMODEL_MEASURED_BY"
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37  # of Linux's prctl
GRACE_SECONDS = 1.0  # seconds in which orphans may end by themselves, and remove their files
KILL_SECONDS = 10.0  # seconds after which a process that the kernel cannot end is left
POLL_SECONDS = 0.01  # seconds between two checks


@contextmanager
def adopt_orphans() -> Iterator[dict[str, str]]:
    """Yield the environment variables for a launcher. When the block ends, end what that launcher
    has left."""
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield {MEASURED_BY: str(os.getpid())}
    finally:
        _end_orphans()
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value)


def _end_orphans() -> None:
    """Kill orphans, and the orphans that these leave, until there are none."""
    began, orphans = time.monotonic(), _list_orphans()
    while orphans and time.monotonic() < began + GRACE_SECONDS + KILL_SECONDS:
        for process in orphans:
            if time.monotonic() >= began + GRACE_SECONDS:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
        orphans = {process for process in orphans if not _has_ended(process)} | _list_orphans()


def _list_orphans() -> set[int]:
    """Return the children of this process that a launcher has started."""
    mark = f"{MEASURED_BY}={os.getpid()}\0".encode()
    children: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread has ended, or the kernel has no such file
            children.update(map(int, (thread / "children").read_text(encoding="ascii").split()))
    orphans = set()
    for child in children:
        with suppress(OSError):  # it has ended, or belongs to another user
            if mark in Path(f"/proc/{child}/environ").read_bytes():
                orphans.add(child)
    return orphans


def _has_ended(process: int) -> bool:
    """Return whether a child has ended. Its entry in the kernel's table is then removed."""
    try:
        return os.waitpid(process, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True
