"""Measurement of one batch: passes over its points until intervals are narrow enough, under a time limit.

Looks after a program while it runs: which case it is at, for how long, and whether it has to be stopped.

The program names its case in `.now` beside its samples; limits run on a clock that never steps.

One pass over the cases of one start, however often its program has to be started for that.

A case that ends the program badly is marked, and the program is started again for what is left: one bad case costs the
others nothing. What goes wrong before any case began is no case's fault, and ends the batch.

Measures one batch: passes over all its cases, until all are measured, given up, or the batch's time is over.

A case whose raw file is there is not measured again, nor a pass whose samples are there, so a batch that was killed
goes on where it stopped.

A few points measured here and now, without a campaign.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from commodel import __version__
from commodel.errors import UserError, mistakes_in
from commodel.files.atomic import write_json
from commodel.files.quantities import VARIABLE, parse_setting
from commodel.files.results_folder import PROVENANCE, SAMPLES, files
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.measure.process import OWN, TAKEN, end_on_termination, full, last_words, printed, run
from commodel.measure.provenance import places, provenance
from commodel.measure.starts import Rig, Start, in_image, prepare, starts_of
from commodel.plan.config import find, load_platform, planned_platform
from commodel.plan.duration import Durations
from commodel.plan.planning import planned
from commodel.platforms.build import build, refuse_foreign
from commodel.platforms.build import starter as starter_of
from commodel.platforms.launchers import LAUNCHERS, require_job, toolchain
from commodel.platforms.slurm import heed_stop, refused
from commodel.platforms.tools import ROOT, workshop
from commodel.records import Batch, Measure, Plan, Point
from commodel.results import raw_samples
from commodel.results.attempts import DONE, OwnAttempt
from commodel.results.campaign import held
from commodel.results.provenance import commit, same_setting
from commodel.results.raw_samples import raw_file, read_samples, why_unmeasured

STARTING, TIMEOUT, BUDGET = "starting", "timeout", "budget"
LONGEST_NAME = 300  # bytes
START_LIMIT = 300.0  # seconds from the start of a program to its first case


def case_at(folder: AnyPath) -> str:
    """Return the case that the program of a folder is at, or was when it died; empty before the first and after the
    last."""
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


EXIT_USER = 2  # of the programs, where the launcher passes it on
IN_A_ROW = 3  # cases that fail with none finished between, before the others of the start are given up
REFUSED = 180.0  # seconds for which Slurm may refuse to start anything: after an outage it learns late what has ended
BETWEEN_STARTS = 5.0  # seconds between two starts then


@dataclass(frozen=True)
class Sweep:
    """What sweeps of a batch share: limits in monotonic seconds, and who keeps the story."""

    rig: Rig
    attempt: OwnAttempt
    limit: float  # that one case may take
    deadline: float  # when measuring stops


def sweep(state: Sweep, start: Start, number: int) -> bool:
    """Measures what is left of a start in a pass. False: the batch's time is over."""
    folder, failures, suspect, waiting = state.rig.pass_folder(number), 0, "", 0.0
    turn = f" in pass {number + 1} of {state.rig.passes}" if state.rig.passes > 1 else ""
    while (left := _left(state.rig, start, number)).rows:
        heed_stop()
        forget_case(folder)
        job = prepare(state.rig, left, number)
        state.attempt.starts_on(state.rig.hosts_of(left))
        watch = Watch(folder, state.limit, state.deadline, state.attempt.sign_of_life)
        settings = {**state.rig.how.settings(os.geteuid()), **state.rig.environment}
        code, stopped = run(state.rig.argv(job), state.rig.log(start), watch, settings)
        case = watch.case if stopped == TIMEOUT else case_at(folder)
        if (
            stopped == TIMEOUT and case in left.ids
        ):  # Open MPI wakes a stopped rank to end it, and it goes on for a while
            (folder / f"{case}.csv").unlink(missing_ok=True)
        unfinished = _left(state.rig, start, number).ids
        advanced = len(unfinished) < len(left.rows)
        nothing_started = not (case or advanced) and refused(printed(state.rig.log(start)))
        if (code or stopped or unfinished) and state.rig.how.end:
            state.rig.how.end(state.rig.starter, nothing_started)
        if not unfinished:
            return True  # how the program ended after its last sample is nobody's loss
        if stopped == BUDGET:
            return False
        if nothing_started and time.monotonic() < (waiting := waiting or time.monotonic() + REFUSED):
            time.sleep(BETWEEN_STARTS)
            continue
        waiting = 0.0
        complaint = last_words(state.rig.log(start))
        ended = "ran out of time" if stopped in (STARTING, TIMEOUT) else f"ended with code {code}"
        lost = f"{len(unfinished)} of {len(start.rows)} cases not measured"
        refusal = UserError(f"{start.name} {ended}, {lost}: {complaint} (log: {state.rig.log(start)})")
        if _not_the_cases_fault(state.rig.log(start), code, case):
            if suspect and not case:  # what cannot even start again was not brought down by a case
                raw_samples.unmark(state.rig.folder, suspect)
            raise refusal
        if case not in unfinished:
            if advanced:
                continue  # it ended between two cases
            raise refusal
        failures = 1 if advanced else failures + 1
        hung = stopped == TIMEOUT
        status = raw_samples.TIMEOUT if hung else raw_samples.CRASH
        reason = f"not done after {state.limit:.3g} s{turn}" if hung else f"ended with code {code}{turn}: {complaint}"
        raw_samples.mark(state.rig.folder, case, status, reason, state.attempt.number)
        suspect = case
        if failures == IN_A_ROW:
            # Samples of an earlier pass are worth more than a marker.
            earlier = (raw_samples.finished(state.rig.pass_folder(before))[0] for before in range(number))
            for other in set(unfinished).difference({case}, *earlier):
                given_up = f"{raw_samples.GIVEN_UP}: {reason}"
                raw_samples.mark(state.rig.folder, other, status, given_up, state.attempt.number)
            return True
    return True


