"""Measurement of one batch: passes over all its cases until all are measured, given up, or the time limit is reached
(`measure`).

In a pass, one program sweeps many cases. It names its current case in the file `.now` beside its samples; limits are on
a monotonic clock (`Watch`). A case that ends the program is marked, and the program is restarted for the other cases
(`sweep`). A failure before any case began is no case's fault, and ends the batch.

A case with a raw file is not measured again, nor a pass with samples, so a killed batch continues where it stopped.
`measure_now` measures a few points without a campaign.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from commodel import __version__
from commodel.errors import UserError, mistakes_in
from commodel.files.atomic import read_json, write_json
from commodel.files.quantities import SETTING_VARIABLE, parse_setting
from commodel.files.results_folder import PROVENANCE, SAMPLES_NAME, STATE, list_folder
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.measure.process import OWN, TAKEN, describe_failure, end_on_termination, full, printed, run
from commodel.measure.provenance import places, provenance
from commodel.measure.starts import Rig, Start, in_image, prepare, starts_of
from commodel.plan.config import find, load_platform, planned_platform
from commodel.plan.duration import Durations
from commodel.plan.planning import record_platform
from commodel.plan.surveys import is_survey, list_hosts, network_file
from commodel.platforms.build import build, refuse_foreign
from commodel.platforms.build import starter as starter_of
from commodel.platforms.launchers import LAUNCHERS, require_job, toolchain
from commodel.platforms.platform import Platform
from commodel.platforms.slurm import check_stop, was_refused
from commodel.platforms.tools import ROOT, find_build_root
from commodel.records import Batch, Measure, Plan, Point
from commodel.results import raw_samples
from commodel.results.attempts import DONE_OUTCOME, OwnAttempt
from commodel.results.campaign import lock_folder
from commodel.results.process_counts import join_counts
from commodel.results.provenance import check_setting, describe_commit
from commodel.results.raw_samples import find_raw_file, read_marker, read_samples

STARTING, TIMEOUT, BUDGET = "starting", "timeout", "budget"
LONGEST_NAME = 300  # bytes
START_LIMIT = 300.0  # seconds from the start of a program to its first case


def case_at(folder: AnyPath) -> str:
    """Return the case that the program of a folder is measuring, or was when it died; empty before the first and after
    the last case."""
    try:
        with (folder / ".now").open("rb") as stream:
            return stream.read(LONGEST_NAME).decode().strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def forget_case(folder: AnyPath) -> None:
    (folder / ".now").unlink(missing_ok=True)


class Watch:
    """Called periodically while the program runs; returns the reason to stop it, or an empty text."""

    def __init__(self, folder: AnyPath, limit: float, deadline: float, report_alive: Callable[[], None]):
        self.folder, self.limit, self.deadline, self.report_alive = folder, limit, deadline, report_alive
        self.case, self.began, self.since = "", False, time.monotonic()

    def __call__(self) -> str:
        now, case = time.monotonic(), case_at(self.folder)
        if case != self.case:
            self.case, self.began, self.since = case, True, now
        check_stop()
        self.report_alive()
        if now >= self.deadline:
            return BUDGET
        if now - self.since > (self.limit if self.began else START_LIMIT):
            return TIMEOUT if self.began else STARTING
        return ""


EXIT_USER = 2  # exit code of the programs for a user's mistake, if the launcher returns it
MAX_FAILURES = 3  # successive failed cases, after which the other cases of the start are given up
MAX_REFUSAL = 180.0  # seconds for which Slurm may refuse starts: after an outage it learns late which steps ended
BETWEEN_STARTS = 5.0  # seconds between two attempts to start


@dataclass(frozen=True)
class Sweep:
    """The common state of a batch's sweeps: limits in monotonic seconds, and the attempt."""

    rig: Rig
    attempt: OwnAttempt
    limit: float  # of one case
    deadline: float  # when measuring stops


