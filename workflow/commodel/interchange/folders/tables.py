"""The table of the measured times of a platform, to which imports append (`EvidenceTable`).

Its rows are those of `commodel fit table`, with the number of nodes, the MPI library, the file and
line, and a digest of the file. A file is in the table once, whatever its name. A file that has
grown, or whose ranks or nodes the user now states otherwise, replaces its earlier rows.

Two files that cannot both be right are a contradiction, and the later one is refused: they have the
same times under different headers, or one workload with and without a known statistic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.files.quantities import parse_statistic
from commodel.files.tables import add_line_to_errors, parse_cell, read_rows
from commodel.files.text_tables import format_csv
from commodel.interchange import MeasuredTime
from commodel.interchange.csv import NAMES
from commodel.interchange.folders.reading import FolderFile
from commodel.records import Statistic
from commodel.units import parse_bytes, parse_count, parse_number_of_seconds

COLUMNS = (*NAMES, "setting", "nodes", "library", "source", "digest")
IN_TABLE = "in the table already"
MIN_EQUAL_TIMES = 4  # with which two series of times are not equal by chance


class RowKey(NamedTuple):
    """What the rows of a file have in common with those of another one, except their times."""

    operation: str
    algorithm: str
    layout: str
    ranks: int
    bytes: int
    setting: str


@dataclass(frozen=True)
class EvidenceRow:
    """A row of the table."""

    workload: RowKey
    seconds: float
    statistic: Statistic
    repetitions: str
    nodes: str
    library: str
    source: str
    digest: str

    @property
    def file(self) -> str:
        """The name of the file, without the line."""
        return self.source.rpartition(":")[0] or self.source

    @property
    def cells(self) -> dict[str, str | int | float]:
        workload = self.workload
        return {
            "operation": workload.operation,
            "algorithm": workload.algorithm,
            "layout": workload.layout,
            "ranks": workload.ranks,
            "bytes": workload.bytes,
            "seconds": self.seconds,
            "statistic": str(self.statistic),
            "repetitions": self.repetitions,
            "setting": workload.setting,
            "nodes": self.nodes,
            "library": self.library,
            "source": self.source,
            "digest": self.digest,
        }


@dataclass
class EvidenceTable:
    """The rows of a table, by file."""

    _rows: dict[str, list[EvidenceRow]] = field(default_factory=dict)  # by digest
    _digests: dict[str, list[str]] = field(default_factory=dict)  # by the file's name
    # of each workload: a file with a known statistic, and one without
    _files: dict[tuple[RowKey, bool], str] = field(default_factory=dict)
    _series: dict[frozenset, str] = field(default_factory=dict)  # digests by sizes and times

    @property
    def rows(self) -> list[EvidenceRow]:
        return [row for rows in self._rows.values() for row in rows]

    @classmethod
    def read(cls, path: Path) -> EvidenceTable:
        """Return the table in a file; an empty one if there is no such file."""
        table = cls()
        if not path.exists():
            return table
        by_digest: dict[str, list[EvidenceRow]] = {}
        for number, cells in read_rows(path, COLUMNS):
            with add_line_to_errors(path, number):
                row = _parse_row(cells)
            by_digest.setdefault(row.digest, []).append(row)
        for rows in by_digest.values():
            table._append(rows)
        return table

    def add(self, file: FolderFile) -> FolderFile:
        """Add the rows of a file. Return the file, with a reason if they are not added."""
        rows = [_make_row(time, file) for time in file.times]
        self._forget_statement(rows)
        reason = self._find_copy(rows) or self._find_contradiction(rows)
        if reason:
            return file.refused(reason)
        self._remove_earlier(file.path, rows)
        self._append(rows)
        return file

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, format_csv([row.cells for row in self.rows]) + "\n")

    def _append(self, rows: Sequence[EvidenceRow]) -> None:
        digest, file = rows[0].digest, rows[0].file
        self._rows[digest] = list(rows)
        self._digests.setdefault(file, []).append(digest)
        self._series[_list_times(rows)] = digest
        for row in rows:
            self._files.setdefault((row.workload, row.statistic is Statistic.UNKNOWN), file)

    def _find_copy(self, rows: Sequence[EvidenceRow]) -> str:
        """Return why the rows of a file are those of another one; empty if they are not. A copy
        whose header or name states something else contradicts it."""
        digest, file = rows[0].digest, rows[0].file
        times = _list_times(rows)
        if digest not in self._rows and len(times) >= MIN_EQUAL_TIMES:
            digest = self._series.get(times, digest)
        same = self._rows.get(digest)
        if same is None:
            return ""
        other = same[0].file
        differences = list(_list_differences(rows, same))
        if differences:
            return f"it has the times of {other}, but {', '.join(differences)}"
        if digest == rows[0].digest:
            return IN_TABLE if other == file else f"{IN_TABLE}, as {other}"
        return f"it has the same times as {other}"

    def _find_contradiction(self, rows: Sequence[EvidenceRow]) -> str:
        """Return why the rows of a file cannot be compared with those of another one; empty if they
        can."""
        for row in rows:
            is_unknown = row.statistic is Statistic.UNKNOWN
            other = self._files.get((row.workload, not is_unknown))
            if other is not None:
                known, unknown = (other, "it") if is_unknown else ("it", other)
                workload = row.workload
                name = f"{workload.operation} of {workload.ranks} ranks and {workload.bytes} B"
                return (
                    f"of {name}, {known} states which ranks a time is of, and {unknown} does not: "
                    "give --statistic"
                )
        return ""

    def _forget_statement(self, rows: Sequence[EvidenceRow]) -> None:
        """Remove the rows of the same file if the user now states something else, such as the
        number of ranks per node."""
        digest = rows[0].digest
        old = self._rows.get(digest)
        if old and old[0].file == rows[0].file and any(_list_differences(rows, old)):
            del self._rows[digest]

    def _remove_earlier(self, path: str, rows: Sequence[EvidenceRow]) -> None:
        """Remove the rows of a file of this name, if all of them are among the new ones: the file
        has grown."""
        new = {(row.workload, row.statistic, row.seconds) for row in rows}
        for digest in list(self._digests.get(path, ())):
            old = self._rows.get(digest, [])
            if all((row.workload, row.statistic, row.seconds) in new for row in old):
                self._rows.pop(digest, None)
                self._digests[path].remove(digest)


def _make_row(time: MeasuredTime, file: FolderFile) -> EvidenceRow:
    workload = RowKey(
        time.operation, time.algorithm, time.layout, time.ranks, time.bytes, time.setting
    )
    line = time.source.rpartition(":")[2]
    nodes = file.source.placement.nodes if time.layout else 0
    return EvidenceRow(
        workload=workload,
        seconds=time.seconds,
        statistic=time.statistic,
        repetitions=str(time.repetitions),
        nodes=str(nodes or ""),
        library=file.library,
        source=f"{file.path}:{line}",
        digest=file.digest,
    )


def _parse_row(cells: dict[str, str]) -> EvidenceRow:
    workload = RowKey(
        cells["operation"],
        cells["algorithm"],
        cells["layout"],
        parse_cell(cells, "ranks", parse_count),
        parse_cell(cells, "bytes", parse_bytes),
        cells["setting"],
    )
    if not cells["digest"]:
        raise UserError("found nothing, wanted the digest of a file", key="digest")
    return EvidenceRow(
        workload=workload,
        seconds=parse_cell(cells, "seconds", parse_number_of_seconds),
        statistic=parse_cell(cells, "statistic", parse_statistic),
        repetitions=cells["repetitions"],
        nodes=cells["nodes"],
        library=cells["library"],
        source=cells["source"],
        digest=cells["digest"],
    )


def _list_times(rows: Iterable[EvidenceRow]) -> frozenset:
    """Return sizes and times, by which two files are compared."""
    return frozenset((row.workload.bytes, row.seconds) for row in rows)


def _list_differences(rows: Sequence[EvidenceRow], others: Sequence[EvidenceRow]) -> Iterator[str]:
    """Yield what the headers of two files with the same times state differently."""
    for name in ("operation", "algorithm", "layout", "ranks", "setting"):
        here = {getattr(row.workload, name) for row in rows}
        there = {getattr(row.workload, name) for row in others}
        if here != there:
            yield f"{name} {_join(here)} in place of {_join(there)}"
    here, there = ({str(row.statistic) for row in side} for side in (rows, others))
    if here != there:
        yield f"statistic {_join(here)} in place of {_join(there)}"


def _join(values: set) -> str:
    return ", ".join(sorted(str(value) or "none" for value in values))
