"""Trees are trees, have the sizes their papers say, and a broken file says where."""

import math
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.patterns.trees.topologies import own_spelling, tree
from commodel.registry import discover

NUMBER = st.integers(1, 12)
SPECS = {  # what one may write for every topology
    "flat": st.builds("flat:{}".format, NUMBER),
    "chain": st.builds("chain:{}".format, NUMBER),
    "kary": st.builds("kary:{}^{}".format, st.integers(1, 4), st.integers(1, 4)),
    "balanced": st.lists(st.integers(1, 5), min_size=1, max_size=4).map(
        lambda fans: "balanced:" + "x".join(map(str, fans))
    ),
    "binomial": st.builds("binomial:{}".format, st.integers(1, 8)),
    "groups": st.lists(NUMBER, min_size=1, max_size=6).map(lambda sizes: "groups:" + ",".join(map(str, sizes))),
    "knomial": st.builds("knomial:{}@{}".format, st.integers(2, 9), st.integers(1, 300)),
    "generic": st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
        lambda fans: "generic:" + ":".join(map(str, fans))
    ),
    "postal": st.builds("postal:{}@{}".format, st.floats(1, 50).map("{:.6g}".format), st.integers(1, 300)),
    "optimal": st.builds("optimal:{}us,{}us,{}us@{}".format, NUMBER, NUMBER, NUMBER, st.integers(1, 300)),
    "random": st.builds("random:{}@{}".format, st.integers(1, 300), st.integers(0, 9)),
}


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
        ("generic:2:8,4", 15, 12, 2),  # the example of MRNet's user guide
        ("generic:11:12,12,12,12,12,12,12,11,11,11,11", 140, 128, 2),
        ("knomial:3@27", 27, 18, 3),
        ("knomial:4@64", 64, 48, 3),
        ("postal:2@21", 21, 13, 3),  # Fibonacci's numbers
        ("optimal:6us,2us,4us@8", 8, 5, 2),  # the figure of Karp, Sahay, Santos and Schauser
    ],
)
def test_sizes_of_the_papers(spec, nodes, leaves, height):
    built = tree(spec)
    assert (built.nodes, built.leaves, built.height) == (nodes, leaves, height)


def test_every_topology_is_known_here():
    assert set(discover("patterns.trees.topologies", "TOPOLOGY")) == {*SPECS, "file"}


@given(st.one_of(SPECS.values()))
def test_every_topology_is_a_tree(spec):
    """Parents before children, so there is no cycle, and all hang together under node 0."""
    built = tree(spec)
    assert built.parent[0] == -1
    if "@" in spec and not spec.startswith("random"):
        assert built.nodes == int(spec.rpartition("@")[2])
    parents = set(built.parent[1:].tolist())
    assert built.leaves == (built.nodes - len(parents) if built.nodes > 1 else 0)
    assert built.fanout.sum() == built.nodes - 1
    assert np.all(built.parent[1:] < np.arange(1, built.nodes))
    slow = [0] * built.nodes
    for node in range(1, built.nodes):
        slow[node] = slow[built.parent[node]] + 1
    assert built.depth.tolist() == slow


@given(st.sampled_from(["knomial", "postal", "optimal", "binomial"]).flatmap(SPECS.get))
def test_the_first_child_has_the_deepest_subtree(spec):
    """Children are sent to in their order; in the last moment of a postal tree one leaf does not matter."""
    built = tree(spec)
    below = np.zeros(built.nodes, dtype=int)
    for node in range(built.nodes - 1, 0, -1):
        below[built.parent[node]] = max(below[built.parent[node]], below[node] + 1)
    for node in range(built.nodes):
        deep = below[built.parent == node]
        assert np.all(deep[1:] <= deep[:-1] + (not spec.startswith(("knomial", "binomial"))))


@pytest.mark.parametrize("order", [1, 5, 10])
def test_two_nomial_is_binomial(order):
    assert tree(f"knomial:2@{1 << order}").parent.tolist() == tree(f"binomial:{order}").parent.tolist()
    assert sorted(np.bincount(tree(f"binomial:{order}").depth)) == sorted(math.comb(order, k) for k in range(order + 1))


@pytest.mark.parametrize(("base", "digits"), [(3, 4), (5, 3)])
def test_depths_of_a_knomial_tree(base, digits):
    """As many nodes are d deep as numbers of so many digits have d that are not 0."""
    counts = np.bincount(tree(f"knomial:{base}@{base**digits}").depth)
    assert counts.tolist() == [math.comb(digits, d) * (base - 1) ** d for d in range(digits + 1)]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("b:2^4", "kary:2^4"), ("b:4x3", "balanced:4x3"), ("k:3@20", "knomial:3@20"), ("g:2:8,4", "generic:2:8,4")],
)
def test_spellings_of_mrnet(theirs, ours):
    assert own_spelling(theirs) == ours
    assert tree(theirs).parent.tolist() == tree(ours).parent.tolist()


def test_a_random_tree_is_repeatable_and_its_depths_are_those_of_theory():
    """The expected depth of node n (from 0) is the harmonic number H_n."""
    assert tree("random:50@1").parent.tolist() == tree.__wrapped__("random:50@1").parent.tolist()
    assert tree("random:50@1").parent.tolist() != tree("random:50@2").parent.tolist()
    depths = np.mean([tree.__wrapped__(f"random:200@{seed}").depth for seed in range(300)], axis=0)
    wanted = np.concatenate([[0], np.cumsum(1 / np.arange(1, 200))])
    assert np.allclose(depths[1:].mean(), wanted[1:].mean(), rtol=0.02)


@given(st.integers(1, 8))
def test_binomial_root_has_the_subtrees_of_all_orders(order):
    built = tree(f"binomial:{order}")
    sizes = np.ones(built.nodes, dtype=int)
    for node in range(built.nodes - 1, 0, -1):
        sizes[built.parent[node]] += sizes[node]
    assert sorted(sizes[built.parent == 0].tolist()) == [1 << child for child in range(order)]


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
        "file:a\0b",
        "star:4",
        "flat:99999999",
        "flat:٣",
        "knomial:1@4",
        "knomial:2",
        "knomial:2@0",
        "knomial:2@99999999",
        "generic:2:1,2,3",
        "generic:0",
        "generic:2:",
        "postal:0.5@4",
        "postal:2",
        "optimal:1us,2us@4",
        "optimal:0,0,1us@4",
        "optimal:6,2us,4@8",
        "optimal:1us,2m,1us@4",
        "optimal:0,1ns,1s@1000000",
        "random:5",
        "random:5@-1",
        "b:2",
        "k:2",
    ],
)
def test_a_wrong_spec_is_one_line(spec):
    with pytest.raises(UserError) as caught:
        tree(spec)
    assert "\n" not in caught.value.format_message()


@pytest.mark.parametrize("spec", ["random:5", "random:5@", "random:5@x", "kary:2", "knomial:2", "postal:2", "flat:x"])
def test_a_spec_that_lacks_a_part_is_told_its_form(spec):
    name = spec.partition(":")[0]
    with pytest.raises(
        UserError, match=re.escape(f"wanted {discover('patterns.trees.topologies', 'TOPOLOGY')[name].form}")
    ):
        tree(spec)


@given(
    st.sampled_from([*SPECS, "file", "b", "k", "g"]),
    st.text("0123456789@x:,.^eus -/", max_size=7) | st.text(max_size=9),
)
@settings(max_examples=200, deadline=None)
def test_no_text_gives_a_traceback(name, text):
    with suppress(UserError):
        assert tree.__wrapped__(f"{name}:{text}").nodes > 0  # not kept: some are large
