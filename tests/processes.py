"""What a command has started, by the kernel's own books: hydra and Snakemake give theirs sessions of their own."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def family(process: int) -> list[int]:
    """A process and all that it has started, and these, in whichever groups they are."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(word) for task in tasks for word in (task / "children").read_text(encoding="ascii").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [process, *(below for child in children for below in family(child))]


def read_text(path: str) -> str:
    """Return the text of a file of /proc, empty if its process has ended."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def command_name(process: int) -> str:
    return read_text(f"/proc/{process}/comm").strip()


def arguments(process: int) -> list[str]:
    """Return the words with which a process was started."""
    return read_text(f"/proc/{process}/cmdline").split("\0")


def kill(processes: Iterable[int]) -> None:
    """Outright. With one, those that wait for it may end by themselves."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def alive(process: int) -> bool:
    """A zombie counts as gone: who should take note of its end may be gone, too."""
    return read_text(f"/proc/{process}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


def still_there(processes: list[int]) -> list[int]:
    """Those that do not end within a while."""
    end = time.monotonic() + 120
    while (left := list(filter(alive, processes))) and time.monotonic() < end:
        time.sleep(0.05)
    return left
