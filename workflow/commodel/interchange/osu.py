"""Text output of the OSU microbenchmarks: a title, a line of column names, then rows of a size and
times in microseconds.

The title names the operation. The number of ranks is that of a header or of the launcher's command
line above the title, if the file has one (`read_ranks_in_line`). As in commodel, a size is that of
a block for gather, allgather, scatter and alltoall, and of the whole vector for reductions,
including reduce-scatter.

OSU prints the mean over the ranks of each rank's own mean time, with `-f` also the least and
largest of the ranks' means. Its percentiles (`-z`) are those of the repetitions' means over the
ranks. The latency test prints half a round trip, the multi-latency test the mean of those of all
pairs. Bandwidths and message rates are of windows of messages, between one pair of ranks or all
pairs; a file that does not state the window has the usual one.
"""

import re
from pathlib import Path

from commodel.files.rank_counts import read_ranks_in_line
from commodel.interchange import (
    ROUND_TRIP,
    Format,
    ImportedTimes,
    PrintedTime,
    SourceRow,
    StatedProperties,
    Window,
    read_source_rows,
)
from commodel.records import Repetitions, Statistic

TITLE = re.compile(r"#\s*OSU\s+(?P<name>.+?)\s+Test\b")
LATENCY = re.compile(r"MPI(?:-\w+)?\s+(?P<name>.*?)\s*Latency")
LATENCY_TEST = "latency"
COLUMN = re.compile(
    r"(?P<size>Size)|(?P<kind>\w+)?\s*(?:Tail\s+)?Lat(?:ency)?\s*\(us\)|(?P<other>\w+)",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[-+]?(?:[0-9.]+|nan|inf)", re.IGNORECASE)
COLUMNS = {  # of each statistic, the preferred one first
    Statistic.FIRST_RANK: ("min",),
    Statistic.RANK_MEAN: ("p50", "avg"),
    Statistic.LAST_RANK: ("max",),
}
LATENCY_COLUMNS = {Statistic.COMPLETION: ("p50", "latency", "avg")}
DEFAULT_WINDOW = 64  # messages
DIRECTIONS = {  # the directions of messages, by the test's name
    "MPI Bandwidth": 1,
    "MPI Bi-Directional Bandwidth": 2,
    "MPI Multiple Bandwidth / Message Rate": 1,
}
MULTI_LATENCY = "Multi"
WINDOW_LINE = re.compile(
    r"# \[ pairs: (?P<pairs>[0-9]{1,9}) \] \[ window size: (?P<window>[0-9]{1,9}) \]"
)
BANDWIDTH_COLUMNS = re.compile(r"# Size (?:Bandwidth \()?MB/s\)?(?P<rate> Messages/s)?")
BANDWIDTH, RATE = "MB/s", "messages/s"
MEDIAN_COLUMN = "p50"  # the other columns are means over the repetitions


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    name = ""
    other = ""
    ranks = 0
    pairs = 1
    window = DEFAULT_WINDOW
    columns: list[str] = []
    for source_row, text in read_source_rows(path, stated):
        # a regular expression would search very long runs of blanks repeatedly
        line = " ".join(text.split())
        title = TITLE.match(line)
        window_line = WINDOW_LINE.fullmatch(line)
        bandwidth_columns = BANDWIDTH_COLUMNS.fullmatch(line)
        stated_ranks = read_ranks_in_line(line)
        if title:
            latency = LATENCY.fullmatch(title["name"])
            name = (latency["name"] or LATENCY_TEST) if latency else ""
            columns = []
            other = title["name"]
            pairs = 1
            window = DEFAULT_WINDOW
        elif window_line:
            pairs = int(window_line["pairs"])
            window = int(window_line["window"])
        elif bandwidth_columns:
            has_rate = bandwidth_columns["rate"]
            columns = ["size", BANDWIDTH, RATE] if has_rate else ["size", BANDWIDTH]
        elif stated_ranks is not None:
            ranks = stated_ranks
        elif line.startswith("#"):
            if "lat" in line.lower() and "(us)" in line.lower():
                columns = _parse_column_names(line)
        elif NUMBER.match(line):  # any other text is output of a launcher or a module system
            cells = line.split()
            if not name and BANDWIDTH in columns and other in DIRECTIONS:
                row = source_row.split(columns, cells[: len(columns)])
                _add_bandwidth(imported, source_row, Window(window, DIRECTIONS[other]), pairs, row)
                continue
            if not name and other:
                imported.left_out[other] += 1
                continue
            if not name:
                raise source_row.error("found numbers before a title '# OSU MPI … Latency Test'")
            if not columns:
                raise source_row.error(f"found {len(cells)} numbers, wanted column names first")
            _add_row(
                imported, source_row, name, ranks, source_row.split(columns, cells[: len(columns)])
            )
    return imported


def _parse_column_names(line: str) -> list[str]:
    """Return the column names of the line in their order, such as size, latency, avg, max, p50."""
    matches = COLUMN.finditer(line.lstrip(" #"))
    return [
        "size" if match["size"] else match["other"] or (match["kind"] or "latency").lower()
        for match in matches
    ]


def _add_row(
    imported: ImportedTimes, source_row: SourceRow, name: str, ranks: int, row: dict[str, str]
) -> None:
    times = []
    for statistic, names in (
        LATENCY_COLUMNS if name in (LATENCY_TEST, MULTI_LATENCY) else COLUMNS
    ).items():
        column = next((column for column in names if column in row), None)
        if column is not None:
            repetitions = Repetitions.MEDIAN if column == MEDIAN_COLUMN else Repetitions.MEAN
            times.append(
                PrintedTime(source_row.parse_number(row[column]) / 1e6, statistic, repetitions)
            )
    if not times:
        raise source_row.error("found no column of average latency")
    size = source_row.parse_whole(row["size"]) if "size" in row else 0
    if name == LATENCY_TEST:
        imported.add_message(source_row, size, times[0].seconds, times[0].repetitions)
    elif name == MULTI_LATENCY:
        paired_ranks = imported.find_ranks(source_row, ranks) // 2 * 2
        imported.add_pairs(source_row, ROUND_TRIP, paired_ranks, size, 2 * times[0].seconds)
    else:
        imported.add_collective(source_row, name, "", ranks, size, *times)


def _add_bandwidth(
    imported: ImportedTimes, source_row: SourceRow, window: Window, pairs: int, row: dict[str, str]
) -> None:
    """Add the time of a window. Its ranks are those of the pairs, whatever the number of ranks of
    the job. A message rate has more digits than the bandwidth of short messages."""
    size = source_row.parse_whole(row["size"])
    if RATE in row:
        rate = source_row.parse_number(row[RATE])
    else:
        rate = source_row.parse_number(row[BANDWIDTH]) * 1e6 / max(size, 1)
    imported.add_pairs(source_row, window, 2 * pairs, size, window.find_seconds(rate, pairs))


FORMAT = Format(
    "osu",
    "the OSU microbenchmarks",
    read_file,
    examples=(
        "osu_bcast.txt --ranks 16 -o osu.csv",
        "osu_bcast.txt --ranks 16 --algorithm binomial -o osu.csv",
    ),
)