def _left(rig: Rig, start: Start, number: int) -> Start:
    """Return the cases of a start that have neither samples of this pass, nor all their samples, nor a marker."""
    measured, marked = raw_samples.finished(rig.folder)
    return start.without(measured | marked | raw_samples.finished(rig.pass_folder(number))[0])


def _not_the_cases_fault(log: AnyPath, code: int, case: str) -> bool:
    """Return whether no case can be blamed: none had begun, the program says what else is wrong, nodes are gone, or so
    is the room on the disk, on which a program cannot even say so."""
    text = printed(log)
    return not case or code == EXIT_USER or bool(OWN.search(text) or TAKEN.search(text)) or full(log)


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
    launching = LAUNCHERS[platform.launcher]
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
    seconds = 60.0 * batch.minutes
    deadline = time.monotonic() + seconds - min(MARGIN, MARGIN_SHARE * seconds)
    folder, work, ids = rig.folder, rig.work, set(batch.ids)
    work.remove_tree()  # left by a batch that was killed
    work.mkdir()
    for number in range(rig.passes):
        rig.pass_folder(number).mkdir()
    rig = in_image(rig)
    _clean_up_dead_attempts(rig, attempt)
    before, marked = raw_samples.finished(folder)
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
    measured, marked = raw_samples.finished(folder)
    count, lacking = len(ids & measured - before), len(ids & marked)
    not_measured = f", {lacking} not, see {folder}/*{raw_samples.SUFFIX} and *{raw_samples.LATE_SUFFIX}"
    done = f"{batch.name}: {count} measured{not_measured if lacking else ''}"
    progress(done if missing else f"{done}, nothing was missing")
    return count


def _note_beginning(rig: Rig, batch: Batch, attempt: OwnAttempt, missing: bool) -> None:
    """What was there already keeps its story: a report may rest on it, which would know nothing of this attempt."""
    about, setting = rig.folder / PROVENANCE, rig.setting
    folders = (rig.folder, *(rig.pass_folder(number) for number in range(rig.passes)))
    if missing and about.exists() and any(raw_samples.finished(folder)[0] for folder in folders):
        setting = same_setting(about, setting)
    if missing or not attempt.after_all_was_done:
        attempt.write()
    if missing or not about.exists():
        write_json(about, provenance(rig.plan, batch, places(rig), setting))


