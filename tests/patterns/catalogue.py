"""All patterns of the catalogue, for tests that apply to all patterns."""

import tracemalloc

from commodel.errors import UserError
from commodel.patterns.algorithms import Algorithm, TreeAlgorithm
from commodel.patterns.trees.topologies import make_tree
from commodel.records import Point
from commodel.registry import discover

ENTRIES = discover("patterns.algorithms", "ALGORITHM")
SIZES, COUNTS = ("24",), ("1", "2", "3", "5", "7")  # arguments that tests try
# where all of one would be long
BRIEF = {
    "pairs": "pairs:messages=3:directions=2",
    "summa": "summa:n=9:iteration=4",
    "wave2d": "wave2d:n=9",
}


def takes(entry: Algorithm, text: str) -> bool:
    try:
        return bool(entry.parse_argument(text))
    except UserError:
        return False


def spellings(entry: Algorithm) -> list[str]:
    """Return an algorithm without its argument, if the argument is optional, and with some valid
    arguments."""
    specs = [] if entry.needs_argument else [entry.short_name]
    if entry.argument:
        texts = SIZES if entry.argument.is_size else COUNTS
        specs += [f"{entry.short_name}:{text}" for text in texts if takes(entry, text)]
    return specs


# those whose messages do not depend on the placement; the others are in test_hierarchical.py
ALGORITHMS = sorted(
    (BRIEF.get(entry.operation, entry.operation), spec)
    for entry in ENTRIES.values()
    if isinstance(entry, Algorithm) and not entry.placement
    for spec in spellings(entry)
)
TREE_OPERATIONS = sorted(
    entry.operation for entry in ENTRIES.values() if isinstance(entry, TreeAlgorithm)
)
TREES = ("flat:5", "chain:4", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2")


def point(operation, algorithm="", topology="", ranks=0, bytes=64, layout="block:1") -> Point:
    leaves = 0
    if topology:
        ranks, leaves = make_tree(topology).nodes, make_tree(topology).leaves
    return Point("", operation, algorithm, topology, layout, ranks, bytes, leaves)


def catalogue(ranks: int, bytes: int) -> list[Point]:
    """Return all algorithms at a number of ranks, and all operations over all kinds of tree."""
    points = [
        point(operation, choice, ranks=ranks, bytes=bytes) for operation, choice in ALGORITHMS
    ]
    return points + [
        point(operation, topology=spec, bytes=bytes)
        for operation in TREE_OPERATIONS
        for spec in TREES
    ]


def with_memory(make):
    """Return the result of `make`, and the peak memory in bytes that Python allocated meanwhile."""
    tracemalloc.start()
    try:
        result = make()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
