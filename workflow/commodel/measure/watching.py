"""Looks after a program while it runs: which case it is at, for how long, and whether it has to be stopped.

The program names its case in `.now` beside its samples; limits run on a clock that never steps.
"""

import time
from collections.abc import Callable

from commodel.files.paths import AnyPath
from commodel.platforms.stopping import heed_stop

STARTING, TIMEOUT, BUDGET = "starting", "timeout", "budget"
LONGEST_NAME = 300  # bytes
START_LIMIT = 300.0  # seconds from the start of a program to its first case


def case_at(folder: AnyPath) -> str:
    """The case that the program of a folder is at, or was when it died; empty before the first and after the last."""
    try:
        with (folder / ".now").open("rb") as stream:
            return stream.read(LONGEST_NAME).decode().strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def forget_case(folder: AnyPath) -> None:
    (folder / ".now").unlink(missing_ok=True)


class Watch:
    """Asked every now and then by what waits for the program; says why the program has to be stopped, if it has to."""

    def __init__(self, folder: AnyPath, limit: float, deadline: float, sign_of_life: Callable[[], None]):
        self.folder, self.limit, self.deadline, self.sign_of_life = folder, limit, deadline, sign_of_life
        self.case, self.began, self.since = "", False, time.monotonic()

    def __call__(self) -> str:
        now, case = time.monotonic(), case_at(self.folder)
        if case != self.case:
            self.case, self.began, self.since = case, True, now
        heed_stop()
        self.sign_of_life()
        if now >= self.deadline:
            return BUDGET
        if now - self.since > (self.limit if self.began else START_LIMIT):
            return TIMEOUT if self.began else STARTING
        return ""
