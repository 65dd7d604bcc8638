"""Measurement of one batch (`measure_batch`): passes over all its cases, until all are measured or
given up, or until the time limit.

In a pass, one start of a program measures many cases. The program writes the name of its current
case into the file `.now` beside its samples. `Watch` checks time limits by a monotonic clock. If a
case ends the program, `measure_start` marks the case and restarts the program for the other cases.
If the program fails before its first case, the batch ends.

A case with a raw file, or with samples of a pass, is not measured again. A killed batch therefore
continues where it stopped. `measure_now` measures a few points without a campaign."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from commodel import __version__
from commodel.errors import UserError, locate_mistakes
from commodel.files.atomic import read_json, write_json
from commodel.files.quantities import SETTING_VARIABLE, parse_setting
from commodel.files.results_folder import PROVENANCE, SAMPLES_NAME, STATE, list_folder
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.measure.process import (
    NODE_LOSS,
    PROGRAM_ERROR,
    describe_failure,
    end_on_termination,
    is_disk_full,
    read_output,
    run_launcher,
)
from commodel.measure.program_starts import (
    Start,
    StartContext,
    add_image_command,
    list_starts,
    load_starts,
    prepare_start,
)
from commodel.measure.provenance import collect_provenance, describe_nodes
from commodel.plan.config import load_named_platform
from commodel.plan.duration import SIMULATED_LIMIT_FACTOR, Durations
from commodel.plan.planning import record_platform
from commodel.plan.surveys import find_network_file, is_survey, list_hosts
from commodel.platforms.build import build_toolchain, find_starter, refuse_mismatched_starter
from commodel.platforms.launchers import LAUNCHERS, get_toolchain, require_job
from commodel.platforms.platform import Platform
from commodel.platforms.slurm import check_stop, was_refused
from commodel.platforms.tools import find_build_root
from commodel.records import Batch, Measure, Plan, Point
from commodel.results import raw_samples
from commodel.results.attempts import DONE_OUTCOME, OwnAttempt
from commodel.results.campaign import open_lock
from commodel.results.provenance import check_setting, describe_commit
from commodel.results.raw_samples import (
    clear_current_case,
    find_raw_file,
    read_current_case,
    read_marker,
    read_samples,
)
from commodel.sources import ROOT

# Reasons for which `Watch` stops a program.
STOPPED_BEFORE_FIRST_CASE, STOPPED_BY_TIMEOUT, STOPPED_BY_BUDGET = "starting", "timeout", "budget"
MAX_START_SECONDS = 300.0  # seconds from the start of a program to its first case


# limit of a simulated case, relative to the slowest case measured before in its batch
SLOWEST_FACTOR = 20.0


@dataclass
class CaseLimit:
    """The time limit of a case in a pass, in seconds.

    How long SimGrid takes depends on how many messages share links, so a few cases may take a
    thousand times as long as the others. Their limit is relative to the cases measured before, from
    `shortest` to `longest`.
    """

    longest: float
    shortest: float
    slowest: float = 0.0  # seconds of the slowest case that was measured before; 0: none was

    @property
    def seconds(self) -> float:
        if not self.slowest:
            return self.longest
        return min(max(SLOWEST_FACTOR * self.slowest, self.shortest), self.longest)

    def add_case(self, seconds: float) -> None:
        self.slowest = max(self.slowest, seconds)

    @property
    def text(self) -> str:
        """The limit, and the seconds that it is relative to."""
        text = f"{self.seconds:.3g} s"
        if self.shortest == self.longest or not self.slowest:
            return text
        return f"{text}; no case of this batch before it took more than {self.slowest:.2g} s"


class Watch:
    """Time limits of a running program. A call returns the reason to stop the program, or an empty
    text."""

    def __init__(
        self, folder: AnyPath, limit: CaseLimit, deadline: float, report_alive: Callable[[], None]
    ):
        self.folder, self.limit, self.deadline, self.report_alive = (
            folder,
            limit,
            deadline,
            report_alive,
        )
        self.case, self.has_begun, self.last_change = "", False, time.monotonic()

    def __call__(self) -> str:
        seconds, case = time.monotonic(), read_current_case(self.folder)
        if case != self.case:
            if self.case:
                self.limit.add_case(seconds - self.last_change)
            self.case, self.has_begun, self.last_change = case, True, seconds
        check_stop()
        self.report_alive()
        if seconds >= self.deadline:
            return STOPPED_BY_BUDGET
        if seconds - self.last_change > (
            self.limit.seconds if self.has_begun else MAX_START_SECONDS
        ):
            return STOPPED_BY_TIMEOUT if self.has_begun else STOPPED_BEFORE_FIRST_CASE
        return ""


USER_ERROR_CODE = 2  # exit code of the programs for a user's mistake, if the launcher returns it
MAX_FAILURES = 3  # successive failed cases, after which the other cases of the start are given up
# seconds for which a refused start is repeated, since Slurm may still count ended steps
MAX_REFUSAL_SECONDS = 180.0
RETRY_SECONDS = 5.0  # seconds between two attempts to start


@dataclass(frozen=True)
class SweepState:
    """The common state of a batch's sweeps: time limits in seconds, and the attempt."""

    context: StartContext
    attempt: OwnAttempt
    limit: CaseLimit
    deadline: float  # end of measuring, by the monotonic clock


