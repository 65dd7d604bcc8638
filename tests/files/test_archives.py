"""Archives come from anybody: no link in one is followed, no path of one written to, no size believed."""

import io
import tarfile

import pytest

from commodel.errors import UserError
from commodel.files import safe_reading


def hostile(tmp_path, *members, form=tarfile.GNU_FORMAT):
    """An archive of (name, kind, content); a name's content is a file's, or what a link points to."""
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
    path = hostile(
        tmp_path, *members, ("../../e.csv", FILE, b"up"), ("/etc/f.csv", FILE, b"root"), ("g.txt", FILE, b"no")
    )
    assert list(safe_reading.files_in(path, ".csv")) == [("../../e.csv", b"up"), ("/etc/f.csv", b"root")]
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, "secret.csv"]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_names_of_any_length(tmp_path, form):
    name = "/".join(["a" * 70] * 2) + "/ü.csv"
    path = hostile(tmp_path, (name, FILE, b"long"), ("b.csv", FILE, b"x" * 513), form=form)
    assert list(safe_reading.files_in(path)) == [(name, b"long"), ("b.csv", b"x" * 513)]


def test_a_small_archive_does_not_stand_for_a_large_disk(tmp_path, monkeypatch):
    path = hostile(tmp_path, *((f"{number}.txt", FILE, b"x" * 2000) for number in range(9)))
    monkeypatch.setattr(safe_reading, "LARGEST_FILE", 1000)
    assert list(safe_reading.files_in(path, ".csv")) == []
    with pytest.raises(UserError, match="found a file of 2,000 bytes in it, wanted at most 1,000"):
        list(safe_reading.files_in(path))
    monkeypatch.setattr(safe_reading, "MOST_FILES", 8)
    with pytest.raises(UserError, match="found more than 8 files in it"):
        list(safe_reading.files_in(path, ".csv"))
    monkeypatch.setattr(safe_reading, "MOST_FILES", 9)
    monkeypatch.setattr(safe_reading, "MOST_BYTES", 9 * 2000)
    with pytest.raises(UserError, match=r"found more than 0 MiB in it"):
        list(safe_reading.files_in(path, ".csv"))


@pytest.mark.parametrize("cut", [100, 512, 900, 1500])
def test_a_damaged_archive_is_refused(tmp_path, cut):
    whole = tarfile_bytes(("a.csv", b"x" * 700))
    path = tmp_path / "a.tar"
    path.write_bytes(whole[:cut] + (b"nonsense" * 64 if cut == 1500 else b""))
    with pytest.raises(UserError, match=r"a\.tar: (found no tar archive|ends in the middle)"):
        list(safe_reading.files_in(path))


def tarfile_bytes(*files):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()
