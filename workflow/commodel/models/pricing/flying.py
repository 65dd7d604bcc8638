"""How many ranks a network serves at once, for models whose latency grows with them."""

import numpy as np

from commodel.models import Array
from commodel.models.pricing.repeating import Sample
from commodel.patterns.schedule import Schedule


def flying(schedule: Schedule, alone: Array, busy: Array) -> Array:
    """For every message the ranks between which messages are on their way together with it. Those of a step are, and
    of one sender's so many as leave it, one every `busy`, while a message `alone` in the network takes its time."""
    if isinstance(schedule, Sample):
        return np.full(len(schedule.src), float(schedule.ranks))
    senders, ends, own, number = np.ones((4, len(schedule.src)))
    sends = np.zeros(schedule.ranks, dtype=bool)
    for count, step in enumerate(schedule.steps):
        groups, ranks = step.sends, step.sends.ranks
        sends[ranks] = True
        senders[step.sent], number[step.sent] = len(ranks), count
        ends[step.sent] = len(ranks) + np.count_nonzero(~sends[np.unique(schedule.dst[step.sent])])
        sends[ranks] = False
        if groups.order is not None:
            sent = groups.last - groups.first + 1
            own[step.sent] = np.repeat(sent, sent)[np.argsort(groups.order)]
    if not len(own):
        return own
    reached = np.clip(np.ceil(alone / np.maximum(busy, 1e-300)), 1, own) / own
    first, place = np.unique(number, return_index=True, return_inverse=True)[1:]
    return np.minimum(ends, senders + np.add.reduceat(reached, first, axis=-1)[..., place])
