"""TAN against its paper: the recursion (equation 1) and the pace of a stream (equation 2), on random trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.models.families import complete, family
from commodel.patterns.algorithms import over_tree
from commodel.patterns.trees.tree import Tree
from tests.models.exact import numbers

L, A, B, C2, G, C = 98.0, 49.3, 0.783, 0.157, 3.0, 7.0
NUMBERS = {"L": L, "o.a": A, "o.b": B, "o.c": C2, "g": G, "C": C}
TAN = complete(family("tan"), numbers(NUMBERS, {"o": "quadratic"}))


def o(x):
    return A + B * x + C2 * x**2


def recursion(children, node):
    """T_i = L + o(x+1) + g + max(T_child), T_leaf = C."""
    below = children[node]
    if not below:
        return C
    return L + o(len(below) + 1) + G + max(recursion(children, child) for child in below)


@st.composite
def trees(draw):
    """Parents of nodes 1, 2, …: each comes after its parent."""
    nodes = draw(st.integers(2, 40))
    return [0, *(draw(st.integers(0, node - 1)) for node in range(1, nodes))]


@given(trees())
def test_equations_1_and_2(parents):
    children = {node: [] for node in range(len(parents))}
    for node, parent in list(enumerate(parents))[1:]:
        children[parent].append(node)
    pattern = over_tree("reduce").build(Tree(np.array([-1, *parents[1:]])), 1024)
    cost = pattern.cost(family("tan").price(pattern, TAN))[0]
    assert cost == pytest.approx(recursion(children, 0))
    busiest = max(len(below) for below in children.values())
    assert family("tan").pipelined(pattern, TAN)[0] == pytest.approx(L + o(busiest + 1) + G)
