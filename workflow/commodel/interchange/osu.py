"""Text output of the OSU microbenchmarks: a title, a line of column names, then rows of a size and times in
microseconds.

The title names the operation; the number of ranks is not in the file. As here, sizes are a block for gather, allgather,
scatter and alltoall, and the whole vector for reductions, including reduce-scatter. The time of a collective is the
maximum over the ranks if it is printed (`-f`), since an operation has ended when the last rank has; else the median or
mean of the ranks' average. The latency test prints half a round trip.
"""

import re
from pathlib import Path

from commodel.interchange import SLOWEST, Format, Given, Place, Readings, placed_lines

TITLE = re.compile(r"#\s*OSU\s+(?P<name>.+?)\s+Test\b")
LATENCY = re.compile(r"MPI(?:-\w+)?\s+(?P<name>.*?)\s*Latency")
MESSAGE = "latency"
COLUMN = re.compile(r"(?P<size>Size)|(?P<kind>\w+)?\s*(?:Tail\s+)?Lat(?:ency)?\s*\(us\)|(?P<other>\w+)", re.IGNORECASE)
NUMBER = re.compile(r"[-+]?(?:[0-9.]+|nan|inf)", re.IGNORECASE)
STATISTICS = {"max": SLOWEST, "p50": "median of the ranks' mean", "avg": "mean over the ranks"}  # the best first
ONE_WAY = {"p50": "median", "latency": "mean", "avg": "mean"}


def times(path: Path, given: Given) -> Readings:
    readings, name, other, columns = Readings(), "", "", []
    for place, text in placed_lines(path, given):
        line = " ".join(text.split())  # endless blanks would be searched endlessly
        if title := TITLE.match(line):
            latency = LATENCY.fullmatch(title["name"])
            name, columns = (latency["name"] or MESSAGE) if latency else "", []
            other = title["name"]
        elif line.startswith("#"):
            if "lat" in line.lower() and "(us)" in line.lower():
                columns = _columns(line)
        elif cells := line.split():
            if not NUMBER.match(cells[0]):
                continue  # output of a launcher or a module system
            if not name and other:
                readings.left_out[other] += 1
                continue
            if not name:
                raise place.error("found numbers before a title '# OSU MPI … Latency Test'")
            if not columns:
                raise place.error(f"found {len(cells)} numbers, wanted column names first")
            _take(readings, place, name, place.row(columns, cells[: len(columns)]))
    return readings


def _columns(line: str) -> list[str]:
    """Return the column names of the line in their order: size, latency, avg, max, p50, …"""
    matches = COLUMN.finditer(line.lstrip(" #"))
    return ["size" if found["size"] else found["other"] or (found["kind"] or "latency").lower() for found in matches]


def _take(readings: Readings, place: Place, name: str, row: dict[str, str]) -> None:
    statistics = ONE_WAY if name == MESSAGE else STATISTICS
    column = next((column for column in statistics if column in row), None)
    if column is None:
        raise place.error("found no column of average latency")
    size = place.whole(row["size"]) if "size" in row else 0
    seconds = place.number(row[column]) * 1e-6
    if name == MESSAGE:
        readings.take_message(place, size, seconds, statistics[column])
    else:
        readings.take(place, name, "", 0, size, seconds, statistics[column])


FORMAT = Format("osu", "the OSU microbenchmarks", times)
