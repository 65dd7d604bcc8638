"""Invalid files, found by hand or by fuzzing, for the native readers: each is refused in one line
with its position."""

import pytest

from commodel.errors import UserError
from commodel.platforms.tools import find_tool
from tests.fuzz import forms, native

pytestmark = pytest.mark.skipif(find_tool("mpicc") is None, reason="no mpicc here")
REFUSED = {
    "the largest possible rank": (
        "schedule",
        forms.PLAY.replace(b"0,,send,0,1", b"0,,send,0,2147483647"),
        "2: column rank",
    ),
    "a zero byte": ("schedule", forms.PLAY + b"\0", "zero byte"),
    "too many runs": ("schedule", forms.PLAY.replace(b"0+8;24+8", b"0+8;" * 500), "column runs"),
    "a run below 0": ("schedule", forms.PLAY.replace(b"24+8", b"-24+8"), "column runs"),
    "more columns than any program has": ("cases", b"id," + b"n," * 100 + b"\n", "1: column"),
    "a very long id": ("cases", forms.CASES.replace(b"one", b"o" * 100_000), "column id"),
    "an id that is a path": ("cases", forms.CASES.replace(b"one", b"../one"), "column id"),
    "a number that overflows": ("cases", forms.CASES.replace(b"1e-6", b"1e999"), "column delay"),
    "zero waves": (
        "cases",
        forms.CASES.replace(b",50,", b",0,"),
        "2: column waves: found '0', wanted a whole number from 1",
    ),
    "too many waves": (
        "cases",
        forms.CASES.replace(b",50,", b",99999999999999999999,"),
        "2: column waves",
    ),
    "a gap": (
        "partition",
        forms.PARTITION.replace(b"0,3,5,5", b"0,3,5,4"),
        "59 blocks in all, wanted 64",
    ),
    "an overlap": (
        "partition",
        forms.PARTITION.replace(b"0,3,5,5", b"0,2,5,6"),
        "3: found a rectangle that overlaps",
    ),
    "a flat rectangle": (
        "partition",
        forms.PARTITION.replace(b"3,0,0,0,0", b"3,0,0,4,0"),
        "5: found 4 x 0 blocks",
    ),
    "a rank twice": (
        "partition",
        forms.PARTITION.replace(b"3,0,0,0,0", b"2,0,0,0,0"),
        "5: found rank 2, which line 4",
    ),
    "a rank too many": (
        "partition",
        forms.PARTITION.replace(b"3,0,0", b"9,0,0"),
        "5: found rank 9, wanted ranks 0 to 3",
    ),
    "a rectangle that is too high": (
        "partition",
        forms.PARTITION.replace(b"5,0,3,8", b"5,0,3,9999999"),
        "4: column height",
    ),
    "a partition without ranks": ("partition", b"rank,x,y,width,height\n", "found no block"),
    "an empty file": ("cases", b"", "empty file"),
}


@pytest.mark.parametrize("kind", ["cases", "schedule", "partition"])
def test_valid_files_are_read(tmp_path, kind):
    (tmp_path / "input").write_bytes(
        {"cases": forms.CASES, "schedule": forms.PLAY, "partition": forms.PARTITION}[kind]
    )
    native.read(kind, tmp_path / "input")


@pytest.mark.parametrize(("kind", "content", "message"), REFUSED.values(), ids=REFUSED)
def test_invalid_files_are_refused_in_one_line(tmp_path, kind, content, message):
    (tmp_path / "input").write_bytes(content)
    with pytest.raises(UserError, match=message):
        native.read(kind, tmp_path / "input")
