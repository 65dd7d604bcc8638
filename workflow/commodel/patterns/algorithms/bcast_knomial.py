"""k-nomial tree, farthest first: in a round every rank that has the message sends it to K − 1 others."""

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.arguments import whole_number
from commodel.patterns.phases import sequence
from commodel.patterns.rounds import knomial, whole
from commodel.patterns.schedule import Schedule

RADIX = 4  # Open MPI's


def build(ranks: int, bytes: int, argument: str) -> Schedule:
    radix = whole_number(argument, "a whole number from 2", least=2) if argument else RADIX
    return sequence(ranks, whole(knomial(ranks, radix), bytes))


ALGORITHM = Algorithm("bcast", "knomial", "k-nomial tree: K − 1 messages a round", build, argument="[K, else 4]")
