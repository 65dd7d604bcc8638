"""GOAL as txt2bin writes it: what it says, and that nothing else is taken for it."""

import struct
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given

from commodel.errors import UserError
from commodel.patterns.written import goal, goal_binary, written
from tests.patterns.goal_files import BINARY, TEXT, packed
from tests.patterns.goal_programs import programs


@pytest.fixture
def read(tmp_path):
    def read(content):
        (tmp_path / "a.bin").write_bytes(content)
        return goal_binary.read(tmp_path / "a.bin")

    return read


def test_text_and_binary_say_the_same(tmp_path):
    for name, content in (("text", TEXT.encode()), ("binary", BINARY)):
        (tmp_path / name).write_bytes(content)
    text, binary = (written(f"file:{tmp_path / name}") for name in ("text", "binary"))
    assert text.alike(binary)
    assert text.bytes.tolist() == binary.bytes.tolist()
    assert sorted(binary.bytes) == [4, 8, 16]
    assert text.work.seconds.tolist() == binary.work.seconds.tolist() == [5e-6]
    tasks = goal.tasks(tmp_path / "text")
    assert packed(tasks, [(0, 0), (0, 0), (1, 0), (0, 0), (0, 0), (0, 1), (0, 0), (0, 0)]) == BINARY
    assert tasks.elsewhere == goal_binary.tasks(tmp_path / "binary").elsewhere == 2


@given(programs())
def test_what_is_packed_is_read(tmp_path_factory, tasks):
    path = tmp_path_factory.mktemp("goal") / "a.bin"
    path.write_bytes(packed(tasks))
    again = goal_binary.tasks(path)
    for name in ("ranks", "rank", "kind", "size", "peer", "tag"):
        np.testing.assert_array_equal(getattr(tasks, name), getattr(again, name))
    rows = [
        sorted(zip(*(getattr(program.needs, field.name) for field in fields(program.needs)), strict=True))
        for program in (tasks, again)
    ]
    assert rows[0] == rows[1]


def test_a_file_that_is_cut_is_found(read):
    for length in range(8, len(BINARY)):
        with pytest.raises(UserError, match=r"a\.bin: found \d+ bytes, wanted .*; is the file cut\?"):
            read(BINARY[:length])


@given(programs())
def test_binary_of_loggopsim_2_is_named(tmp_path_factory, tasks):
    path = tmp_path_factory.mktemp("goal") / "a.bin"
    path.write_bytes(packed(tasks, more=bytes(65)))
    with pytest.raises(UserError, match=r"a\.bin: found a binary of LogGOPSim 2, wanted one of LogGOPSim, or the text"):
        goal_binary.read(path)


def changed(place, form, value):
    return BINARY[:place] + struct.pack(form, value) + BINARY[place + struct.calcsize(form) :]


BLOCKS = 14 + 3 * 16  # where that of rank 0 begins
FIRST = BLOCKS + 12  # its first task


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (changed(0, "<Q", 2342), "what LogGOPSim --save-mem has left"),
        (changed(8, "<I", 0), "found 0 ranks, wanted 1 to"),
        (changed(8, "<I", 2**32 - 1), "found 4294967295 ranks, wanted 1 to"),
        (changed(8, "<I", 2**24), "wanted a table of 16777216 ranks; is the file cut"),
        (changed(14, "<Q", 55), "block of rank 0 does not begin"),
        (changed(22, "<Q", 2**64 - 1), "block of rank 1 does not begin"),
        (changed(14 + 40, "<Q", 2**63), "is the file cut"),
        (changed(14 + 40, "<Q", 400), "found 434 bytes, wanted 408"),
        (BINARY + b"x", "found 435 bytes, wanted 434"),
        (changed(BLOCKS, "<I", 4), "do not hold what it says"),
        (changed(BLOCKS, "<I", 2**32 - 1), "do not hold what it says"),
        (changed(BLOCKS + 4, "<I", 2**32 - 1), "do not hold what it says"),
        (changed(BLOCKS + 8, "<I", 1), "do not hold what it says"),
        (changed(FIRST, "<I", 1), "do not hold what it says"),
        (changed(FIRST + 39, "<I", 2), "task 1 of rank 0 waits for more or fewer than name it"),
        (changed(FIRST + 4, "<B", 9), "task 0 of rank 0: found kind 9"),
        (changed(FIRST + 9, "<Q", 2**64 - 1), "wanted at most 1e+09 s"),
        (changed(FIRST + 39 + 9, "<Q", 2**63), "task 1 of rank 0: found"),
        (changed(FIRST + 39 + 5, "<I", 7), "task 1 of rank 0: found rank 7, wanted 0 to 2"),
        (
            changed(FIRST + 39 + 5, "<I", 2),
            "task 0 of rank 1: rank 1 receives from rank 0 with tag 7, and no send is left for it",
        ),
        (changed(FIRST + 39 + 17, "<I", 2**32 - 1), "task 1 of rank 0: sends with any tag, wanted one"),
        (changed(FIRST + 23, "<I", 3), "rank 0 names other followers than it has"),
        (changed(FIRST + 23, "<I", 2**32 - 1), "rank 0 names other followers than it has"),
        (changed(FIRST + 27, "<I", 2), "rank 0 names other followers than it has"),
        (changed(FIRST + 27, "<I", 2**32 - 1), "rank 0 names other followers than it has"),
        (changed(FIRST + 3 * 39, "<I", 3), "rank 0 names task 3, wanted one of 3"),
        (changed(FIRST + 3 * 39, "<I", 0), "task 0 of rank 0 waits for more or fewer"),
    ],
)
def test_what_cannot_be_is_one_line(read, content, complaint):
    with pytest.raises(UserError) as caught:
        read(content)
    assert complaint in caught.value.message
    assert "a.bin: " in caught.value.message
