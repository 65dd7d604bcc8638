"""Text output of SKaMPI 5: `begin result "NAME"` … `end result "NAME"`, a row for each setting, in
microseconds.

A row has the varied settings (`procs= 8`), the bytes of a message, the mean, its standard error,
the number of measurements, and the time of each process. The mean is that of the slowest process's
times, without the fastest and slowest quarter of the repetitions. As here, bytes are those of a
block, or of the whole vector for reductions. A ping-pong is a full round trip in the file, and is
halved.
"""

import re
from pathlib import Path

from commodel.interchange import (
    Format,
    ImportedTimes,
    PrintedTime,
    SourceRow,
    StatedProperties,
    read_source_rows,
)
from commodel.records import Repetitions, Statistic

BEGIN = re.compile(r'\s*begin result "([^"]*)"')
END = re.compile(r"\s*end result\b")
# possessive: a long word without `=` is read once
VARIED_SETTING = re.compile(r"\b(\w++)=\s*+(\S++)")
FIXED_COLUMNS = 4  # numbers of a row that are not times of processes


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    name = ""
    for source_row, line in read_source_rows(path, stated):
        match = BEGIN.match(line)
        if match:
            name = match[1]
        elif END.match(line):
            name = ""
        elif name and line.strip() and not line.lstrip().startswith("#"):
            _add_row(imported, source_row, name, line)
    return imported


def _add_row(imported: ImportedTimes, source_row: SourceRow, name: str, line: str) -> None:
    varied = dict(VARIED_SETTING.findall(line))
    cells = VARIED_SETTING.sub("", line).split()
    if len(cells) < FIXED_COLUMNS:
        raise source_row.error(
            f"found {len(cells)} numbers, wanted bytes, time, error, measurements, times of processes"
        )
    size = source_row.parse_whole(cells[0])
    seconds = source_row.parse_number(cells[1]) / 1e6
    kind = name.split("-")[0]
    if kind.lower().startswith("pingpong"):
        imported.add_message(source_row, size, seconds / 2, Repetitions.MEAN)
    else:
        ranks = (
            source_row.parse_whole(varied["procs"])
            if "procs" in varied
            else len(cells) - FIXED_COLUMNS
        )
        time = PrintedTime(seconds, Statistic.LAST_RANK, Repetitions.MEAN)
        imported.add_collective(source_row, kind, "", ranks, size, time)


FORMAT = Format(
    "skampi",
    "SKaMPI 5",
    read_file,
    mark=r'^\s*begin result "',
    examples=("skampi.txt -o skampi.csv", "skampi.txt --layout block:4 -o skampi.csv"),
)
