"""Layouts that a platform with levels gives reason to try."""

import numpy as np
import pytest

from commodel.advice.alternatives import NEAR, crossings, layouts_of, point_of
from commodel.patterns.build import schedule
from commodel.patterns.layouts import place
from commodel.patterns.points import Setting
from commodel.patterns.rank_mapping import graph

FLAT = Setting("flat", 8, 8)
LEAVES = Setting("leaves", 8, 8, levels=(("leaf", (0, 0, 1, 1, 2, 2, 3, 3)),))
HALO = {"operation": "halo:grid=8x8", "algorithm": "nonblocking", "ranks": 64, "bytes": 4096, "layout": NEAR}
RING = {"operation": "allgather", "algorithm": "ring", "ranks": 64, "bytes": 4096, "layout": NEAR}


def test_only_levels_are_a_reason():
    assert layouts_of(FLAT, 64) == ["block", "cyclic"]
    assert layouts_of(LEAVES, 64) == ["block", "cyclic", "scatter:leaf", NEAR]
    assert NEAR not in layouts_of(LEAVES, 100_000)
    assert NEAR not in layouts_of(LEAVES, 0)


def test_a_grid_is_mapped_and_crosses_less():
    point = point_of(LEAVES, HALO, asked=False)
    assert point.layout.startswith("nodes:")
    columns = [np.array(column) for _, column in LEAVES.levels]
    block, node = np.arange(64) // 8, place(point.layout, 64)
    weights = graph(schedule(point))
    assert crossings(weights, node, columns) < 0.8 * crossings(weights, block, columns)
    assert np.bincount(node).tolist() == [8] * 8


def test_a_ring_is_best_as_it_is():
    assert point_of(LEAVES, RING, asked=False) is None
    assert point_of(LEAVES, RING, asked=True).layout.startswith("nodes:")


@pytest.mark.parametrize("layout", ["block", "scatter:leaf", "pack:leaf:8"])
def test_other_layouts_are_as_always(layout):
    assert point_of(LEAVES, RING | {"layout": layout}, asked=False).layout.startswith(layout)
