"""The digest that distinguishes points with equal names (`add_digests`): of their messages and the
placement of ranks.

It is computed from schedules of a few ranks and sizes, never from source code. If an algorithm is
only rewritten, its measurements stay valid; if it sends other messages, it has to be measured
again.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np

from commodel.patterns.algorithms import find_algorithm, find_tree_algorithm
from commodel.patterns.arguments import DEFAULT_SEGMENT
from commodel.patterns.build import depends_on_placement, make_builder
from commodel.patterns.layouts import (
    CORE,
    assigns_cores,
    drives_gpus,
    list_cores,
    list_devices,
    list_gpus,
    place_ranks,
)
from commodel.patterns.layouts.regular import make_nodes_spec
from commodel.patterns.operations import (
    find_required_ranks,
    has_size,
    list_result_extents,
    list_summands,
    read_operation_numbers,
)
from commodel.patterns.pattern_files import is_pattern_file, read_pattern
from commodel.patterns.schedule import Runs, Schedule, encode_integers
from commodel.patterns.trees.topologies import make_tree
from commodel.patterns.trees.tree import Tree
from commodel.records import Point, compute_digest

RANKS = (2, 5, 8, 12)  # powers of two and others, odd and even
RANKS_AT_OWN_SIZE = 6  # of the schedule with the point's own size
MAX_RANKS_BUILT = 64  # of a schedule that is built for the digest
MAX_SIZES_BUILT = 4  # in that case
MAX_NODES_BUILT = 8  # of these, each with as many ranks, if messages depend on the placement
SEGMENTS = 40  # of the largest message with RANKS: more than there are ranks
MAX_ROWS = 20_000  # messages of the schedule with the point's own size
# For these algorithms, sizes near the argument are used, although it is no size, because ids must
# not change.
COUNTS_AS_SIZES = ("bcast-knomial", "gather-windowed", "scatter-windowed")
# fan-outs 0 to 3, paths of 1 to 4 edges
SMALL_TREE = Tree(np.array([-1, 0, 0, 0, 1, 1, 2, 4, 4, 7]))


def add_digests(points: Iterable[Point]) -> list[Point]:
    """Return the points with the digests of their patterns, which do not include messages of the
    MPI library."""
    digest_placement = cache(_compute_placement_digest)
    digest_few_ranks = cache(_digest_few_ranks)
    digest_own_ranks = cache(_digest_own_ranks)
    digest_own_size = cache(_digest_own_size)
    digest_placed = cache(_digest_placed)

    def pattern(point: Point) -> str:
        digests = [digest_placement(point.layout, point.ranks)]
        if is_pattern_file(point.operation):
            digests.append(_digest([read_pattern(point.operation).encode()]))
        elif point.predictable:
            names = (point.operation, point.algorithm)
            topology = point.topology
            ranks = point.ranks if topology else min(point.ranks, MAX_RANKS_BUILT)
            if depends_on_placement(point):
                digests.append(digest_placed(*names, point.layout, point.ranks, point.bytes))
            else:
                digests += [digest_few_ranks(*names), digest_own_ranks(*names, topology, ranks)]
                digests.append(digest_own_size(*names, point.bytes))
            digests += [
                _digest(map(encode_integers, numbers))
                for numbers in read_operation_numbers(point.operation)
            ]
        elif point.topology:
            digests.append(_digest([encode_integers(make_tree(point.topology).parent)]))
        return compute_digest(digests)

    return [replace(point, pattern=pattern(point)) for point in points]


def _compute_placement_digest(layout: str, ranks: int) -> str:
    parts = [place_ranks(layout, ranks)]
    if assigns_cores(layout):
        parts += [list_cores(layout, ranks), np.asarray(list_devices(layout, ranks) == CORE)]
    if drives_gpus(layout, ranks):
        parts.append(np.array(list_gpus(layout, ranks)))
    return _digest(map(encode_integers, parts))


def _digest_few_ranks(operation: str, algorithm: str) -> str:
    counts = _choose_rank_counts(operation) if algorithm else (SMALL_TREE.nodes,)
    sizes = _choose_sizes(operation, algorithm)
    return _digest(
        _encode_schedule(operation, algorithm, ranks, size)
        for ranks, size in product(counts, sizes)
    )


def _digest_own_ranks(operation: str, algorithm: str, topology: str, ranks: int) -> str:
    """Return the digest with the point's number of ranks: of the schedule, or of the tree and a
    small tree's schedule."""
    sizes = _choose_sizes(operation, algorithm)
    ends = sizes[0], sizes[-1]
    if algorithm:
        return _digest(_encode_schedule(operation, algorithm, ranks, size) for size in ends)
    whole_tree = make_tree(topology)
    parts = [encode_integers(whole_tree.parent)]
    if whole_tree.nodes <= MAX_RANKS_BUILT:
        parts += [_encode_schedule(operation, "", ranks, size, whole_tree) for size in ends]
    return _digest(parts)


