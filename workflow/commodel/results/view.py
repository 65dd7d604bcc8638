"""A campaign's status as text for people, and as data for programs."""

import time
from collections import Counter
from dataclasses import asdict

from commodel.results.forecast import Span
from commodel.results.status import FINISHED, RUNNING, SILENT, STOPPED, Progress, Status

Row = dict[str, object]


def sentence(status: Status, stage: str = "") -> str:
    """All of it in one line; `stage` is what goes on beside the measuring."""
    parts = [f"{status.measured} of {sum(batch.total for batch in status.batches)} measured"]
    parts += [f"{sum(status.unmeasured.values())} not ({_statuses(status.unmeasured)})"] if status.unmeasured else []
    parts += [f"{status.left} left"] if status.left else []
    running = status.count(RUNNING)
    if status.left and running:
        parts += [f"expected end {ends(status.seconds, status.now)}", f"{status.part:.0%} done"]
        parts += [f"{running} batch{'' if running == 1 else 'es'} running"]
    elif stage:
        parts.append(stage)
    return f"{status.experiment}: {', '.join(parts)}"


def platform_rows(status: Status) -> list[Row]:
    """One row a platform, and one for all where there are several."""
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
            "not": batch.given_up,
            "left": batch.left,
            "expected end": ends(batch.seconds, status.now) if batch.state != FINISHED else "",
            "state": state(batch),
        }
        for batch in status.batches
    ]


def state(batch: Progress) -> str:
    """A batch's state in words."""
    last, tries = batch.last, f", attempt {len(batch.attempts)}" if len(batch.attempts) > 1 else ""
    if batch.state in (RUNNING, SILENT):
        job = f" as job {last.job}" if last.job else ""
        turn = f", {batch.turn}" if batch.turn else ""
        silent = f", no sign of life for {batch.silence / 60:.0f} min" if batch.state == SILENT else ""
        return f"{RUNNING} on {last.host}{job} since {clock(last.started)}{turn}{tries}{silent}"
    if batch.state == STOPPED:
        where = f" on {last.host}" if last.host else ""
        return f"{STOPPED}{where} at {clock(last.ended or last.updated)}{tries}: {last.how}"
    return batch.state


def as_data(status: Status) -> Row:
    """Everything, for programs; times are seconds since 1970, and expected ends ranges of them."""

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
    """When something will be done, as an honest range."""
    if span is None:
        return "unknown"
    low, high = (clock(now + end) for end in span)
    return f"about {low}" if low == high else f"{low} to {high}"


def clock(when: float) -> str:
    """The time of day, with the date where that is not today's."""
    then = time.localtime(when)
    return time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%F %H:%M", then)


def _statuses(counts: Counter) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
