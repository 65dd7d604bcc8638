"""Bounded reading of files from unknown sources: binary (`read_bytes`), text (`read_text`,
`read_lines`), and the files of folders and archives (`read_files_in`).

Only ordinary files are read, up to a limit. Text is UTF-8 with or without a byte order mark.
Anything else raises a UserError with the file and, if there is one, the line.

Files in a folder or a `.tar.gz` archive are read one after the other, and never unpacked to a disk.
The names in an archive are not used as paths. Links, devices and other special entries are omitted.
The number of files and bytes is bounded, since a small archive can expand to a large disk.
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
from typing import IO, TypeVar, cast

from commodel.errors import UserError
from commodel.files.safe_paths import MAX_FOLDER_DEPTH, AnyPath, SafePath

MIB = 1 << 20
MAX_LINE_BYTES = MIB
MAX_LINES = 2_000_000
CHUNK_BYTES = 4 * MIB
T = TypeVar("T")
GZIP_MAGIC = b"\x1f\x8b"  # first bytes of a file of gzip


def open_file(path: str | AnyPath) -> io.BufferedReader:
    """Open an ordinary file. A pipe could block for ever, and a device may have no end."""
    try:
        if isinstance(path, SafePath):
            return cast(io.BufferedReader, path.open("rb"))
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise UserError(
            f"cannot be read: {getattr(error, 'strerror', None) or error}", file=path
        ) from None
    kind = os.fstat(number).st_mode
    if not stat.S_ISREG(kind):
        os.close(number)
        kind_name = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
        raise UserError(f"cannot be read: found {kind_name}, wanted a file", file=path)
    return os.fdopen(number, "rb")


@contextmanager
def open_bounded(path: str | AnyPath, limit: int, wanted: str) -> Iterator[io.BufferedReader]:
    """Open an ordinary file of at most `limit` bytes; a sparse file counts with its full size."""
    with open_file(path) as stream:
        if os.fstat(stream.fileno()).st_size > limit:
            raise _refuse_large_file(path, limit, wanted)
        yield stream


def cache_reads(files: int) -> Callable[[Callable[[AnyPath], T]], Callable[[AnyPath], T]]:
    """Return a decorator for functions that read a file.

    The results for the last `files` paths are reused while the modification time and the size of
    the file stay the same.
    """

    def decorate(read: Callable[[AnyPath], T]) -> Callable[[AnyPath], T]:
        @lru_cache(maxsize=files)
        def read_version(path: AnyPath, mtime_ns: int, size: int) -> T:
            return read(path)

        def read_if_changed(path: AnyPath) -> T:
            with open_file(path) as stream:
                status = os.fstat(stream.fileno())
            return read_version(path, status.st_mtime_ns, status.st_size)

        return read_if_changed

    return decorate


def read_bytes(path: str | AnyPath, limit: int, wanted: str) -> bytes:
    with open_bounded(path, limit, wanted) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:  # it has grown
        raise _refuse_large_file(path, limit, wanted)
    return content


@contextmanager
def open_unpacked(path: str | AnyPath) -> Iterator[IO[bytes]]:
    """Open an ordinary file, decompressed if it is a file of gzip. The caller has to bound the
    bytes that it reads."""
    with open_file(path) as stream:
        try:
            yield (
                cast(IO[bytes], gzip.GzipFile(fileobj=stream))
                if stream.peek(2)[:2] == GZIP_MAGIC
                else stream
            )
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"cannot be unpacked: {error}", file=path) from None


def read_unpacked(path: str | AnyPath, limit: int, wanted: str) -> bytearray:
    """Return the decompressed content of a file in one buffer."""
    content = bytearray()
    with open_bounded(path, limit, wanted), open_unpacked(path) as stream:
        while part := stream.read(CHUNK_BYTES):
            content += part
            if len(content) > limit:
                raise _refuse_large_file(path, limit, wanted)
    return content


def _refuse_large_file(path: str | AnyPath, limit: int, wanted: str) -> UserError:
    size = f"{limit // MIB} MiB" if limit >= MIB else f"{limit} bytes"
    return UserError(f"found more than {size}, wanted {wanted}", file=path)


def read_text(path: str | AnyPath, limit: int, wanted: str, *, strict: bool = True) -> str:
    """Return the text of a file; unless `strict`, invalid UTF-8 is replaced."""
    return decode_text(read_bytes(path, limit, wanted), path, strict=strict)


def decode_text(content: bytes, path: str | AnyPath, *, strict: bool = True) -> str:
    try:
        return content.decode("utf-8-sig", errors="strict" if strict else "replace")
    except UnicodeDecodeError as error:
        raise UserError(
            "not UTF-8 text", file=path, line=content.count(b"\n", 0, error.start) + 1
        ) from None


def read_lines(
    path: str | AnyPath, limit: int, wanted: str, *, strict: bool = True, max_lines: int = MAX_LINES
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, which may be compressed by gzip, with their numbers and without
    line ends.

    One line is in memory at a time. Unless `strict`, invalid UTF-8 is replaced, for files in which
    only names can contain it.
    """
    bytes_read = number = 0
    with open_unpacked(path) as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number = number + 1
            bytes_read = bytes_read + len(line)
            _check_amount(path, wanted, bytes_read, limit, number, max_lines)
            yield number, decode_line(line, path, number, strict=strict)


