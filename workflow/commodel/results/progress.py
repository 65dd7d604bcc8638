"""Progress of a campaign (`StatusReader`, `Status`): the state of each batch and the forecast of
its end, as text and as JSON data.

The status is computed from the results folder alone: which cases are measured, given up or still to
be measured, and the attempts at each batch. It can therefore be read on any node that sees the
folder.

A forecast is a range of seconds. It is the plan's estimate for the remaining cases times the
duration ratio of the measured ones: measured seconds per estimated second. Without a ratio there is
no forecast. On simulated platforms, the two parts of estimates have factors of their own, which are
fitted to the seconds of single cases.

`compare_with_earlier_durations` compares the estimates of a plan with earlier measurements on the
same platform. Estimates include neither packet loss nor other load.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.files.results_folder import PLAN, SAMPLES_NAME, Results, pass_folder_name
from commodel.files.safe_paths import SafePath
from commodel.plan.duration import (
    BATCH_START_SECONDS,
    Durations,
    estimate_analysis,
    fit_part_factors,
)
from commodel.plan.planning import load_plan
from commodel.records import LIBRARY, Batch, Case, Plan, Point
from commodel.results import raw_samples
from commodel.results.attempts import DONE_OUTCOME, Attempt, read_attempts, sum_durations
from commodel.results.campaign import Campaign
from commodel.results.raw_samples import make_marker_path
from commodel.units import format_bytes, format_duration, format_extent

SecondsRange = tuple[float, float]
# resolution of the seconds of a case, which are differences of times of files
MIN_CASE_SECONDS = 1e-3
# ratio of the fitted to the planned seconds of simulations, from which it is reported
MIN_REPORTED_SLOWDOWN = 2.0
# between a waiting batch and the only measured batch on its platform
DURATION_UNCERTAINTY_FACTOR = 2.0


@dataclass(frozen=True)
class BatchWork:
    """The completed or the remaining work of a batch: the number of cases, and their estimated
    seconds. One of three passes over a case counts as a third of the case."""

    cases: float = 0
    estimate: float = 0.0
    fitted: float = 0.0  # estimated seconds with factors fitted to measured cases; 0 without a fit


class Estimates:
    """The plan's estimates for single cases; each batch is estimated once."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.durations: dict[str, Durations] = {}  # by platform
        # by batch, then by case: see `estimate_parts`
        self.case_parts: dict[str, dict[str, np.ndarray]] = {}
        # by platform and case: parts and seconds
        self.measured: dict[str, dict[str, tuple[np.ndarray, float]]] = {}
        self.factors: dict[str, np.ndarray] = {}  # of the parts, by platform

    def sum_work(self, batch: Batch, cases: Iterable[str], passes: int) -> BatchWork:
        """Return the work of one pass over each of the cases, if a case has `passes` passes."""
        parts_of_case = self._get_parts(batch)
        parts = np.array([parts_of_case[case] for case in cases]).reshape(-1, 2)
        factors = self.factors.get(batch.platform, np.zeros(2))
        return BatchWork(
            len(parts) / passes,
            float(parts.sum()) / passes,
            float((parts @ factors).sum()) / passes,
        )

    def learn(self, batch: Batch, seconds: Mapping[str, float]) -> None:
        """Fit the factors of a simulated platform to the measured seconds of cases, and of those
        learned before."""
        parts_of_case = self._get_parts(batch)
        measured = self.measured.setdefault(batch.platform, {})
        measured |= {
            case: (parts_of_case[case], max(value, MIN_CASE_SECONDS))
            for case, value in seconds.items()
        }
        if measured:
            parts, values = zip(*measured.values(), strict=True)
            self.factors[batch.platform] = fit_part_factors(np.array(parts), np.array(values))

    def _get_parts(self, batch: Batch) -> dict[str, np.ndarray]:
        if batch.name not in self.case_parts:
            if batch.platform not in self.durations:
                self.durations[batch.platform] = Durations.of_platform(self.plan, batch.platform)
            estimate = self.durations[batch.platform].estimate_parts
            members: list[Case | Point] = [*batch.cases, *batch.points]
            self.case_parts[batch.name] = {member.id: estimate(member) for member in members}
        return self.case_parts[batch.name]