def sweep(state: Sweep, start: Start, number: int) -> bool:
    """Measure the remaining cases of a start in a pass. Return False if the batch's time is over."""
    folder, failures, suspect, waiting = state.rig.pass_folder(number), 0, "", 0.0
    turn = f" in pass {number + 1} of {state.rig.passes}" if state.rig.passes > 1 else ""
    while (missing := _missing_cases(state.rig, start, number)).rows:
        check_stop()
        forget_case(folder)
        job = prepare(state.rig, missing, number)
        state.attempt.record_nodes(state.rig.hosts_of(missing))
        watch = Watch(folder, state.limit, state.deadline, state.attempt.write_heartbeat)
        settings = {**state.rig.how.settings(os.geteuid()), **state.rig.environment}
        code, stopped = run(state.rig.argv(job), state.rig.log(start), watch, settings)
        case = watch.case if stopped == TIMEOUT else case_at(folder)
        if (
            stopped == TIMEOUT and case in missing.ids
        ):  # Open MPI wakes a stopped rank to end it, and it continues for a while
            (folder / f"{case}.csv").unlink(missing_ok=True)
        unfinished = _missing_cases(state.rig, start, number).ids
        advanced = len(unfinished) < len(missing.rows)
        nothing_started = not (case or advanced) and was_refused(printed(state.rig.log(start)))
        if (code or stopped or unfinished) and state.rig.how.end:
            state.rig.how.end(state.rig.starter, nothing_started)
        if not unfinished:
            return True  # after its last sample, a bad end of the program does not matter
        if stopped == BUDGET:
            return False
        if nothing_started and time.monotonic() < (waiting := waiting or time.monotonic() + MAX_REFUSAL):
            time.sleep(BETWEEN_STARTS)
            continue
        waiting = 0.0
        complaint = describe_failure(state.rig.log(start))
        ended = "ran out of time" if stopped in (STARTING, TIMEOUT) else f"ended with code {code}"
        lost = f"{len(unfinished)} of {len(start.rows)} cases not measured"
        refusal = UserError(f"{start.name} {ended}, {lost}: {complaint} (log: {state.rig.log(start)})")
        if _is_external_failure(state.rig.log(start), code, case):
            if suspect and not case:  # if the program cannot be restarted either, the case was not the cause
                raw_samples.remove_marker(state.rig.folder, suspect)
            raise refusal
        if case not in unfinished:
            if advanced:
                continue  # it ended between two cases
            raise refusal
        failures = 1 if advanced else failures + 1
        hung = stopped == TIMEOUT
        status = raw_samples.TIMEOUT if hung else raw_samples.CRASH
        reason = f"not done after {state.limit:.3g} s{turn}" if hung else f"ended with code {code}{turn}: {complaint}"
        raw_samples.write_marker(state.rig.folder, case, status, reason, state.attempt.number)
        suspect = case
        if failures == MAX_FAILURES:
            # A case with samples of an earlier pass gets no marker.
            earlier = (raw_samples.list_finished(state.rig.pass_folder(before))[0] for before in range(number))
            for other in set(unfinished).difference({case}, *earlier):
                given_up = f"{raw_samples.GIVEN_UP}: {reason}"
                raw_samples.write_marker(state.rig.folder, other, status, given_up, state.attempt.number)
            return True
    return True


def _missing_cases(rig: Rig, start: Start, number: int) -> Start:
    """Return the cases of a start without samples of this pass, without all samples, and without a marker."""
    measured, marked = raw_samples.list_finished(rig.folder)
    return start.without(measured | marked | raw_samples.list_finished(rig.pass_folder(number))[0])


def _is_external_failure(log: AnyPath, code: int, case: str) -> bool:
    """Return whether no case caused the failure: none had begun, the program reports another cause, nodes are gone, or
    the disk is full."""
    text = printed(log)
    return not case or code == EXIT_USER or bool(OWN.search(text) or TAKEN.search(text)) or full(log)


Progress = Callable[[str], None]
SIMULATED_FACTOR = 10  # time limit of a simulated case over that of a measured one
MARGIN = 60.0  # seconds before the time limit at which measuring stops, to join the samples
MARGIN_SHARE = 0.1  # margin of a short time limit, relative to it


def measure(
    plan: Plan,
    batch: Batch,
    folder: AnyPath,
    progress: Progress,
    setting: str = "",
    environment: Mapping[str, str] | None = None,
) -> int:
    """Measure the missing cases of a batch into `folder`, and return how many were measured.

    `setting` replaces that of the platform, `environment` is for the MPI library.
    """
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
        refuse_foreign(find_build_root(), starter, platform.slurm_mpi)
    names, passes = _name_nodes(plan, batch, platform, starter), plan.passes(batch.platform)
    job = {"setting": setting or platform.setting, "environment": environment or {}}
    rig = Rig(plan, platform, launching, starter, names, folder, passes, **job)
    end_on_termination()
    with lock_folder(folder, "another measurement of this batch"):
        attempt = OwnAttempt(folder, None if rig.how.simulated else 60 * batch.minutes, describe_commit())
        try:
            measured = _measure(rig, batch, attempt, progress)
        except BaseException as error:
            _end_badly(attempt, error)
            raise
        if attempt.last_write:
            attempt.end(DONE_OUTCOME)
    return measured


