"""Progress of a campaign (`Reader`, `Status`): the state of each batch, the forecast of its end, and both as text and
data.

The status is computed from the results folder alone: which cases are measured, given up or left, and the attempts at
each batch. It can therefore be read on any node that sees the folder.

A forecast is a range of seconds. It follows from the plan's estimates of the remaining cases, and from the pace of what
has been measured: seconds per estimated second. Without a pace there is no forecast.

`beside_estimates` compares the estimates of a plan with earlier measurements on the same platform. Estimates include
neither packet loss nor other load.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from commodel.errors import UserError
from commodel.files.results_folder import SAMPLES, Results, pass_name
from commodel.files.safe_paths import SafePath
from commodel.patterns.operations import OVERLAY
from commodel.plan.duration import BATCH_START_SECONDS, Durations, estimate_analysis
from commodel.plan.planning import load_plan
from commodel.records import Batch, Plan
from commodel.results import raw_samples
from commodel.results.attempts import DONE, Attempt, read_attempts, sum_durations
from commodel.results.campaign import Campaign
from commodel.units import format_seconds

Span = tuple[float, float]
UNSURE = 2.0  # factor by which a batch that has not begun may differ from the pace of the only other one


@dataclass(frozen=True)
class Work:
    """The work that an attempt at a batch has done, or has left: the number of cases, and their estimated seconds. One
    pass over a case is a fraction of it."""

    cases: float = 0
    estimate: float = 0.0


class Estimates:
    """The plan's estimates for single cases; each batch is estimated once."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.durations: dict[str, Durations] = {}
        self.predicted: dict[str, dict[str, float]] = {}

    def work(self, batch: Batch, cases: Iterable[str], passes: int) -> Work:
        """Return the work of single passes over cases, if a case has `passes` passes."""
        known = self.predicted.get(batch.name) or self._predict(batch)
        chosen = [known[case] for case in cases]
        return Work(len(chosen) / passes, sum(chosen) / passes)

    def _predict(self, batch: Batch) -> dict[str, float]:
        name = batch.platform
        if name not in self.durations:
            platform = self.plan.platforms[name]
            self.durations[name] = Durations(platform.launcher, self.plan.measure, platform.substrate == OVERLAY)
        durations = self.durations[name]
        seconds = {case.id: durations.estimate_cases([case]) - BATCH_START_SECONDS for case in batch.cases}
        seconds |= {point.id: durations.estimate_points([point]) - BATCH_START_SECONDS for point in batch.points}
        self.predicted[batch.name] = seconds
        return seconds


def running(spent: float, done: Work, left: Work) -> Span | None:
    """Return the forecast of a running batch: by the number of cases left, and by their estimates.

    The n measured cases are a sample of all, so the relative uncertainty of their mean is taken to be 1/√n.
    """
    if not done.cases:
        return None
    ways = [spent * left.cases / done.cases]
    ways += [spent * left.estimate / done.estimate] if done.estimate else []
    unsure = 1 / math.sqrt(max(done.cases, 1))
    return min(ways) * (1 - unsure), max(ways) * (1 + unsure)


def measure_pace(spent: float, done: Work) -> float | None:
    """Return the pace, in seconds per second of the plan's estimate; None if nothing has been measured."""
    return spent / done.estimate if done.estimate and spent > 0 else None


def forecast_batch(left: Work, paces: list[float]) -> Span | None:
    """Return the forecast of a batch that has not begun, from the paces of the other batches on its platform."""
    if not paces:
        return None
    low, high = min(paces), max(paces)
    if len(paces) == 1:
        low, high = low / UNSURE, high * UNSURE
    return BATCH_START_SECONDS + low * left.estimate, BATCH_START_SECONDS + high * left.estimate


def forecast_parallel(spans: list[Span | None], lanes: int) -> Span | None:
    """Return the forecast of all batches if `lanes` of them run at a time; it is never shorter than the longest one."""
    if not spans or not lanes or None in spans:
        return None
    low, high = (max(max(ends), sum(ends) / lanes) for ends in zip(*spans, strict=True))
    return low, high


def limit_forecast(span: Span | None, limit: float) -> Span | None:
    """Return the forecast of something that is stopped after `limit` seconds."""
    return span and tuple(min(end, max(limit, 0.0)) for end in span)


def extend_forecast(span: Span | None, more: float) -> Span | None:
    """Return the forecast with `more` estimated seconds of later work, which may differ by the factor `UNSURE`."""
    return span and (span[0] + more / UNSURE, span[1] + more * UNSURE)


WAITING, RUNNING, SILENT, FINISHED, STOPPED = "waiting", "running", "silent", "finished", "stopped"
QUIET = 180.0  # seconds without a heartbeat; a driver gives one every few seconds


