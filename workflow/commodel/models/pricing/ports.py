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
    runs: list[list[int]] = []
    last = -1
    for place in sending:
        sent = schedule.steps[place].sent
        if schedule.step[sent.start] > last:
            runs.append([])
        runs[-1].append(place)
        last = max(last, int(until[sent].max()))
    return runs


def at_ports(schedule: Schedule, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of messages, and what each passes: a node's memory, or a port on its way out and one on its way in."""
    nodes = int(schedule.node.max()) + 1
    apart = rows[schedule.channel[rows] != MEMORY]
    passed = schedule.node[schedule.dst[rows]], nodes + schedule.node[schedule.src[apart]]
    return np.concatenate([rows, apart]), np.concatenate(passed)


@dataclass(frozen=True, eq=False)
class Busy:
    """What processors do in a stage, each way of it that differs: all that a rank posts, all that it takes, and both.
    Who posts or takes several waits for one empty message, between nodes where there is one, and is busy with each
    further one. Who does both has the first ones come while it posts: it is busy with all, and waits for none."""

    further: np.ndarray  # (ways, kinds): messages
    waits: np.ndarray  # of which kinds the empty message may be that is waited for

    @classmethod
    def of(cls, schedule: Schedule, rows: np.ndarray, pairs: Pairs) -> "Busy":
        kind, kinds = pairs.of[rows], len(pairs.pairs)
        between = np.array([not pair.within for pair in pairs.pairs])
        handled, ways = np.zeros((schedule.ranks, kinds), dtype=np.int64), []
        for rank in (schedule.src[rows], schedule.dst[rows]):
            counts = np.bincount(rank * kinds + kind, minlength=schedule.ranks * kinds).reshape(-1, kinds)
            handled += counts
            further, busy = counts.copy(), counts.any(axis=1)
            further[busy, ((counts[busy] > 0) * (1 + between)).argmax(axis=1)] -= 1
            ways.append(np.unique(np.concatenate([further, counts > 0], axis=1), axis=0))
        ways.append(np.unique(np.concatenate([handled, np.zeros_like(handled)], axis=1), axis=0))
        alike = np.unique(np.concatenate(ways), axis=0)
        return cls(alike[:, :kinds], alike[:, kinds:] > 0)

    def seconds(self, overhead: Array, further: Array) -> Array:
        """Until the busiest is done: an empty message's time of its slowest kind, and what each further one adds; both
        over (draws, kinds)."""
        first = np.where(self.waits, overhead[..., None, :], 0.0).max(axis=-1)
        return (first + further @ self.further.T).max(axis=-1)
