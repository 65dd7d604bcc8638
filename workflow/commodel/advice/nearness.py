"""Layouts that advice looks at where nobody says which, and `near`, which is made for each pattern, so that ranks that
send each other much are near each other."""

from collections.abc import Mapping, Sequence

import numpy as np

from commodel.patterns.build import schedule
from commodel.patterns.layouts import place
from commodel.patterns.layouts.nodes import written
from commodel.patterns.mapping import graph, near
from commodel.patterns.points import Setting, make_point
from commodel.records import Point

NEAR = "near"
MOST_RANKS = 256  # ranks that are mapped where nobody asked for it
LESS = 0.99  # of what crosses levels under the same layout without it: then it is worth a look


def layouts_of(setting: Setting, ranks: int) -> list[str]:
    """What to try where nobody says: over levels, ranks that are far apart on purpose, and near ones."""
    levels = [f"scatter:{setting.levels[0][0]}"] if setting.levels else []
    return ["block", "cyclic", *levels, *([NEAR] if setting.levels and 0 < ranks <= MOST_RANKS else [])]


def point_of(setting: Setting, combination: Mapping[str, object], asked: bool) -> Point | None:
    """The point of a combination, whose layout may be `near`; None where that gains nothing and nobody asked for it."""
    if combination["layout"] != NEAR:
        return make_point(setting, combination)
    block = make_point(setting, {**combination, "layout": "block"})
    weights, slots = graph(schedule(block)), place(block.layout, block.ranks)
    columns = [np.asarray(column) for _, column in setting.levels]
    node = near(weights, slots, columns)
    gain = crossings(weights, node, columns) <= LESS * crossings(weights, slots, columns)
    return make_point(setting, {**combination, "layout": written(node)}) if gain or asked else None


def crossings(weights, node: np.ndarray, columns: Sequence[np.ndarray]) -> float:
    """What is sent between ranks, times the levels that it crosses."""
    pairs = weights.tocoo()
    ends = node[pairs.row], node[pairs.col]
    crossed = (ends[0] != ends[1]).astype(float)
    for column in columns:
        crossed += column[ends[0]] != column[ends[1]]
    return float((pairs.data * crossed).sum())
