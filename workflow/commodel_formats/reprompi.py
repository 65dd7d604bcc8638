"""Text output of ReproMPI: `#@key=value` lines, column names, then a row for each sample, or for
each case if summarised.

Times are in seconds, and last until the slowest process has finished. `count` is in elements of
`datatype_extent_bytes` each. As in commodel, it is the size of a block for gather, allgather,
scatter and alltoall. For both reduce-scatters it is a block too, and their vector has as many
blocks as there are ranks. If every process has its own row, a sample has the times of its fastest
and slowest process and their mean.
"""

from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from commodel.interchange import (
    Format,
    ImportedTimes,
    PrintedTime,
    SourceRow,
    StatedProperties,
    normalize_operation,
    read_source_rows,
)
from commodel.records import Repetitions, Statistic

TIME_COLUMNS = {  # the preferred one first
    "runtime_sec": Repetitions.SINGLE,
    "median_sec": Repetitions.MEDIAN,
    "mean_sec": Repetitions.MEAN,
    "min_sec": Repetitions.LEAST,
    "max_sec": Repetitions.LARGEST,
}
PROCESS_COLUMNS = ("process", "proc", "rank")


@dataclass
class Sample:
    """A sample or case with the times of its rows: one row, or one of each process."""

    source_row: SourceRow
    row: dict[str, str]
    repetitions: Repetitions
    seconds: list[float] = field(default_factory=list)

    def list_times(self, of_processes: bool) -> list[PrintedTime]:
        values = {Statistic.LAST_RANK: max(self.seconds)}
        if of_processes:
            values = {
                Statistic.FIRST_RANK: min(self.seconds),
                Statistic.RANK_MEAN: fmean(self.seconds),
                Statistic.LAST_RANK: max(self.seconds),
            }
        return [
            PrintedTime(seconds, statistic, self.repetitions)
            for statistic, seconds in values.items()
        ]


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    header_fields: dict[str, str] = {}
    columns: list[str] = []
    samples: dict[tuple[str, str, int | str], Sample] = {}
    for source_row, line in read_source_rows(path, stated):
        cells = line.split()
        if line.startswith("#"):
            name, _, value = line.removeprefix("#@").partition("=")
            header_fields[name.strip()] = value.strip()
        elif {"test", "count"} <= set(cells):
            columns = cells
        elif cells and columns:
            row = source_row.split(columns, cells, cell_name="cells")
            kind = next((name for name in TIME_COLUMNS if name in row), "")
            if not kind:
                raise source_row.error(
                    f"found no column {', '.join(TIME_COLUMNS)} among {' '.join(columns)}"
                )
            of_process = any(name in row for name in PROCESS_COLUMNS)
            key = (
                row["test"],
                row["count"],
                row.get("nrep", "") if of_process else source_row.line,
            )
            sample = samples.setdefault(key, Sample(source_row, row, TIME_COLUMNS[kind]))
            sample.seconds.append(source_row.parse_number(row[kind]))
    imported = ImportedTimes()
    for sample in samples.values():
        source_row, row = sample.source_row, sample.row
        size = source_row.parse_whole(row["count"]) * source_row.parse_whole(
            header_fields.get("datatype_extent_bytes") or "1"
        )
        ranks = source_row.parse_whole(header_fields.get("nprocs") or "0")
        if normalize_operation(row["test"]) in ("reducescatter", "reducescatterblock"):
            size *= source_row.choose_ranks(ranks) or 1
        of_processes = any(name in row for name in PROCESS_COLUMNS)
        imported.add_collective(
            source_row, row["test"], "", ranks, size, *sample.list_times(of_processes)
        )
    return imported


FORMAT = Format(
    "reprompi",
    "ReproMPI",
    read_file,
    mark=r"^#@\w+ *=|^\s*(test|process|proc|rank)\b[^\n]{0,200}\bcount\b[^\n]{0,200}_sec\b",
    examples=("reprompi.txt -o reprompi.csv", "reprompi.txt --layout block:8 -o reprompi.csv"),
)
