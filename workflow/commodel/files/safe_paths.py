"""Paths inside a project or a folder of results: no link is followed out of it.

Paths below a folder that somebody else may have filled: results come by mail, or lie on a shared disk.

Nothing below that folder is reached through a link, and nothing but an ordinary file is opened. The folder itself may
be a link: that one is of the user's own making.

Which files the names of trees and layouts may lead to where a file of somebody's says them: those of the project,
which is the folder that commodel runs in. What a user types himself may lead anywhere.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import IO

from commodel.errors import UserError
from commodel.units import shown

PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # a folder on the way, needing no right to list it
LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC  # a pipe would keep us waiting for its other end
FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "a": os.O_RDWR | os.O_APPEND | os.O_CREAT,
}
DEEPEST = 40  # folders in folders


@dataclass(frozen=True, order=True)
class SafePath:
    """The content of the folder `root`, with pathlib's methods as far as they are needed. It is no os.PathLike on
    purpose: what takes names and follows links, such as open(), does not take it."""

    root: Path
    parts: tuple[str, ...] = ()

    def __post_init__(self):
        for part in self.parts:
            if part in ("", ".", "..") or "/" in part or "\0" in part:
                raise UserError(f"found the name '{part}', wanted one of a file in it", file=self.root)

    @classmethod
    def at(cls, path: "Path | SafePath") -> "SafePath":
        return path if isinstance(path, cls) else cls(path)

    @classmethod
    def given(cls, path: Path, root: Path) -> "SafePath":
        """Return a path that a user gave: below `root` if it lies there, else in a folder that he answers for."""
        whole, top = Path(os.path.abspath(path)), Path(os.path.abspath(root))
        if whole.is_relative_to(top):
            return cls(root, whole.relative_to(top).parts)
        return cls(path.parent, (whole.name,))

    def __truediv__(self, names: str) -> "SafePath":
        return replace(self, parts=(*self.parts, *names.split("/")))

    def __str__(self) -> str:
        return str(self.root.joinpath(*self.parts))

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else self.root.name

    @property
    def stem(self) -> str:
        return PurePath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePath(self.name).suffix

    @property
    def parent(self) -> "SafePath":
        return replace(self, parts=self.parts[:-1])

    def below(self, folder: "SafePath") -> str:
        """Return its name as seen from a folder that it is in."""
        return "/".join(self.parts[len(folder.parts) :])

    def with_name(self, name: str) -> "SafePath":
        return self.parent / name

    def resolve(self) -> Path:
        """Return where the folder really is, for programs that are started in it."""
        with self._entered(self.parts) as folder:
            return Path(os.readlink(f"/proc/self/fd/{folder}"))

    def stat(self) -> os.stat_result:
        if not self.parts:
            return self.root.stat()
        with self._entered(self.parts[:-1]) as folder:
            return self._looked_at(folder)

    def exists(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def iterdir(self) -> Iterator["SafePath"]:
        with self._listed() as entries:
            names = sorted(entry.name for entry in entries)
        return (replace(self, parts=(*self.parts, name)) for name in names)

    def changed(self) -> dict[str, float]:
        """Return when each of the files of a folder was written, by name."""
        with self._listed() as entries:
            return {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}

    def check(self) -> None:
        """Refuses a folder in which, however deep, anything is neither a folder nor an ordinary file."""
        if len(self.parts) > DEEPEST:
            raise UserError(f"found more than {DEEPEST} folders in one another", file=self.root)
        with self._listed() as entries:
            for entry in entries:
                here = replace(self, parts=(*self.parts, entry.name))
                if entry.is_dir(follow_symlinks=False):
                    here.check()
                elif not entry.is_file(follow_symlinks=False):
                    raise here._refusal(entry.stat(follow_symlinks=False).st_mode)

    def open(self, mode: str = "r", **settings) -> IO:
        """To read; `w`: a new file in the place of what is there; `a+`: the file that is there, or a new one."""
        with self._entered(self.parts[:-1]) as folder:
            with suppress(FileNotFoundError):
                kind = self._looked_at(folder).st_mode
                if not stat.S_ISREG(kind):
                    raise self._refusal(kind)
                if mode[0] == "w":
                    os.unlink(self.name, dir_fd=folder)
            number = os.open(self.name, FLAGS[mode[0]] | FILE, 0o666, dir_fd=folder)
            try:
                about = os.fstat(number)
                if not stat.S_ISREG(about.st_mode):
                    raise self._refusal(about.st_mode)
                if mode[0] == "a" and about.st_nlink > 1:
                    raise UserError("found a file that has another name too, wanted one that is only here", file=self)
                return os.fdopen(number, mode, **settings)
            except BaseException:
                os.close(number)
                raise

    @contextmanager
    def whole(self) -> Iterator[IO[bytes]]:
        """A file that takes this name, whatever has it, when the block ends well."""
        temporary = f".{self.name}.{os.getpid()}.tmp"
        with self._entered(self.parts[:-1], make=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            try:
                new = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | FILE, 0o666, dir_fd=folder)
                with os.fdopen(new, "w+b") as stream:
                    yield stream
                os.replace(temporary, self.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        with self._entered(self.parts, make=True):
            pass

    def touch(self) -> None:
        self.open("a+b").close()

    def unlink(self, missing_ok: bool = False) -> None:
        forgiven = (FileNotFoundError,) if missing_ok else ()
        with suppress(*forgiven), self._entered(self.parts[:-1]) as folder:
            os.unlink(self.name, dir_fd=folder)

    def replace(self, target: "SafePath") -> None:
        """Renames it to another name in its folder."""
        with self._entered(self.parts[:-1]) as folder:
            os.replace(self.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove_tree(self) -> None:
        """A folder with all that is in it, if it is there."""
        with suppress(FileNotFoundError), self._entered(self.parts[:-1]) as folder:
            kind = self._looked_at(folder).st_mode
            if not stat.S_ISDIR(kind):
                raise self._refusal(kind, "a folder")
            shutil.rmtree(self.name, ignore_errors=True, dir_fd=folder)

    @contextmanager
    def _entered(self, parts: tuple[str, ...], make: bool = False) -> Iterator[int]:
        """A folder, part by part from the root, open as long as the block runs; errors name this path."""
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, part in enumerate(parts, 1):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                try:
                    inner = os.open(part, PASS, dir_fd=folder)
                except NotADirectoryError:
                    kind = os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode
                    raise replace(self, parts=parts[:depth])._refusal(kind, "a folder") from None
                os.close(folder)
                folder = inner
            yield folder
        except OSError as error:
            if error.errno is None:
                raise
            raise type(error)(error.errno, error.strerror, str(self)) from None
        finally:
            os.close(folder)

    @contextmanager
    def _listed(self) -> Iterator[Iterator[os.DirEntry]]:
        with self._entered(self.parts) as folder:
            number = os.open(".", LIST, dir_fd=folder)
            try:
                with os.scandir(number) as entries:
                    yield entries
            finally:
                os.close(number)

    def _looked_at(self, folder: int) -> os.stat_result:
        about = os.stat(self.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(about.st_mode):
            raise self._refusal(about.st_mode)
        return about

    def _refusal(self, kind: int, wanted: str = "a file") -> UserError:
        if stat.S_ISLNK(kind):
            return UserError(f"found a link, wanted {wanted}: nothing below {self.root} is reached by one", file=self)
        what = "a folder" if stat.S_ISDIR(kind) else "a file" if stat.S_ISREG(kind) else "a pipe or a device"
        return UserError(f"cannot be read: found {what}, wanted {wanted}", file=self)


AnyPath = Path | SafePath

FILES = ("file", "processes")  # the prefix of its path
NUMBERS = re.compile(r"@[0-9,]*$")  # what a full layout adds to its file


PARTITION = "partition"  # the parameter of an operation that names a file


def file_of(spec: str) -> str:
    """PATH of `file:PATH`; empty where it is something else. A full layout's nodes may follow it."""
    name, _, path = spec.partition(":")
    return path.strip() if name.strip() in FILES else ""


def partitions_of(spec: str) -> list[str]:
    """PATH of `summa:partition=PATH`, however often it is there."""
    named = (part.partition("=") for part in spec.split(":")[1:])
    return [path.strip() for name, equals, path in named if equals and name.strip() == PARTITION]


def check_inside(spec: str) -> None:
    """Refuses `file:PATH`, `processes:PATH` or `partition=PATH` of a path, or a link, that leads out of the project."""
    path = file_of(spec)
    paths = {path, NUMBERS.sub("", path)} - {""} or partitions_of(spec)
    for written in paths:
        check_path(written, spec)


def check_path(path: str, spec: str = "") -> None:
    """The same of a path that stands alone, or in a text."""
    try:
        inside = Path(path).resolve().is_relative_to(Path.cwd().resolve())
    except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
        inside = False
    if not inside:
        raise UserError(f"found {shown(spec or path)}, which leads out of the project's folder; wanted a file in it")
