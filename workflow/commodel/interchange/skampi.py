"""Text output of SKaMPI 5: `begin result "NAME"` … `end result "NAME"`, a row for each setting, in microseconds.

A row has the varied settings (`procs= 8`), the bytes of a message, the mean, its standard error, the number of
measurements, and the time of each process. As here, bytes are those of a block, or of the whole vector for reductions.
A ping-pong is a full round trip in the file, and is halved.
"""

import re
from pathlib import Path

from commodel.interchange import Format, Given, Place, Readings, placed_lines

BEGIN, END = re.compile(r'\s*begin result "([^"]*)"'), re.compile(r"\s*end result\b")
VARIED = re.compile(r"\b(\w++)=\s*+(\S++)")  # possessive: a long word without `=` is read once
FIXED = 4  # numbers of a row that are not times of processes


def times(path: Path, given: Given) -> Readings:
    readings, name = Readings(), ""
    for place, line in placed_lines(path, given):
        if match := BEGIN.match(line):
            name = match[1]
        elif END.match(line):
            name = ""
        elif name and line.strip() and not line.lstrip().startswith("#"):
            _take(readings, place, name, line)
    return readings


def _take(readings: Readings, place: Place, name: str, line: str) -> None:
    varied = dict(VARIED.findall(line))
    cells = VARIED.sub("", line).split()
    if len(cells) < FIXED:
        raise place.error(f"found {len(cells)} numbers, wanted bytes, time, error, measurements, times of processes")
    size, seconds = place.whole(cells[0]), place.number(cells[1]) * 1e-6
    kind = name.split("-")[0]
    if kind.lower().startswith("pingpong"):
        readings.take_message(place, size, seconds / 2, "mean")
    else:
        ranks = place.whole(varied["procs"]) if "procs" in varied else len(cells) - FIXED
        readings.take(place, kind, "", ranks, size, seconds, "mean")


FORMAT = Format("skampi", "SKaMPI 5", times)
