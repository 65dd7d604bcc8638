"""The network of an allocation: distance classes, groups and slow nodes are learned from synthetic
times."""

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.compare.network import (
    format_levels,
    learn_distances,
    make_networks,
    tabulate_distance_classes,
)
from commodel.errors import UserError
from commodel.files.atomic import read_json, write_json
from commodel.hierarchy import Hierarchy
from commodel.models.probes.node_pairs import MAX_PAIRS
from commodel.reports.sections.network import (
    describe_mixed_classes,
    describe_network,
    list_node_rows,
    make_sections,
)
from commodel.torus import Torus
from tests.compare.pairs import TIMES, summary

# s by class, at 8 B and 256 KiB
CLASS_TIMES = np.array([[1.2e-6, 2.2e-5], [1.6e-6, 2.3e-5], [2.6e-6, 4.0e-5]])


def all_pairs(nodes):
    return np.array([(low, high) for low in range(nodes) for high in range(low + 1, nodes)])


def measured(pairs, hierarchy, noise=0.02, seed=1, slow=None, times=CLASS_TIMES):
    """Return times of the pairs of a network, and their noise. `slow` has the factors of slow
    nodes, for both sizes."""
    rng = np.random.default_rng(seed)
    seconds = times[hierarchy.distance(*pairs.T) - 1]
    for node, factors in (slow or {}).items():
        seconds = np.where((pairs == node).any(axis=1)[:, None], seconds * factors, seconds)
    return seconds * np.exp(rng.normal(0, noise, seconds.shape)), np.full(
        seconds.shape, 1.96 * noise
    )


