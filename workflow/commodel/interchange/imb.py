"""Text output of the Intel MPI Benchmarks (`read_file`): a block for each benchmark and number of processes, in
microseconds.

The time of a row is t_max: the mean time over the repetitions, on the slowest rank. An operation ends when the last
rank has finished. PingPong prints half a round trip. As in commodel, a size is that of a block for gather, allgather,
scatter and alltoall, and of the whole vector for reductions. The size of Reduce_scatter is that of the vector in
versions up to 2019, and in the IMB-MPI1 of the source folder src_c, which prints version 2018. From 2019 Update 1 on it
is that of one block, as in all versions for Reduce_scatter_block.
"""

import re
from pathlib import Path

from commodel.interchange import (
    SLOWEST_RANK_MEAN,
    Format,
    ImportedTimes,
    SourceRow,
    StatedProperties,
    normalize_operation,
    read_source_rows,
)

VERSION = re.compile(r"#\s*Intel ?\(R\) MPI Benchmarks ([0-9]{1,4})(?:\.([0-9]{1,4}))?(?: Update ([0-9]{1,4}))?\b")
NAME = re.compile(r"#\s*Benchmarking\s+(\S+)")
PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]{1,9})\b")
HEADER = re.compile(r"\s*#(?:bytes|repetitions)\b")
BYTES_COLUMN, SLOWEST_COLUMN, HALF_TRIP_COLUMN = "#bytes", "t_max[usec]", "t[usec]"
ABORT_MARKS = {"out-of-mem.;", "int-overflow;", "time-out.;"}
ONE_BLOCK_SINCE_VERSION = (2019, 1)
Version = tuple[int, int] | None


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    """Return the times of a file; other benchmarks are counted as left out."""
    imported, name, ranks = ImportedTimes(), "", 0
    columns: list[str] = []
    version: Version = None
    for source_row, line in read_source_rows(path, stated):
        if match := VERSION.match(line):
            version = int(match[1]), int(match[3] or match[2] or 0)
        elif match := NAME.match(line):
            name, ranks, columns = match[1], 0, []
            if name.startswith("Multi-"):  # several groups of ranks run the operation at once
                imported.left_out[name] += 1
                name = ""
        elif match := PROCESSES.match(line):
            ranks = int(match[1])
        elif HEADER.match(line):
            columns = line.split()
        elif line.lstrip().startswith("#") or not line.strip():
            columns = columns if line.lstrip().startswith("#-") else []  # a block ends at the first line that is no row
        elif columns and name:
            cells = line.split()
            if ABORT_MARKS & set(cells):
                imported.left_out[f"{name} that IMB aborted"] += 1
                continue
            if len(cells) >= len(columns) or cells[0].isdigit():
                row = source_row.split(columns, cells[: len(columns)])
                _add_row(imported, source_row, name, ranks, version, row)
    return imported


def _add_row(
    imported: ImportedTimes, source_row: SourceRow, name: str, ranks: int, version: Version, row: dict[str, str]
) -> None:
    size = source_row.parse_whole(row[BYTES_COLUMN]) if BYTES_COLUMN in row else 0
    if name.lower() == "pingpong" and HALF_TRIP_COLUMN in row:
        imported.add_message(source_row, size, source_row.parse_number(row[HALF_TRIP_COLUMN]) * 1e-6, "mean")
    elif SLOWEST_COLUMN not in row:
        imported.left_out[name] += 1
    elif normalize_operation(name) == "reducescatter" and version is None:
        imported.left_out[f"{name}, whose sizes are ambiguous, since the file does not name the version of IMB"] += 1
    else:
        prints_one_block = version is not None and version >= ONE_BLOCK_SINCE_VERSION
        if normalize_operation(name) == "reducescatterblock" or (
            normalize_operation(name) == "reducescatter" and prints_one_block
        ):
            size *= source_row.choose_ranks(ranks) or 1
        imported.add_collective(
            source_row, name, "", ranks, size, source_row.parse_number(row[SLOWEST_COLUMN]) * 1e-6, SLOWEST_RANK_MEAN
        )


FORMAT = Format("imb", "the Intel MPI Benchmarks", read_file)
