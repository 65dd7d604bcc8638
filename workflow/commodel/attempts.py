"""The attempts at a batch, as its state.json tells them: who measures it where, since when, and how far it is.

An attempt without an end that is not the last one died without a word: it was killed, or its node was lost.
"""

import os
import platform
import time
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.tables import read_json, write_json

STATE = "state.json"
DONE = "done"  # the outcome of an attempt that leaves nothing to do
UPDATE = 3.0  # seconds between two signs of life


def attempts_of(folder: Path) -> list[dict]:
    """The attempts so far at the batch of a folder, the first one first. A damaged file costs their story only."""
    try:
        return list(read_json(folder / STATE)["attempts"])
    except (UserError, KeyError, TypeError):
        return []


def how_last_ended(attempts: list[dict]) -> str:
    """In words, for a case that nobody got to."""
    if not attempts:
        return "never started"
    outcome = attempts[-1].get("outcome") if attempts[-1].get("ended") else "died without a word"
    times = f"{len(attempts)} attempt{'' if len(attempts) == 1 else 's'}"
    return one_line(f"{times}, the last one: {outcome}")


class Attempt:
    """This process's attempt. `said` is what the file says beside the attempts: counts, and the pass."""

    def __init__(self, folder: Path, seconds: float | None):
        self.path = folder / STATE
        self.before = attempts_of(folder)
        now = round(time.time(), 1)
        self.own = {
            "attempt": len(self.before) + 1,
            "host": platform.node(),
            "pid": os.getpid(),
            "job": os.environ.get("SLURM_JOB_ID", ""),
            "started": now,
            "updated": now,
            "deadline": None if seconds is None else round(now + seconds, 1),
            "ended": None,
            "outcome": "",
        }
        self.said: dict[str, int] = {}
        self.written = 0.0  # when, on the clock that never steps

    @property
    def after_all_was_done(self) -> bool:
        return bool(self.before) and self.before[-1].get("outcome") == DONE

    @property
    def number(self) -> int:
        return self.own["attempt"]

    def due(self) -> bool:
        return time.monotonic() - self.written >= UPDATE

    def write(self, **said: int) -> None:
        self.said |= said
        self.own["updated"] = round(time.time(), 1)
        write_json(self.path, {"attempts": [*self.before, self.own], **self.said})
        self.written = time.monotonic()

    def end(self, outcome: str) -> None:
        self.own |= {"ended": round(time.time(), 1), "outcome": one_line(outcome)}
        self.write()

    def died_in(self, case: str) -> int:
        """Notes that the last attempt died without a word in a case; how many have died in it by now."""
        if self.before and not self.before[-1].get("ended"):
            self.before[-1]["case"] = case
        return sum(attempt.get("case") == case for attempt in self.before)

    def forgive(self, case: str) -> None:
        """A case that is marked for it starts anew, should its marker be removed."""
        for attempt in self.before:
            if attempt.get("case") == case:
                attempt["case"] = ""