def _limit(rig: Rig) -> float:
    """Seconds that one case may take in a pass."""
    settings = rig.plan.measure
    if rig.how.simulated:
        return SIMULATED_PATIENCE * settings.timeout
    return settings.timeout + settings.seconds / rig.passes


def _passes(state: Sweep, missing: list[Start], name: str, progress: Progress) -> bool:
    """Return all passes over all starts; a case becomes a raw file in the last one. False: the batch's time was
    over."""
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
            if SAMPLES.fullmatch(path.name) and not raw_samples.is_whole(path):
                path.unlink()
        if case := case_at(samples):
            if not (samples / f"{case}.csv").exists() and attempt.died_in(case) >= 2:
                attempt.forgive(case)
                reason = "two attempts at the batch died without a word while it was measured"
                raw_samples.mark(rig.folder, case, raw_samples.CRASH, reason, attempt.number)
            forget_case(samples)


def _join(rig: Rig, cases: list[str]) -> None:
    """Samples of all the passes that there are become raw files. A case that failed in one of them has none."""
    measured, marked = raw_samples.finished(rig.folder)
    for case in cases:
        paths = {number + 1: rig.pass_folder(number) / f"{case}.csv" for number in range(rig.passes)}
        sampled = {number: path for number, path in paths.items() if path.exists()}
        if sampled and case not in measured | marked:
            raw_samples.join(sampled, rig.folder, case)


def _mark_rest(rig: Rig, ids: set[str], attempt: OwnAttempt) -> None:
    measured, marked = raw_samples.finished(rig.folder)
    for case in sorted(ids - measured - marked):
        reason = "the time of its batch was over"
        raw_samples.mark(rig.folder, case, raw_samples.BUDGET, reason, attempt.number)


def _require_samples(folder: SafePath, ids: set[str]) -> None:
    """A batch in which everything failed says more about the place than about its cases: none is marked for it."""
    measured, marked = raw_samples.finished(folder)
    why = {case: raw_samples.why_unmeasured(folder, case) for case in sorted(ids & marked)}
    statuses = {status for status, _ in why.values()}
    failed = [reason for status, reason in why.values() if status != raw_samples.BUDGET]
    if failed and not ids & measured and raw_samples.LATE not in statuses:  # a case whose ranks started late has run
        for case in why:
            raw_samples.unmark(folder, case)
        raise UserError(
            f"nothing could be measured, {len(failed)} of {len(ids)} cases failed: {failed[0]}", file=folder
        )


def find_setting(given: str | None) -> str:
    """Return the setting that is given, else the one that the environment names; blank where there is none."""
    with mistakes_in(key="--setting" if given is not None else VARIABLE):
        return parse_setting(os.environ.get(VARIABLE, "") if given is None else given)


def measure_now(
    name: str, points: Sequence[Point], platform: str, settings: Measure, raw: SafePath, progress: Progress
) -> list[list[dict]]:
    """Return all samples of each point, which lie in the folder `raw` afterwards; none where a point could not be
    measured. A simulated machine is the same at all times: it gives one sample."""
    loaded = load_platform(find("platform", platform))
    require_job(platform, loaded)
    if not loaded.image:
        build(ROOT, toolchain(loaded))
    most = Durations(loaded.launcher, settings).of_points(points, most=True)
    batch = Batch(name, platform, max(point.nodes for point in points), tuple(points), most=most)
    platforms = {platform: planned(platform, loaded)}
    measure(Plan(name, "", "", 1, (), {}, settings, platforms, (batch,), __version__), batch, raw, progress)
    return [_samples(raw, point.id) for point in points]


def _samples(raw: SafePath, case: str) -> list[dict]:
    path = None if why_unmeasured(raw, case) else raw_file(raw, case)
    return read_samples(path, case) if path else []
