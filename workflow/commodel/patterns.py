"""From a point's names to its Schedule, placed on its nodes, and what of it does not depend on sizes."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from commodel.algorithms import algorithm, over_tree
from commodel.errors import UserError
from commodel.layouts import place
from commodel.records import LIBRARY, Point
from commodel.schedule import Schedule
from commodel.topologies import tree

TOGETHER = 20_000  # sizes × messages of one shape, so that an array of all draws stays small


def schedule(point: Point) -> Schedule:
    if not point.priced:
        raise UserError(f"'{LIBRARY}' is the MPI library's own {point.operation}: it is measured, not priced or drawn")
    if point.topology:
        pattern = over_tree(point.operation).build(tree(point.topology), point.bytes)
    else:
        entry, argument = algorithm(point.operation, point.algorithm)
        pattern = entry.build(point.ranks, point.bytes, argument)
    return pattern.placed(place(point.layout, point.ranks)) if point.layout else pattern


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


def shapes(points: Sequence[Point]) -> Iterator[tuple[list[int], list[Schedule]]]:
    """Points whose schedules differ in sizes only, to be priced in one pass: their numbers and their schedules."""
    by_name: dict[tuple, list[int]] = {}
    for number, point in enumerate(points):
        by_name.setdefault((point.operation, point.choice, point.layout, point.ranks), []).append(number)
    for numbers in by_name.values():
        found: dict[tuple, tuple[list[int], list[Schedule]]] = {}
        for number in numbers:
            pattern = schedule(points[number])
            same = found.setdefault(pattern.structure(), ([], []))
            same[0].append(number)
            same[1].append(pattern)
            if len(same[0]) * max(len(pattern.src), 1) >= TOGETHER:
                yield found.pop(pattern.structure())
        yield from found.values()
