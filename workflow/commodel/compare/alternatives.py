"""The fastest measured alternatives: `find_fastest` returns those of each workload and message
size, `find_fastest_trees` the trees among them with their critical paths."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter

import numpy as np
import pandas as pd

from commodel.compare.comparison import (
    is_clearly_faster,
    is_library_default,
    select_measured_points,
)
from commodel.compare.model_ranking import rank_models
from commodel.errors import UserError
from commodel.files.safe_paths import parse_file_path
from commodel.parameters import ParameterSet
from commodel.patterns.trees.drawing import compute_positions, list_walks
from commodel.patterns.trees.topologies import make_tree
from commodel.patterns.trees.tree import Tree
from commodel.predictions.predictions import TimeAttribution, attribute_time
from commodel.records import Plan, Point

WORKLOAD = ["platform", "operation", "placement", "size"]  # a workload over all message sizes
# Workloads with few ranks, or leaves, come first.
ORDER_COLUMNS = ["platform", "operation", "placement", "ranks_or_leaves", "size"]
COLUMNS = [
    *ORDER_COLUMNS,
    "bytes",
    "point",
    "fastest",
    "is_default",
    "measured",
    "second",
    "second_over_fastest",
    "default_over_fastest",
    "slowest_over_fastest",
    "is_clear",
]


def find_fastest(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each workload with at least two measured alternatives: the fastest one, the
    next and its time over the fastest, the slowest, the library default, and the alternatives that
    are statistically tied with the fastest."""
    points = select_measured_points(comparison)
    points = points.assign(
        is_default=is_library_default(points),
        ranks_or_leaves=points["leaves"].where(points["leaves"] > 0, points["ranks"]),
    )
    points = points.sort_values(
        [*ORDER_COLUMNS, "bytes", "measured", "alternative_label"], kind="stable"
    )
    rows = []
    columns = [
        *ORDER_COLUMNS,
        "bytes",
        "point",
        "alternative_label",
        "is_default",
        "library_default",
        "measured",
        "measured_low",
        "measured_high",
    ]
    for key, group in groupby(
        points[columns].to_dict("records"), key=itemgetter(*ORDER_COLUMNS, "bytes")
    ):
        first, *slower = group
        if slower:
            ties = tuple(
                dict.fromkeys(
                    other["alternative_label"]
                    for other in slower
                    if not is_clearly_faster(first, other)
                )
            )
            times = [row["measured"] / first["measured"] for row in (slower[0], slower[-1])]
            fields_of_first = (
                first["point"],
                first["alternative_label"],
                first["is_default"],
                first["measured"],
            )
            fields_of_others = (
                slower[0]["alternative_label"],
                times[0],
                first["library_default"] / first["measured"],
                times[1],
            )
            rows.append((*key, *fields_of_first, *fields_of_others, not ties, ties))
    return pd.DataFrame(rows, columns=[*COLUMNS, "ties"])


def join_sizes(fastest: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each run of neighbouring message sizes of a workload at which the same
    alternative is the fastest."""
    key = [*ORDER_COLUMNS, "fastest"]
    run = (fastest[key] != fastest[key].shift()).any(axis=1).cumsum()
    return fastest.groupby(run).agg(
        **{name: (name, "first") for name in (*key, "is_default")},
        smallest=("bytes", "min"),
        largest=("bytes", "max"),
        second=("second", lambda names: " or ".join(dict.fromkeys(names))),
        second_over_fastest_min=("second_over_fastest", "min"),
        second_over_fastest_max=("second_over_fastest", "max"),
        default_over_fastest_min=("default_over_fastest", "min"),
        default_over_fastest_max=("default_over_fastest", "max"),
        slowest_over_fastest=("slowest_over_fastest", "max"),
        clear_sizes=("is_clear", "sum"),
        sizes=("bytes", "size"),
    )


MAX_DRAWN_NODES = 64  # of a tree in a report
MAX_DRAWN_TREES = 4  # trees of a platform


@dataclass(frozen=True, eq=False)
class PredictedTree:
    """A tree with its measured time and its predicted critical path; `x` and `y` are the
    coordinates of its nodes in a chart."""

    tree: Tree
    attribution: TimeAttribution
    measured: float

    @property
    def names(self) -> Sequence[str]:
        return self.tree.names or [str(node) for node in range(self.tree.nodes)]

    @property
    def x(self) -> np.ndarray:
        return compute_positions(self.tree)

    @property
    def y(self) -> np.ndarray:
        return self.tree.height - self.tree.depth

    def walks(self, messages: Iterable[tuple[int, int, float]] | None = None) -> list[list[int]]:
        """Return the lines of a chart along the edges of some messages, or of all: the nodes of
        each line in order.

        A child has a larger number than its parent.
        """
        all_children = range(1, self.tree.nodes)
        return list_walks(
            self.tree,
            all_children if messages is None else [max(src, dst) for src, dst, _ in messages],
        )


def find_fastest_trees(
    plan: Plan, comparison: pd.DataFrame, sets: Iterable[ParameterSet]
) -> list[PredictedTree]:
    """Return the fastest trees of a platform's largest workloads, at their smallest and largest
    message. The critical path is by the best model that has one."""
    points = {point.id: point for point in plan.points}
    rows = comparison[
        (comparison["topology"] != "") & comparison["measured"].notna() & comparison["held_out"]
    ]
    trees: list[PredictedTree] = []
    for platform, rows_of_platform in rows.groupby("platform"):
        by_model = {
            parameters.model: parameters for parameters in sets if parameters.platform == platform
        }
        families = [
            by_model[name] for name in rank_models(rows_of_platform)["model"] if name in by_model
        ]
        fastest = [
            (points[row.point], row.measured)
            for row in _find_fastest_rows(rows_of_platform)
            if row.point in points
        ]
        drawn = (_predict_tree(point, measured, families) for point, measured in fastest)
        trees += islice(chain.from_iterable(drawn), MAX_DRAWN_TREES)
    return trees


def _find_fastest_rows(points: pd.DataFrame) -> list:
    """Return the rows of the fastest trees of each operation over the most leaves: at the smallest
    and at the largest message. A tree that is the fastest at both has one row."""
    rows = []
    for _, rows_of_operation in points.drop_duplicates("point").groupby("operation"):
        largest = rows_of_operation[
            rows_of_operation["leaves"] == rows_of_operation["leaves"].max()
        ]
        largest = largest.sort_values(["bytes", "measured"], kind="stable")
        smallest_and_largest = largest[
            largest["bytes"].isin([largest["bytes"].min(), largest["bytes"].max()])
        ]
        rows += (
            smallest_and_largest.drop_duplicates("bytes").drop_duplicates("topology").itertuples()
        )
    return rows


def _predict_tree(
    point: Point, measured: float, models: Sequence[ParameterSet]
) -> Iterator[PredictedTree]:
    """Yield the tree with its critical path by the first model that has one. Trees from files,
    streams and large trees are left out."""
    if parse_file_path(point.topology) or point.waves > 1 or point.ranks > MAX_DRAWN_NODES:
        return
    for parameters in models:
        # a topology unknown to this version, or one that the model cannot predict
        with suppress(UserError):
            attribution = attribute_time(point, parameters)
            if attribution is not None:
                yield PredictedTree(make_tree(point.topology), attribution, measured)
                return
