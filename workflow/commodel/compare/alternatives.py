"""Alternatives of a workload, ranked by the combined prediction, and trees among them.

Which alternative the measurements favour, job by job and over which sizes.

The trees that won, and what their prices wait for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import pandas as pd

from commodel.compare.comparison import clearly_faster, is_library, measured_once
from commodel.compare.model_ranking import ranked
from commodel.errors import UserError
from commodel.files.safe_paths import file_of
from commodel.parameters import ParameterSet
from commodel.patterns.trees.drawing import positions, walks
from commodel.patterns.trees.topologies import tree
from commodel.patterns.trees.tree import Tree
from commodel.predictions.predictions import Waits, waits
from commodel.records import Plan, Point

ALTERNATIVE = ["bytes", "way", "own", "library", "measured", "measured_low", "measured_high"]  # of an alternative
JOB = ["platform", "operation", "place", "size"]  # alternatives for one job, over all byte sizes
ORDERED = ["platform", "operation", "place", "count", "size"]  # jobs: those of few ranks, or leaves, before larger ones

NOTHING = {"use": "", "own": False, "smallest": 0, "largest": 0, "next": [], "next_own": False, "clear": 0}
NOTHING |= {name: [1.0] for name in ("gains", "slowest", "over")}


def _counted(comparison: pd.DataFrame) -> pd.DataFrame:
    """Each measured point once, with how many ranks or leaves its job has."""
    once = measured_once(comparison)
    return once.assign(own=is_library(once), count=once["leaves"].where(once["leaves"] > 0, once["ranks"]))


def favoured(comparison: pd.DataFrame) -> pd.DataFrame:
    """The fastest measured alternative of every job, neighbouring byte sizes with the same winner taken together, and
    how much slower the library's own choice is; `own` where that is the winner."""
    once = _counted(comparison).sort_values([*ORDERED, "bytes", "measured", "way"], kind="stable")
    rows = []
    for job, entries in groupby(once[[*ORDERED, *ALTERNATIVE]].to_dict("records"), key=itemgetter(*ORDERED)):
        run: dict = {}
        for size, group in groupby(entries, key=itemgetter("bytes")):
            first, *others = group
            if not others:
                continue
            second = others[0]
            if run.get("use") != first["way"]:
                run = NOTHING | {name: [] for name in ("next", "gains", "slowest", "over")}
                run |= {"use": first["way"], "own": first["own"], "smallest": size, "next_own": True}
                rows.append(dict(zip(ORDERED, job, strict=True)) | {"run": run})
            run["largest"] = size
            run["next"].append(second["way"])
            run["next_own"] &= second["own"]
            run["over"].append(first["library"] / first["measured"])
            run["gains"].append(second["measured"] / first["measured"])
            run["slowest"].append(others[-1]["measured"] / first["measured"])
            run["clear"] += clearly_faster(first, second)
    return pd.DataFrame([finish(row) for row in rows], columns=[*ORDERED, *finish({})])


def finish(row: dict) -> dict:
    """One run of sizes as plain columns. Without a run: their names."""
    run = row.pop("run", NOTHING)
    return row | {
        "use": run["use"],
        "own": run["own"],
        "smallest": run["smallest"],
        "largest": run["largest"],
        "next": " or ".join(dict.fromkeys(run["next"])),
        "next_own": run["next_own"],
        "gain_low": min(run["gains"]),
        "gain_high": max(run["gains"]),
        "over_low": min(run["over"]),
        "over_high": max(run["over"]),
        "slowest": max(run["slowest"]),
        "clear": run["clear"],
        "sizes": len(run["gains"]),
    }


FASTEST = ["operation", "place", "size", "count", "bytes", "point", "use", "own", "measured", "next", "gain", "over"]
FASTEST += ["ties"]


def fastest(comparison: pd.DataFrame) -> pd.DataFrame:
    """One row a job and size with two measured alternatives or more: the fastest one, the next, how much slower that
    is and the library's own choice, and which others cannot be told apart from the fastest."""
    keys = ["operation", "place", "size", "count", "bytes"]
    once = _counted(comparison).sort_values([*keys, "measured", "way"], kind="stable")
    rows = []
    for key, group in groupby(once[[*keys, *ALTERNATIVE[1:], "point"]].to_dict("records"), key=itemgetter(*keys)):
        first, *others = group
        if not others:
            continue
        second = others[0]
        ties = tuple(dict.fromkeys(other["way"] for other in others if not clearly_faster(first, other)))
        figures = (first["measured"], second["way"], second["measured"] / first["measured"])
        over = first["library"] / first["measured"]
        rows.append((*key, first["point"], first["way"], first["own"], *figures, over, ties))
    return pd.DataFrame(rows, columns=FASTEST)


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
