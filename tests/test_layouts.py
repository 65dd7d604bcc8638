"""Layouts place every rank on one node, and no node gets more than it may."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.layouts import parse, place
from commodel.registry import discover


@given(st.sampled_from(sorted(discover("layouts", "LAYOUT"))), st.integers(1, 200), st.integers(1, 20))
def test_nodes_are_filled_within_their_limit(name, ranks, per_node):
    node = place(f"{name}:{per_node}", ranks)
    counts = np.bincount(node)
    assert len(node) == ranks
    assert len(counts) == -(-ranks // per_node)
    assert counts.min() >= 1
    assert counts.max() <= per_node


def test_block_and_cyclic_as_the_readme_says():
    assert place("block:2", 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert place("cyclic:2", 6).tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("spec", ["blok:2", "block:0", "block:-1", "block:two", "cyclic:1.5"])
def test_a_wrong_layout_is_one_line(spec):
    with pytest.raises(UserError):
        parse(spec)
