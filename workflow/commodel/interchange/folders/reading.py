"""A folder of measurements, in any formats of times (`read_folder`): the format of each file, how
its ranks were placed, and its times; or the one reason why a file is not used.

A format is recognised by the `mark` in the first lines of a file. The numbers of ranks, nodes and
ranks per node are those that the file states: in its rows or headers, in the command that started
the program, or in a job specification of Flux. What is missing comes from the file's name, then
from the folders' names, the nearest first, then from the user. Numbers that contradict each other
are refused.

Ranks fill one node after the other, as launchers place them by default. The two ranks of a
ping-pong have a node each, unless the file states their placement: the layout stays blank.

The files are hostile until they are read: links are not followed, special files not opened, and
depth, number and sizes are bounded. No file stops the others.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from commodel.errors import UserError, make_printable
from commodel.files.quantities import MAX_SETTING_LENGTH
from commodel.files.rank_counts import (
    NO_PLACEMENT,
    NamedRanks,
    RankCounts,
    read_job_specification,
    read_placement_in_command,
    read_placement_in_header,
    read_placement_in_name,
    read_ranks_in_name,
)
from commodel.files.safe_paths import MAX_FOLDER_DEPTH
from commodel.files.safe_reading import MIB, open_file, open_unpacked, read_files_in
from commodel.interchange import (
    MAX_FILE_BYTES,
    OPERATIONS,
    UNKNOWN_RANKS,
    Format,
    ImportedTimes,
    MeasuredTime,
    StatedProperties,
    describe_left_out,
    read_text_lines,
)
from commodel.interchange.folders.libraries import find_library
from commodel.patterns.operations import find_base_name
from commodel.progress import report_step
from commodel.registry import discover
from commodel.units import format_bytes

MAX_ENTRIES = 50_000  # of the folder, at any depth
MAX_TOTAL_BYTES = 4096 * MIB  # of all files together
HEAD_BYTES = MIB  # of a file, in which its format is recognised
MAX_SHOWN_NAMES = 4  # of operations of a file
ARCHIVE_ENDINGS = (".tar.gz", ".tgz")  # of archives that some formats have
ZIP_MAGIC, TAR_MAGIC, TAR_MAGIC_OFFSET = b"PK\x03\x04", b"ustar", 257
ANY_COLUMN = re.compile(r"[\w .\[\]/()%-]{1,60}(?:,[\w .\[\]/()%-]{0,60})+")
RANKS_ADVICE = (
    "name a file or folder by its number, such as np64 or 4n-16ppn; or give --ranks, or "
    "--ranks-per-node if the number of nodes is known"
)
LABELS = {"ranks": "ranks", "nodes": "nodes", "per_node": "ranks per node"}  # of a placement
PINGPONG = "pingpong"
STATED = "given"  # where a number comes from that the user states


@dataclass(frozen=True)
class FolderProperties:
    """Properties of the measurements of a folder that the user states because its files lack
    them."""

    ranks: int = 0
    per_node: int = 0
    statistic: str | None = None
    library: str = ""
    setting: str = ""


@dataclass(frozen=True)
class Source:
    """The placement of a file, and where its numbers come from, such as `ranks: file; nodes: file
    name`."""

    placement: RankCounts = NO_PLACEMENT
    origins: Mapping[str, str] = field(default_factory=dict)  # by number
    derived: frozenset[str] = frozenset()  # numbers that the two others determine

    def filled(self, other: RankCounts, origin: str) -> Source:
        """Return the source with the numbers of another placement that are unknown here, and those
        that both determine."""
        filled = self.placement.filled(other)
        complete = filled.complete
        origins = dict(self.origins)
        for name in LABELS:
            if getattr(filled, name) and not getattr(self.placement, name):
                origins[name] = origin
        joined = " and ".join(dict.fromkeys(origins.values()))
        derived = set(self.derived)
        for name in LABELS:
            if getattr(complete, name) and not getattr(filled, name):
                origins[name] = joined
                derived.add(name)
        return Source(complete, origins, frozenset(derived))

    def __str__(self) -> str:
        stated = {name: text for name, text in self.origins.items() if name not in self.derived}
        if len({*stated.values()}) == 1:
            return next(iter(stated.values()))
        return "; ".join(f"{LABELS[name]}: {stated[name]}" for name in LABELS if name in stated)


@dataclass(frozen=True)
class FolderFile:
    """A file of a folder: what was understood of it, or the reason why it is not used."""

    path: str  # below the folder
    format: str = ""
    times: Sequence[MeasuredTime] = ()
    source: Source = Source()
    library: str = ""
    digest: str = ""
    remark: str = ""  # on rows that were left out
    reason: str = ""

    @property
    def shown(self) -> dict[str, str | int]:
        """The file's row in the table of a folder."""
        placement = self.source.placement
        operations = list(dict.fromkeys(find_base_name(time.operation) for time in self.times))
        return {
            "file": self.path,
            "format": self.format,
            "operation": _shorten(operations),
            "ranks": " ".join(_format_numbers({time.ranks for time in self.times})),
            "nodes": str(placement.nodes or "") if self.times else "",
            "bytes": _format_sizes(time.bytes for time in self.times),
            "rows": len(self.times),
            "library": self.library,
            "placement from": str(self.source) if self.times else "",
            "not used because": self.reason,
        }

    def refused(self, reason: str) -> FolderFile:
        return replace(self, times=(), reason=reason)


