"""Every pattern that the catalogue can build, for tests that look at all of them."""

from commodel.algorithms import Algorithm, TreeAlgorithm
from commodel.records import Point
from commodel.registry import discover
from commodel.topologies import tree

ALGORITHMS = sorted(
    (entry.operation, entry.choice)
    for entry in discover("algorithms", "ALGORITHM").values()
    if isinstance(entry, Algorithm)
)
SEGMENTED = [("bcast", "binomial:24")]  # what an algorithm does only when asked to
TREE_OPERATIONS = sorted(
    entry.operation for entry in discover("algorithms", "ALGORITHM").values() if isinstance(entry, TreeAlgorithm)
)
TREES = ("flat:5", "chain:4", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2")


def point(operation, algorithm="", topology="", ranks=0, bytes=64, layout="block:1") -> Point:
    leaves = 0
    if topology:
        ranks, leaves = tree(topology).nodes, tree(topology).leaves
    return Point("", operation, algorithm, topology, layout, ranks, bytes, leaves)


def catalogue(ranks: int, bytes: int) -> list[Point]:
    """All algorithms at a number of ranks, and all operations over all kinds of tree."""
    found = [point(operation, choice, ranks=ranks, bytes=bytes) for operation, choice in ALGORITHMS + SEGMENTED]
    return found + [point(operation, topology=spec, bytes=bytes) for operation in TREE_OPERATIONS for spec in TREES]