@dataclass(frozen=True)
class Progress:
    """A batch: the counts of its cases, its state, and the work that the current attempt has done and has left."""

    batch: Batch
    simulated: bool
    measured: int
    unmeasured: Mapping[str, int]  # by status: crash, timeout, budget, late
    state: str
    attempts: tuple[Attempt, ...]
    silence: float  # seconds since its last heartbeat
    done: Work
    ahead: Work
    turn: str  # which of its passes, where it has several
    since: float = 0.0  # when the attempt at work had its first samples: before that it started, which is no pace
    seconds: Span | None = None  # until it is done; None: unknown

    @property
    def total(self) -> int:
        return len(self.batch.ids)

    @property
    def given_up(self) -> int:
        return sum(self.unmeasured.values())

    @property
    def left(self) -> int:
        return self.total - self.measured - self.given_up

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def pace(self) -> float | None:
        """Seconds of this batch per second of the plan's estimate; None if unknown."""
        if self.state == RUNNING:
            return measure_pace(self.last.updated - self.since, self.done)
        whole = replace(self.done, estimate=BATCH_START_SECONDS + self.done.estimate)
        return (
            measure_pace(sum_durations(self.attempts), whole) if self.state == FINISHED and self.done.estimate else None
        )


@dataclass(frozen=True)
class Status:
    experiment: str
    batches: tuple[Progress, ...]
    at_work: str  # holder of the lock on the folder; empty: none
    now: float
    analysis: float = 0.0  # seconds for fitting, predicting and reporting afterwards

    @property
    def measured(self) -> int:
        return sum(batch.measured for batch in self.batches)

    @property
    def unmeasured(self) -> Counter:
        return sum((Counter(batch.unmeasured) for batch in self.batches), Counter())

    @property
    def left(self) -> int:
        return sum(batch.left for batch in self.batches)

    @property
    def part(self) -> float:
        """The part of the measurements that is done; a case with one pass of three counts as a third."""
        return 1 - sum(batch.ahead.cases for batch in self.batches) / sum(batch.total for batch in self.batches)

    def count(self, state: str) -> int:
        return sum(batch.state == state for batch in self.batches)

    @property
    def over(self) -> bool:
        """Whether the campaign has ended: all batches are finished, or no process works on it."""
        return self.count(FINISHED) == len(self.batches) or not (self.at_work or self.count(RUNNING))

    @property
    def seconds(self) -> Span | None:
        """The forecast of the seconds until the report is complete."""
        spans = [batch.seconds for batch in self.batches if batch.state in (RUNNING, WAITING)]
        return extend_forecast(forecast_parallel(spans, self.count(RUNNING)), self.analysis)


