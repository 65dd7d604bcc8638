"""From the summary of raw samples to classes, groups and slow nodes."""

import numpy as np
import pytest
import yaml

from commodel.compare.network import classes, networks, written
from commodel.errors import UserError
from commodel.files.atomic import read_json, write_json
from commodel.hierarchy import Hierarchy
from commodel.reports.sections.network import describe_mixed_classes, sections, sentences
from tests.compare.pairs import TIMES, summary

TWO = Hierarchy.of({"leaf": [0, 1, 0, 1, 0, 1, 0, 1]})


def test_times_become_latency_and_bandwidth_by_class():
    (network,) = networks(summary(TWO, 8), {})
    rows = classes(network)
    assert rows["pairs"].tolist() == [12, 16]
    assert rows["latency"].tolist() == pytest.approx([small for small, _ in TIMES])
    assert rows["bandwidth"].tolist() == pytest.approx([network.large / large for _, large in TIMES])
    assert network.hierarchy.settings == TWO.settings
    assert network.order.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


def test_the_matrix_has_both_halves_and_no_diagonal():
    (network,) = networks(summary(TWO, 8), {})
    matrix = network.matrix(network.latency)
    assert (np.isnan(matrix) == np.eye(8, dtype=bool)).all()
    assert matrix[0, 2] == matrix[2, 0] == pytest.approx(TIMES[0][0])
    assert matrix[0, 1] == pytest.approx(TIMES[1][0])


def test_of_many_nodes_a_bounded_sample_is_enough_where_neighbours_follow_each_other():
    hierarchy = Hierarchy.of({"leaf": [node // 16 for node in range(128)]})
    (network,) = networks(summary(hierarchy, 128), {})
    assert np.bincount(network.pairs.ravel()).max() <= 8
    assert network.hierarchy.settings == hierarchy.settings


def test_a_slow_node_has_a_name_and_a_factor():
    names = [f"n{node}" for node in range(8)]
    (network,) = networks(summary(TWO, 8, {3: 4.0}), {"p": {"nodes": names}})
    assert [network.names[node] for node in network.distances.slow] == ["n3"]
    assert network.slowdown(3) == pytest.approx((4, 4))
    assert network.hierarchy.settings == TWO.settings


def test_what_the_place_says_goes_before_what_was_learned():
    racks = [0, 0, 0, 0, 1, 1, 1, 1]
    (network,) = networks(summary(TWO, 8), {"p": {"levels": {"rack": [*racks, 2]}}})
    assert network.hierarchy.settings == {"rack": racks}
    assert network.distances.hierarchy.settings == TWO.settings


def test_levels_keep_their_order_through_a_file_of_notes(tmp_path):
    """The innermost first, though its name comes last in the alphabet."""
    levels = {"router": [0, 0, 1, 1, 2, 2, 3, 3], "chassis": [0, 0, 0, 0, 1, 1, 1, 1]}
    write_json(tmp_path / "provenance.json", {"levels": levels})
    notes = read_json(tmp_path / "provenance.json")
    older = {"levels": dict(sorted(levels.items()))}  # as they were written once
    assert list(notes["levels"]) == ["router", "chassis"] != list(older["levels"])
    for place in (notes, older):
        (network,) = networks(summary(TWO, 8), {"p": place})
        assert network.said.settings == levels
        assert list(network.said.groups) == ["router", "chassis"]


@pytest.mark.parametrize("place", [{"nodes": ["n0"]}, {"nodes": 7}, {"levels": {"leaf": [0, 1]}}])
def test_a_place_that_knows_too_few_nodes_is_not_asked(place):
    (network,) = networks(summary(TWO, 8), {"p": place})
    assert network.names == tuple("01234567")
    assert network.hierarchy.settings == TWO.settings


@pytest.mark.parametrize(
    ("levels", "complaint"),
    [
        ({"leaf": [0, 0, 0, 0, 1, 1, 1, 1], "group": [0, 1, 0, 1, 0, 1, 0, 1]}, "levels nest"),
        ({"leaf": 3}, "level leaf: found '3', wanted a group number for every node"),
        ([[0, 1]], "wanted a mapping of levels"),
    ],
)
def test_notes_that_are_no_levels_are_refused(levels, complaint):
    with pytest.raises(UserError, match=complaint):
        networks(summary(TWO, 8), {"p": {"levels": levels}})


def test_a_platform_of_one_size_or_none_has_no_picture():
    raw = summary(TWO, 8)
    assert not networks(raw[raw["settings"].str.endswith("bytes=8")], {})
    assert not networks(raw.iloc[:0], {})
    assert not networks(raw.assign(median=np.nan), {})


@pytest.mark.parametrize("levels", [{}, {"leaf": [0, 1, 0, 1, 2]}, {"leaf": [0, 0, 1, 1, 2], "group": [0, 0, 0, 0, 1]}])
def test_what_a_platform_file_can_take_over_means_the_same(levels):
    text = yaml.safe_load(written(Hierarchy.of(levels)))["levels"]
    assert Hierarchy.written(text, 5).settings == levels


def test_a_class_that_may_hold_further_levels_is_named_unless_the_place_names_its_levels():
    uneven = {node: 1.1 ** (node % 4) for node in range(16)}
    column = [node // 4 for node in range(16)]
    rows = summary(Hierarchy.of({"leaf": column}), 16, uneven)
    (network,) = networks(rows, {})
    lines = describe_mixed_classes(network)
    assert [line.split(" differ")[0] for line in lines] == ["Pairs of class 1", "Pairs of class 2"]
    assert "repeated measurements of one pair by 1.02" in lines[0]
    assert sentences(network)[-2:] == lines
    assert "by a factor of" in " ".join(sections([network])[0][0].blocks[0].sentences)
    (network,) = networks(rows, {"p": {"levels": {"leaf": column}}})
    assert describe_mixed_classes(network) == []


def test_nodes_of_one_mixed_class_are_not_called_alike():
    """As on a dragonfly whose paths differ from pair to pair: the report draws it, and says what is missing."""
    flat = Hierarchy.of({"leaf": [0] * 16})
    (network,) = networks(summary(flat, 16, {node: 1.1 ** (node % 4) for node in range(16)}), {})
    assert network.distances.classes == 1
    assert "No groups of nodes stand out." in sentences(network)
    assert not any("alike" in line for line in sentences(network))
    drawn, _ = sections([network])
    assert len(drawn) == 1
