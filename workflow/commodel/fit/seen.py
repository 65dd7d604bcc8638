"""Which of the points of a table a family is fitted to, and how far their messages went."""

from collections.abc import Iterator, Sequence

from commodel.hierarchy import FLAT
from commodel.models import Array
from commodel.models.families import Family
from commodel.patterns.build import Sum, shapes, stacked
from commodel.patterns.layouts import place
from commodel.patterns.schedule import Schedule
from commodel.price.reach import SHORT_MESSAGE
from commodel.records import Point


def in_parts(points: Sequence[Point]) -> Iterator[tuple[list[int], Schedule, int]]:
    """Points stacked by shape; what is a sum part by part, with how often each is there."""
    for numbers, pattern in stacked(points, many=True):
        counted = pattern.counted() if isinstance(pattern, Sum) else [(1, pattern)]
        yield from ((numbers, part, count) for count, part in counted)


def that_it_sees(entry: Family, points: list[Point], seconds: Array) -> tuple[list[Point], Array]:
    """A family that is blind to size is fitted to the smallest size of each pattern only, as it is from probes, and of
    these to messages as short as the shortest: values of all sizes together would be those of none, and say that they
    hold for all."""
    if entry.uses_bytes:
        return points, seconds
    smallest = sorted(
        number
        for numbers, shape in shapes(points)
        for number, size in zip(numbers, shape.sizes, strict=True)
        if size == min(shape.sizes)
    )
    longest = {number: _longest_message(points[number]) for number in smallest}
    short = max(min((size for size in longest.values() if size), default=0.0), SHORT_MESSAGE)
    kept = [number for number, size in longest.items() if size <= short]
    return [points[number] for number in kept], seconds[kept]


def _longest_message(point: Point) -> float:
    """0 where there is none."""
    ends = (part.extremes()[1] for _, part, _ in in_parts([point]) if part.messages)
    return max((float(end.max()) for end in ends), default=0.0)


def reached(points: Sequence[Point]) -> list[str]:
    """Whether messages went between nodes, stayed within them, or both."""
    placed = {(point.layout, point.ranks) for point in points}
    return [FLAT.names[apart] for apart in sorted({apart for one in placed for apart in FLAT.classes(place(*one))})]
