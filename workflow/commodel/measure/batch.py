"""Measures one batch: passes over all its cases, until all are measured, given up, or the batch's time is over.

A case whose raw file is there is not measured again, nor a pass whose samples are there, so a batch that was killed
goes on where it stopped.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from commodel.errors import UserError
from commodel.files.atomic import write_json
from commodel.files.paths import AnyPath, SafePath
from commodel.files.results import PROVENANCE, SAMPLES, files
from commodel.measure.places import places
from commodel.measure.process import end_on_termination
from commodel.measure.provenance import provenance
from commodel.measure.starts import Rig, Start, in_image, starts_of
from commodel.measure.sweep import Sweep, sweep
from commodel.measure.watching import case_at, forget_case
from commodel.plan.config import planned_platform
from commodel.platforms.build import refuse_foreign
from commodel.platforms.build import starter as starter_of
from commodel.platforms.launchers import launcher, toolchain
from commodel.platforms.tools import workshop
from commodel.records import Batch, Plan
from commodel.results import rawfiles, unmeasured
from commodel.results.attempts import DONE, OwnAttempt
from commodel.results.code import commit
from commodel.results.holding import held
from commodel.results.provenance import same_setting

Progress = Callable[[str], None]
SIMULATED_PATIENCE = 10  # simulated cases get so many times the time that measured ones get: it is not theirs
MARGIN = 60.0  # seconds before the time limit at which measuring stops, so that what there is can be joined
MARGIN_SHARE = 0.1  # of a time limit that is short: its margin is this share of it


def measure(
    plan: Plan,
    batch: Batch,
    folder: AnyPath,
    progress: Progress,
    setting: str = "",
    environment: Mapping[str, str] | None = None,
) -> int:
    """Measures what is missing of a batch into `folder`; returns how many cases that was. `setting` takes the place of
    the platform's, `environment` is what the MPI library is told."""
    folder = SafePath.at(folder)
    platform = planned_platform(batch.platform)
    if platform.digest != plan.platforms[batch.platform].digest:
        raise platform.error((), "the platform has changed since the plan was made; plan again")
    launching = launcher(platform.launcher)
    made = toolchain(platform)
    starter = starter_of(made, launching.starters) if not platform.overlay or launching.in_job else ""
    if starter is None:
        raise UserError(
            f"no {' or '.join(launching.starters)} found, which platform '{batch.platform}' needs; see commodel doctor"
        )
    if made == "mpi" and not platform.image:
        refuse_foreign(workshop(), starter, platform.slurm_mpi)
    names, passes = launching.names(platform, starter, batch.nodes), plan.passes(batch.platform)
    job = {"setting": setting or platform.setting, "environment": environment or {}}
    rig = Rig(plan, platform, launching, starter, names, folder, passes, **job)
    end_on_termination()
    with held(folder, "another measurement of this batch"):
        attempt = OwnAttempt(folder, 60 * batch.minutes, commit())
        try:
            measured = _measure(rig, batch, attempt, progress)
        except BaseException as error:
            _end_badly(attempt, error)
            raise
        if attempt.written:
            attempt.end(DONE)
    return measured


def _end_badly(attempt: OwnAttempt, error: BaseException) -> None:
    stopped = isinstance(error, SystemExit | KeyboardInterrupt)
    text = "stopped from outside" if stopped else str(error) or type(error).__name__
    with suppress(OSError):  # it is the error that is told, and a disk that takes nothing may be it
        attempt.end(f"error: {text}")


def _measure(rig: Rig, batch: Batch, attempt: OwnAttempt, progress: Progress) -> int:
    deadline = _deadline(batch)
    folder, work, ids = rig.folder, rig.work, set(batch.ids)
    work.remove_tree()  # left by a batch that was killed
    work.mkdir()
    for number in range(rig.passes):
        rig.pass_folder(number).mkdir()
    rig = in_image(rig)
    _clean_up_dead_attempts(rig, attempt)
    before, marked = unmeasured.finished(folder)
    starts = [
        start.without(before | marked) for start in starts_of(batch, work, rig.platform.substrate, rig.how.simulated)
    ]
    missing = [start for start in starts if start.rows]
    _note_beginning(rig, batch, attempt, bool(missing))
    in_time = _passes(Sweep(rig, attempt, _limit(rig), deadline), missing, batch.name, progress)
    if not in_time:
        _join(rig, [case for start in missing for case in start.ids])
        _mark_rest(rig, ids, attempt)
    _require_samples(folder, ids)
    for number in range(rig.passes):
        rig.pass_folder(number).remove_tree()
    work.remove_tree()
    measured, marked = unmeasured.finished(folder)
    progress(_summary(rig, batch.name, len(ids & measured - before), len(ids & marked), bool(missing)))
    return len(ids & measured - before)


