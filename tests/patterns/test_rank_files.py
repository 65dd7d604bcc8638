"""Placements from a file: Open MPI's rankfiles and plain lists are read, and a broken one says where."""

import pytest

from commodel.patterns.build import full_layout
from commodel.patterns.identity import identified
from commodel.patterns.layouts import Defaults, full, place
from commodel.patterns.points import Setting, make_point
from tests.refusals import message

DEFAULTS = Defaults(hosts=("a", "b", "c", "d"))


@pytest.fixture
def ranks_file(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "ranks.txt").write_text(text)
        return f"file:{tmp_path / 'ranks.txt'}"

    return write


def test_rank_files(ranks_file):
    rankfile = ranks_file("# mine\nrank 1=x slot=0\nrank 0=y slot=0:1-2\nrank 2=x slot=1\n")
    assert place(rankfile, 3).tolist() == [1, 0, 0]  # as they appear
    assert place(ranks_file("y\n\nx\ny\n"), 3).tolist() == [0, 1, 0]
    assert place(ranks_file("3\n0\n3\n"), 3).tolist() == [3, 0, 3]
    assert place(ranks_file("rank 0=+n2 slots=1\nrank 1=+n0 slots=1\n"), 2).tolist() == [2, 0]


def test_hosts_that_the_platform_knows_are_its_nodes(ranks_file):
    spec = full(ranks_file("rank 0=c slot=0\nrank 1=a slot=0\nrank 2=c slot=1\n"), DEFAULTS)
    assert spec.endswith("ranks.txt@2,0")
    assert place(spec, 3).tolist() == [2, 0, 2]
    assert full(spec, DEFAULTS) == spec
    assert "ranks.txt:2: found host 'e'" in message(full, ranks_file("a\ne\n"), DEFAULTS)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("rank 0=a slot=0\nrank 0=b slot=0\n", 2, "first on line 1"),
        ("rank 0=a slot=0\nrank 2=b slot=0\n", 2, "none 1"),
        ("rank 0=a slot=0\nb\n", 2, "in every line"),
        ("a\n\nrank 1=b\n", 3, "in every line"),
        ("a\n$(id)\n", 2, "$(id)"),
        ("rank x=a\n", 1, "wanted"),
        ("a\n1\n", 2, "by number"),
        ("99999999\n0\n", 1, "99999999"),
        ("\n", None, "no ranks"),
        ("a\nb\nc\n", None, "found 3 ranks, wanted 2"),
    ],
)
def test_a_broken_rank_file_says_where(text, line, word, ranks_file):
    spec = ranks_file(text)
    said = message(place, spec, 2)
    assert word in said
    path = spec.partition(":")[2]
    assert said.startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_a_changed_rank_file_is_another_point(ranks_file):
    def point():
        barrier = {"operation": "barrier", "algorithm": "linear", "ranks": 4}
        return identified([make_point(Setting.unlimited(), barrier | layout)])[0]

    layout = {"layout": ranks_file("0\n0\n1\n1\n")}
    first = point()
    ranks_file("0\n1\n1\n0\n\n")
    full_layout.cache_clear()  # as a new run would
    assert point().layout == first.layout
    assert point().id != first.id
    assert first.nodes == 2
