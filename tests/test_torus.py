"""Tori: routes by a walk from link to link, and the torus detected from latencies of pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.hierarchy import Hierarchy
from commodel.torus import Torus, find_torus

SHAPES = (
    st.lists(st.integers(2, 6), min_size=1, max_size=4)
    .filter(lambda shape: np.prod(shape) <= 120)
    .map(tuple)
)


def list_neighbours(shape):
    """Return the neighbours of each node, from coordinates."""
    points = [()]
    for length in reversed(shape):
        points = [(at, *point) for point in points for at in range(length)]
    number = {point: node for node, point in enumerate(points)}
    return [
        {
            number[(*point[:at], (point[at] + step) % length, *point[at + 1 :])]
            for at, length in enumerate(shape)
            for step in (1, -1)
        }
        for point in points
    ]


@settings(max_examples=60)
@given(SHAPES)
def test_torus_routes_reach_the_target_in_the_fewest_hops(shape):
    torus, neighbours = Torus(shape), list_neighbours(shape)
    nodes = len(neighbours)
    distance = np.full((nodes, nodes), -1)
    for node in range(nodes):  # breadth first
        reached, hops = {node}, 0
        while reached:
            distance[node, list(reached)] = hops
            reached = {
                other for near in reached for other in neighbours[near] if distance[node, other] < 0
            }
            hops += 1
    src, dst = (ends.ravel() for ends in np.indices((nodes, nodes)))
    place, passed = src.copy(), np.zeros(len(src), dtype=int)
    for rows, link in torus.list_links(src, dst):
        opposite = torus.find_opposite(link)
        beyond = opposite // (2 * len(shape))
        assert (link // (2 * len(shape)) == place[rows]).all()
        assert all(
            other in neighbours[node] for node, other in zip(place[rows], beyond, strict=True)
        )
        assert (torus.find_opposite(opposite) == link).all() or 2 in shape
        place[rows], passed[rows] = beyond, passed[rows] + 1
    assert (place == dst).all()
    assert (passed == torus.count_hops(src, dst)).all()
    assert (passed == distance[src, dst]).all()
    assert torus.max_hops == distance.max()


def all_pairs(nodes):
    return np.array(list(combinations(range(nodes), 2)))


@pytest.mark.parametrize("shape", [(8, 8), (4, 4, 4), (4, 3, 4), (24,), (2, 2, 2, 2), (12, 2)])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_latencies_that_grow_with_hops_show_the_torus(shape, noise):
    pairs = all_pairs(int(np.prod(shape)))
    latency = 1e-6 + 2e-6 * Torus(shape).count_hops(*pairs.T)
    noisy = latency * np.exp(np.random.default_rng(1).normal(0, noise, len(pairs)))
    assert find_torus(pairs, noisy, int(np.prod(shape))).shape == shape


def test_other_networks_are_no_tori():
    rng = np.random.default_rng(2)
    for nodes in (12, 16, 64):
        pairs = all_pairs(nodes)
        levels = Hierarchy.written({"leaf": 4}, nodes)
        for latency in (
            np.full(len(pairs), 5e-6),
            2e-6 * levels.distance(*pairs.T),
            5e-6 * np.exp(rng.normal(0, 0.3, len(pairs))),
            # a row of nodes, without a link from its end to its begin
            1e-6 * np.abs(np.diff(pairs, axis=1)).ravel(),
            1e-6 + 1e-7 * Torus((nodes,)).count_hops(*pairs.T) / nodes,  # hardly differs
        ):
            assert find_torus(pairs, latency, nodes) is None
    # too few hops
    assert find_torus(all_pairs(4), np.array([1.0, 2, 1, 1, 2, 1]) * 1e-6, 4) is None


def test_the_latency_of_a_shuffled_torus_shows_none():
    pairs, order = all_pairs(64), np.random.default_rng(3).permutation(64)
    assert find_torus(pairs, 1e-6 * Torus((8, 8)).count_hops(*order[pairs].T), 64) is None
