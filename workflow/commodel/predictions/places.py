"""The places of points: properties of a workload and of its alternative that make errors of
predictions alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from commodel.hierarchy import Hierarchy, describe_levels_crossed
from commodel.models import Array
from commodel.patterns.algorithms import find_segment
from commodel.patterns.layouts import place_ranks
from commodel.patterns.operations import find_base_name
from commodel.records import COMPLETE_AT_ROOT, ROOTED_OPERATIONS, Point, Statistic

if TYPE_CHECKING:
    import pandas as pd

STREAM = "stream of "
ONE_NODE, SEVERAL_NODES = "within one node", "between nodes"
WORKLOAD = "workload"
SETTING = "setting"
# The setting of points that are predicted for no named one: not one of those that were measured.
NEW_SETTING = "\0new"
ALLREDUCE = "allreduce"


def find_operation_class(
    operation: str, waves: float = 1, statistic: Statistic = Statistic.COMPLETION
) -> str:
    """Return the name under which errors of an operation are collected. Streams of waves have one
    of their own, and so has each statistic of a rooted operation: the mean over its ranks says
    little about its completion."""
    name = find_base_name(operation)
    completions = (
        (Statistic.COMPLETION,)
        if name in COMPLETE_AT_ROOT
        else (Statistic.COMPLETION, Statistic.LAST_RANK)
    )
    if name in ROOTED_OPERATIONS and statistic not in completions:
        return f"{statistic} of {name}"
    return f"{STREAM if waves != 1 else ''}{name}"


def name_placement(nodes: float) -> str:
    """Return the description of the messages of ranks on this number of nodes."""
    return SEVERAL_NODES if nodes > 1 else ONE_NODE


def name_in_setting(workload: str, setting: str) -> str:
    """Return the name of a workload in a setting, whose alternatives are compared with each other
    alone."""
    return f"{workload} in {setting}" if setting else workload


def number_labels(labels: np.ndarray) -> np.ndarray:
    """Return a number for each label; equal labels have equal numbers."""
    return np.unique(labels, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Places:
    """The places of some points."""

    operation: np.ndarray  # as `find_operation_class` returns it
    alternative: np.ndarray
    workload: np.ndarray
    levels_crossed: np.ndarray  # as in `Point.reach`; empty: unknown
    setting: np.ndarray  # such as a job or a library; empty: without a name
    doublings: Array  # (points, 3): logarithms to base 2 of bytes, nodes, and ranks of a node

    @classmethod
    def of_rows(cls, rows: pd.DataFrame) -> Places:
        """Return the places of the rows of a comparison. A workload that was measured in several
        settings is one."""
        names = zip(rows["operation"], rows["waves"], strict=True)
        operation = np.array(
            [find_operation_class(name, waves) for name, waves in names], dtype=str
        )
        alternative, levels_crossed = (
            rows[name].to_numpy(str) for name in ("alternative", "levels_crossed")
        )
        workload = rows["workload"].to_numpy(str)
        setting = np.full(len(rows), "")
        if "setting" in rows:
            setting = rows["setting"].to_numpy(str)
            suffixes = [name_in_setting("", name) for name in setting.tolist()]
            in_settings = zip(workload.tolist(), suffixes, strict=True)
            workload = np.array(
                [name.removesuffix(suffix) for name, suffix in in_settings], dtype=str
            )
        ranks = rows["leaves"].where(rows["leaves"] > 0, rows["ranks"]).to_numpy(float)
        nodes = rows["nodes"].where(rows["nodes"] > 0, ranks).to_numpy(float)
        doublings = measure_doublings(rows["bytes"].to_numpy(float), nodes, ranks)
        return cls(
            operation=operation,
            alternative=alternative,
            workload=workload,
            levels_crossed=levels_crossed,
            setting=setting,
            doublings=doublings,
        )

    @classmethod
    def of_points(cls, points: Sequence[Point], setting: np.ndarray | str = NEW_SETTING) -> Places:
        """Return the places of points. Unless their setting is given, it was not measured."""
        names = [
            (
                find_operation_class(point.operation, point.waves, point.statistic),
                point.alternative,
                point.workload,
                point.reach,
            )
            for point in points
        ]
        amounts = [(point.bytes, point.nodes, point.leaves or point.ranks) for point in points]
        size, nodes, ranks = np.array(amounts, dtype=float).reshape(-1, 3).T
        operation, alternative, workload, levels_crossed = (
            np.array(names, dtype=str).reshape(-1, 4).T
        )
        return cls(
            operation=operation,
            alternative=alternative,
            workload=workload,
            levels_crossed=levels_crossed,
            setting=np.broadcast_to(np.array(setting, dtype=str), len(points)),
            doublings=measure_doublings(size, nodes, ranks),
        )

    @classmethod
    def of_sizes(
        cls, point: Point, sizes: Iterable[float], waves: float | None = None, levels: object = None
    ) -> Places:
        """Return the places of a point at several sizes, with another number of waves if given.
        `levels` are those of the parameter set. They are needed for a point without a platform."""
        reach = point.reach
        if levels and not reach:
            hierarchy = Hierarchy.of(levels)
            node = place_ranks(point.layout, point.ranks)
            reach = (
                hierarchy.levels_crossed(node)
                if hierarchy.nodes and node.max() < hierarchy.nodes
                else ""
            )
        size = np.array(list(sizes), dtype=float)
        one = cls.of_points([replace(point, waves=1, bytes=0)]).only(np.zeros(len(size), dtype=int))
        operation = find_operation_class(
            point.operation, point.waves if waves is None else waves, point.statistic
        )
        doublings = np.column_stack([np.log2(np.maximum(size, 1.0)), one.doublings[:, 1:]])
        names = np.full(len(size), operation), np.full(len(size), reach)
        return replace(one, operation=names[0], levels_crossed=names[1], doublings=doublings)

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def size(self) -> Array:
        """The doublings of the sizes; 0 without payload."""
        return self.doublings[:, 0]

    @property
    def ranks(self) -> Array:
        """The doublings of the numbers of ranks."""
        return self.doublings[:, 1] + self.doublings[:, 2]

    @property
    def on_one_node(self) -> np.ndarray:
        """Flags of the points whose ranks are all on one node."""
        return self.doublings[:, 1] == 0

    @cached_property
    def has_settings(self) -> bool:
        """Whether the settings of the points differ."""
        return len(np.unique(self.setting)) > 1

    @cached_property
    def setting_of_operation(self) -> np.ndarray:
        """The settings with the operations: those of one operation tell nothing of others."""
        return np.char.add(np.char.add(self.operation, " in "), self.setting)

    @cached_property
    def algorithm(self) -> np.ndarray:
        """The alternatives with their operations."""
        return np.char.add(np.char.add(self.operation, " "), self.alternative)

    @cached_property
    def stem(self) -> np.ndarray:
        """The same without arguments: `chain` of `chain:4`."""
        names = [name.partition(":")[0] for name in self.algorithm.tolist()]
        return np.array(names, dtype=str)

    @cached_property
    def segment(self) -> Array:
        """The doublings of the bytes of a segment; infinite without segments."""
        names = zip(self.operation.tolist(), self.alternative.tolist(), strict=True)
        segments = [
            find_segment(operation.rpartition(" of ")[2], alternative) or math.inf
            for operation, alternative in names
        ]
        return np.log2(segments)

    @cached_property
    def segments(self) -> Array:
        """The doublings of the numbers of segments of a message; 0 without segments."""
        # The segmented ring cuts the share of each rank.
        is_share = np.char.endswith(self.operation, ALLREDUCE)
        return np.maximum(self.size - is_share * self.ranks - self.segment, 0.0)

    def labels(self) -> dict[str, np.ndarray]:
        """Return the labels by which points are left out in turn."""
        nodes_and_ranks = self.doublings[:, 1].round(6) + 1j * self.doublings[:, 2].round(6)
        names = {WORKLOAD: self.workload, "operation": self.operation, "algorithm": self.algorithm}
        names |= {"size": self.size, "place": nodes_and_ranks}
        return names | ({SETTING: self.setting} if self.has_settings else {})

    def only(self, flags: np.ndarray) -> Places:
        """Return some of the points."""
        return Places(*(getattr(self, entry.name)[flags] for entry in fields(self)))

    def join(self, other: Places) -> Places:
        """Return the points of both."""
        columns = (
            (getattr(self, entry.name), getattr(other, entry.name)) for entry in fields(self)
        )
        return Places(*map(np.concatenate, columns))

    def select_evenly(self, max_points: int) -> np.ndarray:
        """Return flags of the points of evenly spread workloads, about `max_points`; of all if
        there are fewer."""
        if len(self) <= max_points:
            return np.ones(len(self), dtype=bool)
        workloads = np.array(list(dict.fromkeys(self.workload.tolist())))
        numbers = np.linspace(
            0, len(workloads) - 1, max(len(workloads) * max_points // len(self), 1)
        ).astype(int)
        return np.isin(self.workload, workloads[numbers])

    def describe_distance(self, number: int) -> str:
        """Return the description of the distance of a point's messages."""
        levels_crossed = str(self.levels_crossed[number])
        if levels_crossed:
            return describe_levels_crossed(levels_crossed)
        return ONE_NODE if self.on_one_node[number] else SEVERAL_NODES


def measure_doublings(size: Array, nodes: Array, ranks: Array) -> Array:
    """Return the logarithms to base 2 of bytes, nodes, and ranks of a node, each at least 0."""
    return np.log2(np.maximum(np.stack([size, nodes, ranks / nodes], axis=1), 1.0))
