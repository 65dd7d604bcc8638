"""Messages that share lines, by a slow simulation: all shares are computed again at every moment.

Ranks are coroutines that yield the messages for which they wait.
"""

from collections import defaultdict
from math import inf


def finish_times(
    pattern, asks, waits, passed, opposite, back, together, one_at_a_time, weights, send, receive, wire, alone, work
):
    """`passed`: of each message the lines, and for how many seconds it needs each; `waits`: whose senders wait;
    `opposite`: of some lines the one that leads the other way, along which `back` of each share comes back; `together`:
    no line serves a message sooner than the others do; `one_at_a_time`: of those from a rank to another each begins
    when the one before it is through; `weights`: of each message, its share of a line relative to others."""
    messages = range(len(pattern.src))
    left, opened, begun, through, done = {}, {}, {}, {}, [0.0] * pattern.ranks
    rest = {message: dict(passed[message]) for message in messages}

    def rank_program(rank):
        clock = 0.0
        for step in range(pattern.last_step + 1):
            for message in messages:
                if (pattern.dst[message], pattern.dst_step[message]) == (rank, step):
                    opened[message] = clock
            for message in messages:
                if (pattern.src[message], pattern.step[message]) == (rank, step):
                    clock += send[message]
                    left[message] = clock
            taken = [m for m in messages if (pattern.dst[m], pattern.dst_wait[m]) == (rank, step)]
            given = [m for m in messages if waits[m] and (pattern.src[m], pattern.src_wait[m]) == (rank, step)]
            yield {*taken, *given}
            for arrival, takes in sorted((through[message] + wire[message], receive[message]) for message in taken):
                clock = max(clock, arrival) + takes
            clock = max([clock, *(through[message] for message in given)])
            rows = zip(pattern.work.rank, pattern.work.step, work, strict=True)
            clock += sum(seconds for of, at, seconds in rows if (of, at) == (rank, step))
        done[rank] = clock

    ranks = {rank: rank_program(rank) for rank in range(pattern.ranks)}
    awaits = {rank: next(program, None) for rank, program in ranks.items()}
    now, wanted = 0.0, {}
    while True:
        while ready := [rank for rank, awaited in awaits.items() if awaited is not None and awaited <= through.keys()]:
            for rank in ready:
                awaits[rank] = next(ranks[rank], None)
        start = {}
        for message in left.keys() - begun.keys():
            if not asks[message]:
                start[message] = left[message]
            elif message in opened:
                start[message] = max(left[message], opened[message])
        if one_at_a_time:
            wanted.update(start)
            for message in list(start):
                ends = pattern.src[message], pattern.dst[message]
                before = [m for m in wanted if (pattern.src[m], pattern.dst[m]) == ends]
                before = [m for m in before if (wanted[m], m) < (wanted[message], message)]
                if through.keys() >= set(before):
                    start[message] = max([wanted[message], *(through[m] for m in before)])
                else:
                    del start[message]
        going = [message for message in begun if message not in through]
        users = defaultdict(float)
        for message in going:
            for line in rest[message]:
                users[line] += weights[message]
        both = {line: sorted((own, users.get(opposite.get(line), 0.0))) for line, own in users.items()}
        load = {line: many + back * few for line, (few, many) in both.items()}
        slow = {message: max(passed[message][line] * load[line] for line in rest[message]) for message in going}
        rate = {
            (message, line): weights[message] * (passed[message][line] / slow[message] if together else 1 / load[line])
            for message in going
            for line in rest[message]
        }
        lasting = [rest[message][line] / rate[message, line] for message, line in rate]
        coming = min([*start.values(), now + min(lasting, default=inf)], default=inf)
        if coming == inf:
            return None if any(awaited is not None for awaited in awaits.values()) else done
        for message, line in rate:
            rest[message][line] -= (coming - now) * rate[message, line]
        now = coming
        for message, time in start.items():
            if time <= now:
                begun[message] = now
        for message in begun.keys() - through.keys():
            rest[message] = {line: seconds for line, seconds in rest[message].items() if seconds > 1e-9}
            if not rest[message]:
                through[message] = max(now, begun[message] + alone[message])
