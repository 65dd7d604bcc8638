"""Text output of the OSU microbenchmarks: a title, a line of column names, then rows of a size and
times in microseconds.

The title names the operation. The numbers of ranks and nodes are those of a header, or of the
launcher's command line above the title, if the file has one. As in commodel, a size is that of a
block for gather, allgather, scatter and alltoall, and of the whole vector for reductions, including
reduce-scatter.

OSU prints the mean over the ranks of each rank's own mean time, with `-f` also the least and
largest of the ranks' means. Its percentiles (`-z`) are those of the repetitions' means over the
ranks. The latency test prints half a round trip, the multi-latency test the mean of those of all
pairs. Bandwidths and message rates are of windows of messages, between one pair of ranks or all
pairs; a file that does not state the window has the usual one. Buffers on a device, and the data
types of a file with several (`-T all`), are part of the setting.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from commodel.files.rank_counts import (
    NO_PLACEMENT,
    read_placement_in_command,
    read_placement_in_header,
)
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
LATENCY = re.compile(r"MPI\s+(?P<name>.*?)\s*Latency")
DEVICE = re.compile(r"MPI-(?P<device>\w{1,20}) ")  # in a title, of a build for accelerators
BUFFERS = re.compile(
    r"# Send Buffer on (?P<send>.{1,20}) and Receive Buffer on (?P<receive>.{1,20})"
)
HOST_BUFFER = "HOST (H)"
DATATYPE = re.compile(r"# Datatype: (?P<name>\w{1,30})\.?")
LATENCY_TEST = "latency"
COLUMN = re.compile(
    r"(?P<size>Size)|(?P<kind>\w+)?\s*(?:Tail\s+)?Lat(?:ency)?\s*\(us\)|(?P<other>\w+)",
    re.IGNORECASE,
)
# A line of a launcher may begin with a time, such as `0.037s: flux-shell`.
ROW = re.compile(r"[-+]?(?:[0-9.]+|nan|inf)(?: [-+]?(?:[0-9.]|nan|inf)\S*| \S*$|$)", re.IGNORECASE)
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
# Percentiles of `-z` and the result of a validation may follow.
BANDWIDTH_COLUMNS = re.compile(
    r"# Size (?:Bandwidth \()?MB/s\)?(?P<rate> Messages/s)?(?: (?:Validation|P[0-9]).*)?"
)
BANDWIDTH, RATE = "MB/s", "messages/s"
MEDIAN_COLUMN = "p50"  # the other columns are means over the repetitions


@dataclass
class OsuTest:
    """The test whose rows are read: what its title and the lines below it state."""

    name: str = ""  # of the operation; empty for a test of bandwidth, or one that is not read
    title: str = ""
    device: str = ""
    datatype: str = ""
    pairs: int = 1
    window: int = DEFAULT_WINDOW
    columns: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, title: str) -> "OsuTest":
        found = DEVICE.match(title)
        plain = DEVICE.sub("MPI ", title)
        latency = LATENCY.fullmatch(plain)
        name = (latency["name"] or LATENCY_TEST) if latency else ""
        return cls(name, plain, found["device"] if found else "")

    def read_line(self, line: str) -> None:
        """Read a comment below the title."""
        buffers = BUFFERS.fullmatch(line)
        datatype = DATATYPE.fullmatch(line)
        window = WINDOW_LINE.fullmatch(line)
        bandwidth = BANDWIDTH_COLUMNS.fullmatch(line)
        if buffers:
            if buffers["send"] == buffers["receive"] == HOST_BUFFER:
                self.device = ""
        elif datatype:
            self.datatype = datatype["name"]
        elif window:
            self.pairs = int(window["pairs"])
            self.window = int(window["window"])
        elif bandwidth:
            self.columns = ["size", BANDWIDTH, *([RATE] if bandwidth["rate"] else [])]
        elif "lat" in line.lower() and "(us)" in line.lower():
            self.columns = _parse_column_names(line)


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    test = OsuTest()
    placement = NO_PLACEMENT
    datatypes: list[str] = []  # of each time
    for source_row, text in read_source_rows(path, stated):
        # a regular expression would search very long runs of blanks repeatedly
        line = " ".join(text.split())
        title = TITLE.match(line)
        header = read_placement_in_header(line)
        command = read_placement_in_command(line)
        if title:
            test = OsuTest.of(title["name"])
        elif command is not None:
            placement = command
        elif header is not None:
            placement = header.filled(placement).complete
        elif line.startswith("#"):
            test.read_line(line)
        elif ROW.match(line):  # any other text is output of a launcher or a module system
            row = source_row.of_run(placement, test.device)
            _read_row(imported, row, test, line)
            datatypes += [test.datatype] * (len(imported.times) - len(datatypes))
    if len({*datatypes} - {""}) > 1:
        imported.times = [
            replace(time, setting=", ".join(filter(None, (time.setting, datatype))))
            for time, datatype in zip(imported.times, datatypes, strict=True)
        ]
    return imported


def _read_row(imported: ImportedTimes, source_row: SourceRow, test: OsuTest, line: str) -> None:
    cells = line.split()
    columns = test.columns
    if not test.name and BANDWIDTH in columns and test.title in DIRECTIONS:
        row = source_row.split(columns, cells[: len(columns)])
        window = Window(test.window, DIRECTIONS[test.title])
        _add_bandwidth(imported, source_row, window, test.pairs, row)
    elif not test.name and test.title:
        imported.left_out[test.title] += 1
    elif not test.name:
        raise source_row.error("found numbers before a title '# OSU MPI … Latency Test'")
    elif not columns:
        raise source_row.error(f"found {len(cells)} numbers, wanted column names first")
    else:
        row = source_row.split(columns, cells[: len(columns)])
        _add_row(imported, source_row, test.name, row)


def _parse_column_names(line: str) -> list[str]:
    """Return the column names of the line in their order, such as size, latency, avg, max, p50."""
    matches = COLUMN.finditer(line.lstrip(" #"))
    return [
        "size" if match["size"] else match["other"] or (match["kind"] or "latency").lower()
        for match in matches
    ]


def _add_row(
    imported: ImportedTimes, source_row: SourceRow, name: str, row: dict[str, str]
) -> None:
    ranks = source_row.placement.ranks
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
    mark=r"#\s*OSU\s+(MPI|NCCL|RCCL|HCCL|UPC|OpenSHMEM|Java|OMB)",
    examples=(
        "osu_bcast.txt --ranks 16 -o osu.csv",
        "osu_bcast.txt --ranks 16 --algorithm binomial -o osu.csv",
    ),
)
