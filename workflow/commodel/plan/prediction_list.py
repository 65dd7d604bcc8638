"""The predictions of an experiment: its shapes (`list_shapes`), and their division into parts of about equal cost
(`select_part`). A shape is a point at several sizes. The parts in order are all shapes in order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from commodel.errors import UserError
from commodel.patterns.build import Shape, build_schedule, remove_layout, sample_parts
from commodel.patterns.operations import find_required_ranks
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.points import PlatformResources, find_message_size, make_point
from commodel.plan.experiments import Experiment
from commodel.plan.matrix import check_size, list_combinations, locate_axis
from commodel.predictions.predictions import FEW_WAVES, MANY_WAVES
from commodel.records import Point

SMALL_RANKS = (16, 32)  # ranks; costs at more ranks are extrapolated from schedules of these sizes
SCHEDULE_COST, STEP_COST = 3_000, 2_000  # messages; added for each schedule and for each step


def list_shapes(experiment: Experiment, resources: PlatformResources | Mapping[str, PlatformResources]) -> list[Shape]:
    """Return the shapes of all points of the matrix, in order of first occurrence.

    A point that needs more nodes or cores than `resources` has is an error. If `resources` maps platforms to resources,
    blocks of the matrix for other platforms are skipped, and nodes are added if a block needs more (`extended`).
    """
    check_size(experiment)
    sizes: dict[Point, dict[int, None]] = {}
    for block in experiment.matrix:
        if isinstance(resources, Mapping):
            if (name := experiment.block_platform(block)) not in resources:
                continue
            block_resources = resources[name].for_block(combination for combination, _ in list_combinations(block))
            block_resources = block_resources.extended(block_resources.spread)
        elif resources.name:
            block_resources = resources.for_block(combination for combination, _ in list_combinations(block))
        else:
            block_resources = resources
        named_points: dict[tuple, Point] = {}
        for combination, path in list_combinations(block):
            bytes = combination.pop("bytes", None)
            names = tuple(combination.items())
            try:
                if names not in named_points:
                    named_points[names] = make_point(block_resources, combination | {"bytes": bytes})
                point = named_points[names]
                size = (
                    point.bytes
                    if is_pattern_file(point.operation)
                    else find_message_size(block_resources, point.operation, bytes)
                )
            except UserError as error:
                raise block.error(locate_axis(block, path, error.key), error.found) from None
            sizes.setdefault(replace(point, bytes=0), {})[size] = None
    if not sizes:
        raise experiment.error(("matrix",), "no point is left to predict")
    return [Shape(point, tuple(sizes_of_point)) for point, sizes_of_point in sizes.items()]


def select_part(shapes: Sequence[Shape], number: int, parts: int) -> Sequence[Shape]:
    """Return part `number` of `parts`, counted from 1; it may be empty.

    Part n has the shapes whose cost is centred between (n − 1)/parts and n/parts of the cumulative cost.
    """
    weights = np.array([estimate_cost(shape) for shape in shapes])
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    chosen = np.flatnonzero(np.minimum((middle * parts).astype(int), parts - 1) == number - 1)
    return [shapes[index] for index in chosen.tolist()]


def estimate_cost(shape: Shape) -> float:
    """Return the approximate cost of predicting a shape, in messages.

    Schedules of algorithms are built with the numbers of ranks SMALL_RANKS at most; patterns with a fixed number of
    ranks in full.
    """
    ends = {min(shape.sizes), max(shape.sizes)}
    extents = np.array([_estimate_extent(replace(remove_layout(shape.point), bytes=size)) for size in ends])
    messages, steps = extents.mean(axis=0)
    replays = (
        1 if shape.point.waves == 1 else 1 + FEW_WAVES + MANY_WAVES
    )  # the time per wave is the difference of two streams
    return len(shape.sizes) * (SCHEDULE_COST + messages * replays) + STEP_COST * steps * replays


@lru_cache(maxsize=65536)
def _estimate_extent(point: Point) -> tuple[float, float]:
    """Return the number of messages and of steps. For an algorithm they are extrapolated from two small numbers of
    ranks."""
    if point.topology:
        return point.ranks - 1.0, 1.0
    if find_required_ranks(point.operation):
        return _count_messages(point)
    counts = [_count_messages(remove_layout(point, min(ranks, point.ranks))) for ranks in SMALL_RANKS]
    if point.ranks <= SMALL_RANKS[1]:
        return counts[1]
    doublings = np.log2(point.ranks / SMALL_RANKS[1])
    return tuple(larger * (larger / smaller) ** doublings for smaller, larger in zip(*counts, strict=True))


@lru_cache(maxsize=65536)
def _count_messages(point: Point) -> tuple[float, float]:
    try:
        patterns = [(build_schedule(part), count) for part, count in sample_parts(point)]
    except UserError:  # the prediction reports it
        return float(point.ranks), 1.0
    messages = sum(count * pattern.messages for pattern, count in patterns)
    return max(messages, 1.0), max(sum(count * len(np.unique(pattern.step)) for pattern, count in patterns), 1.0)
