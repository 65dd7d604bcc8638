"""A campaign (`begin`): the plan and the lock of a results folder, and the batches that are still to be measured.

One process works in a results folder at a time: it has the lock on the folder until it ends, even if it is killed. An
error of a second process names the first one. On a file system without locks, other processes are not kept out, and a
line on stderr warns of this.

The process with the lock makes the plan. Jobs of the workflow, and processes that only read, load the existing plan.
"""

import errno
import fcntl
import getpass
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from commodel.errors import UserError, one_line
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.plan.config import find
from commodel.plan.planning import load_plan, make_plan, write_plan
from commodel.plan.surveys import is_survey, network_file
from commodel.records import Batch, Plan
from commodel.results.raw_samples import read_marker, remove_marker

FILE = ".holder"
LOCK_VARIABLE = "COMMODEL_HOLDER"  # the number of the open file by which the parent process locks a folder
PATIENCE = 1.0  # seconds: a process that only checks the lock has it for a moment, too
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def lock_folder(folder: AnyPath, what: str) -> Iterator[None]:
    """Lock a folder while a block runs; raise an error that names the holder if another process has the lock."""
    with open_lock(folder, what):
        yield


def open_lock(folder: AnyPath, what: str) -> TextIO:
    """Lock a folder until the returned file is closed. The kernel closes it even after a kill -9."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = (folder / FILE).open("a+", encoding="utf-8")
    try:
        if not _try_lock(stream, fcntl.LOCK_EX, PATIENCE, folder):
            raise UserError(f"{what} is at work already: {_read_holder(stream)}", file=folder)
        _write_holder(stream)
    except BaseException:
        stream.close()
        raise
    return stream


def inherit_lock(folder: AnyPath) -> TextIO | None:
    """Return the lock on a folder that the parent process shares with this one; None if it shares no lock on this
    folder.

    The folder stays locked without interruption until both processes have ended.
    """
    number = os.environ.pop(LOCK_VARIABLE, "")
    try:
        if not os.path.samestat(os.fstat(int(number)), (folder / FILE).stat()):
            return None
        os.set_inheritable(int(number), False)
        stream = open(int(number), "a+", encoding="utf-8")  # noqa: SIM115
    except (ValueError, OSError):
        return None
    _write_holder(stream)
    return stream


def _write_holder(stream: TextIO) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(f"{_user()} on {platform.node()}, process {os.getpid()}, since {time.strftime('%F %H:%M')}\n")
    stream.flush()


def holder(folder: AnyPath) -> str:
    """Return which process has the lock on a folder; empty if none, or without locks. The folder need not be
    writable."""
    try:
        with (folder / FILE).open(encoding="utf-8") as stream:
            return "" if _try_lock(stream, fcntl.LOCK_SH, 0, folder) else _read_holder(stream)
    except FileNotFoundError:
        return ""


def _try_lock(stream: TextIO, kind: int, patience: float, folder: AnyPath) -> bool:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(stream, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            if kind == fcntl.LOCK_EX:
                print(f"commodel: {folder}: no locks here: take care that nobody else works in it", file=sys.stderr)
            return True


def _read_holder(stream: TextIO) -> str:
    stream.seek(0)
    return one_line(stream.read(400).strip()) or "another process"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        return f"user {os.getuid()}"


RUN = "another run of this experiment"


@dataclass(frozen=True)
class Campaign:
    plan: Plan
    folder: AnyPath  # results/<experiment>, relative to the project's
    hold: TextIO | None = None  # the lock, as long as it is open
    refusal: str = ""  # why nothing may be run here

    @property
    def results(self) -> Results:
        return Results.of(self.folder)

    def done(self, batch: Batch) -> SafePath:
        return self.results.done(batch.name)

    @property
    def finished(self) -> list[Batch]:
        return [batch for batch in self.plan.batches if self.done(batch).exists()]

    @property
    def unfinished(self) -> list[Batch]:
        return [batch for batch in self.plan.batches if not self.done(batch).exists()]


def results(experiment: str) -> SafePath:
    return SafePath(Path("results") / find("experiment", experiment).stem)


def begin(experiment: str, only: str | None, leading: bool, survey: bool = True) -> Campaign:
    """Return the campaign of an experiment, as the workflow uses it.

    The leading process locks the folder, or takes over the lock of `commodel run`, and makes the plan. If another
    process has the lock, the campaign has the plan of that process, and a refusal. A job of the workflow never plans:
    its node may see changed files late, and an experiment edited meanwhile concerns the next run.
    """
    folder = results(experiment)
    if not leading:
        return Campaign(load_plan(Results(folder).plan), folder)
    try:
        stream = inherit_lock(folder) or open_lock(folder, RUN)
    except UserError as error:
        return Campaign(load_plan(Results(folder).plan), folder, refusal=error.message)
    campaign = Campaign(make_plan(experiment, Path.cwd(), only, survey), folder, stream)
    forget_surveys(campaign)
    write_plan(campaign.plan, experiment, Path.cwd())
    return campaign


def forget_surveys(campaign: Campaign) -> None:
    """Remove the samples of each survey whose network file the user has deleted: the network is surveyed again."""
    for batch in filter(is_survey, campaign.plan.batches):
        network = network_file(batch.platform, campaign.plan.platforms[batch.platform].digest)
        if campaign.results.learned(batch.name).exists() and not network.exists():
            campaign.results.raw(batch.name).remove_tree()


def forget_failures(campaign: Campaign) -> int:
    """Remove the marks of all cases that were given up or have no valid sample, and return their number.

    Their batches are no longer done, so the next run measures these cases again.
    """
    count = 0
    for batch in campaign.plan.batches:
        folder = campaign.done(batch).parent
        given_up = [case for case in batch.ids if read_marker(folder, case)]
        if given_up:
            campaign.done(batch).unlink(missing_ok=True)
        for case in given_up:
            remove_marker(folder, case)
        count += len(given_up)
    return count
