"""Reference simulation of link sharing: all shares are computed again at every event.

Ranks are coroutines that yield the messages for which they wait.
"""

from collections import defaultdict
from math import inf


def finish_times(
    pattern,
    rendezvous,
    waits,
    links_passed,
    offsets,
    opposite,
    opposite_share,
    bundled,
    one_at_a_time,
    weights,
    send,
    receive,
    wire,
    unshared,
    work,
):
    """Return when each rank is done; None for a deadlock.

    `links_passed`: the links of each message, and the seconds for which it needs each. `offsets`:
    the time from its begin until it reaches each. `waits`: which messages their senders wait for.
    `opposite`: the opposite link of some links, of which each message takes `opposite_share` of its
    share. `bundled`: no link serves a message sooner than its other links do. `one_at_a_time`: of
    the messages of a pair of ranks, each begins when the one before it is delivered. `weights`: the
    share of each message relative to others.
    """
    messages = range(len(pattern.src))
    sent, receive_posted, begun, delivered, done = {}, {}, {}, {}, [0.0] * pattern.ranks
    remaining = {message: dict(links_passed[message]) for message in messages}
    # duration without the offsets; latency already over
    passed, early = [0.0] * len(messages), [0.0] * len(messages)

    def rank_program(rank):
        clock = 0.0
        for step in range(pattern.last_step + 1):
            for message in messages:
                if (pattern.dst[message], pattern.dst_step[message]) == (rank, step):
                    receive_posted[message] = clock
            for message in messages:
                if (pattern.src[message], pattern.step[message]) == (rank, step):
                    clock += send[message]
                    sent[message] = clock
            received = [
                m for m in messages if (pattern.dst[m], pattern.dst_wait[m]) == (rank, step)
            ]
            sender_waits = [
                m
                for m in messages
                if waits[m] and (pattern.src[m], pattern.src_wait[m]) == (rank, step)
            ]
            yield {*received, *sender_waits}
            for arrival, receive_seconds in sorted(
                (delivered[message] - early[message] + wire[message], receive[message])
                for message in received
            ):
                clock = max(clock, arrival) + receive_seconds
            clock = max([clock, *(delivered[message] for message in sender_waits)])
            rows = zip(pattern.work.rank, pattern.work.step, work, strict=True)
            clock += sum(seconds for of, at, seconds in rows if (of, at) == (rank, step))
        done[rank] = clock

    ranks = {rank: rank_program(rank) for rank in range(pattern.ranks)}
    awaited_by_rank = {rank: next(program, None) for rank, program in ranks.items()}
    now, wanted = 0.0, {}
    while True:
        while ready := [
            rank
            for rank, awaited in awaited_by_rank.items()
            if awaited is not None and awaited <= delivered.keys()
        ]:
            for rank in ready:
                awaited_by_rank[rank] = next(ranks[rank], None)
        start = {}
        for message in sent.keys() - begun.keys():
            if not rendezvous[message]:
                start[message] = sent[message]
            elif message in receive_posted:
                start[message] = max(sent[message], receive_posted[message])
        if one_at_a_time:
            wanted.update(start)
            for message in list(start):
                pair = pattern.src[message], pattern.dst[message]
                earlier = [m for m in wanted if (pattern.src[m], pattern.dst[m]) == pair]
                earlier = [m for m in earlier if (wanted[m], m) < (wanted[message], message)]
                if delivered.keys() >= set(earlier):
                    start[message] = max([wanted[message], *(delivered[m] for m in earlier)])
                else:
                    del start[message]
        in_flight = [message for message in begun if message not in delivered]
        reach_times = {
            (message, link): begun[message] + offsets[message][link]
            for message in in_flight
            for link in remaining[message]
        }
        reached = [place for place, time in reach_times.items() if time <= now + 1e-12]
        users = defaultdict(float)
        for message, link in reached:
            users[link] += weights[message]
        weights_by_link = {
            link: sorted((own, users.get(opposite.get(link), 0.0))) for link, own in users.items()
        }
        load = {
            link: larger + opposite_share * smaller
            for link, (smaller, larger) in weights_by_link.items()
        }
        slowest = {
            message: max(
                links_passed[message][link] * load.get(link, 0.0) for link in remaining[message]
            )
            for message in in_flight
        }
        rate = {
            (message, link): weights[message]
            * (links_passed[message][link] / slowest[message] if bundled else 1 / load[link])
            for message, link in reached
        }
        seconds_left = [remaining[message][link] / rate[message, link] for message, link in rate]
        later = [time for place, time in reach_times.items() if place not in reached]
        next_time = min(
            [*start.values(), *later, now + min(seconds_left, default=inf)], default=inf
        )
        if next_time == inf:
            return (
                None if any(awaited is not None for awaited in awaited_by_rank.values()) else done
            )
        for message, link in rate:
            remaining[message][link] -= (next_time - now) * rate[message, link]
        now = next_time
        for message, time in start.items():
            if time <= now:
                begun[message] = now
        for message in begun.keys() - delivered.keys():
            for link, seconds in list(remaining[message].items()):
                if seconds <= 1e-9:
                    del remaining[message][link]
                    passed[message] = max(
                        passed[message], now - begun[message] - offsets[message][link]
                    )
            if not remaining[message]:
                own_end = begun[message] + max(passed[message], unshared[message])
                delivered[message] = max(now, own_end)
                early[message] = delivered[message] - own_end
