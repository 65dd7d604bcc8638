"""Ids of points: independent of docstrings and comments of an algorithm, and changed by any change
of its messages."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commodel.patterns.layouts import place_ranks
from commodel.patterns.point_digests import MAX_RANKS_BUILT, MAX_ROWS, add_digests
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import Work, encode_integers
from commodel.records import LIBRARY
from commodel.registry import discover
from tests.patterns.catalogue import ALGORITHMS, ENTRIES, TREE_OPERATIONS, point

PACKAGE = Path(__file__).parents[2] / "workflow" / "commodel"
IDS = {  # an id is never to change by accident: what a cluster measured is found by it
    "bcast binomial block:2 16 1024": "e476f5874512",
    "bcast binomial:64KiB block:1 7 1048576": "928a8a275614",
    "bcast chain:4KiB cyclic:4 12 65536": "6b36da17933a",
    "bcast library block:8 64 8": "cd43361fd569",
    "scatter linear block:1 9 100": "f56cd2c04e08",
    "gather windowed:3 block-cyclic:4x2 16 4096": "2d1675e99a1b",
    "reduce binomial kinds:2core@1,1core+1accelerator@30 10 512": "e4420e179b21",
    "allreduce ring block:4 32 262144": "2dc2722b44c6",
    "allreduce recursive-doubling cyclic:2 12 8": "52b3e1e147a7",
    "allgather ring block:1 5 333": "be6bc7d7838b",
    "alltoall pairwise block:1 6 64": "57d30e483d43",
    "barrier dissemination block:2 60 0": "84e30d7e5755",
    "reduce kary:2^3 block:1 - 1024": "42e9dc9e5bc4",
    "bcast file:tree.csv block:2 - 77": "7ac71b7cea68",
    "bcast flat:70 cyclic:2 - 8": "cfc058f0ab09",
}
ASK = """
import json, sys
import commodel
from commodel.patterns.point_digests import add_digests
from commodel.patterns.points import PlatformResources, make_point
entries = json.load(sys.stdin)
points = add_digests(make_point(PlatformResources("p", 64, 64), entry) for entry in entries)
print(json.dumps([commodel.__file__, *(point.id for point in points)]))
"""


def entry_of(text):
    operation, choice, layout, ranks, size = text.split()
    chosen = {"topology": choice} if ranks == "-" else {"algorithm": choice, "ranks": int(ranks)}
    return {"operation": operation, "layout": layout, "bytes": int(size), **chosen}


def ids(points):
    return [point.id for point in add_digests(points)]


def id_of(chosen):
    return ids([chosen])[0]


@pytest.fixture
def tree_file(tmp_path, monkeypatch):
    """Return the path of a tree file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree.csv").write_text("node,parent\n0,\n1,0\n2,0\n3,1\n")
    return tmp_path / "tree.csv"


def test_ids_of_points_are_the_recorded_ones(tree_file):
    points = [make_point(PlatformResources("p", 64, 64), entry_of(text)) for text in IDS]
    assert dict(zip(IDS, ids(points), strict=True)) == IDS


def test_an_id_contains_the_waves_unless_there_is_one(tree_file):
    for text, wanted in IDS.items():
        once, some, more = (
            make_point(PlatformResources("p", 64, 64), entry_of(text) | {"waves": waves})
            for waves in (1, 2, 50)
        )
        assert ids([once]) == [wanted]
        assert len({wanted, *ids([some, more])}) == 3
        assert once.workload == make_point(PlatformResources("p", 64, 64), entry_of(text)).workload
        assert len({once.workload, some.workload, more.workload}) == 3


def test_docstrings_comments_and_hash_seeds_change_no_id(tree_file, tmp_path):
    """A copy of the package has another docstring and a comment in every file; the ids are computed
    in a process with another hash seed."""
    shutil.copytree(PACKAGE, tmp_path / "commodel", ignore=shutil.ignore_patterns("__pycache__"))
    for path in tmp_path.glob("commodel/**/*.py"):
        text = path.read_text()
        assert not text.startswith('"""') or text.count('"""') > 1
        path.write_text(text.replace('"""', '"""In other words: ', 1) + "\n\n# An afterthought.\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "12345"}
    command = [sys.executable, "-c", ASK]
    requested = json.dumps([entry_of(text) for text in IDS])
    done = subprocess.run(
        command, input=requested, env=environment, capture_output=True, text=True, check=True
    )
    module, *ids_there = json.loads(done.stdout)
    assert Path(module).is_relative_to(tmp_path)
    assert ids_there == list(IDS.values())


def test_encoded_integers_do_not_depend_on_byte_order_or_width():
    numbers = [1, -2, 1 << 20]
    assert {
        encode_integers(np.array(numbers, dtype=kind)) for kind in ("<i4", ">i4", "<i8", ">i8")
    } == {b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)}


def other_receiver(pattern):
    return replace(pattern, dst=np.append((pattern.dst[:1] + 1) % pattern.ranks, pattern.dst[1:]))


def one_byte_more(pattern):
    return replace(pattern, bytes=np.append(pattern.bytes[:-1], pattern.bytes[-1] + 1))


