"""A schedule as τ–Lop's terms, by the readings that a set may choose."""

from collections.abc import Mapping

import numpy as np

from commodel.errors import UserError
from commodel.models.pricing.concurrency import Terms, in_turn, one_a_channel, terms
from commodel.models.pricing.pairs import Pairs
from commodel.models.pricing.ports import at_ports, stages
from commodel.models.pricing.transmissions import chosen
from commodel.patterns.schedule import Schedule


def together(schedule: Schedule, settings: Mapping[str, object]) -> list[list[int]]:
    """The steps of every stage."""
    if chosen(settings, "shared") == "port":
        return stages(schedule)
    return [[place] for place, step in enumerate(schedule.steps) if step.sent.start < step.sent.stop]


def rows_of(schedule: Schedule, stage: list[int]) -> np.ndarray:
    return np.arange(schedule.steps[stage[0]].sent.start, schedule.steps[stage[-1]].sent.stop)


def expression(schedule: Schedule, bytes: np.ndarray, settings: Mapping[str, object], pairs: Pairs) -> list[Terms]:
    """The terms of every stage."""
    shared, joins, anew = (chosen(settings, name) for name in ("shared", "join", "rest"))
    if shared == "port" and joins != "no":
        raise UserError(f"found join: {joins} beside shared: port; wanted join: no, or shared: channel or node")
    stages = []
    for stage in together(schedule, settings):
        rows = rows_of(schedule, stage)
        size, turn, target = bytes[rows], 0, np.zeros(len(rows), dtype=int)
        if shared == "port":
            rows, target = at_ports(schedule, rows)
            size, turn = bytes[rows], schedule.step[rows]
        position = np.zeros(len(rows), dtype=int)
        if joins != "no":
            position, size, first, _ = one_a_channel(schedule.src[rows], schedule.channel[rows], size)
            rows, target = rows[first], target[first]
        elif shared == "node":
            position = in_turn(schedule.src[rows])
        if shared == "node":
            target = schedule.node[schedule.dst[rows]]
        columns = position, schedule.channel[rows], target, size, pairs.of[rows]
        stages.append(terms(*columns, anew == "message", turn))
    return stages