def measure_start(state: SweepState, start: Start, number: int) -> bool:
    """Measure the remaining cases of a start in a pass. Return False if the batch's time is
    over."""
    context, attempt, log = state.context, state.attempt, state.context.log(start)
    folder, failures, suspect, retry_until = context.pass_folder(number), 0, "", 0.0
    pass_text = f" in pass {number + 1} of {context.passes}" if context.passes > 1 else ""
    while (remaining := _select_missing_cases(context, start, number)).rows:
        check_stop()
        clear_current_case(folder)
        job = prepare_start(context, remaining, number)
        attempt.record_nodes(context.hosts_of(remaining))
        watch = Watch(folder, state.limit, state.deadline, attempt.write_heartbeat)
        settings = {**context.launcher.settings(os.geteuid()), **context.environment}
        code, stop_reason = run_launcher(context.argv(job), log, watch, settings)
        case = watch.case if stop_reason == STOPPED_BY_TIMEOUT else read_current_case(folder)
        if stop_reason == STOPPED_BY_TIMEOUT and case in remaining.ids:
            # Open MPI resumes a stopped rank to end it; the rank may then complete its file.
            (folder / f"{case}.csv").unlink(missing_ok=True)
        unfinished = _select_missing_cases(context, start, number).ids
        has_progressed = len(unfinished) < len(remaining.rows)
        nothing_started = not (case or has_progressed) and was_refused(read_output(log))
        if (code or stop_reason or unfinished) and context.launcher.end:
            context.launcher.end(context.starter, nothing_started)
        if not unfinished:
            return True  # all samples exist, so a failure at the end of the program is ignored
        if stop_reason == STOPPED_BY_BUDGET:
            return False
        if nothing_started and time.monotonic() < (
            retry_until := retry_until or time.monotonic() + MAX_REFUSAL_SECONDS
        ):
            time.sleep(RETRY_SECONDS)
            continue
        retry_until = 0.0
        failure = describe_failure(log)
        # The program was not stopped by the budget, so a reason to stop it is a time limit.
        ending = "ran out of time" if stop_reason else f"ended with code {code}"
        not_measured = f"{len(unfinished)} of {len(start.rows)} cases not measured"
        refusal = UserError(f"{start.name} {ending}, {not_measured}: {failure} (log: {log})")
        if _is_external_failure(log, code, case):
            # the program cannot be restarted, so the marked case was not the cause
            if suspect and not case:
                raw_samples.remove_marker(context.folder, suspect)
            raise refusal
        if case not in unfinished:
            if has_progressed:
                continue  # the program ended between two cases
            raise refusal
        failures = 1 if has_progressed else failures + 1
        status, reason = raw_samples.CRASH, f"ended with code {code}{pass_text}: {failure}"
        if stop_reason == STOPPED_BY_TIMEOUT:
            status, reason = raw_samples.TIMEOUT, f"not done after {state.limit.text}{pass_text}"
        raw_samples.write_marker(context.folder, case, status, reason, attempt.number)
        suspect = case
        if failures == MAX_FAILURES:
            # A case with samples of an earlier pass gets no marker.
            earlier = (
                raw_samples.list_finished(context.pass_folder(previous))[0]
                for previous in range(number)
            )
            for skipped in set(unfinished).difference({case}, *earlier):
                given_up = f"{raw_samples.STOPPED_BY_FAILURES}: {reason}"
                raw_samples.write_marker(context.folder, skipped, status, given_up, attempt.number)
            return True
    return True


def _select_missing_cases(context: StartContext, start: Start, number: int) -> Start:
    """Return the start with only the cases that have no raw file, no marker, and no samples of this
    pass."""
    measured, marked = raw_samples.list_finished(context.folder)
    return start.without(
        measured | marked | raw_samples.list_finished(context.pass_folder(number))[0]
    )