def forecast_running_batch(
    elapsed: float, finished: BatchWork, remaining: BatchWork
) -> SecondsRange | None:
    """Return the forecast of a running batch by the estimates of cases, and by the fitted
    estimates. Without these, the second forecast is by the number of remaining cases.

    The n measured cases are a sample of all, so the relative uncertainty of their mean is taken to
    be 1/√n.
    """
    if not finished.cases:
        return None
    if finished.fitted:
        forecasts = [elapsed * remaining.fitted / finished.fitted]
    else:
        forecasts = [elapsed * remaining.cases / finished.cases]
    forecasts += [elapsed * remaining.estimate / finished.estimate] if finished.estimate else []
    uncertainty = 1 / math.sqrt(max(finished.cases, 1))
    return min(forecasts) * (1 - uncertainty), max(forecasts) * (1 + uncertainty)


def compute_duration_ratio(elapsed: float, finished: BatchWork) -> float | None:
    """Return the measured seconds per second of the plan's estimate; None if nothing has been
    measured."""
    return elapsed / finished.estimate if finished.estimate and elapsed > 0 else None


def forecast_waiting_batch(remaining: BatchWork, ratios: list[float]) -> SecondsRange | None:
    """Return the forecast of a batch that has not begun, from the duration ratios of the other
    batches on its platform, and from fitted estimates if there are any."""
    if not ratios:
        return None
    factor = DURATION_UNCERTAINTY_FACTOR if len(ratios) == 1 else 1.0
    forecasts = [ratio * remaining.estimate for ratio in ratios]
    forecasts += [remaining.fitted] if remaining.fitted else []
    return BATCH_START_SECONDS + min(forecasts) / factor, BATCH_START_SECONDS + max(
        forecasts
    ) * factor


def forecast_parallel(forecasts: list[SecondsRange | None], parallel: int) -> SecondsRange | None:
    """Return the forecast of all batches if `parallel` of them run at a time; it is never shorter
    than the longest."""
    ranges = [forecast for forecast in forecasts if forecast is not None]
    if not forecasts or not parallel or len(ranges) < len(forecasts):
        return None
    low, high = (max(max(ends), sum(ends) / parallel) for ends in zip(*ranges, strict=True))
    return low, high


def limit_forecast(forecast: SecondsRange | None, limit: float) -> SecondsRange | None:
    """Return the forecast of a batch that is stopped after `limit` seconds."""
    if forecast is None:
        return None
    low, high = (min(end, max(limit, 0.0)) for end in forecast)
    return low, high


def extend_forecast(forecast: SecondsRange | None, seconds: float) -> SecondsRange | None:
    """Return the forecast with `seconds` of later work, an estimate that may differ by the
    uncertainty factor."""
    return forecast and (
        forecast[0] + seconds / DURATION_UNCERTAINTY_FACTOR,
        forecast[1] + seconds * DURATION_UNCERTAINTY_FACTOR,
    )


WAITING = "waiting"
RUNNING = "running"
SILENT = "silent"
FINISHED = "finished"
STOPPED = "stopped"
# seconds without a heartbeat after which a batch counts as silent; usual: every 3 s
HEARTBEAT_TIMEOUT = 180.0


MIN_SHOWN_CASE_SECONDS = 30.0  # of a running case, from which on it is named


@dataclass(frozen=True)
class RunningCase:
    """The case that a batch measures, in words, and for how long."""

    text: str
    seconds: float

    @property
    def sentence(self) -> str:
        return f"{self.text} has been running for {format_duration(round(self.seconds))}"


