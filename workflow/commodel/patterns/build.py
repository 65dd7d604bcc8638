"""Schedules of points, with ranks placed on nodes: `build_schedule` for one, `stack_points` for
many.

Points are grouped by shape, so that everything independent of sizes is computed once.
`complete_layout` completes a layout for the resources of a platform, and checks whether there are
enough nodes and cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from commodel.errors import UserError
from commodel.files.cache import cache_by_files
from commodel.files.safe_paths import NODES_SUFFIX, parse_file_path
from commodel.hierarchy import Hierarchy
from commodel.patterns.algorithms import Placement, find_algorithm, find_tree_algorithm
from commodel.patterns.layouts import (
    PlatformDefaults,
    assigns_cores,
    complete_spec,
    count_layout_ranks,
    find_layout,
    place_ranks,
)
from commodel.patterns.operations import fill_parameters, list_summands
from commodel.patterns.pattern_files import is_pattern_file, read_pattern
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.patterns.trees.topologies import make_tree
from commodel.records import LIBRARY, Point
from commodel.substrates import MPI, find_substrate
from commodel.units import format_count

if TYPE_CHECKING:
    from commodel.patterns.points import PlatformResources


MAX_STACKED_MESSAGES = 20_000  # sizes × messages of one stack, to bound the memory of all draws
# of repeated rounds that are expanded, since stacks of sizes are then faster
MAX_EXPANDED_MESSAGES = 1 << 16
# messages / width, from which repeated rounds are faster than stacks for many draws
MIN_WIDTH_REDUCTION = 8
SIZE_FIELDS = ("bytes", "pattern")  # fields of a point that depend on the size
GET_SHAPE_KEY = attrgetter(
    *(field.name for field in fields(Point) if field.name not in SIZE_FIELDS)
)


@dataclass(frozen=True)
class Shape:
    """Points that differ in their size only: a point without a size, and the sizes. Their schedules
    are built and predicted together.
    """

    point: Point
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, point: Point, sizes: Iterable[int]) -> Shape:
        return cls(replace(point, bytes=0, pattern=""), tuple(sizes))


def group_by_shape(points: Sequence[Point]) -> Iterator[tuple[list[int], Shape]]:
    """Yield the indices of each shape's points in the order of its sizes, and the shape, in order
    of first occurrence."""
    numbers: dict[tuple, list[int]] = {}
    for number, point in enumerate(points):
        numbers.setdefault(GET_SHAPE_KEY(point), []).append(number)
    for members in numbers.values():
        yield members, Shape.of(points[members[0]], (points[number].bytes for number in members))


@dataclass(frozen=True, eq=False)
class ScheduleSum:
    """Points of one shape that are sums of schedules; all ranks begin each schedule at once.

    There may be thousands of schedules; they are built one at a time.
    """

    shape: Shape

    @property
    def sizes(self) -> int:
        return len(self.shape.sizes)

    def iterate_parts(self) -> Iterator[tuple[int, Schedule]]:
        """Yield how often each summand occurs, and the stack of its schedules at all sizes."""
        for point, count in list_parts(self.shape.point):
            build = make_builder(point)
            yield count, stack_schedules([build(size) for size in self.shape.sizes])


def list_parts(point: Point) -> list[tuple[Point, int]]:
    """Return the summands of a point and how often each occurs; the point itself if it is no
    sum."""
    if not point.predictable or point.topology:
        return [(point, 1)]
    return [
        (replace(point, operation=name), count)
        for name, count in list_summands(point.operation, point.ranks)
    ]


def sample_parts(point: Point) -> list[tuple[Point, float]]:
    """Return the first, middle and last summand, each once and weighted by an equal share of
    all."""
    all_parts = list_parts(point)
    sampled = [
        all_parts[number][0] for number in sorted({0, len(all_parts) // 2, len(all_parts) - 1})
    ]
    share = sum(count for _, count in all_parts) / len(sampled)
    return [(part, share) for part in sampled]


@lru_cache(maxsize=65536)
def _find_placement(operation: str, algorithm: str) -> Placement | None:
    return find_algorithm(operation, algorithm)[0].placement


def depends_on_placement(point: Point) -> bool:
    """Return whether the messages of a point depend on the nodes of its ranks."""
    if not point.algorithm or not point.predictable or is_pattern_file(point.operation):
        return False
    return _find_placement(point.operation, point.algorithm) is not None


def check_placement(operation: str, algorithm: str, layout: str, ranks: int) -> None:
    """Raise an error if an algorithm is impossible with the nodes of the ranks."""
    placement = _find_placement(operation, algorithm)
    if placement:
        entry, argument = find_algorithm(operation, algorithm)
        (value,) = entry.parse_argument(argument)
        placement.check(value, place_ranks(layout, ranks))


def makes_use_of_placement(point: Point) -> bool:
    """Return whether the messages of a point depend on the nodes of its ranks, and its algorithm
    makes use of them: there are several nodes, and several ranks on one."""
    if not depends_on_placement(point):
        return False
    placement = _find_placement(point.operation, point.algorithm)
    assert placement is not None
    return placement.is_useful(place_ranks(point.layout, point.ranks))


def remove_layout(point: Point, ranks: int | None = None) -> Point:
    """Return the point without a layout, unless its messages depend on it, and optionally with
    other ranks."""
    return Point(
        platform="",
        operation=point.operation,
        algorithm=point.algorithm,
        topology=point.topology,
        layout=point.layout if depends_on_placement(point) else "",
        ranks=ranks or point.ranks,
        bytes=point.bytes,
    )


def build_schedule(point: Point) -> Schedule:
    return make_builder(point)(point.bytes)


def make_builder(point: Point, many_sizes: bool = False) -> Callable[[int], Schedule]:
    """Return a function from the size to the schedule of a point, which looks up names and places
    ranks once.

    `many_sizes`: whether the schedule is for predictions of many draws.
    """
    build_compact = _make_compact_builder(point)

    def build(size: int) -> Schedule:
        pattern = build_compact(size).with_statistic(point.statistic)
        if not isinstance(pattern, CompactSchedule) or pattern.messages > MAX_EXPANDED_MESSAGES:
            return pattern
        return (
            pattern
            if many_sizes and MIN_WIDTH_REDUCTION * pattern.width <= pattern.messages
            else pattern.whole
        )

    return build


def _make_compact_builder(point: Point) -> Callable[[int], Schedule]:
    """Return a function from the size to the schedule, in which repeated rounds are not
    expanded."""
    if point.measured_only:
        raise UserError(
            f"'{point.operation}' is measured, not predicted or drawn: it has no schedule"
        )
    if not point.predictable:
        raise UserError(
            f"'{LIBRARY}' is the MPI library's own {point.operation}: it has no schedule, only its own "
            "times predict it"
        )
    if is_pattern_file(point.operation):

        def build(bytes: int) -> Schedule:
            return read_pattern(point.operation)

    elif point.topology:
        build = partial(find_tree_algorithm(point.operation).build, make_tree(point.topology))
    else:
        algorithm, argument = find_algorithm(point.operation, point.algorithm)
        values = algorithm.parse_argument(argument)
        parameters = fill_parameters(point.operation, point.ranks)
        if algorithm.placement:
            if not point.layout:
                raise UserError(
                    f"the messages of {algorithm.name} depend on the nodes of the ranks: wanted a layout"
                )
            parameters["node"] = place_ranks(point.layout, point.ranks)

        def build(bytes: int) -> Schedule:
            return algorithm.build(point.ranks, bytes, *values, **parameters)

    if not point.layout:
        return build
    node = place_ranks(point.layout, point.ranks)
    return lambda size: build(size).place(node)


def find_fan_in(pattern: Schedule) -> int:
    """Return the most messages that one rank receives in one step; 0 without messages."""
    if isinstance(pattern, CompactSchedule):
        return max(1 if isinstance(part, Rounds) else find_fan_in(part) for part in pattern.parts)
    if not len(pattern.dst):
        return 0
    _, counts = np.unique(pattern.dst_wait * pattern.ranks + pattern.dst, return_counts=True)
    return int(counts.max())


def find_fan_ins(points: Iterable[Point]) -> dict[str, int]:
    """Return the fan-in of every point, by id.

    If the smallest and the largest message have the same fan-in, as in all patterns that only cut
    messages into segments, the sizes between are not built.
    """
    points = list(points)
    fan_in_by_id: dict[str, int] = {}
    for numbers, shape in group_by_shape([remove_layout(point) for point in points]):
        build = make_builder(shape.point)
        low = min(shape.sizes)
        high = max(shape.sizes)
        summands = list_parts(shape.point)
        if len(summands) > 1:
            largest = max(find_fan_in(make_builder(part)(high)) for part, _ in summands)
            fan_in_by_id |= dict.fromkeys((points[number].id for number in numbers), largest)
            continue
        by_size = {size: find_fan_in(build(size)) for size in {low, high}}
        if by_size[low] == by_size[high]:
            by_size = dict.fromkeys(shape.sizes, by_size[low])
        for number, size in zip(numbers, shape.sizes, strict=True):
            if size not in by_size:
                by_size[size] = find_fan_in(build(size))
            fan_in_by_id[points[number].id] = by_size[size]
    return fan_in_by_id


def stack_points(
    points: Sequence[Point], max_messages: int = MAX_STACKED_MESSAGES, many_sizes: bool = False
) -> Iterator[tuple[list[int], Schedule | ScheduleSum]]:
    """Yield the indices of points whose schedules differ in sizes only, and a stack of their
    schedules.

    `many_sizes`: as in `make_builder`.
    """
    for numbers, shape in group_by_shape(points):
        for indices, pattern in stack_sizes(shape, max_messages, many_sizes):
            yield [numbers[index] for index in indices], pattern


def stack_sizes(
    shape: Shape, max_messages: int = MAX_STACKED_MESSAGES, many_sizes: bool = False
) -> Iterator[tuple[list[int], Schedule | ScheduleSum]]:
    """Yield the indices of sizes whose schedules have one structure, and their stack.

    Stacks of one structure share it. Incomplete stacks have at most the messages of four complete
    ones.
    """
    summands = list_parts(shape.point)
    if len(summands) > 1:
        rows = make_builder(summands[0][0])(shape.sizes[0]).messages
        sizes_per_stack = max(max_messages // max(rows, 1), 1)
        for start in range(0, len(shape.sizes), sizes_per_stack):
            sizes = shape.sizes[start : start + sizes_per_stack]
            yield list(range(start, start + len(sizes))), ScheduleSum(replace(shape, sizes=sizes))
        return
    build = make_builder(shape.point, many_sizes)
    incomplete: list[tuple[Schedule, list[int], list[Schedule]]] = []
    # the first schedule of the last complete stack, whose structure is reused
    last: Schedule | None = None
    messages = 0  # of incomplete stacks
    for number, size in enumerate(shape.sizes):
        pattern = build(size)
        if isinstance(pattern, CompactSchedule):
            yield [number], pattern
            continue
        entry = next(
            (entry for entry in reversed(incomplete) if entry[0].has_same_structure(pattern)), None
        )
        if entry is None:
            entry = (
                (last if last is not None and last.has_same_structure(pattern) else pattern),
                [],
                [],
            )
            incomplete.append(entry)
        first, numbers, schedules = entry
        numbers.append(number)
        schedules.append(pattern)
        rows = max(len(pattern.src), 1)
        messages += rows
        if len(numbers) * rows >= max_messages:
            incomplete = [other for other in incomplete if other is not entry]
            messages -= len(numbers) * rows
            last = first
            yield numbers, stack_schedules(schedules, first)
        elif messages >= 4 * max_messages:
            for first, numbers, schedules in incomplete:
                yield numbers, stack_schedules(schedules, first)
            incomplete = []
            messages = 0
    for first, numbers, schedules in incomplete:
        yield numbers, stack_schedules(schedules, first)


@dataclass(frozen=True)
class PlacedLayout:
    """A full layout, and the nodes and cores that it needs."""

    layout: str
    nodes: int  # up to the last one in use
    per_node: int  # maximum of ranks on a node
    levels_crossed: str  # distance classes of its ranks
    obstacle: str  # why it does not fit the platform; empty if it does

    @property
    def point_fields(self) -> dict[str, Any]:
        """The fields of a point that follow from the layout."""
        return {"nodes": self.nodes, "per_node": self.per_node, "reach": self.levels_crossed}

    def check(self, ranks: int, key: str = "") -> PlacedLayout:
        if self.obstacle:
            raise UserError(f"{ranks} ranks {self.obstacle}", key=key)
        return self


def _list_layout_files(
    resources: PlatformResources, spec: str, ranks: int, requested: int | None = None
) -> list[str]:
    """Return the file of a layout, if it has one."""
    path = NODES_SUFFIX.sub("", parse_file_path(spec))
    return [path] if path else []


@cache_by_files(65536, _list_layout_files)
def complete_layout(
    resources: PlatformResources, spec: str, ranks: int, requested: int | None = None
) -> PlacedLayout:
    """Return the complete layout of a spec.

    If the spec has no ranks per node, `requested` is used, else ranks are spread over all nodes.
    """
    per_node = requested or -(-max(ranks, resources.spread) // resources.nodes)
    defaults = PlatformDefaults(
        per_node=per_node,
        types=resources.types,
        hosts=resources.hosts,
        max_cores=resources.cores,
        fewer_cores=resources.fewer_cores,
        gpus=resources.gpus,
        levels=resources.levels,
    )
    layout = complete_spec(spec, defaults, requested)
    node = place_ranks(layout, ranks)
    entry, arguments = find_layout(layout)
    used, ranks_on = np.unique(node, return_counts=True)
    per_node = entry.ranks_per_node(arguments) or int(ranks_on.max())
    obstacle = _explain_misfit(resources, defaults, layout, used, ranks_on, per_node)
    levels_crossed = "" if obstacle else Hierarchy.of(dict(resources.levels)).levels_crossed(node)
    return PlacedLayout(
        layout=layout,
        nodes=int(node.max()) + 1,
        per_node=per_node,
        levels_crossed=levels_crossed,
        obstacle=obstacle,
    )


def complete_layout_and_ranks(
    resources: PlatformResources, spec: str, ranks: int | None
) -> tuple[PlacedLayout, int]:
    """Return the complete layout, and the number of ranks, which the layout may determine."""
    ranks = ranks or count_layout_ranks(spec)
    if ranks is None:
        raise UserError(f"'{spec}' does not determine the number of ranks; wanted --ranks")
    return complete_layout(resources, spec, ranks).check(ranks), ranks


def _explain_misfit(
    resources: PlatformResources,
    defaults: PlatformDefaults,
    layout: str,
    used: np.ndarray,
    ranks_on: np.ndarray,
    per_node: int,
) -> str:
    """Return why a layout does not fit a platform. `complete_spec` has checked the cores of a
    layout that assigns them."""
    if resources.substrate not in ("", MPI) and assigns_cores(layout):
        title = find_substrate(resources.substrate).title
        return f"as {layout} are bound to cores, which {title} does not support"
    nodes = int(used[-1]) + 1
    if assigns_cores(layout):
        wanted, available = format_count(nodes, "node"), format_count(resources.nodes, "node")
        return (
            f"as {layout} need {wanted}; platform '{resources.name}' has {available}"
            if nodes > resources.nodes
            else ""
        )
    ranks = int(ranks_on.sum())
    if ranks > resources.nodes * resources.cores:
        nodes_of_cores = (
            f" ({resources.nodes} nodes of {resources.cores})" if resources.nodes > 1 else ""
        )
        total = resources.nodes * resources.cores
        return f"need {ranks} cores; platform '{resources.name}' has {total}{nodes_of_cores}"
    if per_node > resources.cores or nodes > resources.nodes:
        available = f"platform '{resources.name}' has {resources.nodes} of {resources.cores}"
        wanted = f"{nodes} node{'s' * (nodes > 1)} of {per_node} core{'s' * (per_node > 1)}"
        return f"as {layout} need {wanted}; {available}"
    if not resources.fewer_cores:
        return ""
    for node, ranks in zip(used, ranks_on, strict=True):
        cores = defaults.cores(int(node))
        if ranks > cores:
            return (
                f"as {layout} need {ranks} cores of node {node}; platform '{resources.name}' has "
                f"{cores} there"
            )
    return ""
