"""The predictions of an experiment: its shapes, each a point at several sizes (`shapes`), and their division into parts
of about equal cost (`part`). The parts one after the other are all shapes in order."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from commodel.errors import UserError
from commodel.patterns.build import Shape, remove_layout, sample_parts, schedule
from commodel.patterns.operations import ranks_of
from commodel.patterns.points import Setting, make_point, message_size
from commodel.patterns.written import is_written
from commodel.plan.experiments import Experiment
from commodel.plan.matrix import check_size, combinations, place_of
from commodel.predictions.predictions import FEW_WAVES, MANY_WAVES
from commodel.records import Point

SAMPLED = (16, 32)  # ranks of the schedules that an estimate is made from
BUILDING, STEPPING = 3_000, 2_000  # additional cost of a schedule and of a step, in messages


def shapes(experiment: Experiment, setting: Setting) -> list[Shape]:
    """Return every point of the matrix once, by shape, in order of first occurrence; only `setting` limits them."""
    check_size(experiment)
    sizes: dict[Point, dict[int, None]] = {}
    for block in experiment.matrix:
        room = setting.for_block(combination for combination, _ in combinations(block)) if setting.name else setting
        known: dict[tuple, Point] = {}
        for combination, path in combinations(block):
            requested = combination.pop("bytes", None)
            names = tuple(combination.items())
            try:
                if names not in known:
                    known[names] = make_point(room, combination | {"bytes": requested})
                point = known[names]
                size = point.bytes if is_written(point.operation) else message_size(room, point.operation, requested)
            except UserError as error:
                raise block.error(place_of(block, path, error.key), error.found) from None
            sizes.setdefault(replace(point, bytes=0), {})[size] = None
    if not sizes:
        raise experiment.error(("matrix",), "no point is left to predict")
    return [Shape(point, tuple(requested)) for point, requested in sizes.items()]


def part(shapes: Sequence[Shape], number: int, parts: int) -> Sequence[Shape]:
    """Return part `number` of `parts`, from 1: the shapes whose middle lies in that share of the cost. It may be
    empty."""
    weights = np.array([weight(shape) for shape in shapes])
    middle = (np.cumsum(weights) - weights / 2) / weights.sum()
    chosen = np.flatnonzero(np.minimum((middle * parts).astype(int), parts - 1) == number - 1)
    return [shapes[place] for place in chosen]


def weight(shape: Shape) -> float:
    """Return the approximate cost of a shape, in messages predicted; no schedule is built at its full number of
    ranks."""
    ends = {min(shape.sizes), max(shape.sizes)}
    extents = np.array([_extent(replace(remove_layout(shape.point), bytes=size)) for size in ends])
    messages, steps = extents.mean(axis=0)
    times = 1 if shape.point.waves == 1 else 1 + FEW_WAVES + MANY_WAVES  # a period is the difference of predictions
    return len(shape.sizes) * (BUILDING + messages * times) + STEPPING * steps * times


@lru_cache(maxsize=65536)
def _extent(point: Point) -> tuple[float, float]:
    """Return the number of messages and of steps; those of an algorithm are extrapolated from two small numbers of
    ranks."""
    if point.topology:
        return point.ranks - 1.0, 1.0
    if ranks_of(point.operation):
        return _counted(point)
    small = [_counted(remove_layout(point, min(ranks, point.ranks))) for ranks in SAMPLED]
    if point.ranks <= SAMPLED[1]:
        return small[1]
    octaves = np.log2(point.ranks / SAMPLED[1])
    return tuple(larger * (larger / smaller) ** octaves for smaller, larger in zip(*small, strict=True))


@lru_cache(maxsize=65536)
def _counted(point: Point) -> tuple[float, float]:
    try:
        patterns = [(schedule(part), count) for part, count in sample_parts(point)]
    except UserError:  # the prediction reports it
        return float(point.ranks), 1.0
    messages = sum(count * pattern.messages for pattern, count in patterns)
    return max(messages, 1.0), max(sum(count * len(np.unique(pattern.step)) for pattern, count in patterns), 1.0)
