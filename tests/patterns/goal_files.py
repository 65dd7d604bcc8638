"""A GOAL schedule as text, the binary file that txt2bin of LogGOPSim 76451de (2024) wrote from it,
a writer of such binary files, and patterns of schedgen over any number of ranks."""

import base64
import struct

import numpy as np

from commodel.patterns.pattern_files.tasks import RECEIVE, SEND, Dependencies, Tasks

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
    """Return tasks in the binary format. `places`: cpu and nic of every task (default 0). `more`:
    the bytes that LogGOPSim 2 writes after every task."""
    places = np.zeros((len(tasks.rank), 2), dtype=int) if places is None else np.array(places)
    rank, needs, size = tasks.rank, tasks.dependencies, 39 + len(more)
    counts = np.bincount(rank, minlength=tasks.ranks)
    waits = np.bincount(needs.after, minlength=len(rank))
    idle = np.flatnonzero(waits == 0)
    idle_counts = np.bincount(rank[idle], minlength=tasks.ranks)
    named = [
        np.bincount(needs.before[needs.on_start == begun], minlength=len(rank))
        for begun in (False, True)
    ]
    follower_counts = np.bincount(rank[needs.before], minlength=tasks.ranks)
    first_task, first_idle, first_follower = (
        np.cumsum(column) - column for column in (counts, idle_counts, follower_counts)
    )
    first_named = np.cumsum(named[0] + named[1]) - named[0] - named[1] - first_follower[rank]
    ends = (
        14
        + 16 * tasks.ranks
        + np.cumsum([0, *(8 + 4 * idle_counts + size * counts + 4 * follower_counts)])
    )
    begins = ends[:-1]
    content = bytearray(int(ends[-1]))

    def put(form, positions, values):
        view = np.ndarray(len(content) - np.dtype(form).itemsize + 1, form, content, 0, (1,))
        view[positions] = values

    struct.pack_into("<QIBB", content, 0, 4223, tasks.ranks, *places.max(axis=0, initial=0))
    table = 14 + 16 * np.arange(tasks.ranks)
    for place, form, values in ((0, "<u8", begins - 8), (8, "<u8", ends[1:] - 8)):
        put(form, table + place, values)
    put("<u4", begins, counts)
    put("<u4", begins + 4, idle_counts)
    idle_number = np.arange(len(idle)) - first_idle[rank[idle]]
    put("<u4", begins[rank[idle]] + 8 + 4 * idle_number, idle - first_task[rank[idle]])
    tasks_begin = begins + 8 + 4 * idle_counts
    rows = tasks_begin[rank] + size * (np.arange(len(rank)) - first_task[rank])
    fields = [
        ("<u4", waits),
        ("u1", tasks.kind),
        ("<u4", tasks.peer),
        ("<u8", tasks.size),
        ("<u4", tasks.tag),
    ]
    fields += [("u1", places[:, 0]), ("u1", places[:, 1]), ("<u4", named[0]), ("<u4", first_named)]
    fields += [("<u4", named[1]), ("<u4", first_named + named[0])]
    place = 0
    for form, values in fields:
        put(form, rows + place, values)
        place += np.dtype(form).itemsize
    for number, byte in enumerate(more):
        put("u1", rows + place + number, byte)
    order = np.lexsort((np.arange(len(needs.before)), needs.on_start, needs.before))
    owner = rank[needs.before[order]]
    number = np.arange(len(order)) - first_follower[owner]
    put(
        "<u4",
        (tasks_begin + size * counts)[owner] + 4 * number,
        needs.after[order] - first_task[owner],
    )
    return bytes(content)


def make_tasks(ranks, source, target, round, size=1024):
    """Return the tasks of messages. A rank sends in its rounds in turn, each message after the last
    one received in an earlier round."""
    rank, peer = np.concatenate([source, target]), np.concatenate([target, source])
    kind = np.repeat([SEND, RECEIVE], len(source))
    order = np.lexsort((kind, np.concatenate([round, round]), rank))
    rank, kind, peer, tag = (
        rank[order],
        kind[order],
        peer[order],
        np.zeros(len(order), dtype=np.int64),
    )
    last = np.maximum.accumulate(np.where(kind == RECEIVE, np.arange(len(order)), -1))
    after = np.flatnonzero((kind == SEND) & (last >= 0) & (rank[last] == rank))
    needs = Dependencies(last[after], after, np.zeros(len(after), dtype=bool))
    return Tasks("made up", ranks, rank, kind, np.full(len(rank), size), peer, tag, needs)


def make_binomial_broadcast(ranks):
    source = np.concatenate(
        [np.arange(min(1 << bit, ranks - (1 << bit))) for bit in range((ranks - 1).bit_length())]
    )
    round = np.concatenate(
        [np.full(min(1 << bit, ranks - (1 << bit)), bit) for bit in range((ranks - 1).bit_length())]
    )
    return make_tasks(ranks, source, source + (1 << round), round)


def make_dissemination(ranks):
    rounds = (ranks - 1).bit_length()
    source, round = np.tile(np.arange(ranks), rounds), np.repeat(np.arange(rounds), ranks)
    return make_tasks(ranks, source, (source + (1 << round)) % ranks, round)


def make_linear_alltoall(ranks):
    source, distance = np.tile(np.arange(ranks), ranks - 1), np.repeat(np.arange(1, ranks), ranks)
    return make_tasks(ranks, source, (source + distance) % ranks, np.zeros(len(source), dtype=int))