def decode_line(line: bytes, path: str | AnyPath, number: int, *, strict: bool = True) -> str:
    """Return the text of a line without its line end."""
    if len(line) > MAX_LINE_BYTES:
        raise UserError(
            f"found a line of more than {MAX_LINE_BYTES // MIB} MiB", file=path, line=number
        )
    if b"\0" in line:
        raise UserError("found a zero byte, wanted text", file=path, line=number)
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        text = line.decode("utf-8", errors="strict" if strict else "replace")
    except UnicodeDecodeError:
        raise UserError("not UTF-8 text", file=path, line=number) from None
    return text.rstrip("\r\n")


def read_blocks(
    path: AnyPath, limit: int, wanted: str, *, end: bytes, max_lines: int
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line.

    A block ends after a line with the text `end`, if there is one within four chunks, else after
    any line.
    """
    bytes_read = 0
    number = 1
    buffered = b""
    with open_unpacked(path) as stream:
        while part := stream.read(CHUNK_BYTES):
            bytes_read += len(part)
            _check_amount(path, wanted, bytes_read, limit, number, max_lines)
            buffered += part
            cut = buffered.rfind(b"\n" + end)
            if cut < 0 and len(buffered) < 4 * CHUNK_BYTES:
                continue
            cut = cut + 1 + len(end) if cut >= 0 else buffered.rfind(b"\n") + 1
            if len(buffered) - cut > 4 * CHUNK_BYTES:
                raise UserError(
                    f"found a line of more than {4 * CHUNK_BYTES // MIB} MiB", file=path
                )
            block = buffered[:cut]
            buffered = buffered[cut:]
            yield number, block
            number += block.count(b"\n")
            _check_amount(path, wanted, bytes_read, limit, number, max_lines)
    if buffered:
        yield number, buffered
        _check_amount(path, wanted, bytes_read, limit, number + buffered.count(b"\n"), max_lines)


def _check_amount(
    path: str | AnyPath, wanted: str, size: int, limit: int, lines: int, max_lines: int
) -> None:
    if size > limit:
        raise UserError(f"found more than {limit / MIB:.3g} MiB, wanted {wanted}", file=path)
    if lines > max_lines:
        raise UserError(f"found more than {max_lines:,} lines, wanted {wanted}", file=path)


def read_text_or_empty(path: Path) -> str:
    """Return the text of a small file of this machine, without blanks around it; empty if it cannot
    be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


MAX_FILES = 50_000  # including omitted entries
MAX_TOTAL_BYTES = 1024 * MIB  # of all files together
MAX_FILE_BYTES = 128 * MIB  # of one file
MAX_NAME_BYTES = 64 * 1024  # of the extra header of a file with a long name
WANTED_FILES = "files of results"
FILE_TYPES = (tarfile.REGTYPE, tarfile.AREGTYPE)
GNU_LONG_NAMES = (tarfile.GNUTYPE_LONGNAME,)
PAX_RECORDS = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
TYPES_WITHOUT_CONTENT = (
    tarfile.LNKTYPE,
    tarfile.SYMTYPE,
    tarfile.DIRTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.FIFOTYPE,
)


def read_files_in(path: Path, ending: str = "") -> Iterator[tuple[str, bytes]]:
    """Return names and contents of the files in a folder or an archive whose names have this
    ending.

    Names are relative to the folder or the archive.
    """
    return _read_folder(path, ending) if path.is_dir() else _read_archive(path, ending)


def _read_folder(path: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    folders = [SafePath.at(path.resolve())]
    number = 0
    bytes_left = MAX_TOTAL_BYTES
    while folders:
        folder = folders.pop()
        if len(folder.parts) >= MAX_FOLDER_DEPTH:
            raise UserError(f"found more than {MAX_FOLDER_DEPTH} folders in one another", file=path)
        for entry in folder.iterdir():
            number += 1
            _check_count(number, path)
            try:
                kind = entry.stat().st_mode
            except UserError:  # a link is not followed
                continue
            if stat.S_ISDIR(kind):
                folders.append(entry)
            elif stat.S_ISREG(kind) and entry.name.endswith(ending):
                with open_bounded(entry, MAX_FILE_BYTES, WANTED_FILES) as stream:
                    content = stream.read(MAX_FILE_BYTES)
                bytes_left -= len(content)
                if bytes_left < 0:
                    raise _refuse_large_total(path)
                yield "/".join(entry.parts), content


def _read_archive(path: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files in a tar archive; each header has the length of the
    file after it."""
    with open_unpacked(path) as packed:
        stream = _BoundedStream(packed, path)
        number = 0
        long_name = ""
        while (header := stream.read(tarfile.BLOCKSIZE)).strip(b"\0"):
            number += 1
            _check_count(number, path)
            try:
                member = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
            except tarfile.HeaderError:
                raise UserError("found no tar archive, or a damaged one", file=path) from None
            size = 0 if member.type in TYPES_WITHOUT_CONTENT else member.size
            if not 0 <= size <= MAX_TOTAL_BYTES:
                raise _refuse_large_total(path)
            name = long_name or member.name
            is_file = member.type in FILE_TYPES
            if member.type in GNU_LONG_NAMES + PAX_RECORDS:
                long_name = (
                    _parse_long_name(stream.read_exactly(size, MAX_NAME_BYTES), member.type)
                    or long_name
                )
            else:
                long_name = ""
                if is_file and name.endswith(ending):
                    yield name, stream.read_exactly(size, MAX_FILE_BYTES)
                else:
                    stream.skip(size)
            stream.skip(-size % tarfile.BLOCKSIZE)
        if not number:
            raise UserError("found no tar archive, or an empty one", file=path)


class _BoundedStream:
    """A stream of which at most MAX_TOTAL_BYTES are read."""

    def __init__(self, stream: IO[bytes], path: Path):
        self.stream = stream
        self.path = path
        self.bytes_left = MAX_TOTAL_BYTES

    def read(self, size: int) -> bytes:
        content = self.stream.read(size)
        self.bytes_left -= len(content)
        if self.bytes_left < 0:
            raise _refuse_large_total(self.path)
        return content

    def read_exactly(self, size: int, limit: int) -> bytes:
        if size > limit:
            raise UserError(
                f"found a file of {size:,} bytes in it, wanted at most {limit:,}", file=self.path
            )
        content = self.read(size)
        if len(content) < size:
            raise UserError("ends in the middle of a file", file=self.path)
        return content

    def skip(self, size: int) -> None:
        while size > 0:
            part = self.read(min(size, CHUNK_BYTES))
            if not part:
                raise UserError("ends in the middle of a file", file=self.path)
            size -= len(part)


def _parse_long_name(content: bytes, kind: bytes) -> str:
    """Return the name of the next file from an extra header in GNU's or pax's form, for names too
    long for its own."""
    if kind in GNU_LONG_NAMES:
        return content.partition(b"\0")[0].decode("utf-8", "replace")
    while content:
        length, blank, _ = content.partition(b" ")
        if not blank or not length.isdigit() or len(length) > 5:
            return ""
        size = int(length)
        if not size:
            return ""
        record = content[len(length) + 1 : size]
        content = content[size:]
        if record.startswith(b"path="):
            return record[5:].rstrip(b"\n").decode("utf-8", "replace")
    return ""


def _check_count(number: int, path: Path) -> None:
    if number > MAX_FILES:
        raise UserError(
            f"found more than {MAX_FILES:,} files in it, wanted {WANTED_FILES}", file=path
        )


def _refuse_large_total(path: Path) -> UserError:
    return UserError(
        f"found more than {MAX_TOTAL_BYTES // MIB:,} MiB in it, wanted {WANTED_FILES}", file=path
    )
