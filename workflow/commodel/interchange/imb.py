"""Text output of the Intel MPI Benchmarks (`times`): a block for each benchmark and number of processes, in
microseconds.

The time of a row is t_max, the mean over the repetitions of the slowest rank, since an operation has ended when the
last rank has. PingPong prints half a round trip. As here, sizes are a block for gather, allgather, scatter and
alltoall, and the whole vector for reductions. The size of Reduce_scatter is the vector up to version 2019 (and in
IMB-MPI1 of src_c, which has called itself 2018 ever since). From 2019 Update 1 on it is one block, as always for
Reduce_scatter_block.
"""

import re
from pathlib import Path

from commodel.interchange import SLOWEST, Format, Given, Place, Readings, placed_lines, plain

VERSION = re.compile(r"#\s*Intel ?\(R\) MPI Benchmarks ([0-9]{1,4})(?:\.([0-9]{1,4}))?(?: Update ([0-9]{1,4}))?\b")
NAME = re.compile(r"#\s*Benchmarking\s+(\S+)")
PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]{1,9})\b")
HEAD = re.compile(r"\s*#(?:bytes|repetitions)\b")
BYTES, LAST, HALF = "#bytes", "t_max[usec]", "t[usec]"
CUT_SHORT = {"out-of-mem.;", "int-overflow;", "time-out.;"}
ONE_BLOCK_SINCE = (2019, 1)
Version = tuple[int, int] | None


def times(path: Path, given: Given) -> Readings:
    """Return the times of a file; benchmarks without the time of one operation are counted as left out."""
    readings, name, ranks, columns = Readings(), "", 0, []
    version: Version = None
    for place, line in placed_lines(path, given):
        if match := VERSION.match(line):
            version = int(match[1]), int(match[3] or match[2] or 0)
        elif match := NAME.match(line):
            name, ranks, columns = match[1], 0, []
            if name.startswith("Multi-"):  # groups of ranks at once: no time of an operation alone
                readings.left_out[name] += 1
                name = ""
        elif match := PROCESSES.match(line):
            ranks = int(match[1])
        elif HEAD.match(line):
            columns = line.split()
        elif line.lstrip().startswith("#") or not line.strip():
            columns = columns if line.lstrip().startswith("#-") else []  # a block ends at its first other line
        elif columns and name:
            cells = line.split()
            if CUT_SHORT & set(cells):
                readings.left_out[f"{name} that IMB gave up"] += 1
                continue
            if len(cells) >= len(columns) or cells[0].isdigit():
                row = place.row(columns, cells[: len(columns)])
                _take(readings, place, name, ranks, version, row)
    return readings


def _take(readings: Readings, place: Place, name: str, ranks: int, version: Version, row: dict[str, str]) -> None:
    size = place.whole(row[BYTES]) if BYTES in row else 0
    if name.lower() == "pingpong" and HALF in row:
        readings.take_message(place, size, place.number(row[HALF]) * 1e-6, "mean")
    elif LAST not in row:
        readings.left_out[name] += 1
    elif plain(name) == "reducescatter" and version is None:
        readings.left_out[f"{name} of a version that the file does not tell, so that its sizes have two meanings"] += 1
    else:
        if plain(name) == "reducescatterblock" or (plain(name) == "reducescatter" and version >= ONE_BLOCK_SINCE):
            size *= place.given.ranks or ranks or 1
        readings.take(place, name, "", ranks, size, place.number(row[LAST]) * 1e-6, SLOWEST)


FORMAT = Format("imb", "the Intel MPI Benchmarks", times)
