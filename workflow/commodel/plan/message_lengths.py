"""The longest messages, and the longest vectors that ranks combine and copy, of an experiment (`find_longest`): they
determine the sizes of probes (`choose_probe_sizes`)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from commodel import units
from commodel.errors import UserError
from commodel.models.probes import SIZE_RATIO
from commodel.patterns.build import builder, remove_layout, sample_parts
from commodel.patterns.operations import operation
from commodel.patterns.repeated import CompactSchedule
from commodel.patterns.schedule import KINDS, Schedule
from commodel.patterns.written import is_written
from commodel.records import Point

FEW_RANKS, FEW_BYTES = 8, 1024  # ranks and bytes of schedules that show which kinds of work occur
COPIED_AT_ONCE = 2  # times all that a rank has, at most, is copied in one go
FIRST_LENGTH = 1 << 16  # bytes at which schedules are built first
MOST_ROWS = 2_000_000  # of a schedule that is built for this
SENT = "sent"
USUAL_LARGEST, LARGEST_OF_ALL = 64 << 10, 16 << 20  # bytes: the largest message of probes, at least and at most


def choose_probe_sizes(points: Iterable[Point], given: Sequence[int], alone: bool) -> tuple[list[int], dict[str, int]]:
    """Return the message sizes of probes, and the longest vector of each kind that is longer than all these sizes.

    Unless sizes are given, they go up to the longest message of all points. Vectors only count if processors are probed
    by themselves (`alone`).
    """
    kinds = [SENT] * (not given) + [*KINDS] * alone
    lengths = find_longest(points, max(given, default=USUAL_LARGEST), kinds) if kinds else {}
    sizes = list(given) or _rungs(lengths.pop(SENT, USUAL_LARGEST))
    return sizes, {kind: length for kind, length in lengths.items() if length > max(sizes)}


def _rungs(needed: int) -> list[int]:
    sizes = [1]
    while sizes[-1] < min(needed, LARGEST_OF_ALL):
        sizes.append(sizes[-1] * SIZE_RATIO)
    return sizes


def find_longest(points: Iterable[Point], beyond: int, kinds: Sequence[str]) -> dict[str, int]:
    """Return the bytes of the longest message or vector of each kind, if it is longer than `beyond`.

    Of points that differ only in size, only the largest one is built, and only if it may exceed the longest found so
    far.
    """
    largest: dict[Point, int] = {}
    for point in points:
        if point.predictable:
            shape = replace(remove_layout(point), bytes=0)
            largest[shape] = max(largest.get(shape, 0), point.bytes)
    lengths = dict.fromkeys(kinds, 0)
    occurring = cache(lambda shape: _list_lengths(shape, kinds))
    for point in sorted((replace(shape, bytes=size) for shape, size in largest.items()), key=_at_most, reverse=True):
        if _at_most(point) <= max(beyond, min(lengths.values())):
            break
        occur = occurring(replace(point, bytes=0, ranks=_enough_ranks(point)))
        longer = [kind for kind in occur if _at_most(point) > lengths[kind]]
        for kind, length in _lengths(point, longer).items():
            lengths[kind] = max(lengths[kind], length)
    return {kind: length for kind, length in lengths.items() if length > beyond}


def _at_most(point: Point) -> int:
    """Return an upper limit of the bytes of a message or vector of a point.

    It is all data of a rank, or copies of it. For operations with parameters and patterns from files no limit is known.
    """
    if is_written(point.operation):
        return units.MAX_BYTES
    about = operation(point.operation)
    if about.reduces:
        return point.bytes
    return units.MAX_BYTES if about.parameters else COPIED_AT_ONCE * point.ranks * point.bytes


def _enough_ranks(point: Point) -> int:
    """Return a number of ranks at which every kind of work occurs: a few, or the fixed number of parameters and
    trees."""
    fixed = point.topology or is_written(point.operation) or operation(point.operation).parameters
    return point.ranks if fixed else min(point.ranks, FEW_RANKS)


def _list_lengths(point: Point, kinds: Sequence[str]) -> list[str]:
    patterns = [builder(part)(FEW_BYTES) for part, _ in sample_parts(point)]
    return [kind for kind in kinds if any(_longest(pattern, kind) for pattern in patterns)]


def _longest(pattern: Schedule, kind: str) -> float:
    return float((pattern.largest if kind == SENT else pattern.longest_work(kind)).max())


def _lengths(point: Point, kinds: Sequence[str]) -> dict[str, int]:
    """Return the bytes of the longest message or vector of each kind at a point.

    If its schedule has too many messages to be built, lengths are taken to grow in proportion to the size. This is an
    upper limit, since segments do not grow.
    """
    lengths, some = dict.fromkeys(kinds, 0.0), min(point.bytes, FIRST_LENGTH)
    for part, _ in sample_parts(point) if kinds else ():
        try:
            pattern, times = builder(part)(some), point.bytes / max(some, 1)
        except UserError:  # too many messages at that size, too
            return dict.fromkeys(kinds, int(_at_most(point)))
        if isinstance(pattern, CompactSchedule) or pattern.messages * times <= MOST_ROWS:
            pattern, times = builder(part)(point.bytes), 1.0
        for kind in kinds:
            lengths[kind] = max(lengths[kind], min(times * _longest(pattern, kind), _at_most(point)))
    return {kind: int(length) for kind, length in lengths.items()}
