"""Ranks that send each other much come to sit near each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from commodel.hierarchy import Hierarchy
from commodel.patterns.build import schedule
from commodel.patterns.layouts import place
from commodel.patterns.layouts.regular import write_nodes
from commodel.patterns.points import Setting, make_point
from commodel.patterns.rank_mapping import graph, near


def messages(operation, algorithm, ranks, size=4096):
    point = make_point(
        Setting.unlimited(), {"operation": operation, "algorithm": algorithm, "ranks": ranks, "bytes": size}
    )
    return graph(schedule(point))


def crossing(weights, node, hierarchy=None):
    """What crosses nodes, or what crosses the outermost groups of them."""
    group = node if hierarchy is None else list(hierarchy.groups.values())[-1][node]
    dense = weights.toarray()
    return dense[group[:, None] != group].sum() / 2


def test_a_grid_is_cut_into_tiles():
    """8×8 ranks on four nodes of 16: rows of two cut 3 × 8 pairs, tiles of 4×4 cut 2 × 8."""
    weights = messages("halo:grid=8x8", "nonblocking", 64)
    rows, pair = np.arange(64) // 16, weights.max()
    assert crossing(weights, rows) == pytest.approx(24 * pair)
    assert crossing(weights, near(weights, rows)) == pytest.approx(16 * pair)


def test_shuffled_ranks_find_each_other_again():
    """Of a chain of heavy pairs, whatever the numbers of the ranks are."""
    shuffled = np.random.default_rng(3).permutation(32)
    dense = np.zeros((32, 32))
    for rank, partner in zip(shuffled[0::2], shuffled[1::2], strict=True):
        dense[rank, partner] = dense[partner, rank] = 1.0
    node = near(csr_array(dense), np.arange(32) // 2)
    assert crossing(csr_array(dense), node) == 0


def test_groups_are_cut_before_nodes():
    """Two clusters of ranks that send much within go to the two leaves, though nodes are numbered across them."""
    hierarchy = Hierarchy.of({"leaf": [0, 1, 0, 1]})
    dense = np.full((16, 16), 1.0)
    odd = np.arange(16) % 2 == 1
    dense[odd[:, None] == odd] = 50.0
    np.fill_diagonal(dense, 0)
    node = near(csr_array(dense), np.arange(16) // 4, list(hierarchy.groups.values()))
    assert crossing(csr_array(dense), node, hierarchy) == 64
    assert len({tuple(sorted(set(node[odd]))), tuple(sorted(set(node[~odd])))} & {(0, 2), (1, 3)}) == 2


@pytest.mark.parametrize(
    ("operation", "algorithm", "ranks"),
    [
        ("bcast", "binomial", 64),
        ("allgather", "ring", 48),
        ("alltoall", "pairwise", 16),
        ("halo:grid=16x16", "shift", 256),
    ],
)
def test_it_is_never_worse_than_block(operation, algorithm, ranks):
    weights, slots = messages(operation, algorithm, ranks), np.arange(ranks) // 8
    assert crossing(weights, near(weights, slots)) <= crossing(weights, slots) * (1 + 1e-9)


@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_every_rank_gets_one_of_the_slots(ranks, per_node, seed):
    rng = np.random.default_rng(seed)
    dense = rng.random((ranks, ranks)) * (rng.random((ranks, ranks)) < 0.2)
    slots = np.arange(ranks) // per_node
    column = rng.integers(0, 3, slots.max() + 1)
    node = near(csr_array(dense + dense.T), slots, [column])
    assert np.bincount(node).tolist() == np.bincount(slots).tolist()
    assert place(write_nodes(node), ranks).tolist() == node.tolist()
