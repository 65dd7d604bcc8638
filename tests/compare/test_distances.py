"""Classes, groups and slow nodes come back from times that were made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.compare.network import learned
from commodel.hierarchy import Hierarchy

TIMES = np.array([[1.2e-6, 2.2e-5], [1.6e-6, 2.3e-5], [2.6e-6, 4.0e-5]])  # of the classes, of 8 B and of 256 KiB


def all_pairs(nodes):
    return np.array([(low, high) for low in range(nodes) for high in range(low + 1, nodes)])


def measured(pairs, hierarchy, noise=0.02, seed=1, slow=None, times=TIMES):
    """Times of the pairs of a network; `slow` is by which factors those of a node are longer."""
    rng = np.random.default_rng(seed)
    made = times[hierarchy.distance(*pairs.T) - 1]
    for node, factors in (slow or {}).items():
        made = np.where((pairs == node).any(axis=1)[:, None], made * factors, made)
    return made * np.exp(rng.normal(0, noise, made.shape)), np.full(made.shape, 1.96 * noise)


def leaves(nodes, size):
    return Hierarchy.of({"leaf": [node // size for node in range(nodes)]})


def test_one_switch_is_one_class():
    pairs = all_pairs(8)
    distances = learned(pairs, *measured(pairs, Hierarchy.of({"leaf": [0] * 8})), 8)
    assert distances.classes == 1
    assert not distances.of.any()
    assert not distances.hierarchy.groups
    assert distances.slow == distances.odd == ()


@pytest.mark.parametrize("column", [[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 0, 1, 2, 0, 1], [0, 0, 1, 1, 1, 1, 1, 1]])
def test_two_levels_come_back_however_nodes_are_numbered(column):
    pairs, hierarchy = all_pairs(8), Hierarchy.of({"leaf": column})
    distances = learned(pairs, *measured(pairs, hierarchy), 8)
    assert distances.classes == 2
    assert (distances.of == hierarchy.distance(*pairs.T) - 1).all()
    assert distances.hierarchy.settings == {"leaf": column}
    assert distances.nested


def test_three_classes_are_two_levels():
    hierarchy = Hierarchy.of({"leaf": [node // 3 for node in range(12)], "group": [node // 6 for node in range(12)]})
    pairs = all_pairs(12)
    distances = learned(pairs, *measured(pairs, hierarchy), 12)
    assert distances.hierarchy.settings == hierarchy.settings
    assert (distances.of == hierarchy.distance(*pairs.T) - 1).all()


@pytest.mark.parametrize("factors", [(1.0, 10.0), (1.5, 1.0), (3.0, 3.0)])
@pytest.mark.parametrize("column", [[0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]])
def test_a_slow_cable_is_named_and_makes_no_class(factors, column):
    """Its node stays in its group: it is nearest there."""
    hierarchy, pairs = Hierarchy.of({"leaf": column}), all_pairs(8)
    distances = learned(pairs, *measured(pairs, hierarchy, slow={5: factors}), 8)
    assert distances.slow == (5,)
    assert distances.classes == len(set(column))
    if len(set(column)) > 1:
        assert distances.hierarchy.settings == {"leaf": column}
    assert ((distances.of == -1) == (pairs == 5).any(axis=1)).all()


def test_two_slow_nodes_of_sixteen_are_both_named():
    pairs = all_pairs(16)
    distances = learned(pairs, *measured(pairs, leaves(16, 4), slow={3: (1.0, 8.0), 9: (2.0, 1.0)}), 16)
    assert distances.slow == (3, 9)
    assert distances.hierarchy.settings == leaves(16, 4).settings


def test_half_the_nodes_are_not_slow_but_another_class():
    pairs = all_pairs(4)
    distances = learned(pairs, *measured(pairs, leaves(4, 2)), 4)
    assert distances.slow == ()
    assert distances.hierarchy.settings == {"leaf": [0, 0, 1, 1]}


def test_a_single_slow_pair_is_odd_and_no_class():
    pairs = all_pairs(8)
    times, noise = measured(pairs, Hierarchy.of({"leaf": [0] * 8}))
    times[11] *= 4
    distances = learned(pairs, times, noise, 8)
    assert distances.odd == (11,)
    assert distances.classes == 1


def test_what_a_noisy_machine_cannot_tell_is_one_class():
    pairs = all_pairs(8)
    times, noise = measured(pairs, leaves(8, 4), noise=0.15, times=np.array([[1e-6, 1e-5], [1.2e-6, 1.2e-5]]))
    assert learned(pairs, times, noise, 8).classes == 1


def test_a_ring_of_nodes_has_classes_that_do_not_nest():
    pairs = all_pairs(9)
    hops = np.minimum((pairs[:, 1] - pairs[:, 0]) % 9, (pairs[:, 0] - pairs[:, 1]) % 9)
    times = np.array([[1e-6, 1e-5]]) * 1.5 ** hops[:, None]
    distances = learned(pairs, times, np.full(times.shape, 1e-3), 9)
    assert distances.classes == 4
    assert not distances.nested
    assert not distances.hierarchy.groups


@pytest.mark.parametrize("nodes", [2, 3])
def test_few_nodes_are_no_reason_to_fail(nodes):
    pairs = all_pairs(nodes)
    distances = learned(pairs, np.tile([1e-6, 1e-5], (len(pairs), 1)), np.zeros((len(pairs), 2)), nodes)
    assert distances.classes == 1
    assert distances.slow == ()


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(2, 6), st.floats(1.35, 5), st.floats(1.0, 5), st.integers(0, 2**32 - 1))
def test_any_two_level_network_comes_back(groups, size, latency, rate, seed):
    """Nodes are in any order; times differ between classes by more than noise does."""
    nodes, rng = groups * size, np.random.default_rng(seed)
    if nodes < 5:
        return
    hierarchy = Hierarchy.of({"leaf": rng.permutation(np.arange(nodes) // size).tolist()})
    times = np.array([[1e-6, 1e-5], [1e-6 * latency, 1e-5 * rate]])
    pairs = all_pairs(nodes)
    distances = learned(pairs, *measured(pairs, hierarchy, noise=0.01, seed=seed, times=times), nodes)
    assert distances.hierarchy.settings == hierarchy.settings
    assert distances.slow == ()


DRAGONFLY = Hierarchy.of({f"level-{size}": [node // size for node in range(72)] for size in (2, 6, 24)})


def test_levels_that_are_not_separated_are_said():
    """Routers of 2 nodes, chassis of 6, groups of 24: only the routers stand out, as paths between the others differ
    from pair to pair by as much as levels do."""
    pairs = all_pairs(72)
    latency = np.array([1.0, 2.0, 2.4, 2.9])[DRAGONFLY.distance(*pairs.T) - 1] * 1e-6
    paths = np.random.default_rng(7).uniform(0.8, 1.25, len(pairs)) ** (DRAGONFLY.distance(*pairs.T) > 1)
    times = np.stack([latency * paths, 2e-5 * paths], axis=1)
    distances = learned(pairs, times, np.full(times.shape, 0.01), 72)
    assert distances.hierarchy.settings == {"leaf": [node // 2 for node in range(72)]}
    (entry,) = distances.mixed_classes
    assert entry.number == 1
    low, high = np.percentile(times[distances.of == 1], [5, 95], axis=0)
    assert entry.spread == pytest.approx(tuple(high / low))
    assert entry.noise == pytest.approx((np.exp(0.02),) * 2)
    assert entry.widest == 0


@pytest.mark.parametrize("noise", [0.0001, 0.02, 0.1])
def test_levels_that_are_all_found_leave_no_class_mixed(noise):
    pairs = all_pairs(16)
    assert learned(pairs, *measured(pairs, leaves(16, 4), noise=noise), 16).mixed_classes == ()
