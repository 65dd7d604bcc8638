"""Trees: valid parents, sizes as published, optimality as published; files and drawings of
trees."""

import heapq
import math
import random
import re
import xml.etree.ElementTree as ET
from contextlib import suppress
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.patterns.algorithms import find_tree_algorithm
from commodel.patterns.trees.drawing import compute_positions, draw_tree
from commodel.patterns.trees.files import STYLES, read_tree
from commodel.patterns.trees.topologies import canonicalize_topology, make_tree
from commodel.patterns.trees.topologies.optimal import count_reached, make_optimal_tree
from commodel.patterns.trees.tree import Tree
from commodel.registry import discover
from tests.models.exact import cost as predict
from tests.patterns.catalogue import TREES
from tests.refusals import catch_error_message

NUMBER = st.integers(1, 12)
SPECS = {  # what one may write for every topology
    "flat": st.builds("flat:{}".format, NUMBER),
    "chain": st.builds("chain:{}".format, NUMBER),
    "kary": st.builds("kary:{}^{}".format, st.integers(1, 4), st.integers(1, 4)),
    "balanced": st.lists(st.integers(1, 5), min_size=1, max_size=4).map(
        lambda fans: "balanced:" + "x".join(map(str, fans))
    ),
    "binomial": st.builds("binomial:{}".format, st.integers(1, 8)),
    "groups": st.lists(NUMBER, min_size=1, max_size=6).map(
        lambda sizes: "groups:" + ",".join(map(str, sizes))
    ),
    "knomial": st.builds("knomial:{}@{}".format, st.integers(2, 9), st.integers(1, 300)),
    "generic": st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
        lambda fans: "generic:" + ":".join(map(str, fans))
    ),
    "postal": st.builds(
        "postal:{}@{}".format, st.floats(1, 50).map("{:.6g}".format), st.integers(1, 300)
    ),
    "optimal": st.builds(
        "optimal:{}us,{}us,{}us@{}".format, NUMBER, NUMBER, NUMBER, st.integers(1, 300)
    ),
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
    built = make_tree(spec)
    assert (built.nodes, built.leaves, built.height) == (nodes, leaves, height)


def test_every_topology_is_known_here():
    assert set(discover("patterns.trees.topologies", "TOPOLOGY")) == {*SPECS, "file"}


@given(st.one_of(SPECS.values()))
def test_every_topology_is_a_tree(spec):
    """Each parent has a smaller number than its child, so there is no cycle, and node 0 is the root
    of all nodes."""
    built = make_tree(spec)
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
    """A node sends to its children in order. In postal and optimal trees a later child may be
    deeper by one level."""
    built = make_tree(spec)
    below = np.zeros(built.nodes, dtype=int)
    for node in range(built.nodes - 1, 0, -1):
        below[built.parent[node]] = max(below[built.parent[node]], below[node] + 1)
    for node in range(built.nodes):
        deep = below[built.parent == node]
        assert np.all(deep[1:] <= deep[:-1] + (not spec.startswith(("knomial", "binomial"))))


@pytest.mark.parametrize("order", [1, 5, 10])
def test_two_nomial_is_binomial(order):
    assert (
        make_tree(f"knomial:2@{1 << order}").parent.tolist()
        == make_tree(f"binomial:{order}").parent.tolist()
    )
    assert sorted(np.bincount(make_tree(f"binomial:{order}").depth)) == sorted(
        math.comb(order, k) for k in range(order + 1)
    )


@pytest.mark.parametrize(("base", "digits"), [(3, 4), (5, 3)])
def test_depths_of_a_knomial_tree(base, digits):
    """The number of nodes at depth d is that of `digits`-digit numbers with d nonzero digits."""
    counts = np.bincount(make_tree(f"knomial:{base}@{base**digits}").depth)
    assert counts.tolist() == [math.comb(digits, d) * (base - 1) ** d for d in range(digits + 1)]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("b:2^4", "kary:2^4"),
        ("b:4x3", "balanced:4x3"),
        ("k:3@20", "knomial:3@20"),
        ("g:2:8,4", "generic:2:8,4"),
    ],
)
def test_spellings_of_mrnet(theirs, ours):
    assert canonicalize_topology(theirs) == ours
    assert make_tree(theirs).parent.tolist() == make_tree(ours).parent.tolist()


def test_a_random_tree_is_repeatable_and_mean_depths_are_harmonic_numbers():
    """The expected depth of node n (from 0) is the harmonic number H_n."""
    assert (
        make_tree("random:50@1").parent.tolist()
        == make_tree.__wrapped__("random:50@1").parent.tolist()
    )
    assert make_tree("random:50@1").parent.tolist() != make_tree("random:50@2").parent.tolist()
    depths = np.mean(
        [make_tree.__wrapped__(f"random:200@{seed}").depth for seed in range(300)], axis=0
    )
    wanted = np.concatenate([[0], np.cumsum(1 / np.arange(1, 200))])
    assert np.allclose(depths[1:].mean(), wanted[1:].mean(), rtol=0.02)


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
def test_a_wrong_topology_is_refused_in_one_line(spec):
    catch_error_message(make_tree, spec)


