"""GOAL read and played as LogGOPSim does it, an event at a time: the reference for exported schedules.

Semantics are those of its source: one processor and one network interface a rank, messages matched by sender and tag in
the order in which they come.
"""

import heapq
import re
from dataclasses import dataclass, field

OPERATION = re.compile(r"(\w+): (?:(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)|calc (\d+))")
RELATION = re.compile(r"(\w+) (i?requires) (\w+)")
KINDS = {"send": 1, "recv": 2, "calc": 3}


@dataclass
class Node:
    rank: int
    kind: str
    size: int
    peer: int = 0
    tag: int = 0
    waits: int = 0
    started: list = field(default_factory=list)  # nodes that wait for its start
    done: list = field(default_factory=list)


def read(text):
    """Ranks and their nodes; everything that is not GOAL is an error."""
    ranks, nodes, labels, rank = 0, [], {}, None
    for line in (line.strip() for line in text.splitlines()):
        if not line or line.startswith("//"):
            continue
        if match := re.fullmatch(r"num_ranks (\d+)", line):
            ranks = int(match[1])
        elif match := re.fullmatch(r"rank (\d+) \{", line):
            rank, labels = int(match[1]), {}
        elif line == "}":
            rank = None
        elif match := OPERATION.fullmatch(line):
            label, kind, size, peer, tag, calc = match.groups()
            assert label not in labels
            labels[label] = Node(rank, "calc", int(calc)) if calc else Node(rank, kind, int(size), int(peer), int(tag))
            assert calc or int(size) > 0
            nodes.append(labels[label])
        elif match := RELATION.fullmatch(line):
            after, how, before = labels[match[1]], match[2], labels[match[3]]
            after.waits += 1
            (before.done if how == "requires" else before.started).append(after)
        else:
            raise AssertionError(f"not GOAL: {line!r}")
    return ranks, nodes


def play(text, L, o, g, G, O=0):
    """When the processor of every rank is free for good."""
    ranks, nodes = read(text)
    cpu, out, into = [0] * ranks, [0] * ranks, [0] * ranks
    waiting, early = [[] for _ in range(ranks)], [[] for _ in range(ranks)]
    queue, stamp = [], 0

    def push(time, what, node):
        nonlocal stamp
        stamp += 1
        heapq.heappush(queue, (time, stamp, what, node))

    def release(freed):
        for node in freed:
            node.waits -= 1
        for node in sorted((node for node in freed if not node.waits), key=lambda node: KINDS[node.kind]):
            begin = max(cpu[node.rank], out[node.rank]) if node.kind == "send" else cpu[node.rank]
            push(begin, node.kind, node)

    for node in sorted((node for node in nodes if not node.waits), key=lambda node: (node.rank, KINDS[node.kind])):
        push(0, node.kind, node)
    while queue:
        time, order, what, node = heapq.heappop(queue)
        rank, body = node.rank, node.size - 1
        if what == "calc":
            if cpu[rank] > time:
                heapq.heappush(queue, (cpu[rank], order, what, node))
                continue
            cpu[rank] = time + node.size
            release([*node.started, *node.done])
        elif what == "send":
            free = max(cpu[rank], out[rank])
            if free > time:
                heapq.heappush(queue, (free, order, what, node))
                continue
            cpu[rank] = time + o + body * O
            out[rank] = time + g + body * G
            push(time + o + L, "message", node)
            release([*node.started, *node.done])
        elif what == "recv":
            release(node.started)
            found = next((sent for sent in early[rank] if (sent.rank, sent.tag) == (node.peer, node.tag)), None)
            if found is None:
                waiting[rank].append(node)
            else:
                early[rank].remove(found)
                release(node.done)
        else:
            to = node.peer
            free = max(cpu[to], into[to])
            if free > time:
                heapq.heappush(queue, (free, order, what, node))
                continue
            cpu[to] = time + o + body * max(O, G)
            into[to] = time + g + body * G
            found = next((wait for wait in waiting[to] if (wait.peer, wait.tag) == (rank, node.tag)), None)
            if found is None:
                early[to].append(node)
            else:
                waiting[to].remove(found)
                release(found.done)
    assert not any(waiting), "a receive without its message"
    assert not any(early), "a message without its receive"
    return cpu
