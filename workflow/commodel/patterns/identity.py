"""The digest that distinguishes points with equal names (`add_digests`): of their messages, and of the placement of
ranks.

It is computed from schedules of a few ranks and sizes, never from source text. If an algorithm is only rewritten, its
measurements stay valid; if it sends other messages, it has to be measured again.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial

import numpy as np

from commodel.patterns import rectangles
from commodel.patterns.algorithms import algorithm as algorithm_of
from commodel.patterns.algorithms import over_tree
from commodel.patterns.arguments import DEFAULT_SEGMENT
from commodel.patterns.build import builder
from commodel.patterns.layouts import CORE, cores_of, keeps_cores, kinds_of, place
from commodel.patterns.operations import files_of, parts, ranks_of, results, sized
from commodel.patterns.schedule import Runs, Schedule, encode_integers
from commodel.patterns.trees.topologies import tree
from commodel.patterns.trees.tree import Tree
from commodel.patterns.written import is_written, written
from commodel.records import Point, digest

RANKS = (2, 5, 8, 12)  # powers of two and others, odd and even
RANKS_AT_SIZE = 6  # of the schedule with the point's own size
MAX_RANKS_BUILT = 64  # of a schedule that is built for the digest
SEGMENTS = 40  # of the largest message at a few ranks: more than there are ranks
MAX_ROWS = 20_000  # messages of the schedule with the point's own size
# For these algorithms, sizes are taken around the argument, although it is no size. Ids must not change.
COUNTS_AS_SIZES = ("bcast-knomial", "gather-windowed", "scatter-windowed")
SMALL_TREE = Tree(np.array([-1, 0, 0, 0, 1, 1, 2, 4, 4, 7]))  # fan-outs 0 to 3, paths of 1 to 4 edges


def add_digests(points: Iterable[Point]) -> list[Point]:
    """Return the points with the digests of their patterns. Messages of the MPI library are not included."""
    placement, at_few_ranks, at_its_ranks, at_its_size = map(
        cache, (_placement, _at_few_ranks, _at_its_ranks, _at_its_size)
    )

    def pattern(point: Point) -> str:
        digests = [placement(point.layout, point.ranks)]
        if is_written(point.operation):
            digests.append(_digest([written(point.operation).content()]))
        elif point.predictable:
            names = point.operation, point.algorithm, point.topology
            ranks = point.ranks if point.topology else min(point.ranks, MAX_RANKS_BUILT)
            digests += [at_few_ranks(*names), at_its_ranks(*names, ranks), at_its_size(*names, point.bytes)]
            digests += [
                _digest(map(encode_integers, rectangles.read(file).table)) for file in files_of(point.operation)
            ]
        elif point.topology:
            digests.append(_digest([encode_integers(tree(point.topology).parent)]))
        return digest(digests)

    return [replace(point, pattern=pattern(point)) for point in points]


def _placement(layout: str, ranks: int) -> str:
    parts = [place(layout, ranks)]
    if keeps_cores(layout):
        parts += [cores_of(layout, ranks), kinds_of(layout, ranks) == CORE]
    return _digest(map(encode_integers, parts))


def _at_few_ranks(operation: str, algorithm: str, topology: str) -> str:
    counts = _counts(operation) if algorithm else (SMALL_TREE.nodes,)
    sizes = _sizes(operation, algorithm)
    return _digest(_content(operation, algorithm, ranks, size) for ranks in counts for size in sizes)


def _at_its_ranks(operation: str, algorithm: str, topology: str, ranks: int) -> str:
    """Return the digest at the point's ranks: of a topology the whole tree, and its schedule if it is small."""
    sizes = _sizes(operation, algorithm)
    ends = sizes[0], sizes[-1]
    if algorithm:
        return _digest(_content(operation, algorithm, ranks, size) for size in ends)
    drawn = tree(topology)
    parts = [encode_integers(drawn.parent)]
    if drawn.nodes <= MAX_RANKS_BUILT:
        parts += [_content(operation, "", ranks, size, drawn) for size in ends]
    return _digest(parts)


def _at_its_size(operation: str, algorithm: str, topology: str, size: int) -> str:
    """Return the digest at the point's size, or at the largest one with few enough segments."""
    ranks = _counts(operation, (RANKS_AT_SIZE,))[0] if algorithm else SMALL_TREE.nodes
    build, sizes = _builder(_some_parts(operation, ranks)[0], algorithm, ranks), _sizes(operation, algorithm)
    fewest, most = (build(bytes).messages for bytes in (sizes[0], sizes[-1]))
    if most > fewest:
        size = min(size, sizes[-1] * MAX_ROWS // most)
    return _digest([_content(operation, algorithm, ranks, size)])


def _counts(operation: str, default: tuple[int, ...] = RANKS) -> tuple[int, ...]:
    """Return a few numbers of ranks, or the one that the operation's parameters require."""
    requested = ranks_of(operation)
    return (requested,) if requested else default


def _sizes(operation: str, algorithm: str) -> tuple[int, ...]:
    """Return sizes around the segment size, and one of many segments."""
    if not sized(operation):
        return (0,)
    segment = DEFAULT_SEGMENT
    if ":" in algorithm:
        entry, text = algorithm_of(operation, algorithm)
        if entry.argument.is_size or entry.name in COUNTS_AS_SIZES:
            (segment,) = entry.values(text)
    return 1, segment - 1, segment, segment + 1, SEGMENTS * segment + 1


def _builder(operation: str, algorithm: str, ranks: int, topology: Tree = SMALL_TREE) -> Callable[[int], Schedule]:
    if algorithm:
        return builder(Point("", operation, algorithm, "", "", ranks, 0))
    return partial(over_tree(operation).build, topology)


def _content(operation: str, algorithm: str, ranks: int, size: int, topology: Tree = SMALL_TREE) -> bytes:
    """Return the parts of a schedule that the player reads, as bytes: messages, local work, the root, and data of
    messages.

    For a sum of many parts, these are how often each occurs, and the content of three.
    """
    content = []
    for part in _some_parts(operation, ranks):
        pattern = _builder(part, algorithm, ranks, topology)(size)
        content += [pattern.content(), _data(pattern, part, size)]
    many = parts(operation, ranks)
    return b"".join([*content, *([repr(many).encode()] if len(many) > 1 else [])])


def _some_parts(operation: str, ranks: int) -> list[str]:
    """Return the first, the middle and the last summand of an operation."""
    names = [name for name, _ in parts(operation, ranks)]
    return list(dict.fromkeys((names[0], names[len(names) // 2], names[-1])))


def _data(pattern: Schedule, name: str, size: int) -> bytes:
    if pattern.holds is None:
        return b""
    runs: Runs = pattern.holds()
    wanted = results(name, pattern.ranks, size)
    return b"".join(map(encode_integers, (runs.row, runs.first, runs.length))) + repr(wanted).encode()


def _digest(parts: Iterable[bytes]) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.hexdigest()