class Reader:
    """A reader that reads the same folder again and again; a batch is only listed again if its folder has changed."""

    def __init__(self, campaign: Campaign):
        self.campaign = campaign
        self.estimates = Estimates(campaign.plan)
        self.analysis = estimate_analysis(campaign.plan)
        self.planned = 0  # when the plan was written, in ns
        self.seen: dict[str, tuple[int, frozenset[str], dict[str, str]]] = {}

    def read(self, at_work: str, now: float) -> Status:
        self._follow_plan()
        progress = [self._progress(batch, now) for batch in self.campaign.plan.batches]
        paces: dict[str, list[float]] = {}
        for entry in progress:
            if entry.pace is not None:
                paces.setdefault(entry.batch.platform, []).append(entry.pace)
        batches = tuple(replace(entry, seconds=_seconds(entry, paces, now)) for entry in progress)
        return Status(self.campaign.plan.experiment, batches, at_work, now, self.analysis)

    def _follow_plan(self) -> None:
        """Load the plan again if it has changed: a survey changes it while a campaign runs."""
        path = self.campaign.results.plan
        with suppress(FileNotFoundError):
            if self.planned != (changed := path.stat().st_mtime_ns):
                self.planned, self.campaign = changed, replace(self.campaign, plan=load_plan(path))
                self.estimates, self.analysis = Estimates(self.campaign.plan), estimate_analysis(self.campaign.plan)
                self.seen.clear()

    def _progress(self, batch: Batch, now: float) -> Progress:
        folder = self.campaign.done(batch).parent
        samples, given_up = self._files(batch, folder)
        stored = read_attempts(folder)
        last = stored.last
        silence = (
            now - max(stored.written, last.updated) if last else 0.0
        )  # clocks of nodes differ: the file's counts too
        undone = [case for case in batch.ids if case not in samples and case not in given_up]
        if last and last.ended is None and not last.gone:
            state = SILENT if silence > QUIET else RUNNING
        elif not undone and (self.campaign.done(batch).exists() or (last and last.outcome == DONE)):
            state = FINISHED
        else:
            state = STOPPED if last and last.outcome != DONE else WAITING
        turns = []
        if state in (RUNNING, SILENT, STOPPED):  # samples get their final names when all passes are through
            passes = self.campaign.plan.passes(batch.platform)
            turns = [_written(folder / pass_name(number)) for number in range(passes)]
        here = sorted(
            (turn[case], case) for turn in turns for case in undone if case in turn and turn[case] >= last.started
        )
        ahead = [case for turn in turns for case in undone if case not in turn]
        return Progress(
            batch=batch,
            simulated=self.campaign.plan.platforms[batch.platform].simulated,
            measured=len(samples) + sum(all(case in turn for turn in turns) for case in undone if turns),
            unmeasured=Counter(given_up.values()),
            state=state,
            attempts=stored.attempts,
            silence=silence,
            done=self.estimates.work(batch, [case for _, case in here[1:]] if turns else samples, len(turns) or 1),
            ahead=self.estimates.work(batch, ahead if turns else undone, len(turns) or 1),
            turn=f"pass {stored.turn} of {len(turns)}" if len(turns) > 1 else "",
            since=here[0][0] if here else now,
        )

    def _files(self, batch: Batch, folder: SafePath) -> tuple[frozenset[str], dict[str, str]]:
        """Return which cases of a batch have samples, and the status of those that were given up."""
        try:
            changed = folder.stat().st_mtime_ns
        except FileNotFoundError:
            return frozenset(), {}
        if batch.name not in self.seen or self.seen[batch.name][0] != changed:
            measured, marked = raw_samples.finished(folder)
            given_up = {case: raw_samples.read_marker(folder, case) for case in batch.ids if case in marked}
            statuses = {case: why[0] for case, why in given_up.items() if why}
            self.seen[batch.name] = changed, frozenset(measured.intersection(batch.ids)), statuses
        return self.seen[batch.name][1:]


def _written(folder: SafePath) -> dict[str, float]:
    """Return when the samples of each case of a pass were written, by id."""
    try:
        return {name.removesuffix(".csv"): time for name, time in folder.changed().items() if SAMPLES.fullmatch(name)}
    except FileNotFoundError:  # not begun, or joined this very moment
        return {}


def _seconds(entry: Progress, paces: Mapping[str, list[float]], now: float) -> Span | None:
    """Return the forecast of a batch, at most the time that its time limit leaves; None if it neither runs nor
    waits."""
    if entry.state == RUNNING:
        limit = math.inf if entry.last.deadline is None else entry.last.deadline - now
        return limit_forecast(running(max(now - entry.since, 0.0), entry.done, entry.ahead), limit)
    if entry.state == WAITING:
        return limit_forecast(
            forecast_batch(entry.ahead, paces.get(entry.batch.platform, [])), 60.0 * entry.batch.minutes
        )
    return None


@dataclass(frozen=True)
class EarlierDurations:
    """The measured and the estimated seconds of the batches of an earlier experiment."""

    experiment: str
    seconds: float
    estimate: float

    @property
    def pace(self) -> float:
        return self.seconds / self.estimate


def read_earlier_durations(platform: str, digest: str, results: Path) -> EarlierDurations | None:
    """Return the durations of the latest experiment measured on the platform with this digest; None if there is
    none."""
    folders = [folder for folder in results.glob("*") if (folder / "plan.json").is_file()]
    for folder in sorted(folders, key=lambda folder: -(folder / "plan.json").stat().st_mtime):
        with suppress(UserError):  # from another version, damaged, or with links: others are tried
            if (there := _of(Results.of(folder), platform, digest)) is not None:
                return there
    return None


def _of(results: Results, platform: str, digest: str) -> EarlierDurations | None:
    plan = load_plan(results.plan)
    if platform not in plan.platforms or plan.platforms[platform].digest != digest:
        return None
    took, estimates = [], []
    for batch in plan.batches:
        stored = read_attempts(results.raw(batch.name))
        if batch.platform == platform and batch.seconds and stored.last and stored.last.outcome == DONE:
            took.append(sum_durations(stored.attempts))
            estimates.append(batch.seconds)
    return EarlierDurations(plan.experiment, sum(took), sum(estimates)) if any(took) else None


def beside_estimates(plan: Plan, results: Path) -> Iterator[str]:
    """Yield a sentence for each platform: the plan's estimate, scaled by the pace of earlier measurements there."""
    for name, platform in plan.platforms.items():
        before = read_earlier_durations(name, platform.digest, results)
        if before:
            about = before.pace * sum(batch.seconds for batch in plan.batches if batch.platform == name)
            took, estimate = format_seconds(before.seconds), format_seconds(before.estimate)
            there = f"{results / before.experiment} took {took} there, where {estimate} were estimated"
            yield f"{name}: {there}; at that ratio this run takes {format_seconds(about)}"
        elif not platform.simulated:
            yield f"{name}: no earlier measurement there; the estimate assumes no packet loss and no other load"


