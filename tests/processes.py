"""Find the processes that a command has started, from /proc: hydra and Snakemake start theirs in
separate sessions."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def family(process: int) -> list[int]:
    """Return the ids of a process and all its descendants, in any process group."""
    try:
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        children = [
            int(word)
            for task in tasks
            for word in (task / "children").read_text(encoding="ascii").split()
        ]
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
    """Return the command line of a process as words."""
    return read_text(f"/proc/{process}/cmdline").split("\0")


def kill(processes: Iterable[int]) -> None:
    """Send SIGKILL to processes. Some may have ended already, since their parent was killed."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def find_marked(setting: str) -> list[int]:
    """Return the processes of this machine whose environment has the setting `NAME=value`, without
    zombies."""
    mark, found = f"{setting}\0".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def await_end(setting: str, seconds: float, starter: int = 0) -> list[int]:
    """Return the processes with this environment, other than the starter, that do not end in
    time."""
    end = time.monotonic() + seconds
    while left := [process for process in find_marked(setting) if process != starter]:
        if time.monotonic() >= end:
            break
        time.sleep(0.02)
    return left


def alive(process: int) -> bool:
    """Return whether a process runs; zombies do not count, since their parent may be gone."""
    return read_text(f"/proc/{process}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])


def still_there(processes: list[int]) -> list[int]:
    """Return the processes that have not ended within 120 s."""
    end = time.monotonic() + 120
    while (left := list(filter(alive, processes))) and time.monotonic() < end:
        time.sleep(0.05)
    return left
