"""Ring: in each of P − 1 steps every rank combines one share and passes it on."""

from commodel.patterns.algorithms import ANY_ORDER, Algorithm
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import ring, shares
from commodel.patterns.schedule import Schedule


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    return sequence(ranks, ring(shares(bytes, ranks), ahead=-1, combines=True))


ALGORITHM = Algorithm("reduce-scatter", "ring", "shares are combined around the ring", build, order=ANY_ORDER)
