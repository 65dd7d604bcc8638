"""Text output of the Intel MPI Benchmarks (`read_file`): a block for each benchmark and number of
processes, in microseconds.

The times of a row are the least, mean and largest of the ranks' own mean times. With a root that
rotates, as in versions before 2017 or with `-root_shift on`, every rank is the root in turn. The
least and largest times are then not those of the first and last rank, and only the mean is used.
PingPong prints half a round trip, PingPing the time of two messages in opposite directions, Uniband
and Biband the messages per second of all pairs.

As in commodel, a size is that of a block for gather, allgather, scatter and alltoall, and of the
whole vector for reductions. The size of Reduce_scatter is that of the vector in versions up to
2019, and in the IMB-MPI1 of the source folder src_c, which prints version 2018. From 2019 Update 1
on it is that of one block, as in all versions for Reduce_scatter_block.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from commodel.interchange import (
    Format,
    ImportedTimes,
    PrintedTime,
    SourceRow,
    StatedProperties,
    Window,
    normalize_operation,
    read_source_rows,
)
from commodel.records import ROOTED_OPERATIONS, Repetitions, Statistic

VERSION = re.compile(
    r"#\s*Intel ?\(R\) MPI Benchmarks ([0-9]{1,4})(?:\.([0-9]{1,4}))?(?: Update ([0-9]{1,4}))?\b"
    r"(?P<part>[^(]{0,40})(?P<device>\(GPU\))?"
)
NAME = re.compile(r"#\s*Benchmarking\s+(\S+)")
PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]{1,9})\b")
HEADER = re.compile(r"\s*#(?:bytes|repetitions)\b")
# in the command line that IMB repeats as a comment
OPTION = re.compile(r"-(root_shift|window_size)[ =]+(\w{1,9})")
BYTES_COLUMN, TIME_COLUMN, RATE_COLUMN = "#bytes", "t[usec]", "Msg/sec"
DIRECTIONS = {"uniband": 1, "biband": 2}
PINGPING = Window(1, 2)
STATISTICS = {
    "t_min[usec]": Statistic.FIRST_RANK,
    "t_avg[usec]": Statistic.RANK_MEAN,
    "t_max[usec]": Statistic.LAST_RANK,
}
ABORT_MARKS = {"out-of-mem.;", "int-overflow;", "time-out.;"}
ONE_BLOCK_SINCE_VERSION = (2019, 1)
FIXED_ROOT_SINCE_VERSION = (2017, 0)
WIDE_WINDOW_SINCE_VERSION = (2021, 2)
WIDE_WINDOW, NARROW_WINDOW = 256, 64  # messages


@dataclass(frozen=True)
class ImbRun:
    """The properties of a run of IMB that change the meaning of its rows."""

    version: tuple[int, int] | None = None
    setting: str = ""  # of buffers on a device
    root_shift: str = ""  # the value of the option
    window_size: str = ""  # the same

    @property
    def prints_one_block(self) -> bool:
        """Whether the size of Reduce_scatter is that of one block."""
        return self.version is not None and self.version >= ONE_BLOCK_SINCE_VERSION

    @property
    def rotates_root(self) -> bool:
        if self.root_shift:
            return self.root_shift.lower() in ("on", "1", "enable", "yes")
        return self.version is not None and self.version < FIXED_ROOT_SINCE_VERSION

    @property
    def window(self) -> int:
        """The messages of a pair that are sent at once."""
        is_wide = self.version is not None and self.version >= WIDE_WINDOW_SINCE_VERSION
        if self.window_size.isdecimal():
            return int(self.window_size)
        return WIDE_WINDOW if is_wide else NARROW_WINDOW


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    """Return the times of a file; other benchmarks are counted as left out."""
    imported = ImportedTimes()
    name = ""
    ranks = 0
    columns: list[str] = []
    run = ImbRun()
    # A number in the file's name is that of the run, which also measures with fewer processes.
    named = stated.named_ranks
    stated = replace(stated, named_ranks=replace(named, certain=False))
    for source_row, line in read_source_rows(path, stated):
        version = VERSION.match(line)
        if version:
            number = int(version[1]), int(version[3] or version[2] or 0)
            run = ImbRun(number, "GPU" if version["device"] else "")
            continue
        options = OPTION.findall(line) if line.startswith("#") else []
        if options:
            run = replace(run, **dict(options))
            continue
        title = NAME.match(line)
        processes = PROCESSES.match(line)
        if title:
            name = title[1]
            ranks = 0
            columns = []
            if name.startswith("Multi-"):  # several groups of ranks run the operation at once
                imported.left_out[name] += 1
                name = ""
        elif processes:
            ranks = int(processes[1])
            if named.certain and ranks > named.count:
                complaint = f"found {ranks} ranks in the file and {named.count} in its name"
                raise source_row.error(f"{complaint}; rename the file")
        elif HEADER.match(line):
            columns = line.split()
        elif line.lstrip().startswith("#") or not line.strip():
            # a block ends at the first line that is no row
            columns = columns if line.lstrip().startswith("#-") else []
        elif columns and name:
            cells = line.split()
            if ABORT_MARKS & set(cells):
                imported.left_out[f"{name} that IMB aborted"] += 1
                continue
            if len(cells) >= len(columns) or cells[0].isdigit():
                row = source_row.split(columns, cells[: len(columns)])
                source_row = replace(source_row, setting=run.setting)
                _add_row(imported, source_row, name, ranks, run, row)
    return imported


def _add_row(
    imported: ImportedTimes,
    source_row: SourceRow,
    name: str,
    ranks: int,
    run: ImbRun,
    row: dict[str, str],
) -> None:
    size = source_row.parse_whole(row[BYTES_COLUMN]) if BYTES_COLUMN in row else 0
    operation = normalize_operation(name)
    columns = [column for column in STATISTICS if column in row]
    if operation in ROOTED_OPERATIONS and run.rotates_root:
        columns = [column for column in columns if STATISTICS[column] is Statistic.RANK_MEAN]
    if name.lower() == "pingpong" and TIME_COLUMN in row:
        seconds = source_row.parse_number(row[TIME_COLUMN]) / 1e6
        imported.add_message(source_row, size, seconds, Repetitions.MEAN)
    elif name.lower() == "pingping" and TIME_COLUMN in row:
        imported.add_pairs(
            source_row, PINGPING, 2, size, source_row.parse_number(row[TIME_COLUMN]) / 1e6
        )
    elif name.lower() in DIRECTIONS and RATE_COLUMN in row and ranks:
        pairs = ranks // 2
        window = Window(run.window, DIRECTIONS[name.lower()])
        rate = source_row.parse_number(row[RATE_COLUMN])
        imported.add_pairs(source_row, window, 2 * pairs, size, window.find_seconds(rate, pairs))
    elif not columns:
        imported.left_out[name] += 1
    elif operation == "reducescatter" and run.version is None:
        imported.left_out[
            f"{name}, whose sizes are ambiguous, since the file does not name the version of IMB"
        ] += 1
    else:
        if operation == "reducescatterblock" or (
            operation == "reducescatter" and run.prints_one_block
        ):
            size *= source_row.choose_ranks(ranks) or 1
        times = [
            PrintedTime(
                source_row.parse_number(row[column]) / 1e6, STATISTICS[column], Repetitions.MEAN
            )
            for column in columns
        ]
        imported.add_collective(source_row, name, "", ranks, size, *times)


FORMAT = Format(
    "imb",
    "the Intel MPI Benchmarks",
    read_file,
    mark=r"#\s*(Intel ?\(R\) MPI Benchmarks|Benchmarking\s+\S)",
    has_groups=True,
    examples=("imb.txt -o imb.csv", "imb.txt --layout block:2 -o imb.csv"),
)
