"""Alternatives of a workload: trees, algorithms and layouts."""

import numpy as np
import pytest

from commodel.advice import alternatives
from commodel.advice.alternatives import (
    HIER_PAIRS,
    NEAR_LAYOUT,
    assess_alternatives,
    count_crossings,
    list_algorithms,
    list_balanced_trees,
    list_layouts,
    list_placed_algorithms,
    list_trees,
    list_two_level_trees,
    make_combination_point,
)
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.build import build_schedule
from commodel.patterns.layouts import place_ranks
from commodel.patterns.operations import list_operations
from commodel.patterns.points import PlatformResources
from commodel.patterns.rank_mapping import make_traffic_graph
from commodel.patterns.trees.topologies import make_tree
from tests.patterns.catalogue import point


@pytest.mark.parametrize(("leaves", "count"), [(2, 0), (12, 7), (128, 63), (97, 0)])
def test_ordered_factorizations(leaves, count):
    """2^7 has 2^6 ordered factorizations including itself, and 12 has eight."""
    assert len(list(list_balanced_trees(leaves))) == count


@pytest.mark.parametrize("leaves", [1, 2, 3, 16, 30, 97, 128])
def test_every_tree_has_the_leaves_and_stands_once(leaves):
    specs = list_trees(leaves, [1.0, 3.7])
    assert all(make_tree(spec).leaves == leaves for spec in specs)
    assert len({make_tree(spec).parent.tobytes() for spec in specs}) == len(specs)
    assert f"flat:{leaves}" in specs


def test_two_levels_are_as_even_as_can_be():
    for spec in list_two_level_trees(128):
        sizes = sorted(make_tree(spec).fanout[1:])
        inner = [size for size in sizes if size]
        assert max(inner) - min(inner) == 1
    assert "groups:12x7,11x4" in list(list_two_level_trees(128))
    # up to half as many inner nodes as leaves
    assert list(list_two_level_trees(7)) == ["groups:4x1,3x1", "groups:3x1,2x2"]


def test_listed_trees_include_the_trees_of_the_tan_paper():
    fanouts = {tuple(sorted(make_tree(spec).fanout)) for spec in list_trees(32)}
    for spec in ("groups:6,6,5,5,5,5", "binomial:6", "kary:2^5", "flat:32"):
        assert tuple(sorted(make_tree(spec).fanout)) in fanouts


@pytest.mark.parametrize("operation", list_operations())
def test_every_algorithm_is_tried_with_arguments_that_work(operation):
    specs = list_algorithms(operation, 12, 100_000, [5])
    flat = [name for name, entry in find_algorithms(operation).items() if not entry.placement]
    assert {spec.partition(":")[0] for spec in specs} == set(flat)
    assert len(set(specs)) == len(specs)
    for spec in specs:
        build_schedule(point(operation, spec, ranks=12, bytes=100_000))


@pytest.mark.parametrize("operation", [name for name in list_operations() if name in HIER_PAIRS])
@pytest.mark.parametrize("size", [8, 1 << 20])
def test_algorithms_that_follow_the_placement_are_tried_where_it_matters(operation, size):
    """They have canonical names and other messages. There are none on one node, or with one rank on
    each."""
    node = np.arange(12) // 4
    specs = list_placed_algorithms(operation, size, node)
    assert len(set(specs)) == len(specs)
    assert (
        {"hier"}
        <= {spec.partition(":")[0] for spec in specs}
        <= {"hier", "lanes", "locality-bruck"}
    )
    size = 0 if operation == "barrier" else size
    patterns = [
        build_schedule(point(operation, spec, ranks=12, bytes=size, layout="block:4"))
        for spec in specs
    ]
    assert len({pattern.encode() for pattern in patterns}) > 0.6 * len(specs)
    assert list_placed_algorithms(operation, size, np.zeros(12, dtype=int)) == []
    assert list_placed_algorithms(operation, size, np.arange(12)) == []
    uneven = list_placed_algorithms(operation, size, np.array([0, 0, 0, 1, 1]))
    assert {spec.partition(":")[0] for spec in uneven} == {"hier"}
    alternating = list_placed_algorithms(operation, size, np.arange(12) % 3)
    assert any(spec.startswith("by-node") for spec in alternating) == (operation != "barrier")