def describe_member(member: Point | Case) -> str:
    """Return a point or a case of a probe in words."""
    if isinstance(member, Case):
        return f"probe {member.probe} on {member.ranks} ranks, {member.layout}"
    name = "MPI default" if member.algorithm == LIBRARY else member.alternative
    alternative = f" ({name})" if name else ""
    extent = format_extent(member.leaves, member.ranks)
    return (
        f"{member.operation}{alternative} over {extent}, {member.layout}, "
        f"{format_bytes(member.bytes)}"
    )


@dataclass(frozen=True)
class BatchProgress:
    """A batch: the counts of its cases, its state, and the completed and remaining work of the
    current attempt."""

    batch: Batch
    simulated: bool
    measured: int
    unmeasured: Mapping[str, int]  # by status: crash, timeout, budget, late
    state: str
    attempts: tuple[Attempt, ...]
    silence: float  # seconds since its last heartbeat
    done_work: BatchWork
    remaining_work: BatchWork
    total_work: BatchWork  # of all cases of the batch
    current_pass: str  # such as "pass 2 of 3"; empty if there is one pass
    # of the current attempt; the start-up before it does not count for `duration_ratio`
    first_samples_at: float = 0.0
    forecast: SecondsRange | None = None  # seconds until it is finished; None: unknown
    running_case: RunningCase | None = None  # if it takes long

    @property
    def total(self) -> int:
        return len(self.batch.ids)

    @property
    def given_up(self) -> int:
        return sum(self.unmeasured.values())

    @property
    def remaining(self) -> int:
        return self.total - self.measured - self.given_up

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def duration_ratio(self) -> float | None:
        """Seconds of this batch per second of the plan's estimate; None if unknown."""
        if self.state == RUNNING and self.last:
            return compute_duration_ratio(self.last.updated - self.first_samples_at, self.done_work)
        if self.state == FINISHED and self.done_work.estimate:
            with_start = replace(
                self.done_work, estimate=BATCH_START_SECONDS + self.done_work.estimate
            )
            return compute_duration_ratio(sum_durations(self.attempts), with_start)
        return None


@dataclass(frozen=True)
class Status:
    experiment: str
    batches: tuple[BatchProgress, ...]
    lock_holder: str  # process that has the lock on the folder; empty: none
    now: float  # seconds since 1970
    analysis_seconds: float = 0.0  # estimate for fitting, predicting and reporting afterwards

    @property
    def measured(self) -> int:
        return sum(batch.measured for batch in self.batches)

    @property
    def unmeasured(self) -> Counter[str]:
        return sum((Counter(batch.unmeasured) for batch in self.batches), Counter())

    @property
    def remaining(self) -> int:
        return sum(batch.remaining for batch in self.batches)

    @property
    def fraction_done(self) -> float:
        """The fraction of the measuring time that is over, by the estimates of all cases; below 1
        while cases remain. A case with one pass of three counts as a third."""

        def sum_seconds(works: Iterable[BatchWork]) -> float:
            return sum(work.fitted or work.estimate for work in works)

        remaining = sum_seconds(batch.remaining_work for batch in self.batches)
        return 1 - remaining / sum_seconds(batch.total_work for batch in self.batches)

    @property
    def simulation_slowdown(self) -> float:
        """How many times the planned time the simulated batches take, by the fitted estimates; NaN
        without these."""
        works = [batch.total_work for batch in self.batches if batch.total_work.fitted]
        return (
            sum(work.fitted for work in works) / sum(work.estimate for work in works)
            if works
            else math.nan
        )

    def count(self, state: str) -> int:
        return sum(batch.state == state for batch in self.batches)

    @property
    def has_ended(self) -> bool:
        """Whether the campaign has ended: all batches are finished, or no process works on it."""
        return self.count(FINISHED) == len(self.batches) or not (
            self.lock_holder or self.count(RUNNING)
        )

    @property
    def forecast(self) -> SecondsRange | None:
        """The forecast of the seconds until the report is complete."""
        forecasts = [batch.forecast for batch in self.batches if batch.state in (RUNNING, WAITING)]
        return extend_forecast(
            forecast_parallel(forecasts, self.count(RUNNING)), self.analysis_seconds
        )


