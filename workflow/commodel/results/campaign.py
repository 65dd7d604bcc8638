"""A campaign (`begin_campaign`): the plan and the lock of a results folder, and its finished and
unfinished batches.

One process works in a results folder at a time. It has the lock on the folder until it ends, even
if it is killed. The error of a second process names the first one. A file system without locks
cannot exclude other processes; a line on stderr warns of this.

The process with the lock makes the plan. Jobs of the workflow, and processes that only read, load
the existing plan.
"""

import atexit
import errno
import fcntl
import getpass
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from commodel.errors import UserError, make_printable, suggest_name
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.plan.config import find_config_file
from commodel.plan.duration import Durations
from commodel.plan.planning import (
    find_launcher,
    load_plan,
    make_plan,
    write_plan,
    write_plan_preview,
)
from commodel.plan.surveys import find_network_file, is_survey
from commodel.records import Batch, Plan
from commodel.results.raw_samples import list_finished, read_marker, remove_marker

HOLDER_FILE = ".holder"
# environment: file descriptor by which the parent process locks a folder
LOCK_VARIABLE = "COMMODEL_HOLDER"
LOCK_WAIT_SECONDS = 1.0  # a process that only checks the lock holds it for a moment, too
NO_LOCK_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def open_lock(folder: AnyPath, owner: str) -> IO[str]:
    """Lock a folder until the returned file is closed. The kernel closes it even after a kill -9.

    If another process has the lock, the error calls it `owner`, such as "another run of this
    experiment".
    """
    folder.mkdir(parents=True, exist_ok=True)
    stream = (folder / HOLDER_FILE).open("a+", encoding="utf-8")
    try:
        if not _try_lock(stream, fcntl.LOCK_EX, LOCK_WAIT_SECONDS, folder):
            raise UserError(f"{owner} is at work already: {_read_holder(stream)}", file=folder)
        _write_holder(stream)
    except BaseException:
        stream.close()
        raise
    return stream


def inherit_lock(folder: AnyPath) -> IO[str] | None:
    """Return the lock on a folder that the parent process shares with this one; None if it shares
    no lock on this folder.

    The folder stays locked without interruption until both processes have ended.
    """
    number = os.environ.pop(LOCK_VARIABLE, "")
    try:
        if not os.path.samestat(os.fstat(int(number)), (folder / HOLDER_FILE).stat()):
            return None
        os.set_inheritable(int(number), False)
        stream = open(int(number), "a+", encoding="utf-8")  # noqa: SIM115
    except (ValueError, OSError):
        return None
    _write_holder(stream)
    return stream


def _write_holder(stream: IO[str]) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(
        f"{_find_user_name()} on {platform.node()}, process {os.getpid()}, since {time.strftime('%F %H:%M')}\n"
    )
    stream.flush()


def read_lock_holder(folder: AnyPath) -> str:
    """Return the process that has the lock on a folder; empty if there is none, or no locks. The
    folder may be read-only."""
    try:
        with (folder / HOLDER_FILE).open(encoding="utf-8") as stream:
            return "" if _try_lock(stream, fcntl.LOCK_SH, 0, folder) else _read_holder(stream)
    except FileNotFoundError:
        return ""


