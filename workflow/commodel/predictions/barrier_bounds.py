"""Barriers in rounds by LoP: how fast any can be, and the dissemination that comes closest.

A barrier ends when each rank has information from all others. In a round with n signals, a rank gets the information of
n others at their entry. The information therefore grows at most (n + 1)-fold, which takes at least n·L(n) after some
posting. The fastest sequence of such rounds up to all ranks is a lower bound for every prediction of LoP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from commodel.models.families.lop import round_of
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model
from commodel.units import format_seconds

MAX_PARTNERS = 1024  # largest number of partners of a round considered
DISSEMINATION = "dissemination"


@dataclass(frozen=True)
class Bound:
    seconds: float
    partners: tuple[int, ...]  # of each round that comes to it


def lower_bound(parameters: ParameterSet, ranks: int) -> Bound:
    values = Model.of_set(parameters).values
    most = min(ranks - 1, MAX_PARTNERS)
    rounds = round_of(values, np.arange(1, most + 1))
    first, wire = (np.broadcast_to(column, (*values.lead, most))[0] for column in (rounds.first, rounds.wire))
    # The sender of a signal may have another number of partners: the cheapest for it counts.
    least = np.array([np.min(first + np.maximum(wire, own)) for own in wire])

    @cache
    def best(known: int) -> Bound:
        """Return the least time until one rank has received from so many."""
        if known <= 1:
            return Bound(0.0, ())
        fewer = -(-known // np.arange(2, most + 2))
        sooner = {int(rest): best(int(rest)) for rest in np.unique(fewer)}
        total = least + np.array([sooner[int(rest)].seconds for rest in fewer])
        pick = int(np.argmin(total))
        return Bound(float(total[pick]), (*sooner[int(fewer[pick])].partners, pick + 1))

    return best(ranks)


def radices(ranks: int, rows: int = 1_000_000) -> list[int]:
    """Return the signals in a round of n-way dissemination that can be optimal: the fewest for each number of
    rounds."""
    fewest = (
        next(n for n in range(1, ranks) if (n + 1) ** rounds >= ranks) for rounds in range(1, ranks.bit_length() + 1)
    )
    return sorted({n for n in fewest if n > 1 and n * ranks <= rows}) if ranks > 1 else []


def remark(parameters: ParameterSet, ranks: int, seconds: Mapping[str, float]) -> str:
    """Return a sentence on LoP's prediction of barriers: the lower bound, the best dissemination predicted, and its
    gain."""
    bound = lower_bound(parameters, ranks)
    rounds = "·".join(str(partners + 1) for partners in bound.partners)
    text = f"LoP's lower bound for a barrier is {format_seconds(bound.seconds)} (what a rank knows grows {rounds})"
    ways = {name: time for name, time in seconds.items() if name.startswith(("n-way", DISSEMINATION))}
    if not ways:
        return text
    best = min(ways, key=ways.get)
    text += f"; {best} is the best dissemination, {100 * max(ways[best] / bound.seconds - 1, 0.0):.0f} % above it"
    if DISSEMINATION in ways and best != DISSEMINATION:
        text += f" and {100 * (1 - ways[best] / ways[DISSEMINATION]):.0f} % below the plain one"
    return text
