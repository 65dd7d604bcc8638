"""A broadcast in segments along two chains: ranks 1, 3, 5, … and ranks 2, 4, 6, …."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import SEGMENT_OR_DEFAULT
from commodel.patterns.phases import cut_phase, join_stages, make_phase
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, segment: int) -> Schedule:
    receivers = np.arange(1, ranks)
    hops = make_phase((receivers - 1) // 2, np.maximum(receivers - 2, 0), receivers, bytes)
    return join_stages(ranks, cut_phase(hops, bytes, segment))


ALGORITHM = Algorithm("bcast", "two-chains", "segments along two chains of ranks", build, SEGMENT_OR_DEFAULT)
