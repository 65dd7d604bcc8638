"""The longest messages of an experiment, and the longest vectors that its ranks reduce and copy
(`find_longest_lengths`).

They determine the sizes of probes (`choose_probe_sizes`)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from commodel import units
from commodel.errors import UserError
from commodel.models.probes import SIZE_RATIO
from commodel.patterns.build import (
    depends_on_placement,
    make_builder,
    remove_layout,
    sample_parts,
)
from commodel.patterns.operations import find_operation
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.repeated import CompactSchedule
from commodel.patterns.schedule import KINDS, Schedule
from commodel.records import Point

# ranks and bytes of a schedule that is built to find the kinds of local work
TEST_RANKS, TEST_BYTES = 8, 1024
MAX_COPIES_OF_DATA = 2  # upper limit of a copied vector, relative to all data of a rank
# bytes of a first, smaller schedule, which shows whether the full one can be built
MAX_TRIAL_BYTES = 1 << 16
# of a schedule that is built; for longer ones, lengths are extrapolated
MAX_BUILT_MESSAGES = 2_000_000
MESSAGE_KIND = "sent"
# bytes; limits of the largest message of probes
MIN_LARGEST_SIZE, MAX_LARGEST_SIZE = 64 << 10, 16 << 20


def choose_probe_sizes(
    points: Iterable[Point], listed_sizes: Sequence[int], probes_local_work: bool
) -> tuple[list[int], dict[str, int]]:
    """Return the message sizes of probes, and the longest vector of each kind that is longer than
    all these sizes.

    Unless sizes are given, they go up to the longest message of all points. Vectors are only
    considered if a probe measures local work (`probes_local_work`).
    """
    kinds = [MESSAGE_KIND] * (not listed_sizes) + [*KINDS] * probes_local_work
    lengths = (
        find_longest_lengths(points, max(listed_sizes, default=MIN_LARGEST_SIZE), kinds)
        if kinds
        else {}
    )
    sizes = list(listed_sizes) or _list_sizes(lengths.pop(MESSAGE_KIND, MIN_LARGEST_SIZE))
    return sizes, {kind: length for kind, length in lengths.items() if length > max(sizes)}


def _list_sizes(largest_needed: int) -> list[int]:
    sizes = [1]
    while sizes[-1] < min(largest_needed, MAX_LARGEST_SIZE):
        sizes.append(sizes[-1] * SIZE_RATIO)
    return sizes


def find_longest_lengths(
    points: Iterable[Point], min_length: int, kinds: Sequence[str]
) -> dict[str, int]:
    """Return the bytes of the longest message or vector of each kind, if it is longer than
    `min_length`. Of points that differ only in size, only the largest is built, and only if it may
    exceed the longest so far."""
    largest: dict[Point, int] = {}
    for point in points:
        if point.predictable:
            shape = replace(remove_layout(point), bytes=0)
            largest[shape] = max(largest.get(shape, 0), point.bytes)
    lengths = dict.fromkeys(kinds, 0)
    list_kinds = cache(lambda shape: _list_occurring_kinds(shape, kinds))
    for point in sorted(
        (replace(shape, bytes=size) for shape, size in largest.items()),
        key=_bound_length,
        reverse=True,
    ):
        if _bound_length(point) <= max(min_length, min(lengths.values())):
            break
        kinds_of_point = list_kinds(replace(point, bytes=0, ranks=_choose_ranks(point)))
        longer = [kind for kind in kinds_of_point if _bound_length(point) > lengths[kind]]
        for kind, length in _find_lengths(point, longer).items():
            lengths[kind] = max(lengths[kind], length)
    return {kind: length for kind, length in lengths.items() if length > min_length}


def _bound_length(point: Point) -> int:
    """Return an upper limit of the bytes of a message or vector of a point.

    It is all data of a rank, or copies of them. Operations with parameters and patterns from files
    have no known limit; leaders may have the data of many ranks.
    """
    if is_pattern_file(point.operation):
        return units.MAX_BYTES
    entry = find_operation(point.operation)
    if entry.reduces:
        return point.bytes
    if depends_on_placement(point):
        return MAX_COPIES_OF_DATA * point.ranks**2 * point.bytes
    return units.MAX_BYTES if entry.parameters else MAX_COPIES_OF_DATA * point.ranks * point.bytes


def _choose_ranks(point: Point) -> int:
    """Return a number of ranks at which all kinds of local work occur: TEST_RANKS, or all if the
    operation fixes them."""
    has_fixed_ranks = (
        point.topology
        or is_pattern_file(point.operation)
        or find_operation(point.operation).parameters
        or depends_on_placement(point)
    )
    return point.ranks if has_fixed_ranks else min(point.ranks, TEST_RANKS)


def _list_occurring_kinds(point: Point, kinds: Sequence[str]) -> list[str]:
    patterns = [make_builder(part)(TEST_BYTES) for part, _ in sample_parts(point)]

    def occurs(kind: str) -> bool:
        return any(_get_longest(pattern, kind) for pattern in patterns)

    return list(filter(occurs, kinds))


def _get_longest(pattern: Schedule, kind: str) -> float:
    return float((pattern.largest if kind == MESSAGE_KIND else pattern.longest_work(kind)).max())


def _find_lengths(point: Point, kinds: Sequence[str]) -> dict[str, int]:
    """Return the bytes of the longest message or vector of each kind at a point.

    If its schedule has too many messages to be built, lengths are assumed to be proportional to the
    size. This is an upper limit, since segments do not grow.
    """
    lengths = dict.fromkeys(kinds, 0.0)
    built_bytes = min(point.bytes, MAX_TRIAL_BYTES)
    for point_of_part, _ in sample_parts(point) if kinds else ():
        try:
            pattern = make_builder(point_of_part)(built_bytes)
            scale = point.bytes / max(built_bytes, 1)
        except UserError:  # too many messages at that size, too
            return dict.fromkeys(kinds, int(_bound_length(point)))
        if isinstance(pattern, CompactSchedule) or pattern.messages * scale <= MAX_BUILT_MESSAGES:
            pattern = make_builder(point_of_part)(point.bytes)
            scale = 1.0
        for kind in kinds:
            lengths[kind] = max(
                lengths[kind], min(scale * _get_longest(pattern, kind), _bound_length(point))
            )
    return {kind: int(length) for kind, length in lengths.items()}
