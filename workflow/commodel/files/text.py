"""Reads files that may come from anybody: ordinary files only, never more than a limit, UTF-8 with or without a mark.

What is none of that is a UserError with file and, where there is one, line.
"""

import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, TypeVar

from commodel.errors import UserError
from commodel.files.paths import AnyPath, SafePath

MIB = 1 << 20
LONGEST_LINE = MIB
MOST_LINES = 2_000_000
CHUNK = 4 * MIB
T = TypeVar("T")
PACKED = b"\x1f\x8b"  # how a file of gzip begins


def open_file(path: str | AnyPath) -> io.BufferedReader:
    """An ordinary file. A pipe would keep us waiting for ever, a device would never end."""
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
    """An ordinary file that is not larger than that, however little of it is on the disk."""
    with open_file(path) as stream:
        if os.fstat(stream.fileno()).st_size > limit:
            raise _too_large(path, limit, wanted)
        yield stream


def read_once(files: int) -> Callable[[Callable[[AnyPath], T]], Callable[[AnyPath], T]]:
    """Of what reads a file: each of so many is read once for all who ask, as long as it stays as it is."""

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
    """What stands in an ordinary file, also where gzip has packed it: whoever reads it has to count."""
    with open_file(path) as stream:
        try:
            yield gzip.GzipFile(fileobj=stream) if stream.peek(2)[:2] == PACKED else stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UserError(f"cannot be unpacked: {error}", file=path) from None


def read_unpacked(path: str | AnyPath, limit: int, wanted: str) -> bytearray:
    """All that stands in a file, in memory once."""
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
    """All of a file. Not strict: what is not UTF-8 is replaced."""
    return as_text(read_bytes(path, limit, wanted), path, strict=strict)


def as_text(content: bytes, path: str | AnyPath, *, strict: bool = True) -> str:
    try:
        return content.decode("utf-8-sig", errors="strict" if strict else "replace")
    except UnicodeDecodeError as error:
        raise UserError("not UTF-8 text", file=path, line=content.count(b"\n", 0, error.start) + 1) from None


def read_lines(
    path: str | AnyPath, limit: int, wanted: str, *, strict: bool = True, most: int = MOST_LINES
) -> Iterator[tuple[int, str]]:
    """Lines with their numbers and without their ends, one in memory at a time, also of what gzip has packed. Not
    strict: what is not UTF-8 is replaced, where only names can hold it."""
    with unpacked(path) as stream:
        yield from decode_lines(stream, path, limit, wanted, strict=strict, most=most)


def decode_lines(
    stream: IO[bytes], path: str | AnyPath, limit: int, wanted: str, *, strict: bool = True, most: int = MOST_LINES
) -> Iterator[tuple[int, str]]:
    """Return what `read_lines` does, of a stream of unpacked bytes; `path` is for errors."""
    used = number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number, used = number + 1, used + len(line)
        if used > limit:
            raise UserError(f"found more than {limit / MIB:.3g} MiB, wanted {wanted}", file=path)
        if number > most:
            raise UserError(f"found more than {most:,} lines, wanted {wanted}", file=path)
        yield number, decode_line(line, path, number, strict=strict)


def decode_line(line: bytes, path: str | AnyPath, number: int, *, strict: bool = True) -> str:
    """Return the text of a line without its end."""
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
    """Return blocks of whole lines, each with the number of its first line. A block ends after `end`, a line, wherever
    one is near enough."""
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
    """Of a small file that this machine may have, such as those that Linux tells of itself in."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
