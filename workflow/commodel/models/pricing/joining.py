"""A1 of τ–Lop from stage to stage: transmissions that follow one another over a channel, so many at a time, cost what
one of the summed size does. That drops all overheads but one, unless each is to be paid."""

from collections.abc import Callable, Sequence

import numpy as np

from commodel.models import Array
from commodel.models.pricing.concurrency import Terms, across_stages, longest, one_a_channel, total
from commodel.patterns.schedule import Schedule

OfTerms = Callable[[Terms], Array]  # a time for each term, on the last axis


def joined(
    steps: Sequence[Terms],
    seconds: Sequence[Array],
    times: Sequence[int],
    own: Sequence[Array] | None,
    lasts: OfTerms,
    overheads: OfTerms,
    anew: bool,
) -> Array:
    """The cost of steps whose terms last `seconds` and that occur so many `times`: what counts in each (A3), which is
    not the same for every draw, is joined. `own`: of every group of each step the overheads that are to be paid in
    place of what A1 leaves of them."""
    ends = np.cumsum([len(step_terms.stage) for step_terms in steps])[:-1]
    counts = np.concatenate([longest(*stage) for stage in zip(steps, seconds, strict=True)], axis=-1)
    choices, which = np.unique(counts, axis=0, return_inverse=True)
    cost = np.zeros(seconds[0].shape[:-1])
    for number, choice in enumerate(choices):
        groups = np.split(choice, ends)
        together = across_stages(steps, groups, times, anew)
        lasting = lasts(together)
        if own is not None:
            lasting = lasting - overheads(together)
        seconds_of_choice = total(together, lasting)
        if own is not None:
            paid = (
                occurs * step[..., chosen].sum(axis=-1) for step, chosen, occurs in zip(own, groups, times, strict=True)
            )
            seconds_of_choice = seconds_of_choice + sum(paid)
        cost = np.where(which.ravel() == number, seconds_of_choice, cost)
    return cost


def own_overheads(schedule: Schedule, overhead: Array, by_node: bool) -> list[Array]:
    """Of every step that sends, for each group of its terms (position, channel, target) the overheads of the sender
    that has the most of them to pay: those of its messages one after the other, of several senders at once."""
    steps = []
    for step in schedule.steps:
        if step.sent.start == step.sent.stop:
            continue
        channel, seconds = schedule.channel[step.sent], overhead[..., step.sent]
        position, _, first, of = one_a_channel(step.src, channel, np.zeros(len(channel)))
        target = schedule.node[schedule.dst[step.sent]][first] if by_node else np.zeros(len(first), dtype=int)
        of_sender = np.zeros((*seconds.shape[:-1], len(first)))
        np.add.at(of_sender, (..., of), seconds)
        groups, which = np.unique(np.stack([position, channel[first], target]), axis=1, return_inverse=True)
        of_group = np.zeros((*seconds.shape[:-1], groups.shape[1]))
        np.maximum.at(of_group, (..., which.ravel()), of_sender)
        steps.append(of_group)
    return steps
