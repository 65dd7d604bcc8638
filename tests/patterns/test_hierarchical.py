"""Algorithms that follow the placement of ranks: they deliver the data of the operation on any
layout, and send as few bytes between nodes as their stages say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.patterns.algorithms import Algorithm
from commodel.patterns.build import build_schedule, find_fan_ins
from commodel.patterns.layouts.regular import make_nodes_spec
from commodel.patterns.point_digests import add_digests
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import KINDS, NETWORK
from commodel.plan.message_lengths import find_longest_lengths
from commodel.records import COMPLETE_AT_ROOT
from tests.patterns.catalogue import ENTRIES, point
from tests.patterns.dataflow import Replay, finishes_with_synchronous_sends
from tests.patterns.test_algorithms import find_informing_ranks
from tests.refusals import catch_error_message

PLACED = sorted(
    (entry.operation, entry.short_name)
    for entry in ENTRIES.values()
    if isinstance(entry, Algorithm) and entry.placement
)
VARIANTS = {
    ("bcast", "hier"): (
        "inter=chain:3:intra=linear",
        "leaders=2:inter=scatter-allgather:intra=knomial:3",
        "segment=5:inter=binary:2",
        "leaders=3:segment=4",
        "rack@2=linear:intra=linear",
        "row@4=chain:2:rack@2=linear:leaders=2",
    ),
    ("reduce", "hier"): (
        "inter=rabenseifner:intra=linear",
        "leaders=2:inter=chain:3",
        "leaders=2:intra=in-order:3",
        "segment=5",
        "leaders=3:segment=4",
        "rack@2=linear",
    ),
    ("allreduce", "hier"): (
        "inter=ring:intra=linear",
        "inter=rabenseifner:intra=chain:4+knomial:3",
        "inter=binomial+chain:3",
        "inter=binomial+binomial:segment=6",
        "segment=7:intra=linear",
        "leaders=2",
        "leaders=4:inter=ring",
        "leaders=2:intra=in-order:3+linear",
        "leaders=2:segment=4:inter=binomial+binomial",
        "row@4=linear:rack@2=binomial:inter=rabenseifner",
        "inter=lanes",
    ),
    ("allgather", "hier"): (
        "inter=bruck:intra=linear",
        "inter=recursive-doubling",
        "inter=neighbor-exchange:intra=linear-sync:2+scatter-allgather",
        "leaders=2",
        "rack@2=linear",
        "leaders=2:inter=lanes",
    ),
    ("alltoall", "hier"): (
        "inter=bruck:intra=binomial",
        "inter=linear",
        "leaders=2",
        "rack@2=linear",
        "leaders=2:inter=hier",
        "leaders=2:inter=lanes(inter=linear,intra=linear)",
    ),
    ("barrier", "hier"): ("inter=linear", "inter=n-way:2:intra=binomial", "rack@2=linear"),
    ("gather", "hier"): ("inter=linear:intra=windowed:1", "inter=linear-sync:2", "rack@2=linear"),
    ("scatter", "hier"): ("inter=linear:intra=windowed:1", "rack@2=linear"),
    ("reduce-scatter", "hier"): (
        "inter=pairwise:intra=linear",
        "inter=recursive-halving:intra=rabenseifner+linear",
        "rack@2=linear",
    ),
    ("allreduce", "lanes"): ("inter=ring:intra=ring", "inter=rabenseifner:intra=pairwise+bruck"),
    ("alltoall", "lanes"): ("inter=bruck:intra=linear", "leaders=2"),
    ("bcast", "lanes"): ("inter=chain:3:intra=linear+recursive-doubling",),
    ("reduce", "lanes"): ("inter=chain:3:intra=ring+linear",),
    ("allgather", "lanes"): ("inter=bruck:intra=recursive-doubling",),
    ("allgather", "locality-bruck"): ("ring", "recursive-doubling"),
    ("reduce-scatter", "lanes"): ("inter=recursive-halving:intra=pairwise",),
}
BY_NODE = {
    "allgather": ("ring", "bruck"),
    "allreduce": ("ring", "rabenseifner"),
    "alltoall": ("pairwise", "bruck", "linear"),
    "bcast": ("chain:3", "scatter-allgather"),
    "gather": ("binomial", "linear-sync:2"),
    "reduce": ("chain:3", "rabenseifner"),
    "reduce-scatter": ("ring", "recursive-halving"),
    "scatter": ("binomial",),
}


def spellings(operation, name):
    if name == "by-node":
        return [f"by-node:{choice}" for choice in BY_NODE[operation]]
    return [name, *(f"{name}:{text}" for text in VARIANTS[operation, name])]


SPECS = [(operation, spec) for operation, name in PLACED for spec in spellings(operation, name)]


LANES_NEED = "wanted the same number of ranks"


def needs_equal_nodes(spec):
    return "lanes" in spec or "locality-bruck" in spec


@st.composite
def layouts(draw, equal, max_ranks):
    """Return the node of each rank, in any order: any, or the same number of ranks on each node."""
    if not equal:
        return np.array(draw(st.lists(st.integers(0, 5), min_size=2, max_size=max_ranks)))
    nodes = draw(st.integers(1, 5))
    each = draw(st.integers(2 if nodes == 1 else 1, max_ranks // nodes))
    return np.array(draw(st.permutations(np.repeat(np.arange(nodes), each).tolist())))


def place(operation, spec, node, size):
    return build_schedule(
        point(operation, spec, ranks=len(node), bytes=size, layout=make_nodes_spec(node))
    )


def build_or_refuse(operation, spec, node, size):
    """Return the schedule, or None if lanes do not fit the nodes."""
    try:
        return place(operation, spec, node, size)
    except UserError as error:
        if not needs_equal_nodes(spec) or LANES_NEED not in error.message:
            raise
        return None


@pytest.mark.parametrize(("operation", "spec"), SPECS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_placement_gets_exactly_the_data_of_the_operation(operation, spec, data):
    """Ranks send only data that they have, combine no operand twice, end with the data of the
    operation, and do not wait for each other."""
    max_ranks = 9 if operation == "alltoall" else 17
    node = data.draw(layouts(needs_equal_nodes(spec), max_ranks), label="node")
    size = 0 if operation == "barrier" else data.draw(st.integers(0, 40), label="bytes")
    pattern = build_or_refuse(operation, spec, node, size)
    if pattern is None:
        return
    assert np.array_equal(pattern.node, node)
    assert np.all(pattern.src != pattern.dst)
    Replay(pattern, operation, size).check()
    assert finishes_with_synchronous_sends(pattern)
    assert pattern.root == (0 if operation in COMPLETE_AT_ROOT else None)


@pytest.mark.parametrize("spec", [spec for operation, spec in SPECS if operation == "barrier"])
@given(node=layouts(False, 17))
@settings(max_examples=25, deadline=None)
def test_no_rank_leaves_a_barrier_before_all_have_entered(spec, node):
    heard_of = find_informing_ranks(place("barrier", spec, node, 0))
    assert all(known == set(range(len(node))) for known in heard_of)


def send_between_nodes(pattern):
    """Return the messages and the bytes between nodes."""
    crosses = pattern.channel == NETWORK
    return int(crosses.sum()), int(pattern.bytes[crosses].sum())


@pytest.mark.parametrize("layout", ["block:4", "cyclic:4"])
def test_data_cross_the_network_once(layout):
    """Between 6 nodes of 4 ranks, with one leader a node or in lanes."""
    nodes, each, size = 6, 4, 1200
    ranks = nodes * each
    others = nodes - 1

    def cross(operation, spec):
        return send_between_nodes(
            build_schedule(point(operation, spec, ranks=ranks, bytes=size, layout=layout))
        )

    assert cross("bcast", "hier") == (others, others * size)
    assert cross("reduce", "hier:intra=linear") == (others, others * size)
    assert cross("bcast", "hier:segment=400") == (3 * others, others * size)
    assert cross("bcast", "lanes") == (each * others, others * size)
    assert cross("allreduce", "hier:inter=ring") == (2 * nodes * others, 2 * others * size)
    assert cross("allreduce", "lanes:inter=ring") == (2 * ranks * others, 2 * others * size)
    assert cross("allgather", "hier") == (nodes * others, nodes * others * each * size)
    assert cross("allgather", "lanes") == (ranks * others, nodes * others * each * size)
    # Of 4 ranks, 3 receive from a node each; then one receives the data of the last 2 nodes.
    bruck = (nodes * (3 + 1), nodes * others * each * size)
    assert cross("allgather", "locality-bruck") == bruck
    assert cross("gather", "hier:inter=linear") == (others, others * each * size)
    assert cross("scatter", "hier:inter=linear") == (others, others * each * size)
    assert cross("reduce-scatter", "hier") == (nodes * others, others * size)
    every_pair = nodes * others * each**2 * size
    assert cross("alltoall", "hier") == (nodes * others, every_pair)
    assert cross("alltoall", "hier:leaders=2") == (2 * nodes * 2 * others, every_pair)
    assert cross("alltoall", "lanes") == (ranks * others, every_pair)
    assert cross("alltoall", "hier:inter=lanes:leaders=2") == (2 * nodes * others, every_pair)
    assert cross("allgather", "by-node:ring") == (nodes * (ranks - 1), nodes * (ranks - 1) * size)
    assert cross("barrier", "hier") == (3 * nodes, 0)


def test_leaders_follow_the_levels_of_the_platform():
    """8 nodes of 2 ranks, with 2 nodes in a rack and 4 in a row."""
    levels = (("rack", (0, 0, 1, 1, 2, 2, 3, 3)), ("row", (0, 0, 0, 0, 1, 1, 1, 1)))
    resources = PlatformResources("p", 8, 2, levels=levels)
    wanted = {
        "operation": "bcast",
        "algorithm": "hier:rack=linear:row=linear",
        "ranks": 16,
        "bytes": 8,
        "layout": "block:2",
    }
    placed = make_point(resources, wanted)
    assert placed.algorithm == "hier:row@4=linear:rack@2=linear"
    pattern = build_schedule(placed)
    first = pattern.step == 0
    assert pattern.dst[first].tolist() == [8]  # the other row's leader
    assert pattern.dst[pattern.step == 1].tolist() == [4, 12]  # of the other racks
    assert sorted(pattern.dst[pattern.step == 2].tolist()) == [2, 6, 10, 14]
    assert make_point(resources, wanted | {"algorithm": placed.algorithm}) == placed


def test_uneven_groups_of_a_level_are_listed():
    levels = (("rack", (0, 0, 1, 1, 1)),)
    resources = PlatformResources("p", 5, 2, levels=levels)
    wanted = {"operation": "bcast", "algorithm": "hier:rack=linear", "ranks": 10, "bytes": 8}
    placed = make_point(resources, wanted)
    assert placed.algorithm == "hier:rack@0-1/2-4=linear"
    assert make_point(resources, wanted | {"algorithm": placed.algorithm}) == placed


@pytest.mark.parametrize(
    ("operation", "spec", "own"),
    [
        ("bcast", "hier(inter=chain:64KiB, intra=linear)", "hier:inter=chain:64KiB:intra=linear"),
        ("bcast", "hier(intra=binomial,inter=pipeline)", "hier:inter=chain"),
        ("bcast", "hier:beyond=linear:node=linear", "hier:inter=linear:intra=linear"),
        ("bcast", "hier:inter=binomial", "hier"),
        ("bcast", "hier:leaders=1:segment=65536", "hier:segment=64KiB"),
        ("allreduce", "hier:inter=binomial+chain:8KiB", "hier:inter=binomial+chain:8KiB"),
        ("allreduce", "hier:intra=linear+binomial", "hier:intra=linear+binomial"),
        ("allreduce", "lanes(intra=ring+ring)", "lanes:intra=ring"),
        ("allgather", "by_node:ring", "by-node:ring"),
        ("alltoall", "hier:inter=lanes:leaders=2", "hier:inter=lanes:leaders=2"),
        (
            "alltoall",
            "hier(leaders=2,inter=lanes(inter=linear, intra=bruck))",
            "hier:inter=lanes(inter=linear,intra=bruck):leaders=2",
        ),
        ("allreduce", "hier:inter=by-node:ring", "hier:inter=by-node:ring"),
        ("alltoall", "by-node:hier(inter=linear)", "by-node:hier:inter=linear"),
    ],
)
def test_spellings_of_an_algorithm_have_one_canonical_form(operation, spec, own):
    wanted = {"operation": operation, "ranks": 8, "bytes": 8, "layout": "block:2"}
    resources = PlatformResources.unlimited()
    assert make_point(resources, wanted | {"algorithm": spec}).algorithm == own
    assert make_point(resources, wanted | {"algorithm": own}).algorithm == own


@pytest.mark.parametrize(
    ("operation", "spec", "text"),
    [
        ("bcast", "hier:inter=rng", "inter=rng: no algorithm 'rng' for bcast"),
        ("bcast", "hier:linear", "found 'linear', wanted inter=binomial"),
        ("bcast", "hier:inter=linear:inter=chain", "found inter twice"),
        ("bcast", "hier:intra=linear+chain", "wanted one algorithm of bcast"),
        ("bcast", "hier:leaf=linear", "wanted inter or intra, or a platform"),
        ("bcast", "hier:leaders=0", "wanted leaders=N"),
        ("bcast", "lanes:leaf=linear", "found 'leaf', wanted inter="),
        ("allreduce", "hier:intra=rabenseifner", "wanted intra=UP+DOWN"),
        ("allreduce", "hier:segment=0", "at least 1 byte"),
        ("gather", "hier:leaders=2", "found 'leaders'"),
        ("allgather", "by-node", "found no argument"),
        ("allgather", "by-node:rng", "no algorithm 'rng'"),
        (
            "allgather",
            "locality-bruck:intra=ring",
            "found 'intra=ring', wanted an algorithm within nodes: bruck, neighbor-exchange, ",
        ),
        ("allgather", "locality-bruck:hier", "found 'hier', wanted an algorithm within nodes"),
    ],
)
def test_wrong_parts_are_refused_in_one_line(operation, spec, text):
    wanted = {"operation": operation, "ranks": 8, "bytes": 8, "algorithm": spec}
    message = catch_error_message(lambda: make_point(PlatformResources.unlimited(), wanted))
    assert text in message


def test_lanes_are_refused_where_nodes_differ():
    wanted = {"operation": "alltoall", "ranks": 10, "bytes": 8, "layout": "block:4"}
    message = catch_error_message(
        lambda: make_point(PlatformResources.unlimited(), wanted | {"algorithm": "lanes"})
    )
    assert f"{LANES_NEED} on every node; found 2 to 4" in message
    without_layout = point("alltoall", "lanes", ranks=8, layout="")
    assert "wanted a layout" in catch_error_message(lambda: build_schedule(without_layout))


def test_leaders_copy_what_they_reorder():
    """An alltoall through leaders reorders before and after the exchange; an allgather only if
    ranks are not in the order of their nodes."""

    def copied(operation, spec, layout):
        pattern = build_schedule(point(operation, spec, ranks=8, bytes=10, layout=layout))
        rows = pattern.work.kind == KINDS.index("copy")
        return np.bincount(pattern.work.rank[rows], pattern.work.bytes[rows], minlength=8).tolist()

    assert copied("alltoall", "hier", "block:4") == [640, 0, 0, 0, 640, 0, 0, 0]
    assert copied("alltoall", "lanes", "block:4") == [80] * 8
    assert copied("alltoall", "lanes", "cyclic:4") == [160] * 8
    assert copied("allgather", "hier", "block:4") == [0] * 8
    assert copied("allgather", "hier", "cyclic:4") == [80, 80, 0, 0, 0, 0, 0, 0]


def test_ids_depend_on_the_placement_and_the_parts():
    specs = ("hier", "hier:intra=linear", "hier:leaders=2", "lanes", "by-node:ring")
    layouts_of_points = ("block:4", "cyclic:4")
    points = [
        point("allreduce", spec, ranks=16, bytes=size, layout=layout)
        for spec in specs
        for layout in layouts_of_points
        for size in (8, 1 << 20)
    ]
    with_digests = add_digests(points)
    assert len({entry.pattern for entry in with_digests}) == len(points)
    assert add_digests(points) == with_digests


def test_an_id_of_many_ranks_is_computed_from_few(monkeypatch):
    chosen = point("alltoall", "lanes", ranks=1 << 14, bytes=1 << 20, layout="block:64")
    before = add_digests([chosen])[0].pattern
    assert before == add_digests([replace(chosen, platform="p")])[0].pattern


def test_fan_in_and_probe_sizes_follow_the_placement():
    linear = [point("gather", "hier:intra=linear", ranks=16, layout=f"block:{q}") for q in (2, 8)]
    assert list(find_fan_ins(linear).values()) == [1, 7]
    exchanged = point("alltoall", "hier", ranks=16, bytes=1 << 14, layout="block:8")
    # a leader exchanges the blocks of all pairs of ranks of two nodes, and copies all its data
    lengths = find_longest_lengths([exchanged], 1, ["sent", "copy"])
    assert lengths == {"sent": 1 << 20, "copy": 1 << 21}
