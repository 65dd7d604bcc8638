"""Files that appear under their final name complete or not at all (`write_atomically`), and the
JSON files that stages write for each other."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from commodel.errors import UserError, make_printable
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.safe_reading import MIB, read_text

MAX_FILE_BYTES = 512 * MIB


def write_atomically(path: AnyPath) -> AbstractContextManager[IO[bytes]]:
    """Return a context for writing a file, which gets its name when the block ends without an
    error.

    If the name is a link, the link is replaced and its target is not written.
    """
    return (
        path if isinstance(path, SafePath) else SafePath(path.parent) / path.name
    ).replace_atomically()


def make_temporary_folder(path: Path) -> AbstractContextManager[str]:
    """Return a temporary folder on the same disk as the file `path`, since the system's may be
    small."""
    return TemporaryDirectory(dir=path.parent, prefix=".")


def write_text(path: AnyPath, text: str) -> None:
    with write_atomically(path) as stream:
        stream.write(text.encode())


def write_json(path: AnyPath, data: object) -> None:
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_json(path: AnyPath) -> dict[str, Any]:
    """Return the object in a JSON file; all JSON files of this project have an object."""
    try:
        data = json.loads(read_text(path, MAX_FILE_BYTES, "a smaller file"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"cannot read: {error}", file=path) from None
    if not isinstance(data, dict):
        raise UserError(f"found {make_printable(data, 60)}, wanted an object", file=path)
    return data