def one_step_later(pattern):
    return replace(
        pattern, step=pattern.step + (np.arange(len(pattern.step)) == len(pattern.step) - 1)
    )


def with_a_copy(pattern):
    return replace(pattern, work=Work.concatenate([pattern.work, Work.copy([0], [0], [1])]))


def of_another_end(pattern):
    return replace(pattern, root=None if pattern.root is not None else 1)


def of_other_data(pattern):
    def contents():
        runs = pattern.contents()
        return replace(runs, first=runs.first + 1)

    return replace(pattern, contents=contents)


CHANGES = [
    other_receiver,
    one_byte_more,
    one_step_later,
    with_a_copy,
    of_another_end,
    of_other_data,
]


def changed(monkeypatch, entry, change, when=lambda pattern, size: True):
    """Patch one entry of the catalogue so that it builds a changed schedule."""

    def build(first, size, *argument, **named):
        pattern = entry.build(first, size, *argument, **named).whole
        return change(pattern) if when(pattern, size) else pattern

    monkeypatch.setitem(
        discover("patterns.algorithms", "ALGORITHM"), entry.name, replace(entry, build=build)
    )


SOME = {  # an algorithm of each kind, and an operation over trees
    "bcast-chain": point("bcast", "chain:24", ranks=7),
    "allreduce-ring": point("allreduce", "ring", ranks=7),
    "gather-windowed": point("gather", "windowed:3", ranks=7),
    "halo-shift": point("halo", "shift", ranks=6),
    "barrier-dissemination": point("barrier", "dissemination", ranks=7, bytes=0),
    "reduce-tree": point("reduce", topology="kary:2^3"),
}


def test_an_id_changes_with_every_input_of_the_player(monkeypatch):
    """Only the id of the changed algorithm or tree operation changes."""
    before = ids(SOME.values())
    for change in CHANGES:
        for changed_one in SOME:
            with monkeypatch.context() as patch:
                changed(patch, ENTRIES[changed_one], change)
                after = ids(SOME.values())
            others = [
                name for name, old, new in zip(SOME, before, after, strict=True) if old != new
            ]
            assert others == [changed_one], change


@pytest.mark.parametrize("name", ["bcast-binomial", "allreduce-ring", "bcast-tree"])
def test_an_id_changes_with_messages_at_the_own_size_or_ranks_only(monkeypatch, name):
    if name == "bcast-tree":
        points = [point("bcast", topology="kary:2^4", bytes=size) for size in (100, 1 << 20)]
    else:
        operation, choice = name.split("-")
        points = [point(operation, choice, ranks=ranks, bytes=1 << 20) for ranks in (16, 31)]
        points += [point(operation, choice, ranks=31, bytes=100)]
    before = ids(points)
    with monkeypatch.context() as patch:
        changed(patch, ENTRIES[name], one_byte_more, lambda pattern, size: size >= 1 << 20)
        after = ids(points)
    assert [old != new for old, new in zip(before, after, strict=True)] == [
        entry.bytes > 100 for entry in points
    ]
    changed(monkeypatch, ENTRIES[name], one_byte_more, lambda pattern, size: pattern.ranks == 31)
    after = ids(points)
    assert [old != new for old, new in zip(before, after, strict=True)] == [
        entry.ranks == 31 for entry in points
    ]


def test_ids_depend_on_the_content_of_trees_and_layouts(tree_file, monkeypatch):
    def tree_id():
        return id_of(point("bcast", topology="file:tree.csv"))

    before = tree_id()
    tree_file.write_text("node,parent\n0,\n1,0\n2,0\n3,1\n\n")
    assert tree_id() == before
    tree_file.write_text("node,parent\n0,\n1,0\n2,0\n3,2\n")
    assert tree_id() != before
    for algorithm in ("binomial", LIBRARY):
        chosen = point("bcast", algorithm, ranks=8, layout="block:2")
        before = id_of(chosen)
        with monkeypatch.context() as patch:
            patch.setattr(
                "commodel.patterns.point_digests.place_ranks",
                lambda layout, ranks: place_ranks(layout, ranks)[::-1],
            )
            assert id_of(chosen) != before


@pytest.mark.parametrize("ranks", [3, 1 << 20])
def test_no_large_schedule_is_built_for_an_id(monkeypatch, ranks):
    """For any algorithm, argument and size, the built schedules have few ranks and rows."""
    built = []
    for entry in ENTRIES.values():
        changed(monkeypatch, entry, lambda pattern: built.append(pattern) or pattern)
    points = [
        point(*name, ranks=ranks, bytes=size) for name in ALGORITHMS for size in (1, (1 << 31) - 1)
    ]
    points += [
        point("bcast", spec, ranks=ranks, bytes=1 << 30)
        for spec in ("chain:1", "binomial:1", "chain:1024TiB")
    ]
    points += [point(operation, topology=f"flat:{ranks}") for operation in TREE_OPERATIONS]
    add_digests(points)
    assert max(pattern.ranks for pattern in built) <= MAX_RANKS_BUILT + 1
    assert max(len(pattern.src) for pattern in built) <= 1.1 * MAX_ROWS
    assert len(built) <= 40 * len(points)
