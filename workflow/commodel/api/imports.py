"""Measured times of other tools from Python: `import_` reads their files into a table for `fit`,
`import_folder` a folder of them into the table of a platform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commodel.api.result import Answer
from commodel.errors import UserError, locate_mistakes
from commodel.files.atomic import write_text
from commodel.files.quantities import parse_setting
from commodel.files.text_tables import format_answer, format_csv, format_table
from commodel.interchange import (
    UNKNOWN_RANKS,
    WANTED_STATISTIC,
    Format,
    StatedProperties,
    describe_left_out,
    read_all_times,
)
from commodel.interchange.folders.reading import RANKS_ADVICE
from commodel.records import Statistic
from commodel.registry import lookup
from commodel.units import format_count

if TYPE_CHECKING:
    import pandas as pd

    from commodel.interchange.folders.reading import FolderFile
    from commodel.interchange.folders.tables import EvidenceTable

TABLE_NAME = "table.csv"  # of the times of a platform, in a folder of its own
FILES_NAME = "files.csv"  # beside it: what was understood of each file
MAX_SHOWN_FILES = 40  # rows of files in a printed table
EMPTY_IF_UNUSED = (
    "format",
    "operation",
    "ranks",
    "nodes",
    "bytes",
    "rows",
    "library",
    "placement from",
)


@dataclass(frozen=True, eq=False, repr=False)
class Imported(Answer):
    """Times of other tools' files: a row for each, as `fit` reads them."""

    def text(self, verbose: bool = True) -> str:
        """Return the sentence and the notes; the rows are too many to be read."""
        return format_answer(self.sentence, "", self.notes, verbose)


def import_(
    format: str,
    files: str | Path | Sequence[str | Path],
    *,
    ranks: int | Sequence[int] = (),
    operation: str = "",
    algorithm: str = "",
    layout: str = "",
    statistic: str | None = None,
    columns: Sequence[str] = (),
    metadata: str = "",
) -> Imported:
    """Read the times in files of another tool, such as the output of OSU's benchmarks
    (`format="osu"`).

    What the files do not state is given by name: the number of `ranks` of all files, or of each;
    the operation, its algorithm and layout; which ranks the times are of (`statistic`). For
    `format="csv"`, `columns` name the columns to read: `["seconds=time:us"]`. The result's `frame`
    may be given to `fit`.

    >>> import_("osu", "osu_bcast.txt", ranks=16).frame  # doctest: +SKIP
    """
    entry = lookup("interchange", "FORMAT", format)
    stated = StatedProperties(
        operation, algorithm, layout, statistic, columns=tuple(columns), metadata=metadata
    )
    paths = [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]
    return import_times(entry, paths, stated, [ranks] if isinstance(ranks, int) else list(ranks))


def import_times(
    file_format: Format, files: Sequence[Path], stated: StatedProperties, ranks: Sequence[int] = ()
) -> Imported:
    """Return the times of files of a format."""
    if file_format.read_times is None:
        raise UserError(f"format '{file_format.name}' has no measured times")
    imported = read_all_times(file_format, files, stated, ranks)
    operations = ", ".join(dict.fromkeys(time.operation for time in imported.times))
    kinds = dict.fromkeys(time.statistic for time in imported.times)
    statistics = ", ".join(
        "statistic unknown" if kind is Statistic.UNKNOWN else kind for kind in kinds
    )
    left_out = [f"left out: {describe_left_out(imported)}"] if imported.left_out else []
    return Imported(
        [asdict(time) for time in imported.times],
        f"{format_count(len(imported.times), 'time')} of {operations} ({statistics})",
        [*imported.remarks, *left_out],
        [{"format": file_format.title, "file": str(file)} for file in files],
    )