def _is_external_failure(log: AnyPath, code: int, case: str) -> bool:
    """Return whether no case caused the failure: none had begun, the program reports another cause,
    Slurm took nodes away, or the disk is full."""
    text = read_output(log)
    return (
        not case
        or code == USER_ERROR_CODE
        or bool(PROGRAM_ERROR.search(text) or NODE_LOSS.search(text))
        or is_disk_full(log)
    )


Progress = Callable[[str], None]


@dataclass(frozen=True)
class BatchOutcome:
    """What a measurement of a batch did: the cases that are measured, and how many of them are new;
    those that were given up, each with status and reason."""

    batch: Batch
    folder: AnyPath
    measured: frozenset[str]
    new: int
    given_up: Mapping[str, tuple[str, str]]
    was_complete: bool  # before this measurement

    @property
    def sentence(self) -> str:
        text = f"{self.batch.name}: {self.new} measured"
        if self.given_up:
            suffixes = f"{self.folder}/*{raw_samples.MARKER_SUFFIX} and *{raw_samples.LATE_SUFFIX}"
            text += f", {len(self.given_up)} not, see {suffixes}"
        return f"{text}, nothing was missing." if self.was_complete else f"{text}."


JOIN_SECONDS = 60.0  # seconds before the time limit at which measuring stops, to join the samples
JOIN_MARGIN_SHARE = 0.1  # margin of a short time limit, relative to it


def measure_batch(
    plan: Plan,
    batch: Batch,
    folder: AnyPath,
    progress: Progress,
    setting: str = "",
    environment: Mapping[str, str] | None = None,
) -> BatchOutcome:
    """Measure the missing cases of a batch into `folder`.

    `setting` replaces that of the platform, `environment` is for the MPI library.
    """
    folder = SafePath.at(folder)
    platform = load_named_platform(batch.platform)
    if platform.digest != plan.platforms[batch.platform].digest:
        raise platform.error((), "the platform has changed since the plan was made; plan again")
    launcher = LAUNCHERS[platform.launcher]
    toolchain_name = get_toolchain(platform)
    starter = (
        find_starter(toolchain_name, launcher.starters)
        if platform.uses_mpi or launcher.in_job
        else ""
    )
    if starter is None:
        raise UserError(
            f"no {' or '.join(launcher.starters)} found, which platform '{batch.platform}' needs; see commodel doctor"
        )
    if toolchain_name == "mpi" and not platform.image:
        refuse_mismatched_starter(find_build_root(), starter, platform.slurm_mpi)
    node_names, passes = _name_nodes(plan, batch, platform, starter), plan.passes(batch.platform)
    context = StartContext(
        plan,
        platform,
        launcher,
        starter,
        node_names,
        folder,
        passes,
        setting=setting or platform.setting,
        environment=environment or {},
    )
    end_on_termination()
    with open_lock(folder, "another measurement of this batch"):
        attempt = OwnAttempt(
            folder, None if context.launcher.simulated else 60 * batch.minutes, describe_commit()
        )
        try:
            outcome = _measure_locked(context, batch, attempt, progress)
        except BaseException as error:
            _record_failure(attempt, error)
            raise
        if attempt.last_write:
            attempt.end(DONE_OUTCOME)
    return outcome


def _name_nodes(plan: Plan, batch: Batch, platform: Platform, starter: str) -> tuple[str, ...]:
    """Return the names of a batch's nodes. Refuse a job on other hosts than those whose levels the
    plan has."""
    hosts = list_hosts(plan, batch)
    names = LAUNCHERS[platform.launcher].names(platform, starter, batch.nodes, hosts)
    if hosts and names != hosts:
        found, surveyed = ",".join(names), ",".join(hosts)
        file = find_network_file(batch.platform, platform.digest)
        request = (
            f"sbatch --nodelist={surveyed}"
            if platform.launcher == "slurm"
            else "by the options of your scheduler"
        )
        advice = (
            f"request them ({request}), delete this file to survey again, or run with --no-survey"
        )
        raise UserError(
            f"the job runs on {found}, wanted {surveyed}, whose network was surveyed: {advice}",
            file=file,
        )
    return names


def _record_failure(attempt: OwnAttempt, error: BaseException) -> None:
    stopped = isinstance(error, SystemExit | KeyboardInterrupt)
    text = "stopped from outside" if stopped else str(error) or type(error).__name__
    with suppress(OSError):  # the error itself is reported; it may be a full disk
        attempt.end(f"error: {text}")


