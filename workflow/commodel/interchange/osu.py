"""Text output of the OSU microbenchmarks: a title, a line of column names, then rows of a size and times in
microseconds.

The title names the operation. The number of ranks is that of a header or of the launcher's command line above the
title, if the file has one (`read_ranks_in_line`). As in commodel, a size is that of a block for
gather, allgather, scatter and alltoall, and of the whole vector for reductions, including reduce-scatter. The time of a
collective is the maximum over the ranks if it is printed (`-f`), since an operation has ended when the last rank has;
else the median or mean of the ranks' average. The latency test prints half a round trip.
"""

import re
from pathlib import Path

from commodel.files.rank_counts import read_ranks_in_line
from commodel.interchange import SLOWEST_RANK_MEAN, Format, ImportedTimes, SourceRow, StatedProperties, read_source_rows

TITLE = re.compile(r"#\s*OSU\s+(?P<name>.+?)\s+Test\b")
LATENCY = re.compile(r"MPI(?:-\w+)?\s+(?P<name>.*?)\s*Latency")
LATENCY_TEST = "latency"
COLUMN = re.compile(r"(?P<size>Size)|(?P<kind>\w+)?\s*(?:Tail\s+)?Lat(?:ency)?\s*\(us\)|(?P<other>\w+)", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?(?:[0-9.]+|nan|inf)", re.IGNORECASE)
STATISTICS = {
    "max": SLOWEST_RANK_MEAN,
    "p50": "median of the ranks' mean",
    "avg": "mean over the ranks",
}  # the best first
LATENCY_STATISTICS = {"p50": "median", "latency": "mean", "avg": "mean"}


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported, name, other, ranks = ImportedTimes(), "", "", 0
    columns: list[str] = []
    for source_row, text in read_source_rows(path, stated):
        line = " ".join(text.split())  # a regular expression would search very long runs of blanks repeatedly
        if title := TITLE.match(line):
            latency = LATENCY.fullmatch(title["name"])
            name, columns = (latency["name"] or LATENCY_TEST) if latency else "", []
            other = title["name"]
        elif (stated_ranks := read_ranks_in_line(line)) is not None:
            ranks = stated_ranks
        elif line.startswith("#"):
            if "lat" in line.lower() and "(us)" in line.lower():
                columns = _parse_column_names(line)
        elif cells := line.split():
            if not NUMBER.match(cells[0]):
                continue  # output of a launcher or a module system
            if not name and other:
                imported.left_out[other] += 1
                continue
            if not name:
                raise source_row.error("found numbers before a title '# OSU MPI … Latency Test'")
            if not columns:
                raise source_row.error(f"found {len(cells)} numbers, wanted column names first")
            _add_row(imported, source_row, name, ranks, source_row.split(columns, cells[: len(columns)]))
    return imported


def _parse_column_names(line: str) -> list[str]:
    """Return the column names of the line in their order: size, latency, avg, max, p50, …"""
    matches = COLUMN.finditer(line.lstrip(" #"))
    return ["size" if match["size"] else match["other"] or (match["kind"] or "latency").lower() for match in matches]


def _add_row(imported: ImportedTimes, source_row: SourceRow, name: str, ranks: int, row: dict[str, str]) -> None:
    statistics = LATENCY_STATISTICS if name == LATENCY_TEST else STATISTICS
    column = next((column for column in statistics if column in row), None)
    if column is None:
        raise source_row.error("found no column of average latency")
    size = source_row.parse_whole(row["size"]) if "size" in row else 0
    seconds = source_row.parse_number(row[column]) * 1e-6
    if name == LATENCY_TEST:
        imported.add_message(source_row, size, seconds, statistics[column])
    else:
        imported.add_collective(source_row, name, "", ranks, size, seconds, statistics[column])


FORMAT = Format("osu", "the OSU microbenchmarks", read_file)
