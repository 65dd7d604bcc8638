"""Levels as Slurm knows them; what the listings say was printed by the real one (tests/lab/test_slurm_topology.py)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.platforms.slurm import levels, written_out

THREE = """\
SwitchName=leaf0 Level=0 LinkSpeed=100 Nodes=n[0-1]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[2-3]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[4-5]
SwitchName=pod0 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=leaf[0-1]
SwitchName=pod1 Level=1 LinkSpeed=1 Nodes=n[4-5] Switches=leaf2
SwitchName=spine Level=2 LinkSpeed=1 Nodes=n[0-5] Switches=pod[0-1]
"""


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("n[01-03],x5", "n01 n02 n03 x5"),
        ("n[8-11]", "n8 n9 n10 n11"),
        ("r[0-1]n[1,3-4]-ib", "r0n1-ib r0n3-ib r0n4-ib r1n1-ib r1n3-ib r1n4-ib"),
        ("alone.site.org", "alone.site.org"),
        ("(null)", ""),
        ("", ""),
    ],
)
def test_a_list_of_nodes_is_written_out(listed, names):
    assert written_out(listed) == names.split()


@pytest.mark.parametrize(
    "listed", ["n[1-", "n]1[", "n[]", "n[3-1]", "n[0-999999999]", "r[0-9999]n[0-9999]", "a,,b", "a,"]
)
def test_a_list_that_is_none_is_refused(listed):
    with pytest.raises(UserError, match="found"):
        written_out(listed)


def test_the_nodes_of_an_allocation_are_grouped_in_their_order():
    """The spine parts nobody: all nodes hang on it."""
    hierarchy = levels(THREE, ["n5", "n0", "n2", "n1"])
    assert hierarchy.settings == {"leaf": [0, 1, 2, 1], "group": [0, 1, 1, 1]}
    assert hierarchy.distance(1, [0, 1, 2, 3]).tolist() == [3, 0, 2, 1]


def test_an_allocation_on_one_switch_says_so():
    assert levels(THREE, ["n3", "n2"]).settings == {"leaf": [0, 0]}


def test_a_node_on_no_switch_is_a_group_by_itself():
    assert levels(THREE, ["n0", "login", "n1"]).settings["leaf"] == [0, 1, 0]


def test_blocks_are_leaves():
    listing = (
        "BlockName=b0 BlockIndex=0 Nodes=n[00-01] BlockSize=2\nBlockName=b1 BlockIndex=1 Nodes=n[02-03] BlockSize=2"
    )
    assert levels(listing, ["n03", "n00", "n01"]).settings == {"leaf": [0, 1, 1]}


@pytest.mark.parametrize(
    "listing",
    [
        "SwitchName=a Level=0 Nodes=n[0-1]\nSwitchName=b Level=0 Nodes=n1",
        "SwitchName=a Level=-1 Nodes=n0",
        "SwitchName=a Level=99999999999 Nodes=n0",
        "SwitchName=a Level=0 Nodes=n[0",
    ],
)
def test_what_is_no_tree_is_refused(listing):
    with pytest.raises(UserError, match="found"):
        levels(listing, ["n0", "n1"])


def test_where_slurm_knows_nothing_there_are_no_levels():
    assert not levels("", ["n0"]).groups


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9), st.randoms())
def test_any_tree_of_switches_comes_back(leaves, per_leaf, first, random):
    nodes = [f"n{first + node}" for node in range(leaves * per_leaf)]
    lists = [f"n[{first + leaf * per_leaf}-{first + leaf * per_leaf + per_leaf - 1}]" for leaf in range(leaves)]
    listing = "\n".join(f"SwitchName=s{leaf} Level=0 LinkSpeed=1 Nodes={text}" for leaf, text in enumerate(lists))
    order = random.sample(range(len(nodes)), len(nodes))
    column = levels(listing, [nodes[node] for node in order]).settings["leaf"]
    for here, beside in zip(range(len(order)), range(1, len(order)), strict=False):
        assert (column[here] == column[beside]) == (order[here] // per_leaf == order[beside] // per_leaf)
