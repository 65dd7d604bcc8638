"""Measured times of other tools from Python: `import_` reads their files into a table for `fit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from commodel.api.result import Answer
from commodel.errors import UserError
from commodel.files.text_tables import format_answer
from commodel.interchange import Format, StatedProperties, describe_left_out, read_all_times
from commodel.records import Statistic
from commodel.registry import lookup
from commodel.units import format_count


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
    entry: Format, files: Sequence[Path], stated: StatedProperties, ranks: Sequence[int] = ()
) -> Imported:
    """Return the times of files of a format."""
    if entry.read_times is None:
        raise UserError(f"format '{entry.name}' has no measured times")
    imported = read_all_times(entry, files, stated, ranks)
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
        [{"format": entry.title, "file": str(file)} for file in files],
    )