def test_levels_of_the_platform_are_tried():
    levels = [("leaf", (0, 0, 1, 1))]
    specs = list_placed_algorithms("bcast", 8, np.arange(8) // 2, levels)
    assert "hier:leaf@2=binomial" in specs


def test_a_segment_as_long_as_the_message_is_no_choice():
    assert list_algorithms("bcast", 8, 256, []).count("chain:256B") == 0
    assert "chain:256B" in list_algorithms("bcast", 8, 257, [])
    assert "windowed:5" in list_algorithms("gather", 12, 8, [5])


FLAT = PlatformResources("flat", 8, 8)
LEAVES = PlatformResources("leaves", 8, 8, levels=(("leaf", (0, 0, 1, 1, 2, 2, 3, 3)),))
HALO = {
    "operation": "halo:grid=8x8",
    "algorithm": "nonblocking",
    "ranks": 64,
    "bytes": 4096,
    "layout": NEAR_LAYOUT,
}
RING = {
    "operation": "allgather",
    "algorithm": "ring",
    "ranks": 64,
    "bytes": 4096,
    "layout": NEAR_LAYOUT,
}


def test_only_levels_are_a_reason():
    assert list_layouts(FLAT, 64) == ["block", "cyclic"]
    assert list_layouts(LEAVES, 64) == ["block", "cyclic", "scatter:leaf", NEAR_LAYOUT]
    assert NEAR_LAYOUT not in list_layouts(LEAVES, 100_000)
    assert NEAR_LAYOUT not in list_layouts(LEAVES, 0)


def test_a_grid_is_mapped_and_crosses_less():
    point = make_combination_point(LEAVES, HALO, requested=False)
    assert point.layout.startswith("nodes:")
    columns = [np.array(column) for _, column in LEAVES.levels]
    block, node = np.arange(64) // 8, place_ranks(point.layout, 64)
    weights = make_traffic_graph(build_schedule(point))
    assert count_crossings(weights, node, columns) < 0.8 * count_crossings(weights, block, columns)
    assert np.bincount(node).tolist() == [8] * 8


def test_near_layout_of_a_ring_is_omitted_unless_requested():
    assert make_combination_point(LEAVES, RING, requested=False) is None
    assert make_combination_point(LEAVES, RING, requested=True).layout.startswith("nodes:")


@pytest.mark.parametrize("layout", ["block", "scatter:leaf", "pack:leaf:8"])
def test_other_layouts_are_as_always(layout):
    assert make_combination_point(
        LEAVES, RING | {"layout": layout}, requested=False
    ).layout.startswith(layout)


def make_sets(*names):
    values = ["L=2us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns/B"]
    return {name: make_given_set(name, values) for name in names}


def test_long_lists_have_few_streams_and_no_needless_segments(monkeypatch):
    """What remains has the same predictions."""
    sets = make_sets("loggp")
    specs = [f"chain:{size}" for size in (64, 256, 1024, 4096, 16384, 65536)] + ["linear"]
    points = [point("bcast", spec, ranks=16, bytes=1 << 16) for spec in specs]
    patterns = [build_schedule(entry) for entry in points]
    every = assess_alternatives(sets, points, patterns)
    assert every.skipped == ()
    assert every.has_stream.all()
    seconds = every.values("seconds")["loggp"][0]
    best = int(seconds[:6].argmin())
    monkeypatch.setattr(alternatives, "MAX_STREAM_MESSAGES", 100)
    monkeypatch.setattr(alternatives, "MAX_LIMITED_STREAMS", 2)
    limited = assess_alternatives(sets, points, patterns)
    # one size below the best is slower; those below it are not tried
    assert limited.skipped == tuple(reversed(range(best - 1)))
    kept = [number for number in range(len(points)) if number not in limited.skipped]
    assert limited.only(kept).values("seconds")["loggp"][0].tolist() == seconds[kept].tolist()
    assert limited.only(kept).has_stream.sum() == 2
    both = limited.only(kept).values("period")["loggp"]
    known = np.isfinite(both)
    assert both[known].tolist() == every.values("period")["loggp"][kept][known].tolist()
    assert any("times between waves" in note for note in limited.only(kept).describe_streams())
    measured = assess_alternatives(sets, points, patterns, kept=[points[0]])
    assert 0 not in measured.skipped
