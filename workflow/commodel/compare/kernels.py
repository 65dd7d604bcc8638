"""Kernels of a plan: the partitions and nodes of their processes, and iterations that were measured separately."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.errors import UserError
from commodel.patterns.layouts import list_process_kinds, place_ranks
from commodel.patterns.operations import (
    fill_parameters,
    find_base_name,
    find_operation,
    find_required_ranks,
    list_summands,
    parse_parameters,
)
from commodel.patterns.pattern_files import is_pattern_file
from commodel.patterns.rectangles import Rectangles
from commodel.plan.planning import list_named_files
from commodel.records import Plan, Point

COUNTED = ("iteration", "overlapped", "barrier")  # parameters that leave rectangles as they are
ITERATION = "iteration"
MOST_RANKS = 1 << 20


@dataclass(frozen=True, eq=False)
class Partition:
    """The rectangles of one kernel's processes under one layout, on every platform that has them in the plan."""

    kernel: str
    divided: str  # how the square was: a file, or a grid
    layout: str
    platforms: tuple[str, ...]
    tiling: Rectangles
    node: np.ndarray  # of every rank
    kinds: list[str]
    points: tuple[tuple[Point, int], ...]  # each with the iterations that a sample of it is the sum of


def is_kernel(text: str) -> bool:
    try:
        return (
            not is_pattern_file(text) and find_operation(text).tiles is not None and parse_parameters(text) is not None
        )
    except UserError:  # of another version, or unknown
        return False


def read_partitions(plan: Plan) -> tuple[list[Partition], list[str]]:
    """Return the partitions of a plan's points, and a sentence for each that cannot be read; the report is written
    without these."""
    points: dict[tuple, list[Point]] = {}
    for point in plan.points:
        if is_kernel(point.operation):
            points.setdefault((_find_rectangle_parameters(point.operation), point.layout, point.ranks), []).append(
                point
            )
    readable, unread = [], {}
    for (divided, _, _), same in points.items():
        try:
            readable.append(_read_partition(divided, same, plan))
        except UserError as error:
            unread[f"{divided} is not shown: {error.message}."] = None
    return readable, list(unread)


def _find_rectangle_parameters(text: str) -> str:
    """Return the parameters of an operation that name its rectangles."""
    written = [part for part in text.split(":") if part.partition("=")[0].strip() not in COUNTED]
    return ":".join(written)


def _read_partition(text: str, same: list[Point], plan: Plan) -> Partition:
    """Return the partition of a point. Only files that the plan stores are read, and sizes are limited, because the
    plan may come from an untrusted source."""
    first = same[0]
    if unkept := next((path for _, path in list_named_files([first]) if path not in plan.files), None):
        raise UserError(f"the plan does not keep the file '{unkept}'")
    if find_required_ranks(text) not in (None, first.ranks) or first.ranks > MOST_RANKS:
        raise UserError(f"found {first.ranks} ranks, wanted those of the partition, at most {MOST_RANKS}")
    tiling = find_operation(text).tiles(first.ranks, **fill_parameters(text, first.ranks))
    types = plan.platforms[first.platform].types
    return Partition(
        find_base_name(text),
        text.partition(":")[2].removeprefix("partition=") or "even",
        first.layout,
        tuple(dict.fromkeys(point.platform for point in same)),
        tiling,
        place_ranks(first.layout, first.ranks),
        list_process_kinds(first.layout, first.ranks, dict(types)),
        tuple((point, sum(count for _, count in list_summands(point.operation, point.ranks))) for point in same),
    )


def select_iterations(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of single iterations, with the number of each and, in `kernel`, the operation without it."""
    texts = comparison["operation"].unique()
    numbers = {
        text: parse_parameters(text)[ITERATION]
        for text in texts
        if is_kernel(text) and ITERATION in parse_parameters(text)
    }
    rows = comparison[comparison["operation"].isin(list(numbers))]
    kernels = {text: ":".join(part for part in text.split(":") if not part.startswith(ITERATION)) for text in numbers}
    return rows.assign(iteration=rows["operation"].map(numbers), kernel=rows["operation"].map(kernels))
