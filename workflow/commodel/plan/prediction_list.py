"""The predictions of an experiment: its shapes (`list_shapes`). A shape is a point at several
sizes."""

from collections.abc import Mapping
from dataclasses import replace

from commodel.errors import UserError
from commodel.patterns.build import Shape
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.points import PlatformResources, find_message_size, make_point
from commodel.plan.experiments import Experiment
from commodel.plan.matrix import check_size, list_combinations, locate_axis
from commodel.records import Point


def list_shapes(
    experiment: Experiment, resources: PlatformResources | Mapping[str, PlatformResources]
) -> list[Shape]:
    """Return the shapes of all points of the matrix, in order of first occurrence.

    A point that needs more nodes or cores than `resources` has is an error. If `resources` maps
    platforms to resources, blocks of the matrix for other platforms are skipped, and nodes are
    added if a block needs more (`extended`).
    """
    check_size(experiment)
    sizes: dict[Point, dict[int, None]] = {}
    for block in experiment.matrix:
        if isinstance(resources, Mapping):
            name = experiment.block_platform(block)
            if name not in resources:
                continue
            block_resources = resources[name].for_block(
                combination for combination, _ in list_combinations(block)
            )
            block_resources = block_resources.extended(block_resources.spread)
        elif resources.name:
            block_resources = resources.for_block(
                combination for combination, _ in list_combinations(block)
            )
        else:
            block_resources = resources
        named_points: dict[tuple, Point] = {}
        for combination, path in list_combinations(block):
            bytes = combination.pop("bytes", None)
            names = tuple(combination.items())
            try:
                if names not in named_points:
                    named_points[names] = make_point(
                        block_resources, combination | {"bytes": bytes}
                    )
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
