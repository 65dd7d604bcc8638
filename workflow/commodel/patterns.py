"""From a point's names to its Schedule, placed on its nodes, and what of it does not depend on sizes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from commodel.algorithms import algorithm, over_tree
from commodel.errors import UserError
from commodel.layouts import place
from commodel.records import LIBRARY, Point
from commodel.schedule import Schedule, stack
from commodel.topologies import tree

TOGETHER = 20_000  # sizes × messages of one stack, so that an array of all draws stays small


def schedule(point: Point) -> Schedule:
    return builder(point)(point.bytes)


def builder(point: Point) -> Callable[[int], Schedule]:
    """The schedule of a point as a function of the size: names are looked up and ranks placed once."""
    if not point.priced:
        raise UserError(f"'{LIBRARY}' is the MPI library's own {point.operation}: it is measured, not priced or drawn")
    if point.topology:
        build = partial(over_tree(point.operation).build, tree(point.topology))
    else:
        entry, argument = algorithm(point.operation, point.algorithm)

        def build(bytes):
            return entry.build(point.ranks, bytes, argument)

    if not point.layout:
        return build
    node = place(point.layout, point.ranks)
    return lambda size: build(size).placed(node)


def fan_in(pattern: Schedule) -> int:
    """The most messages that one rank receives in one step; 0 where none are sent."""
    if not len(pattern.dst):
        return 0
    _, counts = np.unique(pattern.step * pattern.ranks + pattern.dst, return_counts=True)
    return int(counts.max())


def fan_ins(points: Iterable[Point]) -> dict[str, int]:
    """The fan-in of every point, by id. Where the smallest and the largest message of a pattern agree, as they do for
    all that only cut a message into segments, those between are not built."""
    alike: dict[tuple, dict[int, list[Point]]] = {}
    for point in points:
        same = alike.setdefault((point.operation, point.algorithm, point.topology, point.ranks), {})
        same.setdefault(point.bytes, []).append(point)
    found = {}
    for sizes in alike.values():
        ends = {size: fan_in(schedule(sizes[size][0])) for size in {min(sizes), max(sizes)}}
        agreed = len(set(ends.values())) == 1
        for size, members in sizes.items():
            known = ends[min(sizes)] if agreed else ends.get(size)
            value = fan_in(schedule(members[0])) if known is None else known
            found |= {point.id: value for point in members}
    return found


def shapes(points: Sequence[Point], together: int = TOGETHER) -> Iterator[tuple[list[int], Schedule]]:
    """Points whose schedules differ in sizes only, to be priced in one pass: their numbers and a stack of schedules."""
    by_name: dict[tuple, list[int]] = {}
    for number, point in enumerate(points):
        by_name.setdefault((point.operation, point.choice, point.layout, point.ranks), []).append(number)
    for numbers in by_name.values():
        for places, pattern in stacks(points[numbers[0]], [points[number].bytes for number in numbers], together):
            yield [numbers[place] for place in places], pattern


def stacks(point: Point, sizes: Sequence[int], together: int = TOGETHER) -> Iterator[tuple[list[int], Schedule]]:
    """A point at several sizes, where its schedules differ in nothing else in one stack: places in `sizes`, and the
    stack. Its structure is kept from stack to stack, and no more than some stacks of schedules wait."""
    build = builder(point)
    waiting: list[tuple[Schedule, list[int], list[Schedule]]] = []
    last: Schedule | None = None  # of the last full stack, for the next of its structure
    cells = 0
    for number, size in enumerate(sizes):
        pattern = build(size)
        found = next((entry for entry in reversed(waiting) if entry[0].alike(pattern)), None)
        if found is None:
            found = (last if last is not None and last.alike(pattern) else pattern), [], []
            waiting.append(found)
        first, numbers, schedules = found
        numbers.append(number)
        schedules.append(pattern)
        rows = max(len(pattern.src), 1)
        cells += rows
        if len(numbers) * rows >= together:
            waiting = [entry for entry in waiting if entry is not found]
            cells -= len(numbers) * rows
            last = first
            yield numbers, stack(schedules, first)
        elif cells >= 4 * together:
            for first, numbers, schedules in waiting:
                yield numbers, stack(schedules, first)
            waiting, cells = [], 0
    for first, numbers, schedules in waiting:
        yield numbers, stack(schedules, first)