def _note_beginning(rig: Rig, batch: Batch, attempt: OwnAttempt, missing: bool) -> None:
    """What was there already keeps its story: a report may rest on it, which would know nothing of this attempt."""
    about, setting = rig.folder / PROVENANCE, rig.setting
    if missing and about.exists() and _sampled(rig):
        setting = same_setting(about, setting)
    if missing or not attempt.after_all_was_done:
        attempt.write()
    if missing or not about.exists():
        write_json(about, provenance(rig.plan, batch, places(rig), setting))


def _sampled(rig: Rig) -> bool:
    folders = (rig.folder, *(rig.pass_folder(number) for number in range(rig.passes)))
    return any(unmeasured.finished(folder)[0] for folder in folders)


def _summary(rig: Rig, name: str, measured: int, lacking: int, missing: bool) -> str:
    not_measured = f", {lacking} not, see {rig.folder}/*{unmeasured.SUFFIX} and *{rawfiles.LATE_SUFFIX}"
    return f"{name}: {measured} measured{not_measured if lacking else ''}{'' if missing else ', nothing was missing'}"


def _deadline(batch: Batch) -> float:
    seconds = 60.0 * batch.minutes
    return time.monotonic() + seconds - min(MARGIN, MARGIN_SHARE * seconds)


def _limit(rig: Rig) -> float:
    """Seconds that one case may take in a pass."""
    settings = rig.plan.measure
    if rig.how.simulated:
        return SIMULATED_PATIENCE * settings.timeout
    return settings.timeout + settings.seconds / rig.passes


def _passes(state: Sweep, missing: list[Start], name: str, progress: Progress) -> bool:
    """All passes over all starts; a case becomes a raw file in the last one. False: the batch's time was over."""
    rig, total = state.rig, sum(len(start.rows) for start in missing)
    for number in range(rig.passes):
        turn, done = f", pass {number + 1} of {rig.passes}" if rig.passes > 1 else "", 0
        for start in missing:
            progress(f"{name}: {done} of {total} done{turn}, now {start.program} on {start.ranks} ranks")
            state.attempt.turn = number + 1
            state.attempt.write()
            if not sweep(state, start, number):
                return False
            if number + 1 == rig.passes:
                _join(rig, start.ids)
            done += len(start.rows)
    return True


def _clean_up_dead_attempts(rig: Rig, attempt: OwnAttempt) -> None:
    """What attempts that died without a word left: torn files are dropped, and a case that was at work when two of them
    died is not tried a third time."""
    for number in range(rig.passes):
        samples = rig.pass_folder(number)
        for path in files(samples):
            if SAMPLES.fullmatch(path.name) and not rawfiles.is_whole(path):
                path.unlink()
        if case := case_at(samples):
            if not (samples / f"{case}.csv").exists() and attempt.died_in(case) >= 2:
                attempt.forgive(case)
                reason = "two attempts at the batch died without a word while it was measured"
                unmeasured.mark(rig.folder, case, unmeasured.CRASH, reason, attempt.number)
            forget_case(samples)


def _join(rig: Rig, cases: list[str]) -> None:
    """Samples of all the passes that there are become raw files. A case that failed in one of them has none."""
    measured, marked = unmeasured.finished(rig.folder)
    for case in cases:
        paths = {number + 1: rig.pass_folder(number) / f"{case}.csv" for number in range(rig.passes)}
        sampled = {number: path for number, path in paths.items() if path.exists()}
        if sampled and case not in measured | marked:
            rawfiles.join(sampled, rig.folder, case)


def _mark_rest(rig: Rig, ids: set[str], attempt: OwnAttempt) -> None:
    measured, marked = unmeasured.finished(rig.folder)
    for case in sorted(ids - measured - marked):
        reason = "the time of its batch was over"
        unmeasured.mark(rig.folder, case, unmeasured.BUDGET, reason, attempt.number)


def _require_samples(folder: SafePath, ids: set[str]) -> None:
    """A batch in which everything failed says more about the place than about its cases: none is marked for it."""
    measured, marked = unmeasured.finished(folder)
    why = {case: unmeasured.why_unmeasured(folder, case) for case in sorted(ids & marked)}
    statuses = {status for status, _ in why.values()}
    failed = [reason for status, reason in why.values() if status != unmeasured.BUDGET]
    if failed and not ids & measured and unmeasured.LATE not in statuses:  # a case whose ranks started late has run
        for case in why:
            unmeasured.unmark(folder, case)
        raise UserError(
            f"nothing could be measured, {len(failed)} of {len(ids)} cases failed: {failed[0]}", file=folder
        )
