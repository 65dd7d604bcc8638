"""The attempts at a batch, as stored in its state.json (`read_attempts`, `OwnAttempt`): where and when it was measured,
and its state.

Only this module reads and writes the file. A damaged file stops no process. It counts as one ended attempt, whose
outcome names the loss.
"""

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter

from commodel.errors import UserError, one_line
from commodel.files.atomic import MAX_FILE, write_json
from commodel.files.results_folder import STATE
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import read_text

DONE = "done"  # the outcome of an attempt that leaves nothing to do
SILENT = "ended without a message"
DAMAGED = f"{STATE} is damaged: what it told of this attempt and those before is lost"
UPDATE = 3.0  # seconds between two heartbeats

Text = Annotated[str, AfterValidator(one_line)]
Name = Annotated[str, AfterValidator(partial(one_line, limit=80))]
When = Annotated[float, Field(ge=0, le=1e11)]  # seconds since 1970
Count = Annotated[int, Field(ge=0, lt=1 << 31)]


@dataclass(frozen=True)
class Attempt:
    """One start of the driver on a batch, with its outcome. An attempt without an end is running, or was killed, or its
    node was lost."""

    host: Name
    pid: Count
    job: Name
    started: When
    updated: When
    ended: When | None
    outcome: Text
    deadline: When | None = None
    commit: Name = ""
    nodes: tuple[Name, ...] = ()  # that its ranks were started on; of simulated ones, none
    case: Text = ""  # at which the attempt ended badly

    @property
    def gone(self) -> bool:
        """Whether its process is dead, as far as this machine can find out."""
        if self.host != platform.node():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # a process of another user
            return False
        return False

    @property
    def how(self) -> str:
        """The outcome; that of an attempt without an end is that it ended without a message."""
        return SILENT if self.ended is None else self.outcome or "ended"


@dataclass(frozen=True)
class BatchAttempts:
    """The content of a state file: the attempts in order, and the pass in which the last one is."""

    attempts: tuple[Attempt, ...]
    turn: Annotated[int, Field(alias="pass", ge=1, le=100)] = 1
    written: Annotated[float, Field(exclude=True)] = 0.0  # when, by the clock of the file system

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def end(self) -> str:
        """How the attempts ended, in words, for a case that none of them reached."""
        if not self.attempts:
            return "never started"
        times = f"{len(self.attempts)} attempt{'' if len(self.attempts) == 1 else 's'}"
        return one_line(f"{times}, the last one: {self.last.how}")


def sum_durations(attempts: Iterable[Attempt]) -> float:
    """Return the total seconds of the attempts that have ended."""
    return sum(attempt.ended - attempt.started for attempt in attempts if attempt.ended)


FORM = TypeAdapter(BatchAttempts)


def read_attempts(folder: AnyPath) -> BatchAttempts:
    """Return the attempts at the batch of a folder; there are none if none has begun."""
    path = folder / STATE
    try:
        written = path.stat().st_mtime
    except FileNotFoundError:
        return BatchAttempts(())
    try:
        stored = FORM.validate_json(read_text(path, MAX_FILE, "a smaller file"), strict=True)
    except (UserError, ValueError):
        stored = BatchAttempts((Attempt("", 0, "", written, written, written, DAMAGED),))
    return replace(stored, written=written)


class OwnAttempt:
    """The attempt of this process. Each write adds it to the attempts in the state file of the folder."""

    def __init__(self, folder: AnyPath, seconds: float | None, commit: str):
        self.path = folder / STATE
        self.before = list(read_attempts(folder).attempts)
        now = round(time.time(), 1)
        self.own = Attempt(
            host=platform.node(),
            pid=os.getpid(),
            job=os.environ.get("SLURM_JOB_ID", ""),
            started=now,
            updated=now,
            ended=None,
            outcome="",
            deadline=None if seconds is None else round(now + seconds, 1),
            commit=commit,
        )
        self.turn = 1
        self.written = 0.0  # when, on the clock that never steps

    @property
    def follows_done_attempt(self) -> bool:
        return bool(self.before) and self.before[-1].outcome == DONE

    @property
    def number(self) -> int:
        return len(self.before) + 1

    def write_heartbeat(self) -> None:
        """Write the state file if the last write was `UPDATE` seconds ago or earlier."""
        if time.monotonic() - self.written >= UPDATE:
            self.write()

    def write(self) -> None:
        self.own = replace(self.own, updated=round(time.time(), 1))
        stored = BatchAttempts((*self.before, self.own), self.turn)
        write_json(self.path, FORM.dump_python(stored, mode="json", by_alias=True))
        self.written = time.monotonic()

    def end(self, outcome: str) -> None:
        self.own = replace(self.own, ended=round(time.time(), 1), outcome=one_line(outcome))
        self.write()

    def record_nodes(self, nodes: Iterable[str]) -> None:
        """Record nodes, before ranks are started on them."""
        if more := [name for name in nodes if name not in self.own.nodes]:
            self.own = replace(self.own, nodes=(*self.own.nodes, *more))
            self.write()

    def count_crashes(self, case: str) -> int:
        """Return how many attempts have ended without a message in a case.

        If the last attempt before this one has no end, it is recorded as ended in this case.
        """
        if self.before and self.before[-1].ended is None:
            self.before[-1] = replace(self.before[-1], case=case)
        return sum(attempt.case == case for attempt in self.before)

    def clear_crashes(self, case: str) -> None:
        """Remove a case from the records of earlier attempts, so that it starts anew if its marker is removed."""
        self.before = [replace(attempt, case="") if attempt.case == case else attempt for attempt in self.before]
