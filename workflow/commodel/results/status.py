"""How far a campaign is, read off its results folder alone: what is measured, given up and left, each batch's state.

It needs no word from the processes at work, so it can be read on any node that sees the folder.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from commodel.files.paths import SafePath
from commodel.files.results import SAMPLES, pass_name
from commodel.plan.duration import START, of_analysis
from commodel.records import Batch
from commodel.results import forecast, unmeasured
from commodel.results.attempts import DONE, Attempt, Story, read_story, spent
from commodel.results.campaign import Campaign
from commodel.results.forecast import Estimates, Span, Work

WAITING, RUNNING, SILENT, FINISHED, STOPPED = "waiting", "running", "silent", "finished", "stopped"
QUIET = 180.0  # seconds without a sign of life; a driver gives one every few seconds


@dataclass(frozen=True)
class Progress:
    """A batch: its cases counted, its state, and what the attempt at work has done and has left."""

    batch: Batch
    simulated: bool
    measured: int
    unmeasured: Mapping[str, int]  # by status: crash, timeout, budget, late
    state: str
    attempts: tuple[Attempt, ...]
    silence: float  # seconds since its last sign of life
    done: Work
    ahead: Work
    turn: str  # which of its passes, where it has several
    since: float = 0.0  # when the attempt at work had its first samples: before that it started, which is no pace
    seconds: Span | None = None  # until it is done, where that can be told

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
        """Seconds of this batch for a second of the plan's estimate."""
        if self.state == RUNNING:
            return forecast.pace(self.last.updated - self.since, self.done)
        whole = replace(self.done, estimate=START + self.done.estimate)
        return forecast.pace(spent(self.attempts), whole) if self.state == FINISHED and self.done.estimate else None


@dataclass(frozen=True)
class Status:
    experiment: str
    batches: tuple[Progress, ...]
    at_work: str  # who holds the folder; empty: nobody
    now: float
    analysis: float = 0.0  # seconds that fitting, pricing and reporting may take afterwards

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
        """How much of the measuring is done; a case with one pass of three counts for a third."""
        return 1 - sum(batch.ahead.cases for batch in self.batches) / sum(batch.total for batch in self.batches)

    def count(self, state: str) -> int:
        return sum(batch.state == state for batch in self.batches)

    @property
    def over(self) -> bool:
        """Nothing changes any more by itself."""
        return self.count(FINISHED) == len(self.batches) or not (self.at_work or self.count(RUNNING))

    @property
    def seconds(self) -> Span | None:
        """Until the report is there."""
        spans = [batch.seconds for batch in self.batches if batch.state in (RUNNING, WAITING)]
        return forecast.then(forecast.together(spans, self.count(RUNNING)), self.analysis)


class Reader:
    """Reads the same folder again and again; a batch whose folder has not changed is not listed again."""

    def __init__(self, campaign: Campaign):
        self.campaign = campaign
        self.estimates = Estimates(campaign.plan)
        self.analysis = of_analysis(campaign.plan)
        self.seen: dict[str, tuple[int, frozenset[str], dict[str, str]]] = {}

    def read(self, at_work: str, now: float) -> Status:
        progress = [self._progress(batch, now) for batch in self.campaign.plan.batches]
        paces: dict[str, list[float]] = {}
        for entry in progress:
            if entry.pace is not None:
                paces.setdefault(entry.batch.platform, []).append(entry.pace)
        batches = tuple(replace(entry, seconds=_seconds(entry, paces, now)) for entry in progress)
        return Status(self.campaign.plan.experiment, batches, at_work, now, self.analysis)

    def _progress(self, batch: Batch, now: float) -> Progress:
        folder = self.campaign.done(batch).parent
        samples, given_up = self._files(batch, folder)
        story = read_story(folder)
        last, silence = story.last, _silence(story, now)
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
            attempts=story.attempts,
            silence=silence,
            done=self.estimates.work(batch, [case for _, case in here[1:]] if turns else samples, len(turns) or 1),
            ahead=self.estimates.work(batch, ahead if turns else undone, len(turns) or 1),
            turn=f"pass {story.turn} of {len(turns)}" if len(turns) > 1 else "",
            since=here[0][0] if here else now,
        )

    def _files(self, batch: Batch, folder: SafePath) -> tuple[frozenset[str], dict[str, str]]:
        """Of a batch's cases: which have samples, and why others have none."""
        try:
            changed = folder.stat().st_mtime_ns
        except FileNotFoundError:
            return frozenset(), {}
        if batch.name not in self.seen or self.seen[batch.name][0] != changed:
            measured, marked = unmeasured.finished(folder)
            given_up = {case: unmeasured.why_unmeasured(folder, case) for case in batch.ids if case in marked}
            statuses = {case: why[0] for case, why in given_up.items() if why}
            self.seen[batch.name] = changed, frozenset(measured.intersection(batch.ids)), statuses
        return self.seen[batch.name][1:]


def _silence(story: Story, now: float) -> float:
    """For how long the driver has said nothing: clocks of nodes differ, so the file's counts too."""
    return now - max(story.written, story.last.updated) if story.last else 0.0


def _written(folder: SafePath) -> dict[str, float]:
    """Of the cases that a pass has samples of, when they were written."""
    try:
        return {name.removesuffix(".csv"): time for name, time in folder.changed().items() if SAMPLES.fullmatch(name)}
    except FileNotFoundError:  # not begun, or joined this very moment
        return {}


def _seconds(entry: Progress, paces: Mapping[str, list[float]], now: float) -> Span | None:
    """Never longer than its time limit lets it measure."""
    if entry.state == RUNNING:
        limit = math.inf if entry.last.deadline is None else entry.last.deadline - now
        return forecast.within(forecast.running(max(now - entry.since, 0.0), entry.done, entry.ahead), limit)
    if entry.state == WAITING:
        return forecast.within(
            forecast.waiting(entry.ahead, paces.get(entry.batch.platform, [])), 60.0 * entry.batch.minutes
        )
    return None
