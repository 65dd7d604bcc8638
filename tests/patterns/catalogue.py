"""Every pattern that the catalogue can build, for tests that look at all of them."""

from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
from commodel.patterns.trees.topologies import tree
from commodel.records import Point
from commodel.registry import discover

ENTRIES = discover("patterns.algorithms", "ALGORITHM")
# What an algorithm does only when asked to, or where it has to be asked.
ARGUMENTS = {
    "[SEGMENT BYTES]": ("", "24"),
    "[SEGMENT BYTES, else 8 KiB]": ("", "24"),
    "[FIRST BYTES, else 1 KiB]": ("", "24"),
    "[K, else 4]": ("", "2", "3"),
    "[N, else 2]": ("", "1", "5"),
    "W": ("1", "3", "7"),
    "": ("",),
}
BRIEF = {"summa": "summa:n=9:iteration=4", "wave2d": "wave2d:n=9"}  # where all of one would be long


def spellings(entry: Algorithm) -> list[str]:
    """An algorithm with each argument that the tests know."""
    return [f"{entry.choice}:{text}" if text else entry.choice for text in ARGUMENTS[entry.argument]]


ALGORITHMS = sorted(
    (BRIEF.get(entry.operation, entry.operation), spec)
    for entry in ENTRIES.values()
    if isinstance(entry, Algorithm)
    for spec in spellings(entry)
)
TREE_OPERATIONS = sorted(entry.operation for entry in ENTRIES.values() if isinstance(entry, TreeAlgorithm))
TREES = ("flat:5", "chain:4", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2")


def point(operation, algorithm="", topology="", ranks=0, bytes=64, layout="block:1") -> Point:
    leaves = 0
    if topology:
        ranks, leaves = tree(topology).nodes, tree(topology).leaves
    return Point("", operation, algorithm, topology, layout, ranks, bytes, leaves)


def catalogue(ranks: int, bytes: int) -> list[Point]:
    """All algorithms at a number of ranks, and all operations over all kinds of tree."""
    points = [point(operation, choice, ranks=ranks, bytes=bytes) for operation, choice in ALGORITHMS]
    return points + [point(operation, topology=spec, bytes=bytes) for operation in TREE_OPERATIONS for spec in TREES]
