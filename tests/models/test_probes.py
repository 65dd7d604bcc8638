"""The pairs of nodes that probes measure, and the schedules of probes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commodel.hierarchy import Hierarchy
from commodel.models.probes import Site, find_probe
from commodel.models.probes.node_pairs import MAX_LARGE_PAIRS_PER_NODE, MAX_PAIRS, sample_pairs
from commodel.models.probes.plans import PROBES


@pytest.mark.parametrize("nodes", [2, 3, 9, 10, 17, 64, 1000, 5000])
def test_a_bounded_sample_of_pairs_contains_every_node_and_the_ring_of_neighbours(nodes):
    pairs = np.array(sample_pairs(nodes, MAX_LARGE_PAIRS_PER_NODE, MAX_PAIRS))
    degree = np.bincount(pairs.ravel(), minlength=nodes)
    assert degree.min() >= 1
    assert degree.max() <= MAX_LARGE_PAIRS_PER_NODE
    assert len(pairs) <= max(MAX_PAIRS, nodes)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    neighbours = {tuple(sorted((node, (node + 1) % nodes))) for node in range(nodes)}
    assert neighbours <= set(map(tuple, pairs.tolist()))


def test_where_levels_are_known_nodes_of_a_group_are_neighbours():
    """Node numbers alternate between leaves. The measured pairs connect all nodes of each leaf."""
    hierarchy = Hierarchy.of({"leaf": [node % 8 for node in range(64)]})
    cases = find_probe("nodepairs").cases("p", Site(64, 1, levels=hierarchy), [8])
    ends = np.array(
        [
            (case.settings["one"], case.settings["two"])
            for case in cases
            if case.settings["bytes"] == 8
        ]
    )
    near = hierarchy.distance(*ends.T) == 1
    assert near.sum() >= 64 - 8
    assert not (np.diff(ends) % 8).ravel()[near].any()


def test_one_rank_requests_and_the_other_replies_while_all_others_wait():
    pattern = find_probe("nodepairs").pattern(
        {"one": 5, "two": 2, "nodes": 9, "trips": 3, "bytes": 8}
    )
    assert (pattern.ranks, pattern.root) == (9, 5)
    assert pattern.src.tolist() == [5, 2] * 3
    assert pattern.dst.tolist() == [2, 5] * 3
    assert pattern.step.tolist() == list(range(6))


@pytest.mark.parametrize(("sizes", "packet"), [([8, 64], 64), ([8, 1 << 16], 1024)])
def test_half_of_a_wave_is_one_way(sizes, packet):
    """TAN assumes that answers are as long as requests: 1 KiB, or the largest size if that is
    smaller."""
    for name in ("chain", "fan"):
        assert {
            case.settings["bytes"] for case in find_probe(name).cases("p", Site(9, 1), sizes)
        } == {packet}
    for case in find_probe("wave").cases("p", Site(9, 1), sizes):
        pattern = find_probe("wave").pattern(case.settings)
        requests, answers = pattern.bytes.reshape(2, -1)
        assert requests.tolist() == answers.tolist() == [packet] * case.settings["n"]


@pytest.mark.parametrize(("procs", "h"), [(2, 3), (5, 1), (5, 9)])
def test_every_rank_of_an_h_relation_sends_and_receives_h_messages_none_to_itself(procs, h):
    pattern = find_probe("hrelation").pattern({"procs": procs, "h": h, "bytes": 8})
    assert np.bincount(pattern.src).tolist() == np.bincount(pattern.dst).tolist() == [h] * procs
    assert (pattern.src != pattern.dst).all()


def test_capacity_groups_send_within_a_node_type_if_the_type_has_enough_nodes():
    site = Site(
        32,
        1,
        types={"fat": 16, "thin": 16},
        levels=Hierarchy.of({"leaf": [node // 8 for node in range(32)]}),
    )
    cases = [
        case
        for case in find_probe("capacity").cases("p", site, [1 << 20])
        if case.settings["how"] == "each"
    ]
    assert len(cases) == 4
    for case in cases:
        assert len({node // 16 for node in case.where}) == 1


def test_capacity_groups_send_to_other_node_types_if_a_type_has_too_few_nodes():
    site = Site(
        16,
        1,
        types={"fat": 8, "thin": 8},
        levels=Hierarchy.of({"leaf": [node // 8 for node in range(16)]}),
    )
    cases = [
        case
        for case in find_probe("capacity").cases("p", site, [1 << 20])
        if case.settings["how"] == "each"
    ]
    assert len(cases) == 2
    assert all(len({node // 8 for node in case.where}) == 2 for case in cases)


@pytest.mark.parametrize("types", [{}, {"fat": 16, "thin": 16}], ids=["equal", "two types"])
def test_the_sizes_that_show_protocol_changes_are_measured_between_nodes_of_every_type(types):
    """A slow port hides changes of latency, so the pair with fast ports needs these sizes,
    whichever type that is."""
    site = Site(
        32, 2, types=types, levels=Hierarchy.of({"leaf": [node // 4 for node in range(32)]})
    )
    largest, dense = 1 << 20, {"node": Counter(), "leaf": Counter(), "beyond": Counter()}
    for case in find_probe("distance").cases("net", site, [largest]):
        if case.settings["bytes"] == 3 * largest // 4:  # only among the closely spaced sizes
            dense[case.settings["apart"]][frozenset(map(site.find_type, case.where))] += 1
    for name, counts in dense.items():
        assert set(counts.values()) == {1}, name
        assert {frozenset([kind]) for kind in types} <= set(counts), name


@given(
    st.integers(1, 6),
    st.integers(0, 4),
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from([[8, 1024], [1024], [0]]),
)
def test_no_probe_places_more_ranks_on_a_node_than_it_has_cores(fat, thin, cores, fewer, sizes):
    types = {"fat": fat, "thin": thin} if thin else {}
    fewer_cores = {"thin": fewer} if thin and fewer < cores else {}
    site = Site(fat + thin, cores, types=types, fewer_cores=fewer_cores)
    assume(site.ranks > 1)
    placements = {
        (case.ranks, case.layout, case.where)
        for probe in PROBES.values()
        for case in probe.cases("net", site, sizes)
    }
    for ranks, layout, where in placements:
        kind, _, per_node = layout.partition(":")
        nodes = list(where) or list(range(site.nodes))
        rank = np.arange(ranks)
        node_of_rank = rank // int(per_node) if kind == "block" else rank % len(nodes)
        for node, count in Counter(node_of_rank.tolist()).items():
            assert count <= site.count_cores(site.find_type(nodes[node])), (ranks, layout, where)
