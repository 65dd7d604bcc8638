"""The attempts at a batch, as stored in its state.json (`read_attempts`, `OwnAttempt`): the host,
the times and the outcome of each attempt.

Only this module reads and writes the file. A damaged file is not an error. It counts as one ended
attempt, whose outcome is that the file is damaged.
"""

import os
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter

from commodel.errors import UserError, make_printable
from commodel.files.atomic import MAX_FILE_BYTES, write_json
from commodel.files.results_folder import STATE
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import read_text

DONE_OUTCOME = "done"  # all cases of the batch are measured or given up
NO_MESSAGE_OUTCOME = "ended without a message"
DAMAGED_OUTCOME = f"{STATE} is damaged: the records of this attempt and of earlier ones are lost"
HEARTBEAT_SECONDS = 3.0  # between two writes of the state file

Text = Annotated[str, AfterValidator(make_printable)]
Name = Annotated[str, AfterValidator(partial(make_printable, limit=80))]
Timestamp = Annotated[float, Field(ge=0, le=1e11)]  # seconds since 1970
Count = Annotated[int, Field(ge=0, lt=1 << 31)]


@dataclass(frozen=True)
class Attempt:
    """One start of the driver on a batch, with its outcome. An attempt without an end is running,
    or was killed, or its node was lost."""

    host: Name
    pid: Count
    job: Name
    started: Timestamp
    updated: Timestamp
    ended: Timestamp | None
    outcome: Text
    deadline: Timestamp | None = None
    commit: Name = ""
    nodes: tuple[Name, ...] = ()  # on which its ranks were started; empty if simulated
    case: Text = ""  # the case in which the attempt ended without a message

    @property
    def is_dead(self) -> bool:
        """Whether its process has ended; False if it ran on another host."""
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
    def outcome_text(self) -> str:
        """The outcome as reports show it; an attempt without an end has the outcome
        NO_MESSAGE_OUTCOME."""
        return NO_MESSAGE_OUTCOME if self.ended is None else self.outcome or "ended"


@dataclass(frozen=True)
class BatchAttempts:
    """The content of a state file: the attempts in order, and the current pass of the last one."""

    attempts: tuple[Attempt, ...]
    current_pass: Annotated[int, Field(alias="pass", ge=1, le=100)] = 1
    # seconds since 1970, by the clock of the file system
    modified_at: Annotated[float, Field(exclude=True)] = 0.0

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def summary(self) -> str:
        """The number of attempts and the outcome of the last one: the reason why a case was not
        measured."""
        if self.last is None:
            return "never started"
        times = f"{len(self.attempts)} attempt{'' if len(self.attempts) == 1 else 's'}"
        return make_printable(f"{times}, the last one: {self.last.outcome_text}")


def sum_durations(attempts: Iterable[Attempt]) -> float:
    """Return the total seconds of the attempts that have ended."""
    return sum(attempt.ended - attempt.started for attempt in attempts if attempt.ended)


ATTEMPTS_ADAPTER = TypeAdapter(BatchAttempts)


def read_attempts(folder: AnyPath) -> BatchAttempts:
    """Return the attempts at the batch of a folder; none if the batch was never started."""
    path = folder / STATE
    try:
        modified_at = path.stat().st_mtime
    except FileNotFoundError:
        return BatchAttempts(())
    try:
        stored = ATTEMPTS_ADAPTER.validate_json(
            read_text(path, MAX_FILE_BYTES, "a smaller file"), strict=True
        )
    except (UserError, ValueError):
        stored = BatchAttempts(
            (
                Attempt(
                    host="",
                    pid=0,
                    job="",
                    started=modified_at,
                    updated=modified_at,
                    ended=modified_at,
                    outcome=DAMAGED_OUTCOME,
                ),
            )
        )
    return replace(stored, modified_at=modified_at)


class OwnAttempt:
    """The attempt of this process. Each write stores it after the earlier attempts in the state
    file of the folder."""

    def __init__(self, folder: AnyPath, seconds: float | None, commit: str):
        self.path = folder / STATE
        self.earlier = list(read_attempts(folder).attempts)
        began = round(time.time(), 1)
        self.attempt = Attempt(
            host=platform.node(),
            pid=os.getpid(),
            job=os.environ.get("SLURM_JOB_ID", ""),
            started=began,
            updated=began,
            ended=None,
            outcome="",
            deadline=None if seconds is None else round(began + seconds, 1),
            commit=commit,
        )
        self.current_pass = 1
        self.last_write = 0.0  # by the monotonic clock

    @property
    def follows_done_attempt(self) -> bool:
        return bool(self.earlier) and self.earlier[-1].outcome == DONE_OUTCOME

    @property
    def number(self) -> int:
        return len(self.earlier) + 1

    def write_heartbeat(self) -> None:
        """Write the state file if the last write was `HEARTBEAT_SECONDS` ago or earlier."""
        if time.monotonic() - self.last_write >= HEARTBEAT_SECONDS:
            self.write()

    def write(self) -> None:
        self.attempt = replace(self.attempt, updated=round(time.time(), 1))
        stored = BatchAttempts((*self.earlier, self.attempt), self.current_pass)
        write_json(self.path, ATTEMPTS_ADAPTER.dump_python(stored, mode="json", by_alias=True))
        self.last_write = time.monotonic()

    def end(self, outcome: str) -> None:
        self.attempt = replace(
            self.attempt, ended=round(time.time(), 1), outcome=make_printable(outcome)
        )
        self.write()

    def record_nodes(self, nodes: Iterable[str]) -> None:
        """Record nodes, before ranks are started on them."""
        new = [name for name in nodes if name not in self.attempt.nodes]
        if new:
            self.attempt = replace(self.attempt, nodes=(*self.attempt.nodes, *new))
            self.write()

    def count_crashes(self, case: str) -> int:
        """Return how many attempts have ended without a message in a case.

        If the last attempt before this one has no end, it is recorded as ended in this case.
        """
        if self.earlier and self.earlier[-1].ended is None:
            self.earlier[-1] = replace(self.earlier[-1], case=case)
        return sum(attempt.case == case for attempt in self.earlier)

    def clear_crashes(self, case: str) -> None:
        """Remove a case from the records of earlier attempts: if its marker is removed, its crashes
        count from 0."""
        self.earlier = [
            replace(attempt, case="") if attempt.case == case else attempt
            for attempt in self.earlier
        ]
