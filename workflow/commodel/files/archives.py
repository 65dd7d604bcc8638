"""Files in folders and in `.tar.gz` archives of strangers, read one after the other and never unpacked to a disk.

Names are text to look at, no paths: nothing is opened by what an archive says. Only ordinary files are given out;
links, devices and whatever else an archive can hold are passed over, and in a folder nothing is reached through a link.
How many files there may be, and how much is read of them, is bounded: a small archive can stand for a large disk.
"""

import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from commodel.errors import UserError
from commodel.files.paths import DEEPEST, SafePath
from commodel.files.text import CHUNK, MIB, bounded, unpacked

MOST_FILES = 50_000  # also of what is passed over
MOST_BYTES = 1024 * MIB  # of all files together
LARGEST_FILE = 128 * MIB  # of one file
LONGEST_HEADER = 64 * 1024  # of what stands before a file and says more of it
WANTED = "files of results"
FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
LONG_NAMES, RECORDS = (tarfile.GNUTYPE_LONGNAME,), (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
EMPTY = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)


def files_in(path: Path, ending: str = "") -> Iterator[tuple[str, bytes]]:
    """Names, as seen from the folder or in the archive, and contents of the files whose names end so."""
    return _in_folder(path, ending) if path.is_dir() else _in_archive(path, ending)


def _in_folder(path: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    waiting, number, left = [SafePath.at(path.resolve())], 0, MOST_BYTES
    while waiting:
        folder = waiting.pop()
        if len(folder.parts) >= DEEPEST:
            raise UserError(f"found more than {DEEPEST} folders in one another", file=path)
        for entry in folder.iterdir():
            number += 1
            _check_count(number, path)
            try:
                kind = entry.stat().st_mode
            except UserError:  # a link is not followed
                continue
            if stat.S_ISDIR(kind):
                waiting.append(entry)
            elif stat.S_ISREG(kind) and entry.name.endswith(ending):
                with bounded(entry, LARGEST_FILE, WANTED) as stream:
                    content = stream.read(LARGEST_FILE)
                left -= len(content)
                if left < 0:
                    raise _too_much(path)
                yield "/".join(entry.parts), content


def _in_archive(path: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """Headers are read one by one, as each says how long the file behind it is."""
    with unpacked(path) as packed:
        stream, number, longer = _Counted(packed, path), 0, ""
        while (header := stream.read(tarfile.BLOCKSIZE)).strip(b"\0"):
            number += 1
            _check_count(number, path)
            try:
                member = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
            except tarfile.HeaderError:
                raise UserError("found no tar archive, or a damaged one", file=path) from None
            size = 0 if member.type in EMPTY else member.size
            if not 0 <= size <= MOST_BYTES:
                raise _too_much(path)
            name, ours = longer or member.name, member.type in FILES
            if member.type in LONG_NAMES + RECORDS:
                longer = _name(stream.exactly(size, LONGEST_HEADER), member.type) or longer
            else:
                longer = ""
                if ours and name.endswith(ending):
                    yield name, stream.exactly(size, LARGEST_FILE)
                else:
                    stream.skip(size)
            stream.skip(-size % tarfile.BLOCKSIZE)
        if not number:
            raise UserError("found no tar archive, or an empty one", file=path)


class _Counted:
    """A stream of which no more than `MOST_BYTES` are read."""

    def __init__(self, stream: IO[bytes], path: Path):
        self.stream, self.path, self.left = stream, path, MOST_BYTES

    def read(self, size: int) -> bytes:
        content = self.stream.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise _too_much(self.path)
        return content

    def exactly(self, size: int, most: int) -> bytes:
        if size > most:
            raise UserError(f"found a file of {size:,} bytes in it, wanted at most {most:,}", file=self.path)
        content = self.read(size)
        if len(content) < size:
            raise UserError("ends in the middle of a file", file=self.path)
        return content

    def skip(self, size: int) -> None:
        while size > 0:
            part = self.read(min(size, CHUNK))
            if not part:
                raise UserError("ends in the middle of a file", file=self.path)
            size -= len(part)


def _name(content: bytes, kind: bytes) -> str:
    """The name of the file that follows, where its header has no room for it: GNU's form, or a record of pax."""
    if kind in LONG_NAMES:
        return content.partition(b"\0")[0].decode("utf-8", "replace")
    while content:
        length, blank, _ = content.partition(b" ")
        if not blank or not length.isdigit() or len(length) > 5 or not (size := int(length)):
            return ""
        record, content = content[len(length) + 1 : size], content[size:]
        if record.startswith(b"path="):
            return record[5:].rstrip(b"\n").decode("utf-8", "replace")
    return ""


def _check_count(number: int, path: Path) -> None:
    if number > MOST_FILES:
        raise UserError(f"found more than {MOST_FILES:,} files in it, wanted {WANTED}", file=path)


def _too_much(path: Path) -> UserError:
    return UserError(f"found more than {MOST_BYTES // MIB:,} MiB in it, wanted {WANTED}", file=path)
