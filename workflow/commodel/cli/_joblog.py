"""What a verb says as a job of Snakemake: on the terminal as ever, and in the log of the job too."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TextIO

from commodel.cli._progress import JOB
from commodel.files.paths import SafePath


class Doubled:
    """A stream of which a file gets a copy, word for word and at once: the job may be killed at any moment. Where the
    disk is full only the copy is lost."""

    def __init__(self, stream: TextIO, copy: IO[bytes]):
        self.stream, self.copy = stream, copy

    def write(self, text: str) -> int:
        with suppress(OSError):
            self.copy.write(text.encode(errors="backslashreplace"))
        return self.stream.write(text)

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


def keep_what_is_said() -> None:
    """Until this process ends, errors nobody has thought of too. The log lies in a folder `logs` that somebody else may
    have made, such as that of received results: it is reached through no link, and nor is the log."""
    if not (job := os.environ.get(JOB)):
        return
    log = Path(job)
    copy = (SafePath(log.parent.parent) / "logs" / log.name).open("ab", buffering=0)
    sys.stdout, sys.stderr = Doubled(sys.stdout, copy), Doubled(sys.stderr, copy)
