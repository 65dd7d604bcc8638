"""Tables of PICO: a CSV row a collective, algorithm and size, with percentiles in seconds; medians are taken.

`bytes` is the array of one rank: of gather, allgather, scatter and alltoall the whole one, whose `elements` are divided
by the number of ranks here. Where there are fewer elements than ranks, blocks are empty, and the row is left out.
`default` is the library's own choice. Names of algorithms end in where they come from: `over` is
PICO's own over point-to-point messages, `ompi` Open MPI's. All become one algorithm where they send the same messages,
and the source tells them apart.
"""

import re
from pathlib import Path

from commodel.files.tables import read_rows
from commodel.interchange import Format, Given, Place, Readings
from commodel.records import LIBRARY

COLUMNS = ("collective", "algorithm", "nodes", "ranks_per_node", "bytes", "median_s")
WHOLE = ("gather", "allgather", "scatter", "alltoall")
ORIGIN = re.compile(r"_(ompi|over|mpich|craympich)$")
WHOLE_MESSAGE = "2GiB"  # an algorithm that is asked for by name gets segments of size 0 in Open MPI: nothing is cut
NAMES = {  # where it is not the same with '-' for '_'
    "default": LIBRARY,
    "neighbor": "neighbor-exchange",
    "modified_bruck": "bruck",
    "linear_nb": "linear",  # the same messages, posted without blocking
    "linear_synch": f"linear-sync:{WHOLE_MESSAGE}",
    "binary": f"binary:{WHOLE_MESSAGE}",
    "split_binary": f"split-binary:{WHOLE_MESSAGE}",
    "pipeline": f"chain:{WHOLE_MESSAGE}",
    "in_order": f"in-order:{WHOLE_MESSAGE}",
    "knomial": "knomial:4",  # Open MPI's radix unless told otherwise
}
FULL_NAMES = {  # where libraries mean different things by a name; what is none of ours is left out by its own
    ("bcast", "binomial_ompi"): "binomial-near",
    ("bcast", "binomial_over"): "binomial_over",
    ("bcast", "chain_ompi"): "chain_ompi",  # several rows of ranks
    ("allreduce", "nonoverlapping_ompi"): "nonoverlapping_ompi",  # a reduce and a bcast of Open MPI's choice
}


def times(path: Path, given: Given) -> Readings:
    readings = Readings()
    for number, row in read_rows(path, COLUMNS):
        per_node = Place(path, number, given).whole(row["ranks_per_node"])
        layout = f"block:{per_node}" if per_node else ""
        place = Place(path, number, given, layout=layout, called=row["algorithm"])
        ranks, size = place.whole(row["nodes"]) * per_node, place.whole(row["bytes"])
        if row["collective"] in WHOLE and ranks:
            elements = place.whole(row.get("elements") or row["bytes"]) or 1
            size = elements // ranks * (size // elements)
            if not size:  # fewer elements than ranks
                readings.left_out[f"{row['collective']} of 0 bytes"] += 1
                continue
        readings.take(
            place,
            row["collective"],
            _algorithm(row["collective"], row["algorithm"]),
            ranks,
            size,
            place.number(row["median_s"]),
            "median",
        )
    return readings


def _algorithm(collective: str, called: str) -> str:
    """Our name of an algorithm, or its own where we have none."""
    if full := FULL_NAMES.get((collective, called)):
        return full
    name = ORIGIN.sub("", called)
    return NAMES.get(name, name.replace("_", "-"))


FORMAT = Format("pico", "PICO", times)
