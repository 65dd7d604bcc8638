"""Lower bound of LoP's prediction for barriers in rounds, and the dissemination closest to it.

A barrier ends when each rank has information from all others. In a round with n signals, a rank
gets the information of n others that have entered. The number of ranks that it has information from
therefore grows at most (n + 1)-fold. A round takes at least n·L(n) after the overhead of posting.
The fastest sequence of rounds that reaches all ranks is a lower bound of every prediction of
LoP."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from commodel.models.families.lop import time_rounds
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model
from commodel.units import format_seconds

MAX_PARTNERS = 1024  # largest number of partners of a round considered
DISSEMINATION = "dissemination"


@dataclass(frozen=True)
class Bound:
    seconds: float
    partners: tuple[int, ...]  # of each round of the fastest sequence


def find_lower_bound(parameters: ParameterSet, ranks: int) -> Bound:
    values = Model.of_set(parameters).values
    max_partners = min(ranks - 1, MAX_PARTNERS)
    rounds = time_rounds(values, np.arange(1, max_partners + 1))
    post_seconds, wire_seconds = (
        np.broadcast_to(column, (*values.draw_shape, max_partners))[0]
        for column in (rounds.first, rounds.wire)
    )
    # The sender of a signal may have another number of partners than its receiver. The bound is the
    # minimum over all numbers of the sender.
    round_seconds = np.array(
        [np.min(post_seconds + np.maximum(wire_seconds, wire)) for wire in wire_seconds]
    )

    @cache
    def find_fastest(informed: int) -> Bound:
        """Return the least time until one rank has information from so many ranks."""
        if informed <= 1:
            return Bound(0.0, ())
        informed_before = -(-informed // np.arange(2, max_partners + 2))
        earlier = {int(count): find_fastest(int(count)) for count in np.unique(informed_before)}
        total = round_seconds + np.array([earlier[int(count)].seconds for count in informed_before])
        chosen = int(np.argmin(total))
        return Bound(
            float(total[chosen]), (*earlier[int(informed_before[chosen])].partners, chosen + 1)
        )

    return find_fastest(ranks)


def list_radices(ranks: int, max_messages: int = 1_000_000) -> list[int]:
    """Return each n above 1 for which n-way dissemination can be optimal: the smallest n for each
    number of rounds.

    An n with more than `max_messages` messages in a round is left out.
    """
    if ranks < 2:
        return []
    radices = set()
    for rounds in range(1, ranks.bit_length() + 1):
        smallest = next(n for n in range(1, ranks) if (n + 1) ** rounds >= ranks)
        if smallest > 1 and smallest * ranks <= max_messages:
            radices.add(smallest)
    return sorted(radices)


def describe_barrier_bound(
    parameters: ParameterSet, ranks: int, seconds: Mapping[str, float]
) -> str:
    """Return a sentence with LoP's lower bound for a barrier, the fastest predicted dissemination,
    and its gain."""
    bound = find_lower_bound(parameters, ranks)
    rounds = "·".join(str(partners + 1) for partners in bound.partners)
    text = (
        f"LoP's lower bound for a barrier is {format_seconds(bound.seconds)} (its rounds reach "
        f"{rounds} ranks)"
    )
    disseminations = {
        name: time for name, time in seconds.items() if name.startswith(("n-way", DISSEMINATION))
    }
    if not disseminations:
        return text
    best = min(disseminations, key=lambda name: disseminations[name])
    excess = 100 * max(disseminations[best] / bound.seconds - 1, 0.0)
    text += f"; {best} is the best dissemination, {excess:.0f} % above it"
    if DISSEMINATION in disseminations and best != DISSEMINATION:
        text += (
            f" and {100 * (1 - disseminations[best] / disseminations[DISSEMINATION]):.0f} % below "
            "the plain one"
        )
    return text