class StatusReader:
    """A reader of the status of one folder, for repeated use: it lists a batch again only if its
    folder has changed."""

    def __init__(self, campaign: Campaign):
        self.campaign = campaign
        self.estimates = Estimates(campaign.plan)
        self.analysis_seconds = estimate_analysis(campaign.plan)
        self.plan_mtime_ns = 0
        # by batch: mtime, measured, given up
        self.listed: dict[str, tuple[int, frozenset[str], dict[str, str]]] = {}

    def read(self, lock_holder: str, now: float) -> Status:
        self._reload_changed_plan()
        progress = [self._read_batch(batch, now) for batch in self.campaign.plan.batches]
        ratios: dict[str, list[float]] = {}
        for entry in progress:
            if entry.duration_ratio is not None:
                ratios.setdefault(entry.batch.platform, []).append(entry.duration_ratio)
        batches = tuple(
            replace(entry, forecast=_forecast_batch(entry, ratios, now)) for entry in progress
        )
        return Status(
            experiment=self.campaign.plan.experiment,
            batches=batches,
            lock_holder=lock_holder,
            now=now,
            analysis_seconds=self.analysis_seconds,
        )

    def _reload_changed_plan(self) -> None:
        """Load the plan again if it has changed: a survey changes it while a campaign runs."""
        path = self.campaign.results.plan
        with suppress(FileNotFoundError):
            mtime_ns = path.stat().st_mtime_ns
            if self.plan_mtime_ns != mtime_ns:
                plan = load_plan(path)
                self.plan_mtime_ns = mtime_ns
                self.campaign = replace(self.campaign, plan=plan)
                self.estimates = Estimates(plan)
                self.analysis_seconds = estimate_analysis(plan)
                self.listed.clear()

    def _read_batch(self, batch: Batch, now: float) -> BatchProgress:
        folder = self.campaign.done_file(batch).parent
        # Attempts come first: a batch that ends between the two would seem to wait, with nothing
        # measured.
        stored = read_attempts(folder)
        joined, given_up = self._list_cases(batch, folder)
        last = stored.last
        # Clocks of nodes differ, so the file's modification time counts, too.
        silence = now - max(stored.modified_at, last.updated) if last else 0.0
        finished_or_given_up = joined | given_up.keys()
        unfinished = [case for case in batch.ids if case not in finished_or_given_up]
        if last and last.ended is None and not last.is_dead:
            state = SILENT if silence > HEARTBEAT_TIMEOUT else RUNNING
        elif not unfinished and (
            self.campaign.done_file(batch).exists() or (last and last.outcome == DONE_OUTCOME)
        ):
            state = FINISHED
        else:
            state = STOPPED if last and last.outcome != DONE_OUTCOME else WAITING
        # of each pass the times at which samples of cases were written
        passes: list[dict[str, float]] = []
        if state in (RUNNING, SILENT, STOPPED):  # samples get their final names after the last pass
            count = self.campaign.plan.passes(batch.platform)
            passes = [
                _list_sample_times(folder / pass_folder_name(number)) for number in range(count)
            ]
        simulated = self.campaign.plan.platforms[batch.platform].simulated
        ends = _list_ends(batch, folder, passes, given_up, last.started) if last and passes else []
        if simulated:
            self.estimates.learn(
                batch, {case: time - before for (before, _), (time, case) in pairwise(ends)}
            )
        remaining = unfinished
        in_all_passes = 0
        if passes:
            remaining = [case for times in passes for case in unfinished if case not in times]
            in_all_passes = len(set(unfinished).intersection(*passes))
        finished = [case for _, case in ends[1:]] if passes else joined
        return BatchProgress(
            batch=batch,
            simulated=simulated,
            measured=len(joined) + in_all_passes,
            unmeasured=Counter(given_up.values()),
            state=state,
            attempts=stored.attempts,
            silence=silence,
            done_work=self.estimates.sum_work(batch, finished, len(passes) or 1),
            remaining_work=self.estimates.sum_work(batch, remaining, len(passes) or 1),
            total_work=self.estimates.sum_work(batch, batch.ids, 1),
            current_pass=f"pass {stored.current_pass} of {len(passes)}" if len(passes) > 1 else "",
            first_samples_at=ends[0][0] if ends else now,
            running_case=_find_running_case(batch, folder, stored.current_pass, now)
            if state == RUNNING
            else None,
        )

    def _list_cases(self, batch: Batch, folder: SafePath) -> tuple[frozenset[str], dict[str, str]]:
        """Return the cases of a batch with joined samples, and the status of each case that was
        given up."""
        try:
            mtime_ns = folder.stat().st_mtime_ns
        except FileNotFoundError:
            return frozenset(), {}
        if batch.name not in self.listed or self.listed[batch.name][0] != mtime_ns:
            measured, marked = raw_samples.list_finished(folder)
            markers = {
                case: raw_samples.read_marker(folder, case) for case in batch.ids if case in marked
            }
            statuses = {case: marker[0] for case, marker in markers.items() if marker}
            self.listed[batch.name] = (
                mtime_ns,
                frozenset(measured.intersection(batch.ids)),
                statuses,
            )
        return self.listed[batch.name][1:]


