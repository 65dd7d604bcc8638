"""A tree that was written to a file is read back as it was, and a broken file says where."""

import random

import pytest

from commodel.errors import UserError
from commodel.patterns.trees.files import STYLES, read_tree
from commodel.patterns.trees.topologies import tree
from tests.patterns.catalogue import TREES


@pytest.mark.parametrize("spec", TREES)
def test_mrnet_file_round_trip(spec, tmp_path):
    path = tmp_path / "tree.top"
    path.write_text(STYLES["mrnet"](tree(spec)) + "\n# a comment\n")
    again = tree(f"file:{path}")
    assert sorted(again.fanout.tolist()) == sorted(tree(spec).fanout.tolist())
    assert sorted(again.depth.tolist()) == sorted(tree(spec).depth.tolist())


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
    ],
)
def test_a_broken_file_says_where(text, line, word, tmp_path):
    path = tmp_path / "tree.top"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        tree(f"file:{path}")
    message = caught.value.format_message()
    assert word in message
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")


@pytest.mark.parametrize("spec", [*TREES, "knomial:3@11", "random:12@4"])
def test_csv_round_trip_in_any_order(spec, tmp_path):
    header, *rows = STYLES["csv"](tree(spec)).splitlines()
    random.Random(1).shuffle(rows)
    path = tmp_path / "tree.txt"  # what is in it counts, not what it is called
    path.write_text("\n".join([header, *rows]) + "\n")
    assert read_tree(path).parent.tolist() == tree(spec).parent.tolist()


def test_csv_of_other_numbers_and_names(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("node,parent\n7,10\n10,\n3,10\n8,3\n")
    assert read_tree(path).names == ("10", "3", "7", "8")
    assert read_tree(path).parent.tolist() == [-1, 0, 0, 1]
    path.write_text('"node", "parent"\r\nleaf,top\r\ntop,\r\nother,top\r\n')
    assert read_tree(path).names == ("top", "leaf", "other")


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
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
def test_a_broken_table_says_where(text, line, word, tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_tree(path)
    message = caught.value.format_message()
    assert word in message
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