def _shorten(names: Sequence[str]) -> str:
    shown = list(names[:MAX_SHOWN_NAMES])
    hidden = len(names) - len(shown)
    return ", ".join([*shown, *([f"{hidden} more"] if hidden else [])])


def _format_numbers(numbers: set[int]) -> list[str]:
    """Return a number, or the first and the last of several."""
    if len(numbers) <= 1:
        return [str(number) for number in numbers]
    return [f"{min(numbers)}–{max(numbers)}"]


def _format_sizes(sizes: Iterator[int]) -> str:
    found = sorted({*sizes})
    if not found:
        return ""
    return "–".join(dict.fromkeys(format_bytes(size) for size in (found[0], found[-1])))


def read_folder(folder: Path, stated: FolderProperties, without: set[Path]) -> Iterator[FolderFile]:
    """Yield every file of a folder, with its times or the reason why it is not used, except those
    `without`."""
    if not folder.is_dir():
        raise UserError("found no such folder, wanted a folder of measurements", file=folder)
    formats = {
        entry.name: entry
        for entry in discover("interchange", "FORMAT").values()
        if entry.read_times and entry.mark
    }
    bytes_left = MAX_TOTAL_BYTES
    current = folder
    for found in _list_entries(folder, formats):
        if found.path.absolute() in without:
            continue
        inside = found.path != folder
        name = make_printable(found.path.relative_to(folder) if inside else folder.absolute().name)
        if found.path.parent != current:
            current = found.path.parent
            report_step(make_printable(current))
        if found.reason:
            yield FolderFile(name, reason=found.reason)
        elif found.size > bytes_left:
            limit = format_bytes(MAX_TOTAL_BYTES)
            yield FolderFile(name, reason=f"the files before it have {limit}")
        else:
            bytes_left -= found.size
            yield _read_entry(found.path, name, formats, folder, stated)


@dataclass(frozen=True)
class Entry:
    """A file of a folder, or a part of it that is not read for a reason."""

    path: Path
    size: int = 0
    reason: str = ""


def _list_entries(folder: Path, formats: Mapping[str, Format]) -> Iterator[Entry]:
    """Yield the files of a folder, by name, and what else is not hidden, each with the reason why
    it is not read. A folder that is a measurement as a whole is one entry. No link is followed."""
    folders = [(folder, 0)]
    number = 0
    while folders:
        current, depth = folders.pop()
        if _recognize_folder(current, formats):
            yield Entry(current)
            continue
        try:
            with os.scandir(current) as scanned:
                entries = sorted(scanned, key=lambda child: child.name)
        except OSError as error:
            yield Entry(current, reason=f"cannot be read: {error.strerror}")
            continue
        inner = []
        for child in entries:
            if child.name.startswith("."):
                continue
            number += 1
            path = current / child.name
            if number > MAX_ENTRIES:
                reason = f"one of the entries beyond the first {MAX_ENTRIES:,}, which are not read"
                yield Entry(path, reason=reason)
                return
            if not child.is_dir(follow_symlinks=False):
                yield _examine(path)
            elif depth + 1 >= MAX_FOLDER_DEPTH:
                reason = f"more than {MAX_FOLDER_DEPTH} folders in one another"
                yield Entry(path, reason=reason)
            else:
                inner.append((path, depth + 1))
        folders += reversed(inner)


def _recognize_folder(path: Path, formats: Mapping[str, Format]) -> Format | None:
    for entry in formats.values():
        if entry.recognizes_folder is not None and entry.recognizes_folder(path):
            return entry
    return None


def _examine(path: Path) -> Entry:
    try:
        status = path.lstat()
    except OSError as error:
        return Entry(path, reason=f"cannot be read: {error.strerror}")
    if stat.S_ISLNK(status.st_mode):
        return Entry(path, reason="a link, which is not followed")
    if not stat.S_ISREG(status.st_mode):
        return Entry(path, reason="a pipe, a socket or a device")
    if status.st_size > MAX_FILE_BYTES:
        return Entry(path, reason=f"larger than {format_bytes(MAX_FILE_BYTES)}")
    if not status.st_size:
        return Entry(path, reason="empty")
    return Entry(path, status.st_size)


