"""Who shares what where nodes hang on a switch: ranks of a node its memory and either way of its port. And what of a
schedule goes on together: all that somebody waits for later goes on with what is posted until then."""

from dataclasses import dataclass

import numpy as np

from commodel.models import Array
from commodel.models.pricing.pairs import Pairs
from commodel.patterns.schedule import MEMORY, Schedule


def stages(schedule: Schedule) -> list[list[int]]:
    """The places of steps that send, by stage. In the plain case, where all that is posted in a step is waited for in
    it, each is a stage."""
    sending = [place for place, step in enumerate(schedule.steps) if step.sent.start < step.sent.stop]
    if schedule.ends is None:
        return [[place] for place in sending]
    until = np.maximum(schedule.ends.src_wait, schedule.ends.dst_wait)
    several: list[list[int]] = []
    last = -1
    for place in sending:
        sent = schedule.steps[place].sent
        if schedule.step[sent.start] > last:
            several.append([])
        several[-1].append(place)
        last = max(last, int(until[sent].max()))
    return several


def at_ports(schedule: Schedule, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of messages, and what each passes: a node's memory, or a port on its way out and one on its way in."""
    nodes = int(schedule.node.max()) + 1
    apart = rows[schedule.channel[rows] != MEMORY]
    passed = schedule.node[schedule.dst[rows]], nodes + schedule.node[schedule.src[apart]]
    return np.concatenate([rows, apart]), np.concatenate(passed)


@dataclass(frozen=True, eq=False)
class Busy:
    """Ranks that differ in what they post and take in a stage: how many messages of each kind they have beyond one that
    they post and one that they take, between nodes where they can, and of which kinds they have any."""

    beyond: np.ndarray  # (ranks, kinds)
    some: np.ndarray

    @classmethod
    def of(cls, schedule: Schedule, rows: np.ndarray, pairs: Pairs) -> "Busy":
        kind, kinds = pairs.of[rows], len(pairs.pairs)
        between = np.array([not pair.within for pair in pairs.pairs])
        beyond = np.zeros((schedule.ranks, kinds), dtype=np.int64)
        some = np.zeros((schedule.ranks, kinds), dtype=bool)
        for rank in (schedule.src[rows], schedule.dst[rows]):
            counts = np.bincount(rank * kinds + kind, minlength=schedule.ranks * kinds).reshape(-1, kinds)
            some |= counts > 0
            busy = counts.any(axis=1)
            counts[busy, ((counts[busy] > 0) * (1 + between)).argmax(axis=1)] -= 1
            beyond += counts
        alike = np.unique(np.concatenate([beyond, some], axis=1), axis=0)
        return cls(alike[:, :kinds], alike[:, kinds:] > 0)

    def seconds(self, overhead: Array, further: Array) -> Array:
        """Until the busiest is done: an empty message's time of its slowest kind, and of each further message what that
        adds; both over (draws, kinds)."""
        first = np.where(self.some, overhead[..., None, :], 0.0).max(axis=-1)
        return (first + further @ self.beyond.T).max(axis=-1)
