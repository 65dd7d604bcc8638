"""Files from unknown sources: ordinary text of limited size is read, other files are refused in one
line. No field of an archive is trusted."""

import io
import os
import tarfile
from functools import partial

import pytest

from commodel.errors import UserError
from commodel.files import safe_reading
from commodel.files import safe_reading as textfiles
from commodel.files.atomic import read_json
from commodel.files.parameter_sets import read_parameters
from commodel.files.safe_reading import read_bytes, read_lines, read_text
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows, read_table
from commodel.interchange import MAX_FILE_BYTES
from commodel.patterns.trees.topologies import make_tree
from commodel.units import parse_count

READERS = {
    "text": lambda path: read_text(path, 100, "a short text"),
    "lines": lambda path: list(read_lines(path, 100, "a short text")),
}


@pytest.fixture
def refused(tmp_path):
    def read(reader, content):
        path = tmp_path / "input"
        path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            reader(path)
        return caught.value.message.removeprefix(str(path))

    return read


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_limits_and_encodings(reader, refused):
    assert "wanted a short text" in refused(reader, b"a" * 101)
    assert refused(reader, b"one\ntwo \xff\n") == ":2: not UTF-8 text"


def test_files_with_too_long_or_too_many_lines_are_refused(refused, monkeypatch):
    monkeypatch.setattr(textfiles, "MAX_LINE_BYTES", 10)
    assert refused(READERS["lines"], b"a\n" + b"b" * 11).startswith(":2: found a line of more than")
    few = partial(read_lines, limit=100, wanted="few", max_lines=3)
    assert "more than 3 lines, wanted few" in refused(lambda path: list(few(path)), b"\n\n\n\n")


def test_a_zero_byte_has_a_line(refused):
    assert (
        refused(READERS["lines"], "one\ntwo".encode("utf-16-le"))
        == ":1: found a zero byte, wanted text"
    )


def test_a_mark_and_windows_ends_are_no_content(tmp_path):
    (tmp_path / "input").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert list(read_lines(tmp_path / "input", 100, "")) == [(1, "one"), (2, "two")]
    assert read_text(tmp_path / "input", 100, "").startswith("one")


@pytest.mark.parametrize(
    "reader",
    [
        lambda path: read_bytes(path, MAX_FILE_BYTES, ""),
        read_json,
        read_parameters,
        lambda path: read_table(path, ()),
        lambda path: read_rows(path, ()),
        lambda path: make_tree(f"file:{path}"),
    ],
)
def test_pipes_devices_and_folders_are_refused_without_waiting(reader, tmp_path):
    """The paths are a pipe without a writer, an endless device, a folder and a missing file."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match=f"^{path}: cannot be read: "):
            reader(path)


def test_json_that_nests_without_end(refused):
    assert "cannot read" in refused(read_json, b"[" * 200_000)


def test_a_table_with_the_same_column_twice(refused):
    assert (
        refused(lambda path: read_rows(path, ("a",)), b"a,b,a\n1,2,3\n")
        == ":1: found the column 'a' twice"
    )


def test_row_errors_get_the_line_of_the_table_unless_another_file_is_named():
    with pytest.raises(UserError) as wrong, add_line_to_errors("table.csv", 3):
        parse_cell({"ranks": "x"}, "ranks", parse_count)
    assert wrong.value.message.startswith("table.csv:3: ranks: found 'x', wanted")
    with pytest.raises(UserError) as elsewhere, add_line_to_errors("table.csv", 3):
        raise UserError("found nothing in it", file="layout.txt", line=7)
    assert elsewhere.value.message == "layout.txt:7: found nothing in it"


def test_a_cell_without_an_end(refused):
    assert refused(lambda path: read_rows(path, ("a",)), b'a\n"' + b"x" * 200_000).startswith(
        ":2: cannot read"
    )


def write_archive(tmp_path, *members, form=tarfile.GNU_FORMAT):
    """Write an archive of members (name, kind, content) and return its path; the content of a link
    is its target."""
    path = tmp_path / "run.tar.gz"
    with tarfile.open(path, "w:gz", format=form) as tar:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            else:
                member.linkname = content
                tar.addfile(member)
    return path


FILE = tarfile.REGTYPE


def test_of_an_archive_only_ordinary_files_are_read(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("x")
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE)
    members = [(f"{number}.csv", kind, str(secret)) for number, kind in enumerate(kinds)]
    path = write_archive(
        tmp_path,
        *members,
        ("../../e.csv", FILE, b"up"),
        ("/etc/f.csv", FILE, b"root"),
        ("g.txt", FILE, b"no"),
    )
    assert list(safe_reading.read_files_in(path, ".csv")) == [
        ("../../e.csv", b"up"),
        ("/etc/f.csv", b"root"),
    ]
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, "secret.csv"]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_names_of_any_length(tmp_path, form):
    name = "/".join(["a" * 70] * 2) + "/ü.csv"
    path = write_archive(tmp_path, (name, FILE, b"long"), ("b.csv", FILE, b"x" * 513), form=form)
    assert list(safe_reading.read_files_in(path)) == [(name, b"long"), ("b.csv", b"x" * 513)]


def test_a_small_archive_does_not_stand_for_a_large_disk(tmp_path, monkeypatch):
    path = write_archive(tmp_path, *((f"{number}.txt", FILE, b"x" * 2000) for number in range(9)))
    monkeypatch.setattr(safe_reading, "MAX_FILE_BYTES", 1000)
    assert list(safe_reading.read_files_in(path, ".csv")) == []
    with pytest.raises(UserError, match="found a file of 2,000 bytes in it, wanted at most 1,000"):
        list(safe_reading.read_files_in(path))
    monkeypatch.setattr(safe_reading, "MAX_FILES", 8)
    with pytest.raises(UserError, match="found more than 8 files in it"):
        list(safe_reading.read_files_in(path, ".csv"))
    monkeypatch.setattr(safe_reading, "MAX_FILES", 9)
    monkeypatch.setattr(safe_reading, "MAX_TOTAL_BYTES", 9 * 2000)
    with pytest.raises(UserError, match=r"found more than 0 MiB in it"):
        list(safe_reading.read_files_in(path, ".csv"))


@pytest.mark.parametrize("cut", [100, 512, 900, 1500])
def test_a_damaged_archive_is_refused(tmp_path, cut):
    whole = tarfile_bytes(("a.csv", b"x" * 700))
    path = tmp_path / "a.tar"
    path.write_bytes(whole[:cut] + (b"nonsense" * 64 if cut == 1500 else b""))
    with pytest.raises(UserError, match=r"a\.tar: (found no tar archive|ends in the middle)"):
        list(safe_reading.read_files_in(path))


def tarfile_bytes(*files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()
