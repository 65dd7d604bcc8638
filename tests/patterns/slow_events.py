"""Rank-local schedules in a plain event simulator: every rank runs until it has to wait for an
action of another one.

It is the reference for levels and replay, and uses neither.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Message:
    src: int
    dst: int
    bytes: int
    src_step: int
    src_wait: int
    dst_step: int
    dst_wait: int


class DeadlockError(Exception):
    """All ranks wait."""


def finish_times(ranks, messages, work, cost):
    """Return the finish time of every rank.

    `work`: (rank, step, seconds). `cost(row)`: send, wire, receive, gap_out, gap_in, request (NaN:
    eager) and grant of a message.
    """
    steps = [set() for _ in range(ranks)]
    for message in messages:
        steps[message.src] |= {message.src_step, message.src_wait}
        steps[message.dst] |= {message.dst_step, message.dst_wait}
    for rank, step, _ in work:
        steps[rank].add(step)
    steps = [sorted(own) for own in steps]
    done, out_free, last_in = [0.0] * ranks, [0.0] * ranks, [-np.inf] * ranks
    posted, opened = {}, {}  # of a message: when it would leave, when its receiver posted it
    place, begun = [0] * ranks, [False] * ranks

    def left(row):
        """Return the departure time of a message, or None if it is not determined yet."""
        *_, request, answer = cost(row)
        if row not in posted:
            return None
        if np.isnan(request):
            return posted[row]
        return max(posted[row] + request, opened[row]) + answer if row in opened else None

    def post(rank, step):
        for row, message in enumerate(messages):
            if message.dst == rank and message.dst_step == step:
                opened[row] = done[rank]
        for row, message in enumerate(messages):
            if message.src == rank and message.src_step == step:
                send, _, _, gap_out, *_ = cost(row)
                start = max(done[rank], out_free[rank])
                out_free[rank], done[rank] = start + gap_out, done[rank] + send
                posted[row] = start + send

    def wait(rank, step):
        """Return whether all messages due in this step have departed; if so, advance the clock of
        the rank."""
        due_in = [row for row, m in enumerate(messages) if m.dst == rank and m.dst_wait == step]
        due_out = [row for row, m in enumerate(messages) if m.src == rank and m.src_wait == step]
        if any(left(row) is None for row in due_in + due_out):
            return False
        for arrival, row in sorted((left(row) + cost(row)[1], row) for row in due_in):
            begin = max(arrival, done[rank], last_in[rank] + cost(row)[4])
            last_in[rank], done[rank] = begin, begin + cost(row)[2]
        done[rank] = max([done[rank], *(left(row) for row in due_out)])
        done[rank] += sum(seconds for owner, own, seconds in work if (owner, own) == (rank, step))
        return True

    while any(place[rank] < len(steps[rank]) for rank in range(ranks)):
        moved = False
        for rank in range(ranks):
            while place[rank] < len(steps[rank]):
                step = steps[rank][place[rank]]
                if not begun[rank]:
                    post(rank, step)
                    begun[rank] = moved = True
                if not wait(rank, step):
                    break
                place[rank], begun[rank], moved = place[rank] + 1, False, True
        if not moved:
            raise DeadlockError
    return done
