"""Copies of the files that a plan depends on, in a results folder (`archive_input`): files that a
matrix names by `file:PATH`, and the published parameter sets that a paper is compared with.

In a block of `use_archived_inputs`, `find_input` returns the copies of a results folder in place of
these files.
"""

import gzip
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from commodel.errors import UserError
from commodel.files.atomic import write_atomically
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.safe_reading import CHUNK_BYTES, GZIP_MAGIC, MIB, open_file, open_unpacked
from commodel.records import ArchivedFile, ArchivedKind

MAX_COPY_BYTES = 256 * MIB  # of a larger file only the digest is stored
MAX_PLAIN_COPY_BYTES = MIB  # a larger copy is compressed by gzip
MAX_NAME_LENGTH = 80  # characters of the file's name in the name of its copy
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ArchivedInputs:
    """A results folder, and the records of the files that its plan depends on."""

    results: Results
    files: Mapping[str, ArchivedFile]
    # name, mtime and size of files whose digest was checked
    unchanged: set[tuple[str, int, int]] = field(default_factory=set)


_ARCHIVE: ContextVar[ArchivedInputs | None] = ContextVar("archived_inputs", default=None)


@contextmanager
def use_archived_inputs(results: Results, files: Mapping[str, ArchivedFile]) -> Iterator[None]:
    """Use the copies of a plan's files while a block runs; refuse a copy that differs from its
    record."""
    for name, file in files.items():
        copy = file.copy and results.copy(file.copy)
        if copy and copy.exists() and not _matches_record(copy, file):
            raise UserError(
                f"differs from the plan's copy of '{name}', SHA-256 {file.digest}", file=copy
            )
    before = _ARCHIVE.set(ArchivedInputs(results, files))
    try:
        yield
    finally:
        _ARCHIVE.reset(before)


def find_input(name: str, root: Path = Path()) -> AnyPath:
    """Return the path to read a file from: its copy in the results, or the file itself if it equals
    its record.

    Outside of a block of `use_archived_inputs`, it is the file itself.
    """
    path = root / name
    archive = _ARCHIVE.get()
    if archive is None or name not in archive.files:
        return path
    file = archive.files[name]
    copy = file.copy and archive.results.copy(file.copy)
    if copy and copy.exists():
        return copy
    no_copy = f"{archive.results.folder} has no copy of it"
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot be read: {getattr(error, 'strerror', error)}, and {no_copy}", file=path
        ) from None
    version = name, status.st_mtime_ns, status.st_size
    if version not in archive.unchanged and not _matches_record(path, file):
        raise UserError(f"has changed since it was planned, and {no_copy}; plan again", file=path)
    archive.unchanged.add(version)
    return path


def cache_by_files(
    maxsize: int, list_files: Callable[P, Iterable[str]]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator for functions whose results depend on files.

    `list_files`: of the arguments, the names of the files. A result is used again while all of them
    are the same files with the same modification time and size: a name without a folder is another
    file in another folder.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        of_any_arguments: Callable[..., T] = function

        def compute_version(versions: tuple[Any, ...], *args: Any, **kwargs: Any) -> T:
            return of_any_arguments(*args, **kwargs)

        compute: Callable[..., T] = lru_cache(maxsize=maxsize)(compute_version)

        @wraps(function)
        def compute_if_changed(*args: P.args, **kwargs: P.kwargs) -> T:
            versions = tuple(map(_find_version, list_files(*args, **kwargs)))
            if None in versions:
                return function(*args, **kwargs)
            return compute(versions, *args, **kwargs)

        return compute_if_changed

    return decorate


def _find_version(name: str) -> tuple[int, ...] | None:
    """Return numbers that change with the file; None if it cannot be read."""
    try:
        status = find_input(name).stat()
    except (OSError, ValueError, UserError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def record_input(
    kind: ArchivedKind, name: str, root: Path = Path(), source: str = ""
) -> ArchivedFile:
    """Return the record of a file for a plan: its kind, digest, size, and the name of its copy."""
    path = find_input(name, root)
    archive = _ARCHIVE.get()
    if archive and name in archive.files:
        return archive.files[name]
    with open_file(path) as stream:
        compressible = stream.peek(2)[:2] != GZIP_MAGIC
        digest, size = _compute_digest(stream)
    safe_name = re.sub(r"[^A-Za-z0-9._-]", "-", path.name)[-MAX_NAME_LENGTH:]
    suffix = ".gz" if compressible and size > MAX_PLAIN_COPY_BYTES else ""
    copy = f"{digest[:12]}-{safe_name}{suffix}" if size <= MAX_COPY_BYTES else ""
    return ArchivedFile(kind=kind, digest=digest, bytes=size, copy=copy, source=source)


def archive_input(name: str, file: ArchivedFile, results: Results, root: Path = Path()) -> None:
    """Write the copy of a file into a results folder, unless it exists there."""
    copy_path = results.copy(file.copy)
    if copy_path.exists() and _matches_record(copy_path, file):
        return
    path = find_input(name, root)
    with open_file(path) as stream, write_atomically(copy_path) as target:
        large = not isinstance(path, SafePath) and file.bytes > MAX_PLAIN_COPY_BYTES
        compress = large and stream.peek(2)[:2] != GZIP_MAGIC
        with (
            gzip.GzipFile("", "wb", fileobj=target, mtime=0)
            if compress
            else nullcontext(target) as copy
        ):
            while part := stream.read(CHUNK_BYTES):
                copy.write(part)
    if not _matches_record(copy_path, file):
        copy_path.unlink()
        raise UserError("has changed while it was planned; plan again", file=path)


def _matches_record(path: AnyPath, file: ArchivedFile) -> bool:
    """Return whether a file, possibly compressed, has the digest and the size of its record."""
    for open_stream in (open_file, open_unpacked):
        with open_stream(path) as stream:
            if _compute_digest(stream, file.bytes) == (file.digest, file.bytes):
                return True
    return False


def _compute_digest(stream: IO[bytes], max_bytes: int | None = None) -> tuple[str, int]:
    """Return the SHA-256 and the length of a stream; reading ends when the length exceeds
    `max_bytes`."""
    hashed = hashlib.sha256()
    size = 0
    while (max_bytes is None or size <= max_bytes) and (part := stream.read(CHUNK_BYTES)):
        hashed.update(part)
        size += len(part)
    return hashed.hexdigest(), size
