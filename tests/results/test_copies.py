"""A copy of a file that a plan names: packed where it is large, what the plan says it is, and read in its place."""

import gzip
import os

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.files.cache import keep, noted, reached, standing_on
from commodel.files.results_folder import Results
from commodel.files.safe_reading import MIB, unpacked
from commodel.patterns.layouts import place
from commodel.patterns.written import written
from tests.results.received import NAMED, OTHERS


def random_table(rows):
    sizes = np.random.default_rng(3).integers(0, 1 << 20, rows)
    return "step,kind,rank,peer,bytes\n" + "".join(f"{step},send,0,1,{size}\n" for step, size in enumerate(sizes))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Results.of(tmp_path / "results")


def test_a_large_file_is_packed(results, tmp_path):
    (tmp_path / "long.csv").write_text(random_table(80_000))
    wanted, file = written("file:long.csv").content(), noted("pattern", "long.csv")
    assert file.bytes > MIB
    assert file.copy.endswith("-long.csv.gz")
    keep("long.csv", file, results)
    copy = tmp_path / "results/inputs/files" / file.copy
    assert copy.stat().st_size < 0.6 * file.bytes
    assert gzip.decompress(copy.read_bytes()) == (tmp_path / "long.csv").read_bytes()
    first = copy.stat().st_ino
    keep("long.csv", file, results)
    assert copy.stat().st_ino == first  # it is left alone
    (tmp_path / "long.csv").unlink()
    with standing_on(results, {"long.csv": file}):
        assert written("file:long.csv").content() == wanted


def test_a_packed_file_is_a_pattern_and_kept_as_it_is(results, tmp_path):
    text = random_table(80_000).encode()
    (tmp_path / "long.csv.gz").write_bytes(gzip.compress(text) + b"")
    (tmp_path / "long.csv").write_bytes(text)
    wanted, file = written("file:long.csv").content(), noted("pattern", "long.csv.gz")
    keep("long.csv.gz", file, results)
    (tmp_path / "long.csv.gz").unlink()
    with standing_on(results, {"long.csv.gz": file}):
        assert written("file:long.csv.gz").content() == wanted


def test_a_bomb_is_no_copy(results, tmp_path):
    """No more of it is unpacked than the plan's file is long."""
    (tmp_path / "a.csv").write_text(NAMED["halo.csv"])
    file = noted("pattern", "a.csv")
    place = tmp_path / "results/inputs/files" / file.copy
    place.parent.mkdir(parents=True)
    with gzip.open(place, "wb", compresslevel=1) as stream:
        for _ in range(256):
            stream.write(bytes(MIB))
    with pytest.raises(UserError, match="something else"), standing_on(results, {"a.csv": file}):
        pass


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b[:60] + b"\xff" * 40 + b[100:], lambda b: b[:2]]
)
def test_what_cannot_be_unpacked_is_said(damage, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(damage(gzip.compress(random_table(100).encode())))
    with pytest.raises(UserError, match=r"a\.csv\.gz: cannot be unpacked") as error:
        written(f"file:{path}")
    assert error.value.format_message().count("\n") == 0


def test_a_file_that_changes_while_it_is_planned(results, tmp_path):
    (tmp_path / "a.csv").write_text(NAMED["halo.csv"])
    file = noted("pattern", "a.csv")
    (tmp_path / "a.csv").write_text(OTHERS["halo.csv"])
    with pytest.raises(UserError, match="has changed while it was planned"):
        keep("a.csv", file, results)
    assert list((tmp_path / "results/inputs/files").iterdir()) == []


def test_names_of_copies_are_names(results, tmp_path):
    for name in ("ä ö/…b.csv", "-rf", ".hidden", f"{'x' * 200}.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(NAMED["halo.csv"])
        file = noted("pattern", name)
        keep(name, file, results)
        assert [path.name for path in results.inputs()] == [file.copy]
        results.copy(file.copy).unlink()


def test_outside_of_results_the_project_s_files_are_read(results, tmp_path):
    (tmp_path / "ranks.txt").write_text("0\n0\n1\n")
    file = noted("layout", "ranks.txt")
    keep("ranks.txt", file, results)
    os.utime(tmp_path / "ranks.txt", (1, 1))
    (tmp_path / "ranks.txt").write_text("0\n1\n2\n")
    with standing_on(results, {"ranks.txt": file}):
        assert place("file:ranks.txt", 3).tolist() == [0, 0, 1]
        assert place("file:ranks.txt@5,7", 3).tolist() == [5, 5, 7]
    assert place("file:ranks.txt", 3).tolist() == [0, 1, 2]
    assert reached("ranks.txt") == reached("ranks.txt").relative_to(".")


def test_unpacked_takes_an_empty_file(tmp_path):
    (tmp_path / "empty").touch()
    with unpacked(tmp_path / "empty") as stream:
        assert stream.read() == b""
