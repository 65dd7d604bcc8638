"""Trees are trees, have the sizes their papers say, and a broken file says where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.topologies import tree
from commodel.treetext import STYLES
from tests.patterns import TREES


@pytest.mark.parametrize(
    ("spec", "nodes", "leaves", "height"),
    [
        ("flat:32", 33, 32, 1),
        ("chain:32", 33, 1, 32),
        ("kary:2^5", 63, 32, 5),
        ("kary:2^7", 255, 128, 7),
        ("balanced:11x12", 144, 132, 2),
        ("binomial:6", 64, 32, 6),
        ("binomial:8", 256, 128, 8),
        ("groups:6,6,5,5,5,5", 39, 32, 2),
        ("groups:12x7,11x4", 140, 128, 2),
    ],
)
def test_sizes_of_the_papers(spec, nodes, leaves, height):
    found = tree(spec)
    assert (found.nodes, found.leaves, found.height) == (nodes, leaves, height)


@pytest.mark.parametrize("spec", TREES)
def test_parents_come_before_children(spec):
    found = tree(spec)
    assert found.parent[0] == -1
    assert np.all(found.parent[1:] < np.arange(1, found.nodes))
    slow = [0] * found.nodes
    for node in range(1, found.nodes):
        slow[node] = slow[found.parent[node]] + 1
    assert found.depth.tolist() == slow


@given(st.integers(1, 8))
def test_binomial_root_has_the_subtrees_of_all_orders(order):
    found = tree(f"binomial:{order}")
    sizes = np.ones(found.nodes, dtype=int)
    for node in range(found.nodes - 1, 0, -1):
        sizes[found.parent[node]] += sizes[node]
    assert sorted(sizes[found.parent == 0].tolist()) == [1 << child for child in range(order)]


@pytest.mark.parametrize("spec", TREES)
def test_mrnet_file_round_trip(spec, tmp_path):
    path = tmp_path / "tree.top"
    path.write_text(STYLES["mrnet"](tree(spec)) + "\n# a comment\n")
    again = tree(f"file:{path}")
    assert sorted(again.fanout.tolist()) == sorted(tree(spec).fanout.tolist())
    assert sorted(again.depth.tolist()) == sorted(tree(spec).depth.tolist())


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a:0 => b:0 ;\nb:0 => a:0 ;\n", 1, "cycle"),
        ("r:0 => a:0 ;\nb:0 => c:0 ;\nc:0 => b:0 ;\n", 2, "cycle"),
        ("a:0 => b:0 ;\nc:0 => b:0 ;\n", 2, "second parent"),
        ("a:0 => b:0 ;\nc:0 => d:0 ;\n", 2, "roots"),
        ("a:0 => b:0\n", 1, "';'"),
        ("a:0 = b:0 ;\n", 1, "wanted"),
        ("\na:0 => $(reboot):0 ;\n", 2, "host:NUMBER"),
        ("", None, "roots"),
    ],
)
def test_a_broken_file_says_where(text, line, word, tmp_path):
    path = tmp_path / "tree.top"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        tree(f"file:{path}")
    message = caught.value.format_message()
    assert word in message
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")


@pytest.mark.parametrize(
    "spec",
    [
        "flat",
        "flat:0",
        "flat:-3",
        "flat:1,2",
        "kary:2",
        "kary:2^40",
        "balanced:4x",
        "binomial:30",
        "groups:3,,2",
        "groups:2x3x4",
        "file:/no/such/file",
        "star:4",
        "flat:99999999",
        "flat:٣",
    ],
)
def test_a_wrong_spec_is_one_line(spec):
    with pytest.raises(UserError) as caught:
        tree(spec)
    assert "\n" not in caught.value.format_message()
