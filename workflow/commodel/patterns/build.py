"""From a point's names to its Schedule, with its ranks placed on nodes: `schedule`, and `stack_points` for many.

Points are grouped by shape: what of a pattern does not depend on sizes is done once for all of them. `full_layout` is a
layout with everything filled in that it leaves to a setting, and whether that has room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.patterns.algorithms import algorithm, over_tree
from commodel.patterns.layouts import Defaults, full, keeps_cores, named, place, ranks_of
from commodel.patterns.operations import OVERLAY, parameters, parts
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule, stack
from commodel.patterns.trees.topologies import tree
from commodel.patterns.written import is_written, written
from commodel.records import LIBRARY, Point

if TYPE_CHECKING:
    from commodel.patterns.points import Setting


MOST_STACKED = 20_000  # sizes × messages of one stack, so that an array of all draws stays small
WRITTEN = (
    1 << 16
)  # messages of rounds that repeat which are written out all the same: sizes are predicted in stacks then
SPARED = 8  # times less to go through: what makes up for no stacks where many draws are predicted
SIZE = ("bytes", "pattern")  # what of a point depends on its size
WITHOUT_SIZE = attrgetter(*(field.name for field in fields(Point) if field.name not in SIZE))


@dataclass(frozen=True)
class Shape:
    """A point without its size, and the sizes. Its schedules are built in one place and predicted together. A choice
    alone is no name for it: `binomial:4` is an algorithm with segments of 4 bytes, and a tree."""

    point: Point
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, point: Point, sizes: Iterable[int]) -> Shape:
        return cls(replace(point, bytes=0, pattern=""), tuple(sizes))


def shapes(points: Sequence[Point]) -> Iterator[tuple[list[int], Shape]]:
    """Points by shape, in the order in which the shapes come up: the numbers of each shape's points, which are in the
    order of its sizes."""
    numbers: dict[tuple, list[int]] = {}
    for number, point in enumerate(points):
        numbers.setdefault(WITHOUT_SIZE(point), []).append(number)
    for members in numbers.values():
        yield members, Shape.of(points[members[0]], (points[number].bytes for number in members))


@dataclass(frozen=True, eq=False)
class Sum:
    """Points of one shape that are the sum of schedules, each begun by all ranks at once. There may be thousands of
    them: they are made one at a time."""

    shape: Shape

    @property
    def sizes(self) -> int:
        return len(self.shape.sizes)

    def counted(self) -> Iterator[tuple[int, Schedule]]:
        """Yield how often each schedule is there, and its stack. One part's schedules differ in sizes only."""
        for point, count in list_parts(self.shape.point):
            build = builder(point)
            yield count, stack([build(size) for size in self.shape.sizes])


def list_parts(point: Point) -> list[tuple[Point, int]]:
    """Return the points that a point is the sum of, and how often each is there; itself where it is no sum."""
    if not point.predictable or point.topology:
        return [(point, 1)]
    return [(replace(point, operation=name), count) for name, count in parts(point.operation, point.ranks)]