def _name_nodes(plan: Plan, batch: Batch, platform: Platform, starter: str) -> tuple[str, ...]:
    """Return the names of a batch's nodes. Refuse a job on other hosts than those whose levels the plan has."""
    hosts = list_hosts(plan, batch)
    names = LAUNCHERS[platform.launcher].names(platform, starter, batch.nodes, hosts)
    if hosts and names != hosts:
        found, wanted = ",".join(names), ",".join(hosts)
        file = network_file(batch.platform, platform.digest)
        advice = f"request them (sbatch --nodelist={wanted}), delete this file to survey again, or run with --no-survey"
        raise UserError(f"the job runs on {found}, wanted {wanted}, whose network was surveyed: {advice}", file=file)
    return names


def _end_badly(attempt: OwnAttempt, error: BaseException) -> None:
    stopped = isinstance(error, SystemExit | KeyboardInterrupt)
    text = "stopped from outside" if stopped else str(error) or type(error).__name__
    with suppress(OSError):  # the error itself is reported; it may be a full disk
        attempt.end(f"error: {text}")


def _measure(rig: Rig, batch: Batch, attempt: OwnAttempt, progress: Progress) -> int:
    seconds = math.inf if rig.how.simulated else 60.0 * batch.minutes  # no job ends a simulation, however slow it is
    deadline = time.monotonic() + seconds - min(MARGIN, MARGIN_SHARE * seconds)
    folder, work, ids = rig.folder, rig.work, set(batch.ids)
    work.remove_tree()  # of a killed batch
    work.mkdir()
    for number in range(rig.passes):
        rig.pass_folder(number).mkdir()
    rig = in_image(rig)
    if rig.how.in_job and (is_survey(batch) or list_hosts(rig.plan, batch)):
        _set_aside_other_nodes(rig, attempt, progress)
    _clean_up_dead_attempts(rig, attempt)
    before, marked = raw_samples.list_finished(folder)
    starts = [
        start.without(before | marked) for start in starts_of(batch, work, rig.platform.substrate, rig.how.simulated)
    ]
    missing = [start for start in starts if start.rows]
    _record_start(rig, batch, attempt, bool(missing))
    in_time = _run_passes(Sweep(rig, attempt, _limit(rig), deadline), missing, batch.name, progress)
    if not in_time:
        _join(rig, [case for start in missing for case in start.ids])
        _mark_rest(rig, ids, attempt)
    _require_samples(folder, ids)
    for number in range(rig.passes):
        rig.pass_folder(number).remove_tree()
    work.remove_tree()
    measured, marked = raw_samples.list_finished(folder)
    count, lacking = len(ids & measured - before), len(ids & marked)
    not_measured = f", {lacking} not, see {folder}/*{raw_samples.MARKER_SUFFIX} and *{raw_samples.LATE_SUFFIX}"
    done = f"{batch.name}: {count} measured{not_measured if lacking else ''}"
    progress(done if missing else f"{done}, nothing was missing")
    return count


def _set_aside_other_nodes(rig: Rig, attempt: OwnAttempt, progress: Progress) -> None:
    """Rename the samples of earlier attempts, if one of them ran on other nodes. A survey, and what is predicted with
    its levels, holds for one set of nodes."""
    about = rig.folder / PROVENANCE
    recorded = read_json(about).get("nodes", []) if about.exists() else list(rig.names)
    used = {name for earlier in attempt.earlier for name in earlier.nodes}
    if list(rig.names) == recorded and used <= set(rig.names):
        return
    for number in range(rig.passes):
        rig.pass_folder(number).remove_tree()
        rig.pass_folder(number).mkdir()
    ending = f".other-nodes-{attempt.number - 1}"
    for path in list_folder(rig.folder):
        if path.suffix in (".csv", ".json") and path.name != STATE:
            path.replace(path.with_name(path.name + ending))
    progress(f"{rig.folder.name}: begins again: earlier samples are of other nodes (renamed to *{ending})")


def _record_start(rig: Rig, batch: Batch, attempt: OwnAttempt, missing: bool) -> None:
    """Record the start of an attempt. Provenance that exists is kept, since a report may rest on it."""
    about, setting = rig.folder / PROVENANCE, rig.setting
    folders = (rig.folder, *(rig.pass_folder(number) for number in range(rig.passes)))
    if missing and about.exists() and any(raw_samples.list_finished(folder)[0] for folder in folders):
        setting = check_setting(about, setting)
    if missing or not attempt.follows_done_attempt:
        attempt.write()
    if missing or not about.exists():
        write_json(about, provenance(rig.plan, batch, places(rig), setting))


def _limit(rig: Rig) -> float:
    """Return the time limit of one case in a pass, in seconds."""
    settings = rig.plan.measure
    if rig.how.simulated:
        return SIMULATED_FACTOR * settings.timeout
    return settings.timeout + settings.seconds / rig.passes


