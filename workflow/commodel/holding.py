"""One process at a time: a folder is held while a process works in it, and let go when the process ends, however."""

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commodel.errors import UserError


@contextmanager
def held(folder: Path, what: str) -> Iterator[None]:
    """Holds a folder for this process, or says who does. The kernel lets go of it even after a kill -9."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".holder").open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise UserError(
                f"{what} is at work already: {stream.read().strip() or 'another process'}", file=folder
            ) from None
        except OSError:
            pass  # a file system without locks: then nothing is held
        stream.seek(0)
        stream.truncate()
        stream.write(f"process {os.getpid()} on {platform.node()}\n")
        stream.flush()
        yield