@dataclass(frozen=True, eq=False, repr=False)
class ImportedFolder(Answer):
    """A folder of measurements: a row for each file, with what was understood of it, or the reason
    why it is not used. `times` is the table of the platform."""

    table: EvidenceTable = field(repr=False)

    @property
    def times(self) -> pd.DataFrame:
        """All measured times of the platform, of earlier imports too, as `fit` reads them."""
        import pandas as pd

        return pd.DataFrame([row.cells for row in self.table.rows])

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, the files that were used and those that were not, equal ones in one
        row, and the notes."""
        rows = _group_files(self.rows)
        used = [_omit(row, "not used because") for row in rows if row["rows"]]
        unused = [_omit(row, *EMPTY_IF_UNUSED) for row in rows if not row["rows"]]
        hidden = 0
        parts = []
        for part in (used, unused):
            shown = part if verbose else part[:MAX_SHOWN_FILES]
            hidden += len(part) - len(shown)
            parts.append(format_table(shown))
        if hidden:
            parts.append(f"and {hidden} more rows: --verbose.")
        body = "\n\n".join(part for part in parts if part)
        return format_answer(self.sentence, body, self.notes, verbose)


def import_folder(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    ranks: int = 0,
    ranks_per_node: int = 0,
    library: str = "",
    setting: str = "",
    statistic: str | None = None,
) -> ImportedFolder:
    """Read all measurements in a folder, of any tool, and append them to the table of a platform.

    Format, operation, ranks and nodes come from the files, else from the names of files and
    folders. `out` is the table, or a folder for `table.csv`; without it nothing is written. What
    neither files nor names state is given by name: the number of `ranks` or of `ranks_per_node`, the
    MPI `library`, the `setting` of the measurements, and the `statistic` of tables that do not state
    it.

    >>> import_folder("osu-results", "imported").frame  # doctest: +SKIP
    """
    from commodel.interchange.folders.reading import FolderProperties, read_folder
    from commodel.interchange.folders.tables import EvidenceTable

    source = Path(folder)
    target = find_evidence_table(Path(out)) if out else None
    table = EvidenceTable.read(target) if target else EvidenceTable()
    with locate_mistakes(key="library"):
        stated_library = parse_setting(library)
    with locate_mistakes(key="setting"):
        stated_setting = parse_setting(setting)
    stated = FolderProperties(ranks, ranks_per_node, statistic, stated_library, stated_setting)
    own = {target, target.with_name(FILES_NAME)} if target else set()
    files = []
    for file in read_folder(source, stated, {path.absolute() for path in own}):
        files.append(table.add(file) if file.times else file)
    rows = [file.shown for file in files]
    used = [file for file in files if file.times]
    if target and used:
        table.write(target)
    if target and (used or target.exists()):
        write_text(target.with_name(FILES_NAME), format_csv(rows) + "\n")
    return ImportedFolder(
        rows,
        _describe_folder(files, table, target),
        _list_notes(used, table),
        [{"format": file.format, "file": file.path, "digest": file.digest} for file in used],
        table,
    )


def find_evidence_table(path: Path) -> Path:
    """Return the table of a platform that a path means: itself, or `table.csv` in the folder."""
    return path if path.suffix == ".csv" else path / TABLE_NAME


def is_imported(folder: Path) -> bool:
    """Return whether a folder has the table of an import, not the results of an experiment."""
    return (folder / TABLE_NAME).is_file() and not (folder / "plan.json").exists()


def _describe_folder(files: Sequence[FolderFile], table: EvidenceTable, target: Path | None) -> str:
    used = [file for file in files if file.times]
    count = format_count(sum(len(file.times) for file in used), "time")
    text = f"{count} of {len(used)} of {format_count(len(files), 'file')}"
    if target is None:
        return f"{text}."
    if not table.rows:
        return f"{text}: no table is written."
    return f"{target}: {text} added; it has {format_count(len(table.rows), 'time')}."


def _list_notes(used: Sequence[FolderFile], table: EvidenceTable) -> list[str]:
    left_out = Counter(file.remark for file in used if file.remark)
    notes = [
        f"{remark}, in {format_count(count, 'file')}" for remark, count in left_out.most_common()
    ]
    if any(UNKNOWN_RANKS in file.remark for file in used):
        notes.append(RANKS_ADVICE)
    unknown = sum(row.statistic is Statistic.UNKNOWN for row in table.rows)
    if unknown:
        notes.append(
            f"the statistic of {format_count(unknown, 'time')} is unknown; {WANTED_STATISTIC}"
        )
    without_layout = sum(not row.workload.layout for row in table.rows)
    if without_layout:
        notes.append(
            f"{format_count(without_layout, 'time')} without ranks per node: each rank counts as "
            "one on a node of its own; give --ranks-per-node if it is not"
        )
    return notes


def _omit(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _group_files(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for files of a folder that differ in their names only."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        folder = row["file"].rpartition("/")[0]
        groups.setdefault((folder, *list(row.values())[1:]), []).append(row)
    grouped = []
    for group in groups.values():
        first = dict(group[0])
        if len(group) > 1:
            first["file"] += f" and {len(group) - 1} more"
        grouped.append(first)
    return grouped
