"""Text output of the microbenchmarks of MPI Advance (`read_file`): sections with round trips in
seconds, between one pair of ranks or several pairs at once, which are in a node or on two nodes.

A time is the mean of one round trip, of the slowest rank. Places within a node are not
distinguished: times of two ranks in a NUMA region, in a socket and in different sockets are samples
of one point. Sections that activate only some cores of each region, or send many messages of 1 B,
are left out.
"""

import re
from pathlib import Path

from commodel.interchange import (
    ROUND_TRIP,
    Format,
    ImportedTimes,
    StatedProperties,
    read_source_rows,
)

SECTION = re.compile(
    r"(?P<place>On-NUMA|On-Socket|On-Node, Off-Socket|Off-Node)(?: MultiProc)? Ping-Pong:"
)
OTHER_SECTION = re.compile(r"(?P<name>[A-Z][^:]{0,80}):")
ACTIVE = re.compile(r"Active Procs: (?P<pairs>[0-9]{1,6})")
ROW = re.compile(r"Size (?P<size>[0-9]{1,12}): (?P<seconds>\S{1,40})")


def read_file(path: Path, stated: StatedProperties) -> ImportedTimes:
    imported = ImportedTimes()
    layout_of_pairs = ""
    other = ""
    pairs = 1
    for source_row, text in read_source_rows(path, stated):
        line = " ".join(text.split())
        section = SECTION.fullmatch(line)
        active = ACTIVE.fullmatch(line)
        row = ROW.fullmatch(line)
        other_section = OTHER_SECTION.fullmatch(line)
        if section:
            other = ""
            pairs = 1
            layout_of_pairs = "block:{pairs}" if section["place"] == "Off-Node" else "block:{ranks}"
        elif active:
            pairs = int(active["pairs"])
        elif row:
            if other or not layout_of_pairs:
                imported.left_out[other or "row before a section"] += 1
                continue
            placed = source_row.placed(layout_of_pairs.format(pairs=pairs, ranks=2 * pairs))
            size = placed.parse_whole(row["size"])
            imported.add_pairs(
                placed, ROUND_TRIP, 2 * pairs, size, placed.parse_number(row["seconds"])
            )
        elif other_section:
            other = other_section["name"]
    return imported


FORMAT = Format(
    "microbench",
    "the microbenchmarks of MPI Advance",
    read_file,
    mark=r"^\s*(On-NUMA|On-Socket|On-Node, Off-Socket|Off-Node)( MultiProc)? Ping-Pong:",
    options=(),
    examples=("microbench.txt -o pairs.csv", "microbench-1.txt microbench-2.txt -o pairs.csv"),
)
