"""Linear with synchronisation, as Open MPI does it: the root asks one rank after the other, each sends the first part
of its block when it is asked and the rest while the next is being asked."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.phases import phase, sequence
from commodel.patterns.schedule import Schedule
from commodel.units import parse_bytes

FIRST = 1024  # bytes, what Open MPI takes for short blocks


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    first = min(parse_bytes(argument) if argument else FIRST, bytes)
    source = np.arange(1, ranks)
    asking = phase(2 * (source - 1), 0, source, 0)
    begun = phase(2 * source - 1, source, 0, first, lambda: source * bytes)
    ended = phase(2 * source, source, 0, bytes - first, lambda: source * bytes + first)  # sent where it is empty, too
    return sequence(ranks, (asking, begun, ended), root=0)


ALGORITHM = Algorithm(
    "gather", "linear-sync", "the root asks one rank after the other", build, argument="[FIRST BYTES, else 1 KiB]"
)