def _read_entry(
    path: Path, name: str, formats: Mapping[str, Format], folder: Path, stated: FolderProperties
) -> FolderFile:
    """Return a file with its times, or with the reason why it has none."""
    try:
        file = _FileReader(path, folder, stated)
        entry = file.recognize(formats)
        if entry is None:
            return FolderFile(name, reason=file.explain_unknown())
    except UserError as error:
        return FolderFile(name, reason=_describe_error(error, path))
    except OSError as error:
        return FolderFile(name, reason=f"cannot be read: {error.strerror}")
    try:
        return replace(file.read(entry), path=name)
    except UserError as error:
        reason = _describe_error(error, path)
        if file.is_archive:
            reason = f"an archive: unpack it, unless it is of {entry.title} ({reason})"
        return FolderFile(name, entry.name, reason=reason)
    except OSError as error:
        return FolderFile(name, entry.name, reason=f"cannot be read: {error.strerror}")


def _describe_error(error: UserError, path: Path) -> str:
    """Return an error without the name of its file."""
    text = error.lines()[0].removeprefix(make_printable(path)).removeprefix(":").strip()
    line, colon, rest = text.partition(": ")
    return f"line {line}: {rest}" if colon and line.isdigit() else text


class _FileReader:
    """Reads one file: its format, its placement and its times."""

    def __init__(self, path: Path, folder: Path, stated: FolderProperties) -> None:
        self.path = path
        self.folder = folder
        self.stated = stated
        self.is_folder = path.is_dir()
        self.is_archive = not self.is_folder and path.name.endswith(ARCHIVE_ENDINGS)
        self.head = b""
        if not self.is_folder:
            with open_unpacked(path) as stream:
                self.head = stream.read(HEAD_BYTES)

    @cached_property
    def text(self) -> str:
        return self.head.decode("utf-8-sig", "replace")

    @cached_property
    def folders(self) -> list[str]:
        """The names of the folders that the file is in, the nearest first."""
        inner = self.path.relative_to(self.folder).parts[:-1]
        return [*reversed(inner), self.folder.resolve().name]

    def recognize(self, formats: Mapping[str, Format]) -> Format | None:
        """Return the format whose mark is first in the file, or that of the folder."""
        if self.is_folder:
            return _recognize_folder(self.path, formats)
        if self.is_archive:
            return next((entry for entry in formats.values() if entry.reads_archives), None)
        if b"\0" in self.head:
            return None
        found = []
        for entry in formats.values():
            match = re.search(entry.mark, self.text, re.MULTILINE)
            if match:
                found.append((match.start(), entry.name))
        return formats[min(found)[1]] if found else None

    def explain_unknown(self) -> str:
        is_tar = self.head[TAR_MAGIC_OFFSET:].startswith(TAR_MAGIC)
        if is_tar or self.head.startswith(ZIP_MAGIC):
            return "an archive: unpack it"
        if b"\0" in self.head:
            return "a binary file"
        header = self.text.lstrip().partition("\n")[0].strip()
        if self.path.suffix == ".csv" and ANY_COLUMN.fullmatch(header):
            return (
                "a table without columns operation and seconds; convert it: commodel import csv FILE "
                "--column NAME=COLUMN -o TABLE"
            )
        return "no output of a known benchmark"

    def read(self, file_format: Format) -> FolderFile:
        source = self._find_placement(file_format)
        ranks = source.placement.ranks
        # A number from an option or a header is as certain as the rows, which state it too.
        named = NamedRanks(ranks, "name" in source.origins.get("ranks", ""))
        if not ranks:
            named = read_ranks_in_name(self.path)
            source = source.filled(RankCounts(ranks=named.count), "number in the file name")
        operation = self._find_operation() if "operation" in file_format.options else ""
        assert file_format.read_times is not None
        imported = file_format.read_times(
            self.path,
            StatedProperties(
                operation=operation,
                statistic=self.stated.statistic if "statistic" in file_format.options else None,
                named_ranks=named,
                omits_unknown_ranks=True,
            ),
        )
        if not imported.times:
            return FolderFile("", file_format.name, reason=_explain_no_times(imported, file_format))
        if not imported.uses_name:
            source = _add_ranks_of_rows(source, imported.times)
        library = self.stated.library or find_library(self.text, [self.path.name, *self.folders])
        times = self._complete(imported, file_format, source.placement, library)
        return FolderFile(
            "",
            file_format.name,
            times,
            source,
            library,
            self._compute_digest(),
            f"left out: {describe_left_out(imported)}" if imported.left_out else "",
        )

    def _find_placement(self, file_format: Format) -> Source:
        """Return the placement by the file, then by the names of the file and of its folders, then
        by the user."""
        source = self._find_stated_placement()
        own_name = read_placement_in_name(self.path.name)
        if not file_format.has_groups:
            _compare_placements(source, own_name)
        names = {"file name": own_name}
        for name in self.folders:
            shown = f"folder name '{make_printable(name, 40)}'"
            names.setdefault(shown, read_placement_in_name(name))
        names[STATED] = RankCounts(ranks=self.stated.ranks, per_node=self.stated.per_node)
        for origin, placement in names.items():
            source = source.filled(placement, origin)
        _check_placement(source)
        return source

    def _find_stated_placement(self) -> Source:
        """Return the placement that lines of the file state: of headers and job specifications, and
        of the command if all commands state the same."""
        if self.is_archive or self.is_folder:
            return Source()
        header = NO_PLACEMENT
        commands = set()
        jobs = set()
        for _, text in read_text_lines(self.path):
            if text[:1].isdigit() or not text:  # a row of numbers
                continue
            line = " ".join(text.split())
            of_header = read_placement_in_header(line)
            of_command = read_placement_in_command(line)
            of_job = read_job_specification(line)
            if of_header is not None:
                # A run may also measure with some of its ranks.
                ranks = max(of_header.ranks, header.ranks)
                header = replace(of_header.filled(header), ranks=ranks)
            elif of_command is not None:
                commands.add(of_command)
            elif of_job is not None:
                jobs.add(of_job)
        source = Source().filled(header, "header")
        for origin, placements in (("command line", commands), ("job specification", jobs)):
            if len(placements) == 1:
                source = source.filled(placements.pop(), origin)
        return source

    def _find_operation(self) -> str:
        """Return the operation in the file's name, for formats that do not state it."""
        words = re.findall(r"[a-z]+", self.path.name.lower())
        pairs = [first + second for first, second in pairwise(words)]
        found = [word for word in (*pairs, *words) if word in OPERATIONS or word == PINGPONG]
        return found[0] if found else ""

    def _complete(
        self, imported: ImportedTimes, file_format: Format, placement: RankCounts, library: str
    ) -> list[MeasuredTime]:
        """Return the times with the layout, where the file's rows state none, and the setting."""
        times = []
        for time in imported.times:
            layout = time.layout or _choose_layout(time.ranks, placement, file_format)
            parts = [self.stated.setting or library, time.setting]
            setting = ", ".join(part for part in parts if part)[:MAX_SETTING_LENGTH]
            times.append(replace(time, layout=layout, setting=setting))
        return times

    def _compute_digest(self) -> str:
        digest = hashlib.blake2b(digest_size=8)
        if self.is_folder:
            for name, content in sorted(read_files_in(self.path)):
                digest.update(f"{name} {len(content)} ".encode("utf-8", "surrogateescape"))
                digest.update(content)
            return digest.hexdigest()
        with open_file(self.path) as stream:
            while part := stream.read(MIB):
                digest.update(part)
        return digest.hexdigest()


