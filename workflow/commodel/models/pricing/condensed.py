"""Schedules of rounds that repeat, with one of each kind of round: for families that add steps up."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from commodel.hierarchy import FLAT, Hierarchy
from commodel.models.pricing.repeating import courses
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule, check_rows
from commodel.patterns.work import Work


def condensed(
    schedule: Schedule, types: Mapping[str, int] | None = None, levels: Hierarchy = FLAT
) -> tuple[Schedule, np.ndarray]:
    """The steps of a schedule that differ, for who adds up steps whatever went before; and how often each occurs."""
    if not isinstance(schedule, Long):
        return schedule, np.ones(len(schedule.steps), dtype=int)
    name = "condensed", *(types or {}).values(), *levels.stamp
    if name not in schedule.known:
        schedule.known[name] = _condensed(schedule, types, levels)
    return schedule.known[name]


def _condensed(schedule: Long, types: Mapping[str, int] | None, levels: Hierarchy) -> tuple[Schedule, np.ndarray]:
    parts, times = [], []
    for part in schedule.parts:
        if isinstance(part, Rounds):
            classes = courses(schedule, types, levels)[part].classes()
            parts += [part.round(number, schedule.node) for number in classes]
            times += classes.values()
        else:
            parts.append(part)
            times += [1] * len(part.steps)
    begins = np.cumsum([0, *(part.last_step + 1 for part in parts)])
    works = [replace(part.work, step=part.work.step + begin) for part, begin in zip(parts, begins, strict=False)]
    check_rows(sum(part.messages for part in parts))
    step = np.concatenate([part.step + begin for part, begin in zip(parts, begins, strict=False)])
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "dst", "bytes"))
    whole = Schedule.of(schedule.ranks, step, *columns, work=Work.joined(works), root=schedule.root)
    return whole.placed(schedule.node), np.array(times)
