"""Text output of the Intel MPI Benchmarks: a block a benchmark and number of processes, microseconds.

Sizes are a block for gather, allgather, scatter and alltoall, and the whole vector for the reductions, as here.
PingPong prints half a round trip. Of the times of a row the mean over the processes is taken.
"""

import re
from pathlib import Path

from commodel.interchange import Format, Found, Given, Place, lines

NAME = re.compile(r"#\s*Benchmarking\s+(\S+)")
PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]{1,9})\b")
HEAD = re.compile(r"\s*#(?:bytes|repetitions)\b")
BYTES, MEAN, HALF = "#bytes", "t_avg[usec]", "t[usec]"


def times(path: Path, given: Given) -> Found:
    found, name, ranks, columns = Found(), "", 0, []
    for number, line in lines(path):
        place = Place(path, number, given)
        if match := NAME.match(line):
            name, ranks, columns = match[1], 0, []
        elif match := PROCESSES.match(line):
            ranks = int(match[1])
        elif HEAD.match(line):
            columns = line.split()
        elif line.lstrip().startswith("#") or not line.strip():
            columns = columns if line.lstrip().startswith("#-") else []  # a block ends at its first other line
        elif columns and name:
            cells = line.split()
            if len(cells) < len(columns):
                if not cells[0].isdigit():
                    continue  # a line about a run that was cut short
                raise place.error(f"found {len(cells)} numbers, wanted {' '.join(columns)}")
            _take(found, place, name, ranks, dict(zip(columns, cells, strict=False)))
    return found


def _take(found: Found, place: Place, name: str, ranks: int, row: dict[str, str]) -> None:
    size = place.whole(row[BYTES]) if BYTES in row else 0
    if name.lower() == "pingpong" and HALF in row:
        found.take_message(place, size, place.number(row[HALF]) * 1e-6, "mean")
    elif MEAN in row:
        seconds = place.number(row[MEAN]) * 1e-6
        if seconds or size:  # what has nothing to send is printed as 0.00
            found.take(place, name, "", ranks, size, seconds, "mean")
    else:
        found.left_out[name] += 1


FORMAT = Format("imb", "the Intel MPI Benchmarks", times)
