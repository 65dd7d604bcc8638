"""Paths inside a project or a results folder that never follow a link out of it (`SafePath`,
`check_inside`).

Results may come from an unknown source, or lie on a shared disk. Below the results folder no link
is followed, and only ordinary files are opened. The folder itself may be a link, since the user
made it.

Trees and layouts may name files. A name that comes from a file has to lead into the project, which
is the folder that commodel runs in. A name on the command line may lead anywhere.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import IO, Any

from commodel.errors import UserError
from commodel.units import show_value

# For a folder on the way to a file, which need not be listable.
TRAVERSE_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# non-blocking: opening a pipe would wait for its other end
FILE_FLAGS = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
MODE_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "a": os.O_RDWR | os.O_APPEND | os.O_CREAT,
}
MAX_FOLDER_DEPTH = 40


@dataclass(frozen=True, order=True)
class SafePath:
    """A path below the folder `root`, with some methods of pathlib.

    It is deliberately no os.PathLike: functions that follow links, such as open(), do not accept
    it.
    """

    root: Path
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part in self.parts:
            if part in ("", ".", "..") or "/" in part or "\0" in part:
                raise UserError(
                    f"found the name '{part}', wanted one of a file in it", file=self.root
                )

    @classmethod
    def at(cls, path: "Path | SafePath") -> "SafePath":
        return cls(path) if isinstance(path, Path) else path

    @classmethod
    def of_argument(cls, path: Path, root: Path) -> "SafePath":
        """Return the path that a user gave: below `root` if it lies there, else below its own
        folder."""
        full = Path(os.path.abspath(path))
        top = Path(os.path.abspath(root))
        if full.is_relative_to(top):
            return cls(root, full.relative_to(top).parts)
        return cls(path.parent, (full.name,))

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
        """Return the path relative to a folder above it."""
        return "/".join(self.parts[len(folder.parts) :])

    def with_name(self, name: str) -> "SafePath":
        return self.parent / name

    def resolve(self) -> Path:
        """Return the real path of the folder, for programs that are started in it."""
        with self._open_folder(self.parts) as folder:
            return Path(os.readlink(f"/proc/self/fd/{folder}"))

    def stat(self) -> os.stat_result:
        if not self.parts:
            return self.root.stat()
        with self._open_folder(self.parts[:-1]) as folder:
            return self._stat_without_links(folder)

    def exists(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def iterdir(self) -> Iterator["SafePath"]:
        with self._scan_folder() as entries:
            names = sorted(child.name for child in entries)
        return (replace(self, parts=(*self.parts, name)) for name in names)

    def modification_times(self) -> dict[str, float]:
        """Return the modification time of each file of a folder, by name."""
        with self._scan_folder() as entries:
            return {child.name: child.stat(follow_symlinks=False).st_mtime for child in entries}

    def check(self) -> None:
        """Refuse a folder that contains, at any depth, anything but folders and ordinary files."""
        if len(self.parts) > MAX_FOLDER_DEPTH:
            raise UserError(
                f"found more than {MAX_FOLDER_DEPTH} folders in one another", file=self.root
            )
        with self._scan_folder() as entries:
            for child in entries:
                child_path = replace(self, parts=(*self.parts, child.name))
                if child.is_dir(follow_symlinks=False):
                    child_path.check()
                elif not child.is_file(follow_symlinks=False):
                    raise child_path._refusal(child.stat(follow_symlinks=False).st_mode)

    def open(self, mode: str = "r", **settings: Any) -> IO[Any]:
        """Open an ordinary file: `r` reads it, `w` replaces it by a new file, `a+` opens or creates
        it."""
        with self._open_folder(self.parts[:-1]) as folder:
            with suppress(FileNotFoundError):
                kind = self._stat_without_links(folder).st_mode
                if not stat.S_ISREG(kind):
                    raise self._refusal(kind)
                if mode[0] == "w":
                    os.unlink(self.name, dir_fd=folder)
            number = os.open(self.name, MODE_FLAGS[mode[0]] | FILE_FLAGS, 0o666, dir_fd=folder)
            try:
                status = os.fstat(number)
                if not stat.S_ISREG(status.st_mode):
                    raise self._refusal(status.st_mode)
                if mode[0] == "a" and status.st_nlink > 1:
                    raise UserError(
                        "found a file with a second hard link, wanted one with a single name",
                        file=self,
                    )
                return os.fdopen(number, mode, **settings)
            except BaseException:
                os.close(number)
                raise

    @contextmanager
    def replace_atomically(self) -> Iterator[IO[bytes]]:
        """Yield a new file; when the block ends without an error, it replaces the file of this
        name."""
        temporary = f".{self.name}.{os.getpid()}.tmp"
        with self._open_folder(self.parts[:-1], make=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            try:
                new = os.open(
                    temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | FILE_FLAGS, 0o666, dir_fd=folder
                )
                with os.fdopen(new, "w+b") as stream:
                    yield stream
                os.replace(temporary, self.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        with self._open_folder(self.parts, make=True):
            pass

    def touch(self) -> None:
        self.open("a+b").close()

    def unlink(self, missing_ok: bool = False) -> None:
        suppressed = (FileNotFoundError,) if missing_ok else ()
        with suppress(*suppressed), self._open_folder(self.parts[:-1]) as folder:
            os.unlink(self.name, dir_fd=folder)

    def replace(self, target: "SafePath") -> None:
        """Rename the file to another name in its folder."""
        with self._open_folder(self.parts[:-1]) as folder:
            os.replace(self.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove_tree(self) -> None:
        """Remove a folder with its content, if it exists."""
        with suppress(FileNotFoundError), self._open_folder(self.parts[:-1]) as folder:
            kind = self._stat_without_links(folder).st_mode
            if not stat.S_ISDIR(kind):
                raise self._refusal(kind, "a folder")
            shutil.rmtree(self.name, ignore_errors=True, dir_fd=folder)

    @contextmanager
    def _open_folder(self, parts: tuple[str, ...], make: bool = False) -> Iterator[int]:
        """Open a folder, part by part from the root, while the block runs; errors name this
        path."""
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, part in enumerate(parts, 1):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                try:
                    inner = os.open(part, TRAVERSE_FLAGS, dir_fd=folder)
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
    def _scan_folder(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        with self._open_folder(self.parts) as folder:
            number = os.open(".", LIST_FLAGS, dir_fd=folder)
            try:
                with os.scandir(number) as entries:
                    yield entries
            finally:
                os.close(number)

    def _stat_without_links(self, folder: int) -> os.stat_result:
        status = os.stat(self.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise self._refusal(status.st_mode)
        return status

    def _refusal(self, kind: int, wanted: str = "a file") -> UserError:
        if stat.S_ISLNK(kind):
            return UserError(
                f"found a link, wanted {wanted}: below {self.root} no link is followed", file=self
            )
        kind_name = (
            "a folder"
            if stat.S_ISDIR(kind)
            else "a file"
            if stat.S_ISREG(kind)
            else "a pipe or a device"
        )
        return UserError(f"cannot be read: found {kind_name}, wanted {wanted}", file=self)


AnyPath = Path | SafePath

# of a layout, tree or pattern that a file describes: `file:PATH`
FILE_PREFIXES = ("file", "processes")
NODES_SUFFIX = re.compile(r"@[0-9,]*$")  # the nodes that a layout appends to its PATH


def parse_file_path(spec: str) -> str:
    """Return the PATH of `file:PATH` or `processes:PATH`, with nodes if any follow it; else an
    empty text."""
    name, _, path = spec.partition(":")
    return path.strip() if name.strip() in FILE_PREFIXES else ""


def list_parameter_values(spec: str) -> list[str]:
    """Return every VALUE of `NAME=VALUE` in an operation; each may be a path, as in
    `summa:partition=PATH`."""
    parameters = (part.partition("=") for part in spec.split(":")[1:])
    return [value.strip() for _, equals, value in parameters if equals]


def check_inside(spec: str) -> None:
    """Refuse `file:PATH`, `processes:PATH` or a parameter such as `partition=PATH` if the path, or
    a link, leads out of the project."""
    path = parse_file_path(spec)
    paths = {path, NODES_SUFFIX.sub("", path)} - {""} or list_parameter_values(spec)
    for written in paths:
        check_path(written, spec)


def check_path(path: str, spec: str = "") -> None:
    """Refuse a path that leads out of the project; `spec` is the text that contains it."""
    try:
        inside = Path(path).resolve().is_relative_to(Path.cwd().resolve())
    except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
        inside = False
    if not inside:
        raise UserError(
            f"found {show_value(spec or path)}, which leads out of the project's folder; wanted a file in it"
        )