def sample_parts(point: Point) -> list[tuple[Point, float]]:
    """Return the first, the middle and the last of them, as if those were all."""
    every = list_parts(point)
    few = [every[number][0] for number in sorted({0, len(every) // 2, len(every) - 1})]
    return [(part, sum(count for _, count in every) / len(few)) for part in few]


def unplaced(point: Point, ranks: int | None = None) -> Point:
    """Return the point wherever its ranks sit, or with so many others: its messages are the same on all layouts."""
    return Point("", point.operation, point.algorithm, point.topology, "", ranks or point.ranks, point.bytes)


def schedule(point: Point) -> Schedule:
    return builder(point)(point.bytes)


def builder(point: Point, many: bool = False) -> Callable[[int], Schedule]:
    """Return the schedule of a point as a function of the size: names are looked up and ranks placed once. `many`: it
    is for many draws."""
    describe = _described(point)

    def build(size: int) -> Schedule:
        pattern = describe(size)
        if not isinstance(pattern, Long) or pattern.messages > WRITTEN:
            return pattern
        return pattern if many and SPARED * pattern.width <= pattern.messages else pattern.whole

    return build


def _described(point: Point) -> Callable[[int], Schedule]:
    if point.measured_only:
        raise UserError(f"'{point.operation}' is measured, not predicted or drawn: no schedule says what it does")
    if not point.predictable:
        raise UserError(
            f"'{LIBRARY}' is the MPI library's own {point.operation}: it is measured, not predicted or drawn"
        )
    if is_written(point.operation):
        build = partial(_as_written, point.operation)
    elif point.topology:
        build = partial(over_tree(point.operation).build, tree(point.topology))
    else:
        entry, argument = algorithm(point.operation, point.algorithm)
        values, named = entry.values(argument), parameters(point.operation, point.ranks)

        def build(bytes: int) -> Schedule:
            return entry.build(point.ranks, bytes, *values, **named)

    if not point.layout:
        return build
    node = place(point.layout, point.ranks)
    return lambda size: build(size).placed(node)


def _as_written(operation: str, bytes: int) -> Schedule:
    return written(operation)


def fan_in(pattern: Schedule) -> int:
    """Return the most messages that one rank receives in one step; 0 where none are sent."""
    if isinstance(pattern, Long):
        return max(1 if isinstance(part, Rounds) else fan_in(part) for part in pattern.parts)
    if not len(pattern.dst):
        return 0
    _, counts = np.unique(pattern.dst_wait * pattern.ranks + pattern.dst, return_counts=True)
    return int(counts.max())


def fan_ins(points: Iterable[Point]) -> dict[str, int]:
    """Return the fan-in of every point, by id. Where the smallest and the largest message of a pattern agree, as they
    do for all that only cut a message into segments, those between are not built."""
    points = list(points)
    most = {}
    for numbers, shape in shapes([unplaced(point) for point in points]):
        build, low, high = builder(shape.point), min(shape.sizes), max(shape.sizes)
        if len(summands := list_parts(shape.point)) > 1:
            most_of_all = max(fan_in(builder(part)(high)) for part, _ in summands)
            most |= dict.fromkeys((points[number].id for number in numbers), most_of_all)
            continue
        known = {size: fan_in(build(size)) for size in {low, high}}
        if known[low] == known[high]:
            known = dict.fromkeys(shape.sizes, known[low])
        for number, size in zip(numbers, shape.sizes, strict=True):
            if size not in known:
                known[size] = fan_in(build(size))
            most[points[number].id] = known[size]
    return most


def stack_points(
    points: Sequence[Point], together: int = MOST_STACKED, many: bool = False
) -> Iterator[tuple[list[int], Schedule | Sum]]:
    """Points whose schedules differ in sizes only, to be predicted in one pass: their numbers and a stack of schedules;
    `many` as of `builder`."""
    for numbers, shape in shapes(points):
        for places, pattern in stacks(shape, together, many):
            yield [numbers[place] for place in places], pattern


def stacks(
    shape: Shape, together: int = MOST_STACKED, many: bool = False
) -> Iterator[tuple[list[int], Schedule | Sum]]:
    """Yield the schedules of a shape, those that differ in nothing but size in one stack: places in its sizes, and the
    stack. The structure is kept from stack to stack, and no more messages wait than four stacks hold."""
    if len(summands := list_parts(shape.point)) > 1:
        rows = builder(summands[0][0])(shape.sizes[0]).messages
        for first in range(0, len(shape.sizes), most := max(together // max(rows, 1), 1)):
            some = shape.sizes[first : first + most]
            yield list(range(first, first + len(some))), Sum(replace(shape, sizes=some))
        return
    build = builder(shape.point, many)
    waiting: list[tuple[Schedule, list[int], list[Schedule]]] = []
    last: Schedule | None = None  # of the last full stack, for the next of its structure
    cells = 0
    for number, size in enumerate(shape.sizes):
        pattern = build(size)
        if isinstance(pattern, Long):
            yield [number], pattern
            continue
        entry = next((entry for entry in reversed(waiting) if entry[0].alike(pattern)), None)
        if entry is None:
            entry = (last if last is not None and last.alike(pattern) else pattern), [], []
            waiting.append(entry)
        first, numbers, schedules = entry
        numbers.append(number)
        schedules.append(pattern)
        rows = max(len(pattern.src), 1)
        cells += rows
        if len(numbers) * rows >= together:
            waiting = [other for other in waiting if other is not entry]
            cells -= len(numbers) * rows
            last = first
            yield numbers, stack(schedules, first)
        elif cells >= 4 * together:
            for first, numbers, schedules in waiting:
                yield numbers, stack(schedules, first)
            waiting, cells = [], 0
    for first, numbers, schedules in waiting:
        yield numbers, stack(schedules, first)


@dataclass(frozen=True)
class Placed:
    """A full layout, and the room that it takes."""

    layout: str
    nodes: int  # up to the last that it uses
    per_node: int  # ranks that it puts on a node, at most
    reach: str  # how far ranks are from each other
    misfit: str  # why it does not fit the platform, or nothing

    @property
    def room(self) -> dict[str, object]:
        """What a point says of it, beside the layout."""
        return {"nodes": self.nodes, "per_node": self.per_node, "reach": self.reach}

    def checked(self, ranks: int, key: str = "") -> Placed:
        if self.misfit:
            raise UserError(f"{ranks} ranks as {self.misfit}", key=key)
        return self


@lru_cache(maxsize=65536)
def full_layout(setting: Setting, spec: str, ranks: int, requested: int | None = None) -> Placed:
    """Return the layout with everything filled in: its ranks a node, where it leaves them open, as ranks_per_node says,
    else as spreads them over all nodes."""
    per_node = requested or -(-max(ranks, setting.spread) // setting.nodes)
    defaults = Defaults(per_node, setting.types, setting.hosts, setting.cores, setting.fewer_cores, setting.levels)
    layout = full(spec, defaults, requested)
    node = place(layout, ranks)
    entry, arguments = named(layout)
    used, held = np.unique(node, return_counts=True)
    per_node = entry.ranks_per_node(arguments) or int(held.max())
    misfit = _misfit(setting, defaults, layout, used, held, per_node)
    reach = "" if misfit else Hierarchy.of(dict(setting.levels)).reach(node)
    return Placed(layout, int(node.max()) + 1, per_node, reach, misfit)


def fill_layout(setting: Setting, spec: str, ranks: int | None) -> tuple[Placed, int]:
    """Return a layout in full, and its ranks, which it may say itself."""
    if (ranks := ranks or ranks_of(spec)) is None:
        raise UserError(f"'{spec}' does not say how many ranks there are; wanted --ranks")
    return full_layout(setting, spec, ranks).checked(ranks), ranks


def _misfit(
    setting: Setting, defaults: Defaults, layout: str, used: np.ndarray, held: np.ndarray, per_node: int
) -> str:
    """Return how many cores processes keep that have several, `full` has looked at."""
    if setting.substrate == OVERLAY and keeps_cores(layout):
        return f"{layout} keep cores, which processes of an overlay network do not"
    nodes = int(used[-1]) + 1
    if per_node > setting.cores or nodes > setting.nodes:
        room = f"platform '{setting.name}' has {setting.nodes} of {setting.cores}"
        wanted = f"{nodes} node{'s' * (nodes > 1)} of {per_node} core{'s' * (per_node > 1)}"
        return f"{layout} need {wanted}; {room}"
    for node, ranks in zip(used, held, strict=True) if setting.fewer_cores else ():
        if ranks > (cores := defaults.cores(int(node))):
            return f"{layout} need {ranks} cores of node {node}; platform '{setting.name}' has {cores} there"
    return ""