Row = dict[str, object]


def sentence(status: Status, stage: str = "") -> str:
    """Return the status in one line; `stage` is the current stage of the workflow, for when no batch is running."""
    parts = [f"{status.measured} of {sum(batch.total for batch in status.batches)} measured"]
    if status.unmeasured:
        reasons = ", ".join(f"{count} {kind}" for kind, count in sorted(status.unmeasured.items()))
        parts.append(f"{status.unmeasured.total()} not ({reasons})")
    parts += [f"{status.left} left"] if status.left else []
    running = status.count(RUNNING)
    if status.left and running:
        parts += [f"expected end {ends(status.seconds, status.now)}", f"{status.part:.0%} done"]
        parts += [f"{running} batch{'' if running == 1 else 'es'} running"]
    elif stage:
        parts.append(stage)
    return f"{status.experiment}: {', '.join(parts)}"


def platform_rows(status: Status) -> list[Row]:
    """Return one row for each platform, and a last one for all if there are several."""
    kinds = sorted(status.unmeasured)
    platforms: dict[str, list[Progress]] = {}
    for batch in status.batches:
        name = f"{batch.batch.platform}{' (simulated)' if batch.simulated else ''}"
        platforms.setdefault(name, []).append(batch)
    if len(platforms) > 1:
        platforms["all"] = list(status.batches)
    return [
        {
            "platform": name,
            "batches": len(members),
            "cases": sum(batch.total for batch in members),
            "measured": sum(batch.measured for batch in members),
            **{kind: sum(batch.unmeasured.get(kind, 0) for batch in members) for kind in kinds},
            "left": sum(batch.left for batch in members),
        }
        for name, members in platforms.items()
    ]


def batch_rows(status: Status) -> list[Row]:
    return [
        {
            "batch": batch.batch.name,
            "nodes": batch.batch.nodes,
            "cases": batch.total,
            "measured": batch.measured,
            "given up": batch.given_up,
            "left": batch.left,
            "expected end": ends(batch.seconds, status.now) if batch.state != FINISHED else "",
            "state": state(batch),
        }
        for batch in status.batches
    ]


def state(batch: Progress) -> str:
    """Return a batch's state in words."""
    last, tries = batch.last, f", attempt {len(batch.attempts)}" if len(batch.attempts) > 1 else ""
    if batch.state in (RUNNING, SILENT):
        job = f" as job {last.job}" if last.job else ""
        turn = f", {batch.turn}" if batch.turn else ""
        silent = f", no heartbeat for {batch.silence / 60:.0f} min" if batch.state == SILENT else ""
        return f"{RUNNING} on {last.host}{job} since {clock(last.started)}{turn}{tries}{silent}"
    if batch.state == STOPPED:
        where = f" on {last.host}" if last.host else ""
        return f"{STOPPED}{where} at {clock(last.ended or last.updated)}{tries}: {last.how}"
    return batch.state


def as_data(status: Status) -> Row:
    """Return the status as data for programs; times are seconds since 1970, and expected ends are ranges of these."""

    def range_of(span: Span | None) -> list[float] | None:
        return [round(status.now + end) for end in span] if span else None

    return {
        "experiment": status.experiment,
        "at_work": status.at_work or None,
        "over": status.over,
        "measured": status.measured,
        "unmeasured": dict(status.unmeasured),
        "left": status.left,
        "expected_end": range_of(status.seconds),
        "batches": [
            {
                "name": batch.batch.name,
                "platform": batch.batch.platform,
                "simulated": batch.simulated,
                "nodes": batch.batch.nodes,
                "cases": batch.total,
                "measured": batch.measured,
                "unmeasured": dict(batch.unmeasured),
                "left": batch.left,
                "state": batch.state,
                "silence": round(batch.silence),
                "expected_end": range_of(batch.seconds),
                "attempts": [asdict(attempt) for attempt in batch.attempts],
            }
            for batch in status.batches
        ],
    }


def ends(span: Span | None, now: float) -> str:
    """Return the expected end as a range of times of day."""
    if span is None:
        return "unknown"
    low, high = (clock(now + end) for end in span)
    return f"about {low}" if low == high else f"{low} to {high}"


def clock(when: float) -> str:
    """Return the time of day, with the date if it is not today."""
    then = time.localtime(when)
    return time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%F %H:%M", then)
