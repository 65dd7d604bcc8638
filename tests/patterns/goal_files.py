"""A GOAL schedule as text, the binary file that txt2bin of LogGOPSim 76451de (2024) wrote from it, and a writer of such
binary files."""

import base64
import struct

import numpy as np

TEXT = """num_ranks 3
rank 0 {
l1: calc 5000
l2: send 8b to 1 tag 7
l3: send 16b to 2 cpu 1
l2 requires l1
l3 requires l1
l3 irequires l2
}
rank 1 {
l1: recv 8b from 0 tag 7
l2: calc 0
l2 requires l1
l3: recv 4b from 2 tag 1 nic 1
l3 requires l2
}
rank 2 {
recv 16b from 0
send 4b to 1 tag 1
}
"""
BINARY = base64.b64decode(
    "fxAAAAAAAAADAAAAAQE2AAAAAAAAAMMAAAAAAAAAwwAAAAAAAABMAQAAAAAAAEwBAAAAAAAAqgEAAAAAAAADAAAAAQAAAAAAAAAAAAAAAwAAAA"
    "CIEwAAAAAAAAAAAAAAAAIAAAAAAAAAAAAAAAIAAAABAAAAAQEAAAAIAAAAAAAAAAcAAAAAAAAAAAACAAAAAQAAAAIAAAACAAAAAQIAAAAQAAAA"
    "AAAAAAAAAAABAAAAAAADAAAAAAAAAAMAAAABAAAAAgAAAAIAAAADAAAAAQAAAAAAAAAAAAAAAgAAAAAIAAAAAAAAAAcAAAAAAAEAAAAAAAAAAA"
    "AAAAEAAAABAAAAAwAAAAAAAAAAAAAAAAAAAAAAAAEAAAABAAAAAAAAAAIAAAABAAAAAgIAAAAEAAAAAAAAAAEAAAAAAQAAAAACAAAAAAAAAAIA"
    "AAABAAAAAgAAAAIAAAACAAAAAAAAAAEAAAAAAAAAAgAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQEAAAAEAAAAAAAAAA"
    "EAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)


def packed(tasks, places=None, more=b""):
    """Return tasks in the binary format. `places`: cpu and nic of every task (default 0). `more`: the bytes that
    LogGOPSim 2 writes after every task."""
    places = np.zeros((len(tasks.rank), 2), dtype=int) if places is None else np.array(places)
    needs = tasks.dependencies
    blocks = []
    for rank in range(tasks.ranks):
        tasks_of_rank = np.flatnonzero(tasks.rank == rank).tolist()
        waits = [int((needs.after == task).sum()) for task in tasks_of_rank]
        rows, followers = b"", []
        for task, count in zip(tasks_of_rank, waits, strict=True):
            rows += struct.pack(
                "<IBIQI", count, *(column[task] for column in (tasks.kind, tasks.peer, tasks.size, tasks.tag))
            )
            rows += struct.pack("<BB", *places[task])
            for begun in (False, True):
                behind = needs.after[(needs.before == task) & (needs.on_start == begun)]
                rows += struct.pack("<II", len(behind), len(followers))
                followers += [tasks_of_rank.index(after) for after in behind]
            rows += more
        idle = [number for number, count in enumerate(waits) if not count]
        blocks.append(struct.pack(f"<II{len(idle)}I", len(tasks_of_rank), len(idle), *idle) + rows)
        blocks[-1] += struct.pack(f"<{len(followers)}I", *followers)
    ends = 6 + 16 * tasks.ranks + np.cumsum([0, *map(len, blocks)])
    table = np.stack([ends[:-1], ends[1:]], axis=1).astype("<u8").tobytes()
    head = struct.pack("<QIBB", 4223, tasks.ranks, *places.max(axis=0, initial=0))
    return head + table + b"".join(blocks)