def _try_lock(stream: IO[str], kind: int, wait_seconds: float, folder: AnyPath) -> bool:
    """Return whether the lock is taken; without locks on this file system, True after a warning."""
    until = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(stream, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        except OSError as error:
            if error.errno not in NO_LOCK_ERRORS:
                raise
            if kind == fcntl.LOCK_EX:
                warning = (
                    "no locks on this file system: run only one process at a time in this folder"
                )
                print(f"commodel: {folder}: {warning}", file=sys.stderr)
            return True


def _read_holder(stream: IO[str]) -> str:
    stream.seek(0)
    return make_printable(stream.read(400).strip()) or "another process"


def _find_user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        return f"user {os.getuid()}"


OTHER_RUN = "another run of this experiment"


@dataclass(frozen=True)
class Campaign:
    plan: Plan
    folder: AnyPath  # results/<experiment>, relative to the project's folder
    lock: IO[str] | None = None  # the folder is locked until this file is closed
    refusal: str = ""  # why this process may not run the campaign
    previews: Mapping[str, str] = field(default_factory=dict)  # see `find_planned_file`

    @property
    def results(self) -> Results:
        return Results.of(self.folder)

    def find_planned_file(self, path: AnyPath, any_version: bool = False) -> str:
        """Return the path of a file of the plan. In a dry run, it is a preview if a run would write
        or change the file; with `any_version`, only if the file does not exist."""
        if any_version and path.exists():
            return str(path)
        return self.previews.get(os.path.abspath(str(path)), str(path))

    def done_file(self, batch: Batch) -> SafePath:
        return self.results.done(batch.name)

    @property
    def finished(self) -> list[Batch]:
        return [batch for batch in self.plan.batches if self.done_file(batch).exists()]

    @property
    def unfinished(self) -> list[Batch]:
        """The batches that a run starts: those that are not done, or have new points or cases."""
        finished = self.finished
        return [
            batch
            for batch in self.plan.batches
            if batch not in finished or self._list_new_ids(batch)
        ]

    def _list_new_ids(self, batch: Batch) -> set[str]:
        """Return the points and cases of a batch that are neither measured nor given up."""
        measured, given_up = list_finished(self.results.raw(batch.name))
        return set(batch.ids) - measured - given_up

    def list_remaining_work(self) -> tuple[Batch, ...]:
        """Return the batches that still measure something, each with its remaining points and cases
        only, and the estimated seconds of these."""
        durations = {name: Durations.of_platform(self.plan, name) for name in self.plan.platforms}
        remaining_batches = []
        for batch in self.plan.batches:
            new_ids = self._list_new_ids(batch)
            points = tuple(point for point in batch.points if point.id in new_ids)
            cases = tuple(case for case in batch.cases if case.id in new_ids)
            if len(new_ids) == len(batch.ids):
                remaining_batches.append(batch)
            elif new_ids:
                seconds = durations[batch.platform].estimate_batch((*cases, *points))
                remaining_batches.append(
                    replace(batch, points=points, cases=cases, seconds=seconds)
                )
        return tuple(remaining_batches)


def find_results(experiment: str) -> SafePath:
    return SafePath(Path("results") / find_config_file("experiment", experiment).stem)


WORKFLOW_SETTINGS = ("experiment", "only", "finish", "quiet", "survey", "so_far")
# estimated seconds of measuring, from which on a campaign reports what it has measured so far
MIN_INTERIM_SECONDS = 300.0
# shares of the measuring time after the probes, at which it does
INTERIM_SHARES = (0.25, 0.5, 0.75)


def check_workflow_settings(names: Iterable[str]) -> None:
    """Refuse unknown keys of config/config.yaml or --config."""
    for name in names:
        if name not in WORKFLOW_SETTINGS:
            raise UserError(
                f"found the unknown setting '{make_printable(name, 60)}' of the workflow; "
                f"{suggest_name(name, WORKFLOW_SETTINGS)}"
            )


def begin_campaign(
    experiment: str, only: str | None, leading: bool, survey: bool = True, dry: bool = False
) -> Campaign:
    """Return the campaign of an experiment, as the workflow uses it.

    The `leading` process is Snakemake's main process. It locks the folder, or takes over the lock
    of `commodel run`, and makes the plan. If another process has the lock, the campaign has the
    plan of that process, and a refusal. A job of the workflow never plans: its node may see changed
    files late, and an edited experiment concerns the next run. A `dry` run, which starts no job,
    plans without a lock and writes nothing into the project.
    """
    folder = find_results(experiment)
    if dry:
        plan = make_plan(experiment, Path.cwd(), only, survey)
        return Campaign(plan, folder, previews=_write_previews(plan, experiment))
    if not leading:
        return Campaign(load_plan(Results(folder).plan), folder)
    try:
        stream = inherit_lock(folder) or open_lock(folder, OTHER_RUN)
    except UserError as error:
        return Campaign(load_plan(Results(folder).plan), folder, refusal=error.message)
    campaign = Campaign(make_plan(experiment, Path.cwd(), only, survey), folder, stream)
    forget_surveys(campaign)
    write_plan(campaign.plan, experiment, Path.cwd())
    return campaign


def _write_previews(plan: Plan, experiment: str) -> dict[str, str]:
    """Write the plan's new and changed files into a folder that is removed when this process ends,
    and return their paths there."""
    folder = tempfile.mkdtemp(prefix="commodel-plan-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write_plan_preview(plan, experiment, Path.cwd(), Path(folder))


def forget_surveys(campaign: Campaign) -> None:
    """Remove the samples of each survey whose network file the user has deleted: the network is
    surveyed again."""
    for batch in filter(is_survey, campaign.plan.batches):
        network = find_network_file(batch.platform, campaign.plan.platforms[batch.platform].digest)
        if campaign.results.learned(batch.name).exists() and not network.exists():
            campaign.results.raw(batch.name).remove_tree()


def reopen_batches(campaign: Campaign) -> None:
    """Remove the marks of done batches that have new points or cases, so that the workflow starts
    these batches."""
    for batch in campaign.unfinished:
        campaign.done_file(batch).unlink(missing_ok=True)


def forget_failures(campaign: Campaign) -> int:
    """Remove the markers of all cases that were given up or have no valid sample, and return their
    number.

    Their batches are then unfinished, so the next run measures these cases again.
    """
    count = 0
    for batch in campaign.plan.batches:
        folder = campaign.done_file(batch).parent
        given_up = [case for case in batch.ids if read_marker(folder, case)]
        if given_up:
            campaign.done_file(batch).unlink(missing_ok=True)
        for case in given_up:
            remove_marker(folder, case)
        count += len(given_up)
    return count


def order_batches(batches: Sequence[Batch]) -> list[Batch]:
    """Return batches in the order in which they begin: survey and probes of every platform, then
    points in the order of the plan."""
    return sorted(batches, key=lambda batch: not _has_probes(batch))


def _has_probes(batch: Batch) -> bool:
    return bool(batch.cases) or is_survey(batch)


def _has_jobs(campaign: Campaign) -> bool:
    """Return whether something is left to be measured by jobs of a batch system."""
    return any(find_launcher(campaign.plan, batch.name).in_job for batch in campaign.unfinished)


def list_interim_parts(campaign: Campaign, setting: object = None) -> list[list[Batch]]:
    """Return the batches after which a campaign reports what it has measured so far: those of the
    probes, then further ones of all batches. A short campaign of jobs, which may wait in a queue,
    reports after the probes alone; one without jobs never does. The `setting` of the workflow asks
    for all reports, or for none."""
    is_wanted = str(setting).lower() == "true"
    is_long = sum(batch.seconds for batch in campaign.unfinished) >= MIN_INTERIM_SECONDS
    if setting is None:
        is_wanted = is_long or _has_jobs(campaign)
    if not is_wanted:
        return []
    batches = order_batches(campaign.plan.batches)
    probes = [batch for batch in batches if _has_probes(batch)]
    others = [batch for batch in batches if batch not in probes]
    parts = [probes] if probes and others else []
    if parts and setting is None and not is_long:
        return parts
    total = sum(batch.seconds for batch in others)
    for share in INTERIM_SHARES:
        part = list(probes)
        seconds = 0.0
        for batch in others:
            if seconds >= share * total:
                break
            part.append(batch)
            seconds += batch.seconds
        if len(part) < len(batches) and part not in parts:
            parts.append(part)
    return parts
