"""Copies of the files that a plan depends on, in a results folder (`archive_input`): files that a matrix names by
`file:PATH`, and the published parameter sets that a paper is compared with.

In a block of `use_archived_inputs`, `find_input` returns the copies of a results folder in place of these files.
"""

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from commodel.errors import UserError
from commodel.files.atomic import write_atomically
from commodel.files.results_folder import Results
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.safe_reading import CHUNK, MIB, PACKED, open_file, unpacked
from commodel.records import KeptFile

LARGEST_KEPT = 256 * MIB  # of a file that is kept; of a larger one the digest alone is
LARGEST_PLAIN = MIB  # of a copy that people can read; a larger one is packed
LONGEST_NAME = 80  # characters of its name


@dataclass(frozen=True, eq=False)
class ArchivedInputs:
    """A results folder, and the records of the files that its plan depends on."""

    results: Results
    files: Mapping[str, KeptFile]
    unchanged: set[tuple] = field(default_factory=set)  # files of the project whose digest has been checked


_INPUTS: ContextVar[ArchivedInputs | None] = ContextVar("ground", default=None)


@contextmanager
def use_archived_inputs(results: Results, files: Mapping[str, KeptFile]) -> Iterator[None]:
    """Use the copies of a plan's files while a block runs; refuse a copy that differs from its record."""
    for name, file in files.items():
        copy = file.copy and results.copy(file.copy)
        if copy and copy.exists() and not _is(copy, file):
            raise UserError(f"found something else than the plan's copy of '{name}', SHA-256 {file.digest}", file=copy)
    before = _INPUTS.set(ArchivedInputs(results, files))
    try:
        yield
    finally:
        _INPUTS.reset(before)


def find_input(name: str, root: Path = Path()) -> AnyPath:
    """Return the path to read a file from: its copy in the results, or the file itself if it equals its record.

    Outside of a block of `use_archived_inputs`, it is the file itself.
    """
    own, ground = root / name, _INPUTS.get()
    if ground is None or name not in ground.files:
        return own
    file = ground.files[name]
    copy = file.copy and ground.results.copy(file.copy)
    if copy and copy.exists():
        return copy
    lacking = f"{ground.results.folder} holds no copy of it"
    try:
        about = own.stat()
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {getattr(error, 'strerror', error)}, and {lacking}", file=own) from None
    state = name, about.st_mtime_ns, about.st_size
    if state not in ground.unchanged and not _is(own, file):
        raise UserError(f"is not what it was when it was planned, and {lacking}; plan again", file=own)
    ground.unchanged.add(state)
    return own


def record_input(kind: str, name: str, root: Path = Path(), source: str = "") -> KeptFile:
    """Return the record of a file for a plan: its kind, digest, size, and the name of its copy."""
    path, ground = find_input(name, root), _INPUTS.get()
    if ground and name in ground.files:
        return ground.files[name]
    with open_file(path) as stream:
        packs = stream.peek(2)[:2] != PACKED
        digest, size = _digest(stream)
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", path.name)[-LONGEST_NAME:]
    copy = f"{digest[:12]}-{plain}{'.gz' if packs and size > LARGEST_PLAIN else ''}" if size <= LARGEST_KEPT else ""
    return KeptFile(kind, digest, size, copy, source)


def archive_input(name: str, file: KeptFile, results: Results, root: Path = Path()) -> None:
    """Write the copy of a file into a results folder, unless it is there."""
    place = results.copy(file.copy)
    if place.exists() and _is(place, file):
        return
    path = find_input(name, root)
    with open_file(path) as stream, write_atomically(place) as target:
        packs = not isinstance(path, SafePath) and file.bytes > LARGEST_PLAIN and stream.peek(2)[:2] != PACKED
        packed = gzip.GzipFile("", "wb", fileobj=target, mtime=0) if packs else nullcontext(target)
        with packed as copy:
            while part := stream.read(CHUNK):
                copy.write(part)
    if not _is(place, file):
        place.unlink()
        raise UserError("has changed while it was planned; plan again", file=path)


def _is(path: AnyPath, file: KeptFile) -> bool:
    """Return whether a file, possibly packed, has the content that its record names."""
    for opened in (open_file, unpacked):
        with opened(path) as stream:
            if _digest(stream, file.bytes) == (file.digest, file.bytes):
                return True
    return False


def _digest(stream: IO[bytes], most: int | None = None) -> tuple[str, int]:
    """Return SHA-256 and length of a stream; reading ends when the length exceeds `most`."""
    hashed, size = hashlib.sha256(), 0
    while (most is None or size <= most) and (part := stream.read(CHUNK)):
        hashed.update(part)
        size += len(part)
    return hashed.hexdigest(), size
