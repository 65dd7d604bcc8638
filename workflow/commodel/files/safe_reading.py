"""Bounded reading of files from unknown sources: binary (`read_bytes`), text (`read_text`, `read_lines`), and the files
of folders and archives (`files_in`).

Only ordinary files are read, up to a limit. Text is UTF-8 with or without a byte order mark. Anything else raises a
UserError with the file and, if there is one, the line.

Files in a folder or a `.tar.gz` archive are read one after the other, and never unpacked to a disk. The names in an
archive are not used as paths. Links, devices and other special entries are omitted. The number of files and bytes is
bounded, since a small archive can expand to a large disk.
"""

import gzip
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TypeVar

from commodel.errors import UserError
from commodel.files.safe_paths import DEEPEST, AnyPath, SafePath

MIB = 1 << 20
LONGEST_LINE = MIB
MOST_LINES = 2_000_000
CHUNK = 4 * MIB
T = TypeVar("T")
PACKED = b"\x1f\x8b"  # how a file of gzip begins


def open_file(path: str | AnyPath) -> io.BufferedReader:
    """Open an ordinary file. A pipe could block for ever, and a device may have no end."""
    try:
        if isinstance(path, SafePath):
            return path.open("rb")
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise UserError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path) from None
    kind = os.fstat(number).st_mode
    if not stat.S_ISREG(kind):
        os.close(number)
        what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
        raise UserError(f"cannot be read: found {what}, wanted a file", file=path)
    return os.fdopen(number, "rb")


@contextmanager
def bounded(path: str | AnyPath, limit: int, wanted: str) -> Iterator[io.BufferedReader]:
    """Open an ordinary file of at most `limit` bytes; a sparse file counts with its full size."""
    with open_file(path) as stream:
        if os.fstat(stream.fileno()).st_size > limit:
            raise _too_large(path, limit, wanted)
        yield stream


def read_once(files: int) -> Callable[[Callable[[AnyPath], T]], Callable[[AnyPath], T]]:
    """Return a decorator for functions that read a file.

    The results for the last `files` paths are reused while the modification time and the size of the file stay the
    same.
    """

    def remembering(read: Callable[[AnyPath], T]) -> Callable[[AnyPath], T]:
        @lru_cache(maxsize=files)
        def remembered(path: AnyPath, changed: int, size: int) -> T:
            return read(path)

        def reading(path: AnyPath) -> T:
            with open_file(path) as stream:
                about = os.fstat(stream.fileno())
            return remembered(path, about.st_mtime_ns, about.st_size)

        return reading

    return remembering


def read_bytes(path: str | AnyPath, limit: int, wanted: str) -> bytes:
    with bounded(path, limit, wanted) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:  # it has grown
        raise _too_large(path, limit, wanted)
    return content


@contextmanager
def unpacked(path: str | AnyPath) -> Iterator[IO[bytes]]:
    """Open an ordinary file, decompressed if gzip has packed it. The caller has to bound the bytes that it reads."""
    with open_file(path) as stream:
        try:
            yield gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == PACKED else stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"cannot be unpacked: {error}", file=path) from None


def read_unpacked(path: str | AnyPath, limit: int, wanted: str) -> bytearray:
    """Return the decompressed content of a file in one buffer."""
    content = bytearray()
    with bounded(path, limit, wanted), unpacked(path) as stream:
        while part := stream.read(CHUNK):
            content += part
            if len(content) > limit:
                raise _too_large(path, limit, wanted)
    return content


def _too_large(path: str | AnyPath, limit: int, wanted: str) -> UserError:
    size = f"{limit // MIB} MiB" if limit >= MIB else f"{limit} bytes"
    return UserError(f"found more than {size}, wanted {wanted}", file=path)


def read_text(path: str | AnyPath, limit: int, wanted: str, *, strict: bool = True) -> str:
    """Return the text of a file; unless `strict`, invalid UTF-8 is replaced."""
    return as_text(read_bytes(path, limit, wanted), path, strict=strict)