def _find_running_case(
    batch: Batch, folder: SafePath, current_pass: int, now: float
) -> RunningCase | None:
    """Return the case that a batch measures; None between cases, and if it has run for a short time
    only."""
    pass_folder = folder / pass_folder_name(max(current_pass - 1, 0))
    members: dict[str, Point | Case] = {case.id: case for case in batch.cases}
    members.update((point.id, point) for point in batch.points)
    member = members.get(raw_samples.read_current_case(pass_folder))
    if member is None:
        return None
    try:
        seconds = now - (pass_folder / raw_samples.CURRENT_CASE).stat().st_mtime
    except FileNotFoundError:  # its program has ended
        return None
    return (
        RunningCase(describe_member(member), seconds) if seconds >= MIN_SHOWN_CASE_SECONDS else None
    )


def _list_ends(
    batch: Batch,
    folder: SafePath,
    passes: Sequence[Mapping[str, float]],
    given_up: Iterable[str],
    started: float,
) -> list[tuple[float, str]]:
    """Return the times since `started` at which cases ended, in order, each with the case: samples
    were written in a pass, or the case was given up."""
    ids = set(batch.ids)
    ends = []
    for times in passes:
        ends += [(time, case) for case, time in times.items() if case in ids]
    marked = folder.modification_times()
    ends += [(marked.get(make_marker_path(folder, case).name, 0.0), case) for case in given_up]
    return sorted((time, case) for time, case in ends if time >= started)


def _list_sample_times(folder: SafePath) -> dict[str, float]:
    """Return the times at which the samples of the cases of a pass were written, by id of the
    case."""
    try:
        return {
            name.removesuffix(".csv"): time
            for name, time in folder.modification_times().items()
            if SAMPLES_NAME.fullmatch(name)
        }
    except FileNotFoundError:  # the pass has not begun, or its samples were joined a moment ago
        return {}


def _forecast_batch(
    batch: BatchProgress, ratios: Mapping[str, list[float]], now: float
) -> SecondsRange | None:
    """Return the forecast of a running or waiting batch, at most the rest of its time limit; None
    in other states."""
    if batch.state == RUNNING and batch.last:
        limit = math.inf if batch.last.deadline is None else batch.last.deadline - now
        elapsed = max(now - batch.first_samples_at, 0.0)
        return limit_forecast(
            forecast_running_batch(elapsed, batch.done_work, batch.remaining_work), limit
        )
    if batch.state == WAITING:
        forecast = forecast_waiting_batch(
            batch.remaining_work, ratios.get(batch.batch.platform, [])
        )
        return limit_forecast(forecast, 60.0 * batch.batch.minutes)
    return None


