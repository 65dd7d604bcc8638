"""The trees that won, and what their prices wait for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from commodel.compare.ranking import ranked
from commodel.errors import UserError
from commodel.files.project import file_of
from commodel.parameters import ParameterSet
from commodel.patterns.trees.drawing import positions, walks
from commodel.patterns.trees.topologies import tree
from commodel.patterns.trees.tree import Tree
from commodel.price.waits import Waits, waits
from commodel.records import Plan, Point

MOST_NODES = 64  # of a tree in a report
MOST_TREES = 4  # trees of a platform


@dataclass(frozen=True, eq=False)
class PricedTree:
    """A tree, what its price waits for, and what was measured. Of its picture: how far right and how high nodes are."""

    tree: Tree
    waits: Waits
    measured: float

    @property
    def names(self) -> Sequence[str]:
        return self.tree.names or [str(node) for node in range(self.tree.nodes)]

    @property
    def across(self) -> np.ndarray:
        return positions(self.tree)

    @property
    def level(self) -> np.ndarray:
        return self.tree.height - self.tree.depth

    def walks(self, messages: Iterable[tuple[int, int, float]] | None = None) -> list[list[int]]:
        """From node to node along the lines of some messages, or of all: a child has a larger number."""
        every = range(1, self.tree.nodes)
        return walks(self.tree, every if messages is None else [max(src, dst) for src, dst, _ in messages])


def fastest_trees(plan: Plan, comparison: pd.DataFrame, sets: Iterable[ParameterSet]) -> list[PricedTree]:
    """The trees that were the fastest ones of a platform's largest jobs, at their smallest and largest message, priced
    by the best family that tells what it waits for."""
    points = {point.id: point for point in plan.points}
    rows = comparison[(comparison["topology"] != "") & comparison["measured"].notna() & comparison["held_out"]]
    priced = []
    for platform, part in rows.groupby("platform"):
        by_family = {parameters.family: parameters for parameters in sets if parameters.platform == platform}
        families = [by_family[name] for name in ranked(part)["family"] if name in by_family]
        winners = [(points[row.point], row.measured) for row in _winners(part) if row.point in points]
        drawn = [(point, measured, _tree(point)) for point, measured in winners]
        made = (_priced(*winner, families) for winner in drawn if winner[2] is not None)
        priced += [entry for entry in made if entry is not None][:MOST_TREES]
    return priced


def _winners(part: pd.DataFrame) -> list:
    """Rows of the fastest trees of each operation over the most leaves: at the smallest and at the largest message."""
    rows = []
    for _, same in part.drop_duplicates("point").groupby("operation"):
        largest = same[same["leaves"] == same["leaves"].max()].sort_values(["bytes", "measured"], kind="stable")
        ends = largest[largest["bytes"].isin([largest["bytes"].min(), largest["bytes"].max()])]
        rows += ends.drop_duplicates("bytes").drop_duplicates("topology").itertuples()
    return rows


def _tree(point: Point) -> Tree | None:
    """Of a tree that is not a file's and small enough to look at."""
    if file_of(point.topology) or point.waves > 1 or point.ranks > MOST_NODES:
        return None
    try:
        return tree(point.topology)
    except UserError:  # a form of tree that this version does not have
        return None


def _priced(point: Point, measured: float, shape: Tree, families: Sequence[ParameterSet]) -> PricedTree | None:
    for parameters in families:
        try:
            if (waited := waits(point, parameters)) is not None:
                return PricedTree(shape, waited, measured)
        except UserError:  # this family has no price for it
            continue
    return None