def _digest_own_size(operation: str, algorithm: str, size: int) -> str:
    """Return the digest with the point's size, which is reduced if the schedule would exceed
    MAX_ROWS."""
    ranks = (
        _choose_rank_counts(operation, (RANKS_AT_OWN_SIZE,))[0] if algorithm else SMALL_TREE.nodes
    )
    build = _make_size_builder(_sample_summands(operation, ranks)[0], algorithm, ranks)
    sizes = _choose_sizes(operation, algorithm)
    min_rows, max_rows = (build(bytes).messages for bytes in (sizes[0], sizes[-1]))
    if max_rows > min_rows:
        size = min(size, sizes[-1] * MAX_ROWS // max_rows)
    return _digest([_encode_schedule(operation, algorithm, ranks, size)])


def _digest_placed(operation: str, algorithm: str, layout: str, ranks: int, size: int) -> str:
    """Return the digest of an algorithm whose messages depend on the placement: of some ranks on
    some nodes of the layout, the size reduced if the schedule would exceed MAX_ROWS."""
    node = place_ranks(layout, ranks)
    position = np.empty(ranks, dtype=int)  # of each rank on its node
    for number in np.unique(node):
        on_node = np.flatnonzero(node == number)
        position[on_node] = np.arange(len(on_node))
    _, first = np.unique(node, return_index=True)
    chosen = np.isin(node, node[np.sort(first)[:MAX_NODES_BUILT]])
    node = node[chosen & (position < MAX_RANKS_BUILT // MAX_NODES_BUILT)]
    sizes = _choose_sizes(operation, algorithm)[:MAX_SIZES_BUILT]
    build = make_builder(
        Point(
            platform="",
            operation=operation,
            algorithm=algorithm,
            topology="",
            layout=make_nodes_spec(node),
            ranks=len(node),
            bytes=0,
        )
    )
    min_rows, max_rows = (build(bytes).messages for bytes in (sizes[0], max(sizes)))
    if max_rows > min_rows:
        size = min(size, max(sizes) * MAX_ROWS // max_rows)
    parts: list[bytes] = []
    for bytes_built in (*sizes, size):
        pattern = build(bytes_built)
        parts += [pattern.encode(), _encode_contents(pattern, operation, bytes_built)]
    return _digest(parts)


def _choose_rank_counts(operation: str, default: tuple[int, ...] = RANKS) -> tuple[int, ...]:
    """Return RANKS, or the number of ranks that the operation's parameters require."""
    requested = find_required_ranks(operation)
    return (requested,) if requested else default


def _choose_sizes(operation: str, algorithm: str) -> tuple[int, ...]:
    """Return sizes near the segment size, and one of many segments."""
    if not has_size(operation):
        return (0,)
    segment = DEFAULT_SEGMENT
    if ":" in algorithm:
        entry, text = find_algorithm(operation, algorithm)
        is_size = entry.argument is not None and entry.argument.is_size
        if is_size or entry.name in COUNTS_AS_SIZES:
            (segment,) = entry.parse_argument(text)
    return 1, segment - 1, segment, segment + 1, SEGMENTS * segment + 1


def _make_size_builder(
    operation: str, algorithm: str, ranks: int, topology: Tree = SMALL_TREE
) -> Callable[[int], Schedule]:
    if algorithm:
        return make_builder(
            Point(
                platform="",
                operation=operation,
                algorithm=algorithm,
                topology="",
                layout="",
                ranks=ranks,
                bytes=0,
            )
        )
    return partial(find_tree_algorithm(operation).build, topology)


def _encode_schedule(
    operation: str, algorithm: str, ranks: int, size: int, topology: Tree = SMALL_TREE
) -> bytes:
    """Return as bytes what the player reads of a schedule: messages, local work, the root, and
    contents of messages.

    A sum is represented by three of its summands, and the counts of all.
    """
    content = []
    for part in _sample_summands(operation, ranks):
        pattern = _make_size_builder(part, algorithm, ranks, topology)(size)
        content += [pattern.encode(), _encode_contents(pattern, part, size)]
    summands = list_summands(operation, ranks)
    return b"".join([*content, *([repr(summands).encode()] if len(summands) > 1 else [])])


def _sample_summands(operation: str, ranks: int) -> list[str]:
    """Return the first, the middle and the last summand of an operation."""
    names = [name for name, _ in list_summands(operation, ranks)]
    return list(dict.fromkeys((names[0], names[len(names) // 2], names[-1])))


def _encode_contents(pattern: Schedule, name: str, size: int) -> bytes:
    if pattern.contents is None:
        return b""
    runs: Runs = pattern.contents()
    extents = list_result_extents(name, pattern.ranks, size)
    return (
        b"".join(map(encode_integers, (runs.row, runs.first, runs.length))) + repr(extents).encode()
    )


def _digest(parts: Iterable[bytes]) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.hexdigest()
