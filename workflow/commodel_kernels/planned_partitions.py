"""Partitions of the kernels in a plan, with the node of each process, and iterations that were
measured separately."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.patterns.layouts import list_process_kinds, place_ranks
from commodel.patterns.operations import (
    find_base_name,
    find_operation,
    find_required_ranks,
    list_summands,
    parse_parameters,
)
from commodel.patterns.pattern_files import is_pattern_file
from commodel.plan.planning import list_named_files
from commodel.records import Plan, Point
from commodel_kernels.rectangles import Rectangles
from commodel_kernels.tilings import Kernel, make_tiles

# they do not change the rectangles
NON_PARTITION_PARAMETERS = ("iteration", "overlapped", "barrier")
ITERATION = "iteration"
MAX_RANKS = 1 << 20


@dataclass(frozen=True, eq=False)
class PlannedPartition:
    """The rectangles of one kernel's processes under one layout, on every platform that has them in
    the plan."""

    kernel: str
    division: str  # of the square into rectangles: a partition file, or a grid
    layout: str
    platforms: tuple[str, ...]
    tiling: Rectangles
    node: np.ndarray  # by rank
    kinds: list[str]  # of processor, by rank
    points: tuple[tuple[Point, int], ...]  # with the number of iterations in one sample


def is_kernel(text: str) -> bool:
    try:
        return (
            not is_pattern_file(text)
            and isinstance(find_operation(text), Kernel)
            and parse_parameters(text) is not None
        )
    except UserError:  # unknown operation, for example of another version
        return False


def read_partitions(plan: Plan) -> tuple[list[PlannedPartition], list[str]]:
    """Return the partitions of a plan's points, and a sentence for each that cannot be read. A
    report is written without the unreadable ones."""
    points: dict[tuple[str, str, int], list[Point]] = {}
    for point in plan.points:
        if is_kernel(point.operation):
            key = (_find_rectangle_parameters(point.operation), point.layout, point.ranks)
            points.setdefault(key, []).append(point)
    readable: list[PlannedPartition] = []
    unreadable: dict[str, None] = {}
    for (text, _, _), points_of_partition in points.items():
        try:
            readable.append(_read_partition(text, points_of_partition, plan))
        except UserError as error:
            unreadable[f"{text} is not shown: {error.message}."] = None
    return readable, list(unreadable)


def _find_rectangle_parameters(text: str) -> str:
    """Return the parameters of an operation that name its rectangles."""
    parts = [
        part
        for part in text.split(":")
        if part.partition("=")[0].strip() not in NON_PARTITION_PARAMETERS
    ]
    return ":".join(parts)


def _read_partition(text: str, points_of_partition: list[Point], plan: Plan) -> PlannedPartition:
    """Return the partition of a point. Only files that the plan stores are read, and sizes are
    limited, because the plan may come from an untrusted source."""
    first = points_of_partition[0]
    missing_file = next(
        (path for _, path in list_named_files([first]) if path not in plan.files), None
    )
    if missing_file:
        raise UserError(f"the plan has no copy of the file '{missing_file}'")
    if find_required_ranks(text) not in (None, first.ranks) or first.ranks > MAX_RANKS:
        raise UserError(
            f"found {first.ranks} ranks, wanted as many as the partition has, at most {MAX_RANKS}"
        )
    tiling = make_tiles(text, first.ranks)
    types = plan.platforms[first.platform].types
    return PlannedPartition(
        find_base_name(text),
        text.partition(":")[2].removeprefix("partition=") or "even",
        first.layout,
        tuple(dict.fromkeys(point.platform for point in points_of_partition)),
        tiling,
        place_ranks(first.layout, first.ranks),
        list_process_kinds(first.layout, first.ranks, dict(types)),
        tuple(
            (point, sum(count for _, count in list_summands(point.operation, point.ranks)))
            for point in points_of_partition
        ),
    )


def select_iterations(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of single iterations, with columns `iteration` (its number) and `kernel` (the
    operation without that parameter)."""
    kernel_texts = filter(is_kernel, comparison["operation"].unique())
    parameters = {text: parse_parameters(text) for text in kernel_texts}
    numbers = {
        text: values[ITERATION] for text, values in parameters.items() if ITERATION in values
    }
    rows = comparison[comparison["operation"].isin(list(numbers))]
    kernels = {
        text: ":".join(part for part in text.split(":") if not part.startswith(ITERATION))
        for text in numbers
    }
    return rows.assign(
        iteration=rows["operation"].map(numbers), kernel=rows["operation"].map(kernels)
    )
