"""Files that appear under their final name whole or not at all, and the JSON that stages leave for each other."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from commodel.errors import UserError, one_line
from commodel.files.safe_paths import AnyPath, SafePath
from commodel.files.safe_reading import MIB, read_text

MAX_FILE = 512 * MIB


def whole(path: AnyPath) -> AbstractContextManager[IO[bytes]]:
    """Return a file that takes its name when the block ends well. It takes the place of a link, and writes through
    none."""
    return (path if isinstance(path, SafePath) else SafePath(path.parent) / path.name).whole()


@contextmanager
def temporary_path(path: Path) -> Iterator[str]:
    """Give a folder for parts of a file, on the disk that will hold the file: the system's own may be small."""
    with TemporaryDirectory(dir=path.parent, prefix=".") as folder:
        yield folder


def write_text(path: AnyPath, text: str) -> None:
    with whole(path) as stream:
        stream.write(text.encode())


def write_json(path: AnyPath, data: object) -> None:
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def read_json(path: AnyPath) -> dict[str, object]:
    """Return a file with a JSON object, which all of ours are."""
    try:
        data = json.loads(read_text(path, MAX_FILE, "a smaller file"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"cannot read: {error}", file=path) from None
    if not isinstance(data, dict):
        raise UserError(f"found {one_line(data, 60)}, wanted an object", file=path)
    return data