def _measure_locked(
    context: StartContext, batch: Batch, attempt: OwnAttempt, progress: Progress
) -> BatchOutcome:
    # a simulation has no time limit
    seconds = math.inf if context.launcher.simulated else 60.0 * batch.minutes
    deadline = time.monotonic() + seconds - min(JOIN_SECONDS, JOIN_MARGIN_SHARE * seconds)
    folder, work, ids = context.folder, context.work, set(batch.ids)
    work.remove_tree()  # left by a killed batch
    work.mkdir()
    for pass_folder in context.pass_folders:
        pass_folder.mkdir()
    context = add_image_command(context)
    if context.platform.takes_hosts_from_job and (
        is_survey(batch) or list_hosts(context.plan, batch)
    ):
        _set_aside_other_nodes(context, attempt, progress)
    _clean_up_dead_attempts(context, attempt)
    already_measured, marked = raw_samples.list_finished(folder)
    durations = Durations.of_platform(context.plan, batch.platform)
    large = {point.id for point in batch.points if durations.is_large_simulation(point)}
    starts = [
        start.without(already_measured | marked)
        for start in list_starts(
            batch, work, context.platform.substrate, context.launcher.simulated, large
        )
    ]
    starts_with_missing_cases = [start for start in starts if start.rows]
    _record_start(context, batch, attempt, bool(starts_with_missing_cases))
    in_time = _run_passes(
        SweepState(context, attempt, _make_case_limit(context), deadline),
        starts_with_missing_cases,
        batch.name,
        progress,
    )
    if not in_time:
        _join_passes(context, [case for start in starts_with_missing_cases for case in start.ids])
        _mark_unmeasured(context, ids, attempt)
    _require_samples(folder, ids)
    for pass_folder in context.pass_folders:
        pass_folder.remove_tree()
    work.remove_tree()
    measured = raw_samples.list_finished(folder)[0] & ids
    markers = {case: raw_samples.read_marker(folder, case) for case in batch.ids}
    given_up = {case: marker for case, marker in markers.items() if marker}
    new = len(measured - already_measured)
    return BatchOutcome(
        batch, folder, frozenset(measured), new, given_up, not starts_with_missing_cases
    )


def _set_aside_other_nodes(context: StartContext, attempt: OwnAttempt, progress: Progress) -> None:
    """Rename the samples of earlier attempts, if one of them ran on other nodes. A survey, and
    predictions with its levels, are valid for one set of nodes."""
    path = context.folder / PROVENANCE
    recorded = read_json(path).get("nodes", []) if path.exists() else list(context.names)
    used = {name for earlier in attempt.earlier for name in earlier.nodes}
    if list(context.names) == recorded and used <= set(context.names):
        return
    for pass_folder in context.pass_folders:
        pass_folder.remove_tree()
        pass_folder.mkdir()
    ending = f".other-nodes-{attempt.number - 1}"
    for path in list_folder(context.folder):
        if path.suffix in (".csv", ".json") and path.name != STATE:
            path.replace(path.with_name(path.name + ending))
    progress(
        f"{context.folder.name}: begins again: earlier samples are of other nodes (renamed to *{ending})"
    )


def _record_start(context: StartContext, batch: Batch, attempt: OwnAttempt, missing: bool) -> None:
    """Record the start of an attempt. Existing provenance is kept if nothing is missing, since a
    report may use it."""
    path, setting = context.folder / PROVENANCE, context.setting
    folders = (context.folder, *context.pass_folders)
    if (
        missing
        and path.exists()
        and any(raw_samples.list_finished(folder)[0] for folder in folders)
    ):
        setting = check_setting(path, setting)
    if missing or not attempt.follows_done_attempt:
        attempt.write()
    if missing or not path.exists():
        write_json(path, collect_provenance(context.plan, batch, describe_nodes(context), setting))


def _make_case_limit(context: StartContext) -> CaseLimit:
    settings = context.plan.measure
    if context.launcher.simulated:
        return CaseLimit(SIMULATED_LIMIT_FACTOR * settings.timeout, settings.timeout)
    limit = settings.timeout + settings.seconds / context.passes
    return CaseLimit(limit, limit)