@pytest.mark.parametrize(
    "spec", ["random:5", "random:5@", "random:5@x", "kary:2", "knomial:2", "postal:2", "flat:x"]
)
def test_an_incomplete_tree_spec_is_refused_with_the_expected_form(spec):
    name = spec.partition(":")[0]
    with pytest.raises(
        UserError,
        match=re.escape(f"wanted {discover('patterns.trees.topologies', 'TOPOLOGY')[name].form}"),
    ):
        make_tree(spec)


@given(
    st.sampled_from([*SPECS, "file", "b", "k", "g"]),
    st.text("0123456789@x:,.^eus -/", max_size=7) | st.text(max_size=9),
)
@settings(max_examples=200, deadline=None)
def test_no_text_gives_a_traceback(name, text):
    with suppress(UserError):
        assert make_tree.__wrapped__(f"{name}:{text}").nodes > 0  # not kept: some are large


def cost(shape: Tree, name: str, **numbers: float) -> float:
    return predict(name, find_tree_algorithm("bcast").build(shape, 1), **numbers)


def slow(nodes: int, latency: Fraction, gap: Fraction) -> Fraction:
    """Return when the last node has the message: each node in turn receives at the earliest
    possible time."""
    offers, last = [latency], Fraction(0)
    for _ in range(nodes - 1):
        last = heapq.heappop(offers)
        heapq.heappush(offers, last + gap)  # its parent sends again
        heapq.heappush(offers, last + latency)  # and it starts to
    return last


@pytest.mark.parametrize(
    "numbers", [(6, 2, 4), (0, 1, 3), (10, 0, 1), (1, 3, 2), (5, 1, 0), (2, 0, 7)]
)
@pytest.mark.parametrize("nodes", [2, 4, 7])
def test_no_tree_is_better_under_logp(numbers, nodes):
    """The reference is the best of all ordered trees with this number of nodes."""
    L, o, g = numbers
    all_trees = (
        Tree(np.array([-1, *parents]))
        for parents in product(*(range(node) for node in range(1, nodes)))
    )
    best = min(cost(shape, "logp", L=L, o=o, g=g) for shape in all_trees)
    optimal = cost(make_tree(f"optimal:{L},{o},{g}@{nodes}"), "logp", L=L, o=o, g=g)
    assert optimal == pytest.approx(best)
    assert optimal == pytest.approx(float(slow(nodes, Fraction(L + 2 * o), Fraction(max(g, o)))))


def test_the_optimal_logp_tree_of_the_published_example():
    """With P = 8, L = 6, g = 4 and o = 2, the broadcast takes 24."""
    assert cost(make_tree("optimal:6,2,4@8"), "logp", L=6, o=2, g=4) == 24


@given(st.integers(1, 400), st.fractions(1, 30, max_denominator=40))
def test_the_prediction_of_a_postal_tree_is_the_end_of_the_greedy_broadcast(nodes, lam):
    postal = make_optimal_tree(nodes, lam, Fraction(1))
    assert postal.nodes == nodes
    assert cost(postal, "postal", lam=float(lam), g=1) == pytest.approx(
        float(slow(nodes, lam, Fraction(1)))
    )


@given(
    st.integers(2, 200),
    st.fractions(0, 20, max_denominator=30),
    st.fractions(0, 20, max_denominator=30),
)
def test_optimal_trees_take_the_least_time_at_any_latency_and_gap(nodes, latency, gap):
    latency += Fraction(1, 30)
    optimal = make_optimal_tree(nodes, latency, gap)
    assert cost(optimal, "logp", L=float(latency), o=0, g=float(gap)) == pytest.approx(
        float(slow(nodes, latency, gap))
    )


@pytest.mark.parametrize("lam", [1, 2, 3, 7])
def test_postal_trees_grow_as_published(lam):
    """N_t = N_(t−1) + N_(t−λ). For λ = 2 these are the Fibonacci numbers, for λ = 1 the tree is
    binomial."""
    size = [count_reached(time, lam, 1, 10**9) for time in range(40)]
    assert size[:lam] == [1] * lam
    assert all(size[time] == size[time - 1] + size[time - lam] for time in range(lam, 30))
    if lam == 2:
        assert size[:8] == [1, 1, 2, 3, 5, 8, 13, 21]
    if lam == 1:
        assert sorted(make_tree("postal:1@64").fanout) == sorted(make_tree("binomial:6").fanout)


def test_no_node_forwards_a_message_that_takes_too_long():
    assert make_tree("postal:1000@100").parent.tolist() == make_tree("flat:99").parent.tolist()
    assert make_tree("optimal:1us,0,0@10").parent.tolist() == make_tree("flat:9").parent.tolist()
    assert make_tree("optimal:1ns,0,1s@10").parent.tolist() == make_tree("chain:9").parent.tolist()


