"""Processes that keep several cores or drive a GPU: a layout's table, and what is wrong with one."""

import pytest

from commodel.patterns.identity import identified
from commodel.patterns.layouts import Defaults, cores_of, full, keeps_cores, kinds_of, place, processes_of, ranks_of
from commodel.patterns.points import Setting, make_point
from commodel.plan.planning import named
from tests.refusals import message

HEADER = "rank,node,cores,device\n"
TYPES = {"fat": 1, "thin": 2}


@pytest.fixture
def table(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "mine.csv").write_text(text)
        return f"processes:{tmp_path / 'mine.csv'}"

    return write


def test_processes_have_nodes_cores_and_kinds(table):
    spec = table(HEADER + "0,0,6,cpu\n1,0,1,gpu\n\n2,2,3,cpu\n")
    assert place(spec, 3).tolist() == [0, 0, 2]
    assert cores_of(spec, 3).tolist() == [6, 1, 3]
    assert kinds_of(spec, 3).tolist() == ["core", "accelerator", "core"]
    assert processes_of(spec, 3, TYPES) == ["fat/6", "fat/gpu", "thin/3"]
    assert processes_of(spec, 3, {}) == ["node/6", "node/gpu", "node/3"]
    assert (ranks_of(spec), keeps_cores(spec)) == (3, True)
    assert "found a node behind the 2 of the platform's types" in message(processes_of, spec, 3, {"fat": 2})


def test_other_layouts_have_one_core_a_rank():
    assert cores_of("block:2", 3).tolist() == [1, 1, 1]
    assert processes_of("block:2", 3, TYPES) == ["fat/1", "fat/1", "thin/1"]
    assert processes_of("kinds:1core+1accelerator@1,1core@2", 3, TYPES) == ["fat/1", "fat/gpu", "thin/1"]
    assert (ranks_of("block:2"), keeps_cores("block:2")) == (None, False)


def test_hosts_that_the_platform_knows_are_its_nodes(table):
    spec = full(table(HEADER + "0,c,2,cpu\n1,a,2,cpu\n"), Defaults(hosts=("a", "b", "c"), most_cores=2))
    assert spec.endswith("mine.csv@2,0")
    assert place(spec, 2).tolist() == [2, 0]
    assert cores_of(spec, 2).tolist() == [2, 2]


def test_a_node_has_the_cores_that_its_processes_keep(table):
    spec = table(HEADER + "0,0,6,cpu\n1,1,5,cpu\n2,0,6,cpu\n3,1,1,gpu\n")
    room = {"types": (("fat", 1), ("thin", 1)), "most_cores": 12}
    assert full(spec, Defaults(**room, fewer_cores=(("thin", 6),))) == spec
    assert "mine.csv:5: found 6 cores kept on node 1, wanted at most its 5" in message(
        full, spec, Defaults(**room, fewer_cores=(("thin", 5),))
    )
    assert "mine.csv:4: found 12 cores kept on node 0, wanted at most its 11" in message(
        full, spec, Defaults(most_cores=11)
    )


def test_a_point_takes_its_ranks_from_the_table_and_is_another_one_with_other_cores(table):
    def point(text: str):
        wanted = {"operation": "bcast", "algorithm": "binomial", "bytes": 8, "layout": table(HEADER + text)}
        (own,) = identified([make_point(Setting("p", 2, 8), wanted)])
        return own

    before, after = point("0,0,6,cpu\n1,1,2,cpu\n"), point("0,0,6,cpu\n1,1,3,cpu\n")
    assert before.ranks == 2
    assert before.id != after.id
    assert before.id == point("0,0,6,cpu\n1,1,2,cpu\n").id


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", 1, "found an empty file, wanted the header rank,node,cores,device"),
        ("rank,node,cores\n0,0,1\n", 1, "wanted the header"),
        (HEADER, None, "no processes"),
        (HEADER + "0,0,1\n", 2, "found 3 cells, wanted 4"),
        (HEADER + "0,0,1,cpu\n2,0,1,cpu\n", 3, "column rank: found '2', wanted 1: ranks are in order"),
        (HEADER + "0,0,1,cpu\n0,0,1,cpu\n", 3, "column rank: found '0', wanted 1"),
        (HEADER + "0,-1,1,cpu\n1,x/y,1,cpu\n", 3, "column node: found 'x/y'"),
        (HEADER + "0,0,1,cpu\n1,a,1,cpu\n", 3, "found 'a', wanted all hosts by name or all by number"),
        (HEADER + "0,0,0,cpu\n", 2, "column cores: found '0', wanted a whole number from 1"),
        (HEADER + "0,0,1.5,cpu\n", 2, "column cores: found '1.5'"),
        (HEADER + "0,0,²,cpu\n", 2, "column cores"),
        (HEADER + "0,0,2,gpu\n", 2, "a process that drives a GPU keeps one core"),
        (HEADER + "0,0,1,tpu\n", 2, "column device: found 'tpu', wanted cpu or gpu"),
        (HEADER + '0,"0,1,cpu\n', 2, "cannot be read as CSV"),
        (HEADER + "0,99999999,1,cpu\n", 2, "found node 99999999"),
        (HEADER + "0,0,1,=cmd()\n", 2, "column device: found '=cmd()'"),
    ],
)
def test_a_broken_table_says_where(text, line, complaint, table):
    spec = table(text)
    words = message(place, spec, 1)
    assert complaint in words
    path = spec.partition(":")[2]
    assert words.startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_another_number_of_ranks(table):
    assert "found 1 ranks, wanted 2" in message(place, table(HEADER + "0,0,1,cpu\n"), 2)


def test_its_file_is_kept_with_the_results(table):
    """Of a full spec, too, whose nodes are no part of the file's name."""
    spec = table(HEADER + "0,a,1,cpu\n1,b,1,cpu\n")
    wanted = {"operation": "bcast", "algorithm": "binomial", "bytes": 8, "layout": spec}
    point = make_point(Setting("p", 2, 1, hosts=("b", "a")), wanted)
    assert point.layout.endswith("@1,0")
    assert list(named([point])) == [("layout", spec.partition(":")[2])]
