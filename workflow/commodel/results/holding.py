"""One process at a time: a folder is held while a process works in it, and let go when the process ends, however.

A second one is told who holds it. On a file system without locks nobody is kept out, and that is said.
"""

import errno
import fcntl
import getpass
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from commodel.errors import UserError, one_line
from commodel.files.paths import AnyPath

FILE = ".holder"
HANDED_DOWN = "COMMODEL_HOLDER"  # the number of the open file with which this process's parent holds a folder
PATIENCE = 1.0  # seconds: who only looks whether a folder is held holds it for a moment, too
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def held(folder: AnyPath, what: str) -> Iterator[None]:
    """Holds a folder while a block runs, or says who holds it."""
    with hold(folder, what):
        yield


def hold(folder: AnyPath, what: str) -> TextIO:
    """Holds a folder until the file returned is closed. The kernel closes it even after a kill -9."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = (folder / FILE).open("a+", encoding="utf-8")
    try:
        if not _locked(stream, fcntl.LOCK_EX, PATIENCE, folder):
            raise UserError(f"{what} is at work already: {_written(stream)}", file=folder)
        _sign(stream)
    except BaseException:
        stream.close()
        raise
    return stream


def handed_down(folder: AnyPath) -> TextIO | None:
    """The hold on a folder that this process shares with its parent: nobody gets in between, nor before both are gone.
    Nothing where the parent does not hold just this folder."""
    number = os.environ.pop(HANDED_DOWN, "")
    try:
        if not os.path.samestat(os.fstat(int(number)), (folder / FILE).stat()):
            return None
        os.set_inheritable(int(number), False)
        stream = open(int(number), "a+", encoding="utf-8")  # noqa: SIM115
    except (ValueError, OSError):
        return None
    _sign(stream)
    return stream


def _sign(stream: TextIO) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(f"{_user()} on {platform.node()}, process {os.getpid()}, since {time.strftime('%F %H:%M')}\n")
    stream.flush()


def holder(folder: AnyPath) -> str:
    """Who holds a folder, as far as locks tell; empty: nobody. Needs no right to write there."""
    try:
        with (folder / FILE).open(encoding="utf-8") as stream:
            return "" if _locked(stream, fcntl.LOCK_SH, 0, folder) else _written(stream)
    except FileNotFoundError:
        return ""


def _locked(stream: TextIO, kind: int, patience: float, folder: AnyPath) -> bool:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(stream, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            if kind == fcntl.LOCK_EX:
                print(f"commodel: {folder}: no locks here: take care that nobody else works in it", file=sys.stderr)
            return True


def _written(stream: TextIO) -> str:
    stream.seek(0)
    return one_line(stream.read(400).strip()) or "another process"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in containers
        return f"user {os.getuid()}"