def test_a_changed_tree_file_and_another_folder_give_another_tree(tmp_path, monkeypatch):
    """In one process, as in a notebook."""
    for name, text in (("a", "node,parent\n0,\n1,0\n"), ("b", "node,parent\n0,\n1,0\n2,0\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tree.csv").write_text(text)
    found = []
    for name in ("a", "b", "a"):
        monkeypatch.chdir(tmp_path / name)
        found.append(make_tree("file:tree.csv").nodes)
    (tmp_path / "a" / "tree.csv").write_text("node,parent\n0,\n1,0\n2,1\n3,1\n")
    assert [*found, make_tree("file:tree.csv").nodes] == [2, 3, 2, 4]


@pytest.mark.parametrize("spec", TREES)
def test_mrnet_file_round_trip(spec, tmp_path):
    path = tmp_path / "tree.top"
    path.write_text(STYLES["mrnet"](make_tree(spec)) + "\n# a comment\n")
    again = make_tree(f"file:{path}")
    assert sorted(again.fanout.tolist()) == sorted(make_tree(spec).fanout.tolist())
    assert sorted(again.depth.tolist()) == sorted(make_tree(spec).depth.tolist())


@pytest.mark.parametrize("spec", [*TREES, "knomial:3@11", "random:12@4"])
def test_csv_round_trip_in_any_order(spec, tmp_path):
    header, *rows = STYLES["csv"](make_tree(spec)).splitlines()
    random.Random(1).shuffle(rows)
    path = tmp_path / "tree.txt"  # what is in it counts, not what it is called
    path.write_text("\n".join([header, *rows]) + "\n")
    assert read_tree(path).parent.tolist() == make_tree(spec).parent.tolist()


def test_a_csv_tree_may_have_any_numbers_or_names(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("node,parent\n7,10\n10,\n3,10\n8,3\n")
    assert read_tree(path).names == ("10", "3", "7", "8")
    assert read_tree(path).parent.tolist() == [-1, 0, 0, 1]
    path.write_text('"node", "parent"\r\nleaf,top\r\ntop,\r\nother,top\r\n')
    assert read_tree(path).names == ("top", "leaf", "other")


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
        ("node,parent\n0,\n1,0\n1,0\n", 4, "again"),
        ("node,parent\n0,\n1,2\n", 3, "no line of its own"),
        ("node,parent\n0,\n1,0,3\n", 3, "NODE,PARENT"),
        ("node,parent\n0,\n$(id),0\n", 3, "NODE,PARENT"),
        ("node,parent\n0,\n1,\n", 3, "roots"),
        ("node,parent\n0,\n1,2\n2,1\n", 3, "cycle"),
        ("node,parent\n0,1\n1,0\n", 1, "cycle"),
        ("node,parent\n", None, "roots"),
        ("node;parent\n0;\n", 1, "wanted 'host:N"),
    ],
)
def test_a_mistake_in_a_file_is_reported_with_the_line_number(text, line, word, tmp_path):
    path = tmp_path / "tree.txt"
    path.write_text(text)
    found = catch_error_message(read_tree, path)
    assert word in found
    assert found.startswith(f"{path}:{line}: " if line else f"{path}: ")


DRAWN = [*TREES, "random:60@2", "postal:2.5@70"]


@pytest.mark.parametrize("spec", DRAWN)
def test_leaves_are_evenly_spread_and_parents_centred(spec):
    drawn, x = make_tree(spec), compute_positions(make_tree(spec))
    assert sorted(x[drawn.fanout == 0]) == list(range(drawn.leaves))
    for node in np.flatnonzero(drawn.fanout):
        below = x[drawn.parent == node]
        assert np.all(np.diff(below) > 0)  # in the order of sending, no edges crossed
        assert x[node] == (below[0] + below[-1]) / 2
    assert len(set(zip(x, drawn.depth, strict=True))) == drawn.nodes


@pytest.mark.parametrize("spec", DRAWN)
def test_svg_holds_every_node_and_edge(spec):
    drawing = ET.fromstring(draw_tree(make_tree(spec)))
    count = {
        kind: len(drawing.findall(f"{{http://www.w3.org/2000/svg}}{kind}"))
        for kind in ("circle", "line", "text")
    }
    nodes = make_tree(spec).nodes
    assert count == {"circle": nodes, "line": nodes - 1, "text": nodes}


def test_a_tree_is_written_as_indented_text():
    assert STYLES["text"](make_tree("generic:2:2,1")).splitlines() == [
        "0",
        "|- 1",
        "|  |- 3",
        "|  `- 4",
        "`- 2",
        "   `- 5",
    ]


def test_the_summary_of_a_tree():
    text = STYLES["summary"](make_tree("groups:3,1"))
    for line in (
        "nodes: 7",
        "leaves: 4",
        "inner nodes: 3",
        "height: 2",
        "mean fan-out: 2, largest: 3",
        "1 (x1), 2 (x1), 3",
    ):
        assert line in text


@pytest.mark.parametrize("style", [draw_tree, STYLES["text"]])
def test_unreadable_pictures_are_refused(style):
    with pytest.raises(UserError, match="wanted at most 2,000"):
        style(make_tree("flat:2000"))