def as_text(content: bytes, path: str | AnyPath, *, strict: bool = True) -> str:
    try:
        return content.decode("utf-8-sig", errors="strict" if strict else "replace")
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8 text", file=path, line=content.count(b"\n", 0, error.start) + 1) from None


def read_lines(
    path: str | AnyPath, limit: int, wanted: str, *, strict: bool = True, most: int = MOST_LINES
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, without line ends, also of a file that gzip has packed.

    One line is in memory at a time. Unless `strict`, invalid UTF-8 is replaced; this is for files in which only names
    can have it.
    """
    used = number = 0
    with unpacked(path) as stream:
        while line := stream.readline(LONGEST_LINE + 1):
            number, used = number + 1, used + len(line)
            if used > limit:
                raise UserError(f"found more than {limit / MIB:.3g} MiB, wanted {wanted}", file=path)
            if number > most:
                raise UserError(f"found more than {most:,} lines, wanted {wanted}", file=path)
            yield number, decode_line(line, path, number, strict=strict)


def decode_line(line: bytes, path: str | AnyPath, number: int, *, strict: bool = True) -> str:
    """Return the text of a line without its line end."""
    if len(line) > LONGEST_LINE:
        raise UserError(f"found a line of more than {LONGEST_LINE // MIB} MiB", file=path, line=number)
    if b"\0" in line:
        raise UserError("found a zero byte, wanted text", file=path, line=number)
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        text = line.decode("utf-8", errors="strict" if strict else "replace")
    except UnicodeDecodeError:
        raise UserError("not UTF-8 text", file=path, line=number) from None
    return text.rstrip("\r\n")


def read_blocks(path: AnyPath, limit: int, wanted: str, *, end: bytes, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line.

    A block ends after the line `end` if there is one within a few chunks.
    """
    used, number, rest = 0, 1, b""
    with unpacked(path) as stream:
        while part := stream.read(CHUNK):
            used += len(part)
            if used > limit:
                raise UserError(f"found more than {limit / MIB:.3g} MiB, wanted {wanted}", file=path)
            rest += part
            cut = rest.rfind(b"\n" + end)
            if cut < 0 and len(rest) < 4 * CHUNK:
                continue
            cut = cut + 1 + len(end) if cut >= 0 else rest.rfind(b"\n") + 1
            if len(rest) - cut > 4 * CHUNK:
                raise UserError(f"found a line of more than {LONGEST_LINE // MIB} MiB", file=path)
            block, rest = rest[:cut], rest[cut:]
            yield number, block
            number += block.count(b"\n")
            if number > most:
                raise UserError(f"found more than {most:,} lines, wanted {wanted}", file=path)
    if rest:
        yield number, rest
        if number + rest.count(b"\n") > most:
            raise UserError(f"found more than {most:,} lines, wanted {wanted}", file=path)


def text_if_any(path: Path) -> str:
    """Return the text of a small file of this machine, without blanks around it; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


MOST_FILES = 50_000  # including omitted entries
MOST_BYTES = 1024 * MIB  # of all files together
LARGEST_FILE = 128 * MIB  # of one file
LONGEST_HEADER = 64 * 1024  # of a prefix that describes a file
WANTED = "files of results"
FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
LONG_NAMES, RECORDS = (tarfile.GNUTYPE_LONGNAME,), (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
EMPTY = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)


def files_in(path: Path, ending: str = "") -> Iterator[tuple[str, bytes]]:
    """Return names and contents of the files in a folder or an archive whose names have this ending.

    Names are relative to the folder or the archive.
    """
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
    """Yield names and contents of the files in a tar archive, header by header: each has the length of its file."""
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
    """A stream of which at most `MOST_BYTES` are read."""

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
    """Return the name of the next file if it is too long for its header: in GNU's form, or as a record of pax."""
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