@dataclass(frozen=True)
class EarlierDurations:
    """The measured and the estimated seconds of the batches of an earlier experiment."""

    experiment: str
    seconds: float
    estimate: float

    @property
    def duration_ratio(self) -> float:
        return self.seconds / self.estimate


def read_earlier_durations(platform: str, digest: str, results: Path) -> EarlierDurations | None:
    """Return the durations of the latest experiment measured on the platform with this digest; None
    if there is none."""
    plans = [path for path in results.glob(f"*/{PLAN}") if path.is_file()]
    for path in sorted(plans, key=lambda path: -path.stat().st_mtime):
        # of another version, damaged, or with links: continue with the next folder
        with suppress(UserError):
            durations = _read_durations(Results.of(path.parent), platform, digest)
            if durations:
                return durations
    return None


def _read_durations(results: Results, platform: str, digest: str) -> EarlierDurations | None:
    plan = load_plan(results.plan)
    if platform not in plan.platforms or plan.platforms[platform].digest != digest:
        return None
    seconds = 0.0
    estimate = 0.0
    for batch in plan.batches:
        stored = read_attempts(results.raw(batch.name))
        if (
            batch.platform == platform
            and batch.seconds
            and stored.last
            and stored.last.outcome == DONE_OUTCOME
        ):
            seconds += sum_durations(stored.attempts)
            estimate += batch.seconds
    return EarlierDurations(plan.experiment, seconds, estimate) if seconds else None


def compare_with_earlier_durations(plan: Plan, results: Path) -> Iterator[str]:
    """Yield a sentence for each platform: the plan's estimate, scaled by the duration ratio of
    earlier measurements there."""
    for name, platform in plan.platforms.items():
        earlier = read_earlier_durations(name, platform.digest, results)
        if earlier:
            expected = earlier.duration_ratio * sum(
                batch.seconds for batch in plan.batches if batch.platform == name
            )
            took = format_duration(earlier.seconds)
            estimate = format_duration(earlier.estimate)
            comparison = (
                f"{results / earlier.experiment} took {took} there, where {estimate} were estimated"
            )
            yield f"{name}: {comparison}; at that ratio this run takes {format_duration(expected)}"
        elif not platform.simulated:
            yield f"{name}: no earlier measurement there; the estimate assumes no packet loss and no other load"


Row = dict[str, Any]


def format_status(status: Status, stage: str = "") -> str:
    """Return the status in one line; `stage` is the current stage of the workflow, shown if no
    batch is running."""
    parts = [f"{status.measured} of {sum(batch.total for batch in status.batches)} measured"]
    if status.unmeasured:
        reasons = ", ".join(f"{count} {kind}" for kind, count in sorted(status.unmeasured.items()))
        parts.append(f"{status.unmeasured.total()} not ({reasons})")
    parts += [f"{status.remaining} left"] if status.remaining else []
    running = status.count(RUNNING)
    if status.remaining and running:
        parts += [
            f"expected end {format_end(status.forecast, status.now)}",
            # rounded down: 100 % only if nothing remains
            f"{math.floor(100 * status.fraction_done)}% of the time over",
        ]
        parts.append(f"{running} batch{'' if running == 1 else 'es'} running")
        if status.simulation_slowdown >= MIN_REPORTED_SLOWDOWN:
            parts.append(f"{status.simulation_slowdown:.0f} times as long as planned")
        running_cases = [batch.running_case for batch in status.batches if batch.running_case]
        if running_cases:
            parts.append(max(running_cases, key=lambda case: case.seconds).sentence)
    elif stage:
        parts.append(stage)
    return f"{status.experiment}: {', '.join(parts)}"


