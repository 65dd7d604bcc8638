"""Text output of MPIBlib: a row for each message size, `#msg time wtick reps ci`, in seconds, means
over the repetitions.

Neither the operation nor the number of ranks is in the file. Each of MPIBlib's three timers lasts
until the last rank has finished: `max`, which is the default, `root`, which includes a barrier, and
`global`. A measurement between two processes is a full round trip: it has the name `pingpong` and
is halved.
"""

from pathlib import Path

from commodel.interchange import (
    COMMON_OPTIONS,
    Format,
    ImportedTimes,
    PrintedTime,
    StatedProperties,
    read_source_rows,
)
from commodel.records import Repetitions, Statistic


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    columns: list[str] = []
    for source_row, line in read_source_rows(path, stated):
        cells = line.lstrip("#").split()
        if line.startswith("#"):
            columns = cells if cells[:2] == ["msg", "time"] else columns
        elif cells and columns:
            row = source_row.split(columns, cells)
            if not stated.operation:
                raise source_row.error(
                    "the file does not name the operation; give --operation, e.g. bcast or pingpong"
                )
            size = source_row.parse_whole(row["msg"])
            seconds = source_row.parse_number(row["time"])
            if stated.operation == "pingpong":
                imported.add_message(source_row, size, seconds / 2, Repetitions.MEAN)
            else:
                time = PrintedTime(seconds, Statistic.LAST_RANK, Repetitions.MEAN)
                imported.add_collective(source_row, stated.operation, "", 0, size, time)
    return imported


FORMAT = Format(
    "mpiblib",
    "MPIBlib",
    read_file,
    mark=r"^#\s*msg\s+time\b",
    options=(*COMMON_OPTIONS, "operation"),
    examples=(
        "bcast.out --operation bcast --ranks 16 -o bcast.csv",
        "p2p.out --operation pingpong -o p2p.csv",
    ),
)