def _run_passes(state: Sweep, missing: list[Start], name: str, progress: Progress) -> bool:
    """Run all passes over all starts; after the last one a case becomes a raw file. Return False if the batch's time is
    over."""
    rig, total = state.rig, sum(len(start.rows) for start in missing)
    for number in range(rig.passes):
        turn, done = f", pass {number + 1} of {rig.passes}" if rig.passes > 1 else "", 0
        for start in missing:
            progress(f"{name}: {done} of {total} done{turn}, now {start.program} on {start.ranks} ranks")
            state.attempt.current_pass = number + 1
            state.attempt.write()
            if not sweep(state, start, number):
                return False
            if number + 1 == rig.passes:
                _join(rig, start.ids)
            done += len(start.rows)
    return True


def _clean_up_dead_attempts(rig: Rig, attempt: OwnAttempt) -> None:
    """Remove torn files of attempts that died, and mark a case during which two of them died."""
    for number in range(rig.passes):
        samples = rig.pass_folder(number)
        for path in list_folder(samples):
            if SAMPLES_NAME.fullmatch(path.name) and not raw_samples.is_complete(path):
                path.unlink()
        if case := case_at(samples):
            if not (samples / f"{case}.csv").exists() and attempt.count_crashes(case) >= 2:
                attempt.clear_crashes(case)
                reason = "two attempts at the batch ended without a message while it was measured"
                raw_samples.write_marker(rig.folder, case, raw_samples.CRASH, reason, attempt.number)
            forget_case(samples)


def _join(rig: Rig, cases: list[str]) -> None:
    """Write raw files from the samples of all passes. A case that failed in one of them has none."""
    measured, marked = raw_samples.list_finished(rig.folder)
    for case in cases:
        paths = {number + 1: rig.pass_folder(number) / f"{case}.csv" for number in range(rig.passes)}
        sampled = {number: path for number, path in paths.items() if path.exists()}
        if sampled and case not in measured | marked:
            raw_samples.join_passes(sampled, rig.folder, case)
            join_counts([rig.pass_folder(number) for number in range(rig.passes)], rig.folder, case)


def _mark_rest(rig: Rig, ids: set[str], attempt: OwnAttempt) -> None:
    measured, marked = raw_samples.list_finished(rig.folder)
    for case in sorted(ids - measured - marked):
        reason = "the time of its batch was over"
        raw_samples.write_marker(rig.folder, case, raw_samples.BUDGET, reason, attempt.number)


def _require_samples(folder: SafePath, ids: set[str]) -> None:
    """Raise an error if everything failed, and remove the markers: the cause is the platform, not the cases."""
    measured, marked = raw_samples.list_finished(folder)
    why = {case: raw_samples.read_marker(folder, case) for case in sorted(ids & marked)}
    statuses = {status for status, _ in why.values()}
    failed = [reason for status, reason in why.values() if status != raw_samples.BUDGET]
    if failed and not ids & measured and raw_samples.LATE not in statuses:  # a case with late ranks has run
        for case in why:
            raw_samples.remove_marker(folder, case)
        raise UserError(
            f"nothing could be measured, {len(failed)} of {len(ids)} cases failed: {failed[0]}", file=folder
        )


def find_setting(given: str | None) -> str:
    """Return the given setting, else that of the environment; empty if there is none."""
    with mistakes_in(key="--setting" if given is not None else SETTING_VARIABLE):
        return parse_setting(os.environ.get(SETTING_VARIABLE, "") if given is None else given)


def measure_now(
    name: str, points: Sequence[Point], platform: str, settings: Measure, raw: SafePath, progress: Progress
) -> list[list[dict]]:
    """Return all samples of each point, stored in the folder `raw`; empty if a point could not be measured.

    A simulated machine gives one sample.
    """
    loaded = load_platform(find("platform", platform))
    require_job(platform, loaded)
    if not loaded.image:
        build(ROOT, toolchain(loaded))
    most = Durations(loaded.launcher, settings).estimate_points(points, upper_bound=True)
    batch = Batch(name, platform, max(point.nodes for point in points), tuple(points), most=most)
    planned = record_platform(platform, loaded)
    planned = planned if planned.levels else replace(planned, hosts=())  # without levels, other nodes are welcome
    platforms = {platform: planned}
    measure(Plan(name, "", "", 1, (), {}, settings, platforms, (batch,), __version__), batch, raw, progress)
    return [_samples(raw, point.id) for point in points]


def _samples(raw: SafePath, case: str) -> list[dict]:
    path = None if read_marker(raw, case) else find_raw_file(raw, case)
    return read_samples(path, case) if path else []
