"""Reference of the fast replay: the same rules in a plain loop over messages."""

from collections import defaultdict

import numpy as np


def finish_times(
    schedule, send, receive, wire, gap_out, gap_in, work_seconds, request=None, answer=None
):
    """Return the finish time of every rank. Costs are functions of a row number; `request` is NaN
    for an eager message."""
    done = [0.0] * schedule.ranks
    out_free = [0.0] * schedule.ranks
    last_in = [-np.inf] * schedule.ranks
    for step in sorted({*schedule.step.tolist(), *schedule.work.step.tolist()}):
        rows = [row for row in range(len(schedule.step)) if schedule.step[row] == step]
        arrivals, last_left = defaultdict(list), defaultdict(float)
        entered = list(done)
        for row in rows:
            src, dst = schedule.src[row], schedule.dst[row]
            start = max(done[src], out_free[src])
            out_free[src] = start + gap_out(row)
            done[src] += send(row)  # posting goes on while the port waits for its gap
            left = start + send(row)
            if request and not np.isnan(request(row)):
                requested = left + request(row)
                left = max(requested, entered[dst]) + answer(row)
            last_left[src] = max(last_left[src], left)
            arrivals[dst].append((left + wire(row), row))
        for dst, messages in arrivals.items():
            for arrival, row in sorted(messages):
                begin = max(arrival, done[dst], last_in[dst] + gap_in(row))
                last_in[dst] = begin
                done[dst] = begin + receive(row)
        for src, left in last_left.items():
            done[src] = max(done[src], left)
        for row in range(len(schedule.work.step)):
            if schedule.work.step[row] == step:
                done[schedule.work.rank[row]] += work_seconds[row]
    return done
