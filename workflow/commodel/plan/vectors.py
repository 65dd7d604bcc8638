"""How long the vectors are that ranks combine and copy by themselves: how far what memory costs has to be measured."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from commodel.errors import UserError
from commodel.patterns.build import builder, some_of, unplaced
from commodel.patterns.operations import operation
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import KINDS
from commodel.patterns.written import is_written
from commodel.records import Point

FEW, SMALL = 8, 1024  # ranks and bytes that tell whether there is any such work
TOGETHER = 2  # times all that a rank has, at most, is copied in one go
SOME = 1 << 16  # bytes at which schedules are built first
MOST_ROWS = 2_000_000  # of a schedule that is built for this


def longest(points: Iterable[Point], beyond: int) -> dict[str, int]:
    """Bytes of the longest vector of each kind of work that has one longer than `beyond`. Of a choice on so many ranks
    only the largest size is looked at, and that only where it may be longer than what is known already."""
    largest: dict[Point, int] = {}
    for point in points:
        if point.priced:
            shape = replace(unplaced(point), bytes=0)
            largest[shape] = max(largest.get(shape, 0), point.bytes)
    found: dict[str, int] = {}
    worked_on = cache(_kinds)
    for point in sorted((replace(shape, bytes=size) for shape, size in largest.items()), key=_at_most, reverse=True):
        if _at_most(point) <= max(beyond, min(found.get(kind, 0) for kind in KINDS)):
            break
        for kind in worked_on(replace(point, bytes=0, ranks=_few(point))):
            if _at_most(point) > found.get(kind, 0) and (length := _length(point, kind)) > beyond:
                found[kind] = max(found.get(kind, 0), length)
    return found


def _at_most(point: Point) -> float:
    """Bytes of all that a rank has, or of copies of it; of what somebody wrote nothing is known beforehand."""
    if is_written(point.operation):
        return float("inf")
    return point.bytes if operation(point.operation).reduces else TOGETHER * point.ranks * point.bytes


def _few(point: Point) -> int:
    """As many ranks as show what is done, or as the operation's parameters and the tree have."""
    fixed = point.topology or is_written(point.operation) or operation(point.operation).parameters
    return point.ranks if fixed else min(point.ranks, FEW)


def _kinds(point: Point) -> list[str]:
    patterns = [builder(part)(SMALL) for part, _ in some_of(point)]
    return [kind for kind in KINDS if any(pattern.longest_work(kind).any() for pattern in patterns)]


def _length(point: Point, kind: str) -> int:
    """Where the schedule has too many messages to be built it is taken to grow in proportion: vectors that are cut into
    segments do not, and are shorter than that."""
    lengths, some = [], min(point.bytes, SOME)
    for part, _ in some_of(point):
        try:
            pattern, times = builder(part)(some), point.bytes / max(some, 1)
        except UserError:  # even then
            return int(_at_most(point))
        if isinstance(pattern, Long) or pattern.messages * times <= MOST_ROWS:
            pattern, times = builder(part)(point.bytes), 1.0
        lengths.append(min(times * float(pattern.longest_work(kind).max()), _at_most(point)))
    return int(max(lengths))
