"""Rectangles that change places: volumes between nodes are those of the kernels' schedules, and they only shrink."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.patterns.build import schedule
from commodel.patterns.partitions.arrangement import MOST_RANKS, VOLUMES, by_columns, nearer
from commodel.patterns.rectangles import even, misfit, write
from tests.patterns.catalogue import point

OPERATIONS = {"gemm": "summa", "wave": "wave2d"}


@st.composite
def placed(draw):
    """A partition and the node of every rank; ranks of one kind have one area."""
    kinds = draw(st.lists(st.sampled_from("abc"), min_size=2, max_size=10))
    areas = np.array([{"a": 1.0, "b": 2.5, "c": 7.0}[kind] for kind in kinds])
    node = np.array(draw(st.lists(st.integers(0, 3), min_size=len(kinds), max_size=len(kinds))))
    return by_columns(areas, draw(st.integers(4, 20))), node, kinds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arranged")


@pytest.mark.parametrize("kernel", VOLUMES)
@given(case=placed())
def test_volumes_are_what_the_schedule_sends_between_nodes(folder, kernel, case):
    tiling, node, _ = case
    path = folder / f"{hash(write(tiling))}.csv"
    path.write_text(write(tiling))
    sent = schedule(point(f"{OPERATIONS[kernel]}:partition={path}", "paper", ranks=tiling.ranks, bytes=8))
    between = sent.bytes[node[sent.src] != node[sent.dst]].sum() / 8
    assert VOLUMES[kernel](tiling, node) == between


@pytest.mark.parametrize("kernel", VOLUMES)
@given(case=placed())
def test_exchanges_send_less_and_leave_every_kind_its_areas(kernel, case):
    tiling, node, kinds = case
    volume = VOLUMES[kernel]
    near = nearer(tiling, node, kinds, volume)
    assert misfit(near) is None
    assert volume(near, node) <= volume(tiling, node)
    assert [column.tolist() and near.width[column[0]] for column in near.columns] == [
        tiling.width[column[0]] for column in tiling.columns
    ]
    for kind in set(kinds):
        ranks = [rank for rank, own in enumerate(kinds) if own == kind]
        assert sorted(near.area[ranks]) == sorted(tiling.area[ranks])


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_of_a_node_find_each_other(seed):
    """Four nodes of four ranks, shuffled: exchanging two at a time ends at what a column a node sends, or at less."""
    node, volume = np.random.default_rng(seed).permutation(np.arange(16) % 4), VOLUMES["wave"]
    shuffled = even(16, (4, 4))
    near = nearer(shuffled, node, ["a"] * 16, volume)
    assert volume(near, node) <= 2 * 3 * 16 < volume(shuffled, node)  # three cuts, both ways


def test_many_ranks_stay_where_they_are():
    tiling = even(MOST_RANKS + 1, (MOST_RANKS + 1, 1))
    assert nearer(tiling, np.arange(MOST_RANKS + 1) % 2, ["a"] * (MOST_RANKS + 1), VOLUMES["wave"]) is tiling
