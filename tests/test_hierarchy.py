"""Nested groups of nodes: reading, refusals, and the distance of two nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy, covers_levels, describe_levels_crossed

HOSTS = [f"rack{rack}-{node}" for rack in range(2) for node in range(4)]


def test_counts_ranges_and_host_patterns_state_the_same():
    forms = [
        {"leaf": 2, "rack": 4},
        {"leaf": [["0-1"], [2, 3], ["4", "5"], ["6-7"]], "rack": ["0-3", "4-7"]},
        {"leaf": 2, "rack": ["rack0-*", "rack1-*"]},
    ]
    read = [Hierarchy.written(form, 8, HOSTS).group_lists for form in forms]
    assert read == [{"leaf": [0, 0, 1, 1, 2, 2, 3, 3], "rack": [0, 0, 0, 0, 1, 1, 1, 1]}] * 3
    assert Hierarchy.of(read[0]).group_lists == read[0]


def test_node_pairs_have_a_distance_class_and_the_name_of_the_crossed_level():
    levels = Hierarchy.written({"leaf": 2, "rack": 4}, 8)
    assert levels.distance(0, [0, 1, 2, 3, 4, 7]).tolist() == [0, 1, 2, 2, 3, 3]
    assert levels.names == ("node", "leaf", "rack", "beyond")
    crossed = [levels.crossed(distance) for distance in range(4)]
    assert crossed == [
        "same node",
        "different nodes",
        "different leaf groups",
        "different rack groups",
    ]


@pytest.mark.parametrize(
    ("nodes", "levels_crossed", "words"),
    [
        ([3, 3], "node", "within one node"),
        ([0, 1, 1], "node/leaf", "within one leaf"),
        ([1, 2], "node/leaf/rack", "within one rack"),
        ([0, 1, 7], "node/leaf/rack/beyond", "beyond one rack"),
    ],
)
def test_levels_crossed_by_ranks(nodes, levels_crossed, words):
    levels = Hierarchy.written({"leaf": 2, "rack": 4}, 8)
    assert levels.levels_crossed(np.array(nodes)) == levels_crossed
    assert describe_levels_crossed(levels_crossed) == words
    assert Hierarchy().levels_crossed(np.array(nodes)) == ""


def test_a_level_path_covers_shorter_paths_of_the_same_hierarchy():
    assert covers_levels("node/leaf/rack", "node/leaf")
    assert covers_levels("node/leaf", "node/leaf")
    assert not covers_levels("node/leaf", "node/leaf/rack")
    assert not covers_levels("node/leaf-2", "node/leaf")  # of another hierarchy


def test_without_levels_there_are_two_classes_and_any_node():
    assert Hierarchy().names == ("node", "beyond")
    assert Hierarchy().distance([3, 3], [3, 10**9]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ({"leaf": 3, "rack": 4}, "found nodes 3 and 4 in one leaf but not in one rack"),
        ({"leaf": ["0-3", "3-7"]}, "level leaf: found node 3 in two groups"),
        ({"leaf": ["0-3"]}, "level leaf: found no group of node 4"),
        ({"leaf": ["0-9"]}, "level leaf: found '0-9', wanted nodes from 0 to 7"),
        ({"leaf": ["none*"]}, "level leaf: found 'none\\*', wanted nodes such as 0-15"),
        ({"leaf": 0}, "found '0', wanted"),
        ({"node": 2}, "found a level called 'node'"),
        ({f"l{number}": 8 for number in range(9)}, "found 9 levels, wanted at most 8"),
    ],
)
def test_invalid_levels_of_a_hierarchy_are_refused(levels, message):
    with pytest.raises(UserError, match=message):
        Hierarchy.written(levels, 8, HOSTS)


@pytest.mark.parametrize(
    "levels", [3, {"leaf": "0011"}, {"leaf": [0, "x"]}, {"leaf": []}, {"a": [0, 1], "b": [0]}]
)
def test_hostile_settings_are_refused(levels):
    with pytest.raises(UserError):
        Hierarchy.of(levels)


def test_a_node_that_the_levels_do_not_know_is_refused():
    with pytest.raises(UserError, match="the levels have 8 nodes, found node 8"):
        Hierarchy.written({"leaf": 2}, 8).distance(0, 8)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_distances_are_symmetric_and_ultrametric(factors, data):
    sizes = np.cumprod(factors)
    levels = Hierarchy.written({f"l{number}": int(size) for number, size in enumerate(sizes)}, 24)
    a, b, c = (data.draw(st.integers(0, 23)) for _ in range(3))
    far = levels.distance
    assert far(a, b) == far(b, a)
    assert (far(a, b) == 0) == (a == b)
    assert far(a, c) <= max(far(a, b), far(b, c))
