"""Optimal broadcast trees: as good as any tree there is, as fast as the greedy with a heap, as large as published."""

import heapq
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.patterns.algorithms import over_tree
from commodel.patterns.trees.topologies import tree
from commodel.patterns.trees.topologies.optimal import optimal as soonest
from commodel.patterns.trees.topologies.optimal import reached
from commodel.patterns.trees.tree import Tree
from tests.models.exact import cost as price


def cost(shape: Tree, name: str, **numbers: float) -> float:
    return price(name, over_tree("bcast").build(shape, 1), **numbers)


def slow(nodes: int, latency: Fraction, gap: Fraction) -> Fraction:
    """When the last of so many nodes has the message: each time the earliest arrival that anyone can offer."""
    offers, last = [latency], Fraction(0)
    for _ in range(nodes - 1):
        last = heapq.heappop(offers)
        heapq.heappush(offers, last + gap)  # its parent sends again
        heapq.heappush(offers, last + latency)  # and it starts to
    return last


@pytest.mark.parametrize("numbers", [(6, 2, 4), (0, 1, 3), (10, 0, 1), (1, 3, 2), (5, 1, 0), (2, 0, 7)])
@pytest.mark.parametrize("nodes", [2, 4, 7])
def test_no_tree_is_better_under_logp(numbers, nodes):
    """Every ordered tree of so many nodes, some of them several times."""
    L, o, g = numbers
    all_trees = (Tree(np.array([-1, *parents])) for parents in product(*(range(node) for node in range(1, nodes))))
    best = min(cost(shape, "logp", L=L, o=o, g=g) for shape in all_trees)
    optimal = cost(tree(f"optimal:{L},{o},{g}@{nodes}"), "logp", L=L, o=o, g=g)
    assert optimal == pytest.approx(best)
    assert optimal == pytest.approx(float(slow(nodes, Fraction(L + 2 * o), Fraction(max(g, o)))))


def test_the_published_example():
    """P = 8, L = 6, g = 4, o = 2: done at 24."""
    assert cost(tree("optimal:6,2,4@8"), "logp", L=6, o=2, g=4) == 24


@given(st.integers(1, 400), st.fractions(1, 30, max_denominator=40))
def test_the_price_of_a_postal_tree_is_when_the_greedy_ends(nodes, lam):
    postal = soonest(nodes, lam, Fraction(1))
    assert postal.nodes == nodes
    assert cost(postal, "postal", lam=float(lam), g=1) == pytest.approx(float(slow(nodes, lam, Fraction(1))))


@given(st.integers(2, 200), st.fractions(0, 20, max_denominator=30), st.fractions(0, 20, max_denominator=30))
def test_any_latency_and_gap(nodes, latency, gap):
    latency += Fraction(1, 30)
    optimal = soonest(nodes, latency, gap)
    assert cost(optimal, "logp", L=float(latency), o=0, g=float(gap)) == pytest.approx(float(slow(nodes, latency, gap)))


@pytest.mark.parametrize("lam", [1, 2, 3, 7])
def test_growth_as_published(lam):
    """N_t = N_(t-1) + N_(t-λ); for λ = 2 Fibonacci's numbers."""
    size = [reached(time, lam, 1, 10**9) for time in range(40)]
    assert size[:lam] == [1] * lam
    assert all(size[time] == size[time - 1] + size[time - lam] for time in range(lam, 30))
    if lam == 2:
        assert size[:8] == [1, 1, 2, 3, 5, 8, 13, 21]
    if lam == 1:
        assert sorted(tree("postal:1@64").fanout) == sorted(tree("binomial:6").fanout)


def test_nobody_passes_on_what_takes_too_long():
    assert tree("postal:1000@100").parent.tolist() == tree("flat:99").parent.tolist()
    assert tree("optimal:1us,0,0@10").parent.tolist() == tree("flat:9").parent.tolist()
    assert tree("optimal:1ns,0,1s@10").parent.tolist() == tree("chain:9").parent.tolist()