def tabulate_platforms(status: Status) -> list[Row]:
    """Return one row for each platform, and a last one for all if there are several."""
    kinds = sorted(status.unmeasured)
    platforms: dict[str, list[BatchProgress]] = {}
    for batch in status.batches:
        name = f"{batch.batch.platform}{' (simulated)' if batch.simulated else ''}"
        platforms.setdefault(name, []).append(batch)
    if len(platforms) > 1:
        platforms["all"] = list(status.batches)
    rows = []
    for name, members in platforms.items():
        row: Row = {
            "platform": name,
            "batches": len(members),
            "cases": sum(batch.total for batch in members),
            "measured": sum(batch.measured for batch in members),
        }
        for kind in kinds:
            row[kind] = sum(batch.unmeasured.get(kind, 0) for batch in members)
        row["left"] = sum(batch.remaining for batch in members)
        rows.append(row)
    return rows


def tabulate_batches(status: Status) -> list[Row]:
    return [
        {
            "batch": batch.batch.name,
            "nodes": batch.batch.nodes,
            "cases": batch.total,
            "measured": batch.measured,
            "given up": batch.given_up,
            "left": batch.remaining,
            "expected end": format_end(batch.forecast, status.now)
            if batch.state != FINISHED
            else "",
            "state": describe_state(batch),
        }
        for batch in status.batches
    ]


def describe_state(batch: BatchProgress) -> str:
    """Return a batch's state in words."""
    last = batch.last
    attempt_text = f", attempt {len(batch.attempts)}" if len(batch.attempts) > 1 else ""
    if last and batch.state in (RUNNING, SILENT):
        job = f" as job {last.job}" if last.job else ""
        current_pass = f", {batch.current_pass}" if batch.current_pass else ""
        silent = f", no heartbeat for {batch.silence / 60:.0f} min" if batch.state == SILENT else ""
        since = format_clock_time(last.started)
        case = f", {batch.running_case.sentence}" if batch.running_case else ""
        return (
            f"{RUNNING} on {last.host}{job} since {since}{current_pass}{attempt_text}{silent}{case}"
        )
    if last and batch.state == STOPPED:
        where = f" on {last.host}" if last.host else ""
        return (
            f"{STOPPED}{where} at {format_clock_time(last.ended or last.updated)}{attempt_text}: "
            f"{last.outcome_text}"
        )
    return batch.state


def make_json_data(status: Status) -> Row:
    """Return the status as data for programs; times are seconds since 1970, expected ends are
    ranges of such times."""

    def expect_end(forecast: SecondsRange | None) -> list[float] | None:
        return [round(status.now + end) for end in forecast] if forecast else None

    def describe_batch(batch: BatchProgress) -> dict[str, Any]:
        return {
            "name": batch.batch.name,
            "platform": batch.batch.platform,
            "simulated": batch.simulated,
            "nodes": batch.batch.nodes,
            "cases": batch.total,
            "measured": batch.measured,
            "unmeasured": dict(batch.unmeasured),
            "left": batch.remaining,
            "state": batch.state,
            "silence": round(batch.silence),
            "running_case": asdict(batch.running_case) if batch.running_case else None,
            "expected_end": expect_end(batch.forecast),
            "attempts": [asdict(attempt) for attempt in batch.attempts],
        }

    return {
        "experiment": status.experiment,
        "at_work": status.lock_holder or None,
        "over": status.has_ended,
        "measured": status.measured,
        "unmeasured": dict(status.unmeasured),
        "left": status.remaining,
        "expected_end": expect_end(status.forecast),
        "batches": list(map(describe_batch, status.batches)),
    }


def format_end(forecast: SecondsRange | None, now: float) -> str:
    """Return the expected end as a range of times of day."""
    if forecast is None:
        return "unknown"
    low, high = (format_clock_time(now + end) for end in forecast)
    return f"about {low}" if low == high else f"{low} to {high}"


def format_clock_time(when: float) -> str:
    """Return the time of day, with the date if it is not today."""
    then = time.localtime(when)
    return time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%F %H:%M", then)