def leaves(nodes, size):
    return Hierarchy.of({"leaf": [node // size for node in range(nodes)]})


def test_one_switch_is_one_class():
    pairs = all_pairs(8)
    distances = learn_distances(pairs, *measured(pairs, Hierarchy.of({"leaf": [0] * 8})), 8)
    assert distances.classes == 1
    assert not distances.class_of_pair.any()
    assert not distances.hierarchy.groups
    assert distances.slow == distances.slow_pairs == ()


@pytest.mark.parametrize(
    "column", [[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 0, 1, 2, 0, 1], [0, 0, 1, 1, 1, 1, 1, 1]]
)
def test_two_classes_are_learned_for_any_numbering_of_nodes(column):
    pairs, hierarchy = all_pairs(8), Hierarchy.of({"leaf": column})
    distances = learn_distances(pairs, *measured(pairs, hierarchy), 8)
    assert distances.classes == 2
    assert (distances.class_of_pair == hierarchy.distance(*pairs.T) - 1).all()
    assert distances.hierarchy.group_lists == {"leaf": column}


def test_three_classes_are_two_levels():
    hierarchy = Hierarchy.of(
        {"leaf": [node // 3 for node in range(12)], "group": [node // 6 for node in range(12)]}
    )
    pairs = all_pairs(12)
    distances = learn_distances(pairs, *measured(pairs, hierarchy), 12)
    assert distances.hierarchy.group_lists == hierarchy.group_lists
    assert (distances.class_of_pair == hierarchy.distance(*pairs.T) - 1).all()


@pytest.mark.parametrize("factors", [(1.0, 10.0), (1.5, 1.0), (3.0, 3.0)])
@pytest.mark.parametrize("column", [[0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]])
def test_a_node_with_a_slow_cable_is_reported_and_forms_no_class(factors, column):
    """The slow node stays in its group."""
    hierarchy, pairs = Hierarchy.of({"leaf": column}), all_pairs(8)
    distances = learn_distances(pairs, *measured(pairs, hierarchy, slow={5: factors}), 8)
    assert distances.slow == (5,)
    assert distances.classes == len(set(column))
    if len(set(column)) > 1:
        assert distances.hierarchy.group_lists == {"leaf": column}
    assert ((distances.class_of_pair == -1) == (pairs == 5).any(axis=1)).all()


def test_two_slow_nodes_of_sixteen_are_both_reported():
    pairs = all_pairs(16)
    distances = learn_distances(
        pairs, *measured(pairs, leaves(16, 4), slow={3: (1.0, 8.0), 9: (2.0, 1.0)}), 16
    )
    assert distances.slow == (3, 9)
    assert distances.hierarchy.group_lists == leaves(16, 4).group_lists


def test_two_groups_of_two_nodes_are_a_level_not_slow_nodes():
    pairs = all_pairs(4)
    distances = learn_distances(pairs, *measured(pairs, leaves(4, 2)), 4)
    assert distances.slow == ()
    assert distances.hierarchy.group_lists == {"leaf": [0, 0, 1, 1]}


def test_a_single_slow_pair_is_reported_and_forms_no_class():
    pairs = all_pairs(8)
    times, noise = measured(pairs, Hierarchy.of({"leaf": [0] * 8}))
    times[11] *= 4
    distances = learn_distances(pairs, times, noise, 8)
    assert distances.slow_pairs == (11,)
    assert distances.classes == 1


def test_classes_that_differ_by_less_than_the_noise_are_one_class():
    pairs = all_pairs(8)
    times, noise = measured(
        pairs, leaves(8, 4), noise=0.15, times=np.array([[1e-6, 1e-5], [1.2e-6, 1.2e-5]])
    )
    assert learn_distances(pairs, times, noise, 8).classes == 1


def test_the_class_of_a_ring_with_slow_hops_is_mixed():
    pairs = all_pairs(9)
    hops = np.minimum((pairs[:, 1] - pairs[:, 0]) % 9, (pairs[:, 0] - pairs[:, 1]) % 9)
    times = np.array([[1e-6, 1e-5]]) * 1.5 ** hops[:, None]
    assert learn_distances(pairs, times, np.full(times.shape, 1e-3), 9).mixed_classes


@pytest.mark.parametrize(
    ("shape", "slow"),
    [((9,), {}), ((4, 4), {}), ((4, 4), {5: (1.0, 4.0)}), ((4, 3, 4), {5: (1.0, 4.0)})],
)
def test_a_torus_has_no_groups_and_is_described_by_the_time_per_hop(shape, slow):
    torus = Torus(shape)
    pairs = all_pairs(torus.nodes)
    times = np.array([[1e-6, 0.0]]) * torus.count_hops(*pairs.T)[:, None] + [1e-6, 1e-5]
    for node, factors in slow.items():
        times[(pairs == node).any(axis=1)] *= factors
    distances = learn_distances(pairs, times, np.full(times.shape, 1e-3), torus.nodes)
    assert (distances.torus, distances.classes, distances.mixed_classes) == (torus, 1, ())
    assert distances.slow == tuple(slow)
    rows, number = (
        summary(Hierarchy(), torus.nodes),
        {tuple(pair): row for row, pair in enumerate(pairs.tolist())},
    )
    for row, text in rows["settings"].items():
        case = dict(word.split("=") for word in text.split())
        seconds = times[number[int(case["one"]), int(case["two"])], int(int(case["bytes"]) > 8)]
        rows.loc[row, ["median", "low", "high"]] = (
            2 * int(case["trips"]) * seconds * np.array([1, 0.99, 1.01])
        )
    (network,) = make_networks(rows, {})
    hops = torus.max_hops
    assert describe_network(network)[-1] == (
        f"Nodes form a {torus}: 2.00 µs to a neighbour, {1 + hops}.00 µs over {hops} hops."
    )
    assert make_sections([network])[0]


@pytest.mark.parametrize("seed", range(5))
def test_random_differences_between_nodes_or_pairs_form_one_mixed_class(seed):
    """Each node or each pair has a random factor. These factors form no levels."""
    rng, pairs = np.random.default_rng(seed), all_pairs(12)
    by_node, by_pair = (
        np.exp(rng.normal(0, 0.2, 12))[pairs].prod(axis=1),
        np.exp(rng.normal(0, 0.3, len(pairs))),
    )
    for factors in (by_node, by_pair):
        times = np.array([[1e-6, 1e-5]]) * factors[:, None]
        distances = learn_distances(pairs, times, np.full(times.shape, 1e-2), 12)
        assert distances.mixed_classes
        assert distances.classes == 1


@pytest.mark.parametrize("nodes", [4, 5, 8, 12])
def test_random_times_of_pairs_form_groups_in_at_most_one_of_twenty_networks(nodes):
    pairs, found = all_pairs(nodes), 0
    for seed in range(20):
        rng = np.random.default_rng([seed, nodes])
        logs = (
            rng.normal(0, 0.4, len(pairs)) if seed % 2 else np.log(rng.uniform(1, 2.5, len(pairs)))
        )
        times = np.array([[1e-6, 1e-5]]) * np.exp(
            logs[:, None] + rng.normal(0, 0.01, (len(pairs), 2))
        )
        found += learn_distances(pairs, times, np.full(times.shape, 0.02), nodes).classes > 1
    assert found <= 1


TRUE_LEVELS = {
    "2:1 fat tree": ({"leaf": [node // 4 for node in range(16)]}, [1, 1.6]),
    "dragonfly": (
        {f"level-{size}": [node // size for node in range(24)] for size in (2, 12)},
        [1, 2, 3.2],
    ),
    "two sites": ({"leaf": [node // 6 for node in range(12)]}, [1, 50]),
}


@pytest.mark.parametrize(("seed", "slow"), [(0, {}), (1, {5: (1.0, 8.0)})])
@pytest.mark.parametrize("network", TRUE_LEVELS)
def test_groups_are_learned_although_paths_differ_from_pair_to_pair(network, seed, slow):
    """Times within a class differ by more than the noise."""
    levels, factors = TRUE_LEVELS[network]
    hierarchy = Hierarchy.of(levels)
    pairs = all_pairs(hierarchy.nodes)
    paths = np.exp(np.random.default_rng(seed).normal(0, 0.1, len(pairs)))[:, None]
    times, noise = measured(
        pairs, hierarchy, 0.01, seed, slow, np.array(factors)[:, None] * [[1e-6, 1e-5]]
    )
    distances = learn_distances(pairs, times * paths, noise, hierarchy.nodes)
    assert list(distances.hierarchy.group_lists.values()) == list(hierarchy.group_lists.values())
    assert set(slow) <= set(distances.slow)


def test_two_switches_of_two_nodes_are_learned_although_latencies_differ():
    """Latencies as measured between namespaces of a busy machine: they differ by a third,
    bandwidths are constant."""
    pairs, far = all_pairs(4), np.array([0, 1, 1, 1, 1, 0], dtype=bool)
    latencies = np.array([27.2, 67.9, 83.0, 91.4, 84.0, 35.1]) * 1e-6
    times = np.stack([latencies, latencies + np.where(far, 1 / 1.2, 1 / 11.3)], axis=1)
    distances = learn_distances(pairs, times, np.full(times.shape, 0.02), 4)
    assert list(distances.hierarchy.group_lists.values()) == [[0, 0, 1, 1]]


@pytest.mark.parametrize("nodes", [2, 3])
def test_two_or_three_nodes_have_one_class(nodes):
    pairs = all_pairs(nodes)
    distances = learn_distances(
        pairs, np.tile([1e-6, 1e-5], (len(pairs), 1)), np.zeros((len(pairs), 2)), nodes
    )
    assert distances.classes == 1
    assert distances.slow == ()


@settings(max_examples=30)
@given(
    st.integers(2, 6),
    st.integers(2, 6),
    st.floats(1.35, 5),
    st.floats(1.0, 5),
    st.integers(0, 2**32 - 1),
)
def test_any_network_of_two_classes_is_learned(groups, size, latency, rate, seed):
    """Nodes are numbered in any order; the times of the two classes differ by more than the
    noise."""
    nodes, rng = groups * size, np.random.default_rng(seed)
    if nodes < 5:
        return
    hierarchy = Hierarchy.of({"leaf": rng.permutation(np.arange(nodes) // size).tolist()})
    times = np.array([[1e-6, 1e-5], [1e-6 * latency, 1e-5 * rate]])
    pairs = all_pairs(nodes)
    distances = learn_distances(
        pairs, *measured(pairs, hierarchy, noise=0.01, seed=seed, times=times), nodes
    )
    assert distances.hierarchy.group_lists == hierarchy.group_lists
    assert distances.slow == ()


DRAGONFLY = Hierarchy.of(
    {f"level-{size}": [node // size for node in range(72)] for size in (2, 6, 24)}
)


def test_a_class_with_two_unseparated_levels_is_mixed():
    """Routers of 2 nodes, chassis of 6, groups of 24. Paths differ from pair to pair by as much as
    a chassis does, so only routers and groups are found."""
    pairs = all_pairs(72)
    latency = np.array([1.0, 2.0, 2.4, 2.9])[DRAGONFLY.distance(*pairs.T) - 1] * 1e-6
    paths = np.random.default_rng(7).uniform(0.8, 1.25, len(pairs)) ** (
        DRAGONFLY.distance(*pairs.T) > 1
    )
    times = np.stack([latency * paths, 2e-5 * paths], axis=1)
    distances = learn_distances(pairs, times, np.full(times.shape, 0.01), 72)
    found = {
        name: [node // size for node in range(72)] for name, size in (("leaf", 2), ("group", 24))
    }
    assert distances.hierarchy.group_lists == found
    entry, _ = distances.mixed_classes
    assert entry.number == 1
    low, high = np.percentile(times[distances.class_of_pair == 1], [5, 95], axis=0)
    assert entry.spread == pytest.approx(tuple(high / low))
    assert entry.noise == pytest.approx((np.exp(0.02),) * 2)
    assert entry.widest == 0


@pytest.mark.parametrize("noise", [0.0001, 0.02, 0.1])
def test_no_class_is_mixed_if_all_levels_are_learned(noise):
    pairs = all_pairs(16)
    assert (
        learn_distances(pairs, *measured(pairs, leaves(16, 4), noise=noise), 16).mixed_classes == ()
    )


TWO = Hierarchy.of({"leaf": [0, 1, 0, 1, 0, 1, 0, 1]})


def test_times_become_latency_and_bandwidth_by_class():
    (network,) = make_networks(summary(TWO, 8), {})
    rows = tabulate_distance_classes(network)
    assert rows["pairs"].tolist() == [12, 16]
    assert rows["latency"].tolist() == pytest.approx([small for small, _ in TIMES])
    assert rows["bandwidth"].tolist() == pytest.approx(
        [network.large / large for _, large in TIMES]
    )
    assert network.hierarchy.group_lists == TWO.group_lists
    assert network.order.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


def test_the_matrix_has_both_halves_and_no_diagonal():
    (network,) = make_networks(summary(TWO, 8), {})
    matrix = network.matrix(network.latency)
    assert (np.isnan(matrix) == np.eye(8, dtype=bool)).all()
    assert matrix[0, 2] == matrix[2, 0] == pytest.approx(TIMES[0][0])
    assert matrix[0, 1] == pytest.approx(TIMES[1][0])


def test_a_sample_of_pairs_suffices_for_many_nodes_if_leaves_are_consecutive():
    hierarchy = Hierarchy.of({"leaf": [node // 16 for node in range(128)]})
    (network,) = make_networks(summary(hierarchy, 128), {})
    assert len(network.pairs) <= MAX_PAIRS
    assert network.hierarchy.group_lists == hierarchy.group_lists


def test_a_slow_node_has_a_name_and_a_factor():
    names = [f"n{node}" for node in range(8)]
    (network,) = make_networks(summary(TWO, 8, {3: 4.0}), {"p": {"nodes": names}})
    assert [network.names[node] for node in network.distances.slow] == ["n3"]
    assert network.slowdown(3) == pytest.approx((4, 4))
    assert network.hierarchy.group_lists == TWO.group_lists


def test_levels_of_the_platform_file_precede_learned_levels():
    racks = [0, 0, 0, 0, 1, 1, 1, 1]
    (network,) = make_networks(summary(TWO, 8), {"p": {"levels": {"rack": [*racks, 2]}}})
    assert network.hierarchy.group_lists == {"rack": racks}
    assert network.distances.hierarchy.group_lists == TWO.group_lists


def test_levels_keep_their_order_in_the_provenance_file(tmp_path):
    """The innermost level is first, although its name is the last in alphabetical order."""
    levels = {"router": [0, 0, 1, 1, 2, 2, 3, 3], "chassis": [0, 0, 0, 0, 1, 1, 1, 1]}
    write_json(tmp_path / "provenance.json", {"levels": levels})
    provenance = read_json(tmp_path / "provenance.json")
    assert list(provenance["levels"]) == ["router", "chassis"]
    (network,) = make_networks(summary(TWO, 8), {"p": provenance})
    assert network.declared.group_lists == levels
    assert list(network.declared.groups) == ["router", "chassis"]


@pytest.mark.parametrize("place", [{"nodes": ["n0"]}, {"nodes": 7}, {"levels": {"leaf": [0, 1]}}])
def test_provenance_of_too_few_nodes_is_not_used(place):
    (network,) = make_networks(summary(TWO, 8), {"p": place})
    assert network.names == tuple("01234567")
    assert network.hierarchy.group_lists == TWO.group_lists


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({"leaf": [0, 0, 0, 0, 1, 1, 1, 1], "group": [0, 1, 0, 1, 0, 1, 0, 1]}, "levels nest"),
        ({"leaf": 3}, "level leaf: found '3', wanted a group number for every node"),
        ([[0, 1]], "wanted a mapping of levels"),
    ],
)
def test_invalid_levels_in_the_provenance_are_refused(levels, message):
    with pytest.raises(UserError, match=message):
        make_networks(summary(TWO, 8), {"p": {"levels": levels}})


def test_pairs_measured_at_one_size_or_none_make_no_network():
    raw = summary(TWO, 8)
    assert not make_networks(raw[raw["settings"].str.endswith("bytes=8")], {})
    assert not make_networks(raw.iloc[:0], {})
    assert not make_networks(raw.assign(median=np.nan), {})


@pytest.mark.parametrize(
    "levels", [{}, {"leaf": [0, 1, 0, 1, 2]}, {"leaf": [0, 0, 1, 1, 2], "group": [0, 0, 0, 0, 1]}]
)
def test_formatted_levels_are_read_back_equal(levels):
    text = yaml.safe_load(format_levels(Hierarchy.of(levels)))["levels"]
    assert Hierarchy.written(text, 5).group_lists == levels


def test_a_mixed_class_is_reported_unless_the_platform_file_names_levels():
    uneven = {node: 1.1 ** (node % 4) for node in range(16)}
    column = [node // 4 for node in range(16)]
    rows = summary(Hierarchy.of({"leaf": column}), 16, uneven)
    (network,) = make_networks(rows, {})
    lines = describe_mixed_classes(network)
    assert [line.split(" differ")[0] for line in lines] == ["Pairs of class 1", "Pairs of class 2"]
    assert "repeated measurements of one pair by 1.02" in lines[0]
    assert describe_network(network)[-2:] == lines
    assert "by a factor of" in " ".join(make_sections([network])[0][0].blocks[0].sentences)
    (network,) = make_networks(rows, {"p": {"levels": {"leaf": column}}})
    assert describe_mixed_classes(network) == []


def test_nodes_of_one_mixed_class_are_not_reported_as_uniform():
    """The network has one class whose times differ by more than the noise, as on a dragonfly. The
    report has a figure of the class and no statement of uniformity."""
    flat = Hierarchy.of({"leaf": [0] * 16})
    (network,) = make_networks(
        summary(flat, 16, {node: 1.1 ** (node % 4) for node in range(16)}), {}
    )
    assert network.distances.classes == 1
    assert "No groups of nodes were found." in describe_network(network)
    assert not any("alike" in line for line in describe_network(network))
    drawn, _ = make_sections([network])
    assert len(drawn) == 1


def test_bandwidth_of_a_node_is_the_median_of_the_pairs_with_large_messages():
    """With 40 nodes, large messages are sent between some pairs only."""
    (network,) = make_networks(summary(Hierarchy(), 40), {})
    assert np.isnan(network.bandwidth).any()
    assert np.isfinite([row["bandwidth"] for row in list_node_rows(network)]).all()