def _explain_no_times(imported: ImportedTimes, file_format: Format) -> str:
    if not imported.left_out:
        return f"no times of {file_format.title} in it"
    text = f"only {describe_left_out(imported)}"
    if any(name.endswith(UNKNOWN_RANKS) for name in imported.left_out):
        text += f"; {RANKS_ADVICE}"
    return text


def _choose_layout(ranks: int, placement: RankCounts, file_format: Format) -> str:
    """Return the layout of a row by the placement of its file; blank if the row may be of another
    run, such as a ping-pong of two ranks in a log of many tests."""
    if not placement.per_node or (ranks != placement.ranks and not file_format.has_groups):
        return ""
    if placement.is_cyclic:
        return placement.layout if ranks == placement.ranks else ""
    return f"block:{min(placement.per_node, ranks)}"


def _add_ranks_of_rows(source: Source, times: Sequence[MeasuredTime]) -> Source:
    """Return the source of a file whose rows have their own number of ranks. The largest one is
    that of the run, unless the file or a name has it."""
    source = source.filled(RankCounts(ranks=max(time.ranks for time in times)), "file")
    _check_placement(source)
    if "name" in source.origins["ranks"]:
        return replace(source, origins={**source.origins, "ranks": "file"})
    return source


def _compare_placements(source: Source, in_name: RankCounts) -> None:
    """Refuse a file whose name contradicts its lines."""
    for name, label in LABELS.items():
        found, named = getattr(source.placement, name), getattr(in_name, name)
        if found and named and found != named:
            raise UserError(f"found {found} {label} in the file and {named} in its name")


def _check_placement(source: Source) -> None:
    if source.placement.is_contradictory:
        raise UserError(f"found {source.placement} ({source}), which contradict each other")