def _run_passes(state: SweepState, missing: list[Start], name: str, progress: Progress) -> bool:
    """Run all passes over all starts. After the last pass, the samples of each case become a raw
    file. Return False if the batch's time is over."""
    context, total = state.context, sum(len(start.rows) for start in missing)
    for number in range(context.passes):
        pass_text, finished = (
            f", pass {number + 1} of {context.passes}" if context.passes > 1 else "",
            0,
        )
        for start in missing:
            progress(
                f"{name}: {finished} of {total} done{pass_text}, now {start.program} on {start.ranks} ranks"
            )
            state.attempt.current_pass = number + 1
            state.attempt.write()
            if not measure_start(state, start, number):
                return False
            if number + 1 == context.passes:
                _join_passes(context, start.ids)
            finished += len(start.rows)
    return True


def _clean_up_dead_attempts(context: StartContext, attempt: OwnAttempt) -> None:
    """Remove incomplete samples of killed attempts, and mark a case during which two attempts
    ended."""
    for samples in context.pass_folders:
        for path in list_folder(samples):
            if SAMPLES_NAME.fullmatch(path.name) and not raw_samples.is_complete(path):
                path.unlink()
        case = read_current_case(samples)
        if case:
            if not (samples / f"{case}.csv").exists() and attempt.count_crashes(case) >= 2:
                attempt.clear_crashes(case)
                reason = "two attempts at the batch ended without a message while it was measured"
                raw_samples.write_marker(
                    context.folder, case, raw_samples.CRASH, reason, attempt.number
                )
            clear_current_case(samples)


def _join_passes(context: StartContext, cases: list[str]) -> None:
    """Write raw files from the samples of all passes. A case with a marker gets none."""
    measured, marked = raw_samples.list_finished(context.folder)
    for case in cases:
        paths = enumerate((folder / f"{case}.csv" for folder in context.pass_folders), 1)
        sampled = {number: path for number, path in paths if path.exists()}
        if sampled and case not in measured | marked:
            raw_samples.join_passes(sampled, context.folder, case)
            if not context.platform.uses_mpi:
                load_starts(context.platform.substrate).join_passes(
                    context.pass_folders, context.folder, case
                )


def _mark_unmeasured(context: StartContext, ids: set[str], attempt: OwnAttempt) -> None:
    measured, marked = raw_samples.list_finished(context.folder)
    for case in sorted(ids - measured - marked):
        reason = "the time of its batch was over"
        raw_samples.write_marker(context.folder, case, raw_samples.BUDGET, reason, attempt.number)


def _require_samples(folder: SafePath, ids: set[str]) -> None:
    """Raise an error if all cases failed, after removing their markers: the platform is the cause,
    not the cases."""
    measured, marked = raw_samples.list_finished(folder)
    markers = {
        case: marker
        for case in sorted(ids & marked)
        if (marker := raw_samples.read_marker(folder, case))
    }
    statuses = {status for status, _ in markers.values()}
    failed = [reason for status, reason in markers.values() if status != raw_samples.BUDGET]
    # a case with late ranks has run
    if failed and not ids & measured and raw_samples.LATE not in statuses:
        for case in markers:
            raw_samples.remove_marker(folder, case)
        raise UserError(
            f"nothing could be measured, {len(failed)} of {len(ids)} cases failed: {failed[0]}",
            file=folder,
        )


def find_setting(option: str | None) -> str:
    """Return the given setting, else that of the environment; empty if there is none."""
    with locate_mistakes(key="--setting" if option is not None else SETTING_VARIABLE):
        return parse_setting(os.environ.get(SETTING_VARIABLE, "") if option is None else option)


def measure_now(
    name: str,
    points: Sequence[Point],
    platform: str,
    settings: Measure,
    raw: SafePath,
    progress: Progress,
) -> list[list[dict]]:
    """Return all samples of each point, stored in the folder `raw`; empty if a point could not be
    measured."""
    description = load_named_platform(platform)
    require_job(platform, description)
    if not description.image:
        build_toolchain(ROOT, get_toolchain(description))
    upper_bounds = Durations(description.launcher, settings).estimate_members(
        points, upper_bound=True
    )
    batch = Batch(
        name, platform, max(point.nodes for point in points), tuple(points), most=upper_bounds
    )
    planned = record_platform(platform, description)
    # without levels, other nodes are welcome
    planned = planned if planned.levels else replace(planned, hosts=())
    plan = Plan(name, "", "", 1, (), {}, settings, {platform: planned}, (batch,), __version__)
    outcome = measure_batch(plan, batch, raw, progress)
    progress(outcome.sentence)
    paths = [
        None if read_marker(raw, point.id) else find_raw_file(raw, point.id) for point in points
    ]
    return [
        read_samples(path, point.id) if path else []
        for path, point in zip(paths, points, strict=True)
    ]
