"""Read GOAL and simulate it as LogGOPSim does, event by event: the reference for exported
schedules.

The semantics are those of LogGOPSim's source: one processor and one network interface a rank;
messages are matched by sender and tag in the order of their arrival."""

import heapq
import re
from dataclasses import dataclass, field

# Of a line, from its first character to its end: the lexer of txt2bin takes no blank before a word
# that starts a line, none behind a brace, and a comment on a line of its own only.
LABEL = r"(?!(?:rank|num_ranks|send|recv|calc)\b)([a-zA-Z][a-zA-Z0-9_]*)"
OPERATION = re.compile(
    rf"{LABEL}[ \t]*:[ \t]*"
    r"(?:(send|recv)[ \t]*([0-9]+)[ \t]*b[ \t]*(to|from)[ \t]*([0-9]+)[ \t]*tag[ \t]*([0-9]+)|calc[ \t]*([0-9]+))[ \t]*"
)
RELATION = re.compile(rf"{LABEL}[ \t]+(i?requires)[ \t]+{LABEL}[ \t]*")
RANKS, OPENING = re.compile(r"num_ranks[ \t]*([0-9]+)"), re.compile(r"rank[ \t]*([0-9]+)[ \t]*\{")
WORD = 2**32 - 1  # ranks and tags have 32 bits, the largest means any
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
    """Return the number of ranks, and the nodes. Fail if txt2bin refuses the text or would misread
    it: ranks out of order, a size of 0, a repeated label."""
    ranks, nodes, labels, rank, following = 0, [], {}, None, 0
    for line in text.split("\n"):
        if not line or line.startswith("//"):
            continue
        assert rank is not None or ranks == 0 or following < ranks, (
            f"nobody reads on after the last rank: {line!r}"
        )
        if rank is None and (match := RANKS.fullmatch(line)):
            ranks = int(match[1])
        elif rank is None and (match := OPENING.fullmatch(line)):
            rank, labels = int(match[1]), {}
            assert rank == following < ranks, f"ranks come in order: {line!r}"
            following += 1
        elif rank is not None and line == "}":
            rank = None
        elif rank is not None and (match := OPERATION.fullmatch(line)):
            label, kind, size, side, peer, tag, calc = match.groups()
            assert label not in labels, f"defined twice: {line!r}"
            assert calc or side == {"send": "to", "recv": "from"}[kind], f"not GOAL: {line!r}"
            assert calc or (0 < int(size) < 2**64 and int(peer) < ranks and int(tag) < WORD), (
                f"too much: {line!r}"
            )
            labels[label] = (
                Node(rank, "calc", int(calc))
                if calc
                else Node(rank, kind, int(size), int(peer), int(tag))
            )
            nodes.append(labels[label])
        elif rank is not None and (match := RELATION.fullmatch(line)):
            assert {match[1], match[3]} <= labels.keys(), (
                f"a label that is not defined yet: {line!r}"
            )
            after, how, before = labels[match[1]], match[2], labels[match[3]]
            after.waits += 1
            (before.done if how == "requires" else before.started).append(after)
        else:
            raise AssertionError(f"not GOAL: {line!r}")
    assert rank is None
    assert 0 < ranks == following, f"{following} ranks of {ranks}"
    return ranks, nodes


def play(text, L, o, g, G, O=0):
    """Return the time at which the processor of each rank is idle for good."""
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
        for node in sorted(
            (node for node in freed if not node.waits), key=lambda node: KINDS[node.kind]
        ):
            begin = max(cpu[node.rank], out[node.rank]) if node.kind == "send" else cpu[node.rank]
            push(begin, node.kind, node)

    for node in sorted(
        (node for node in nodes if not node.waits), key=lambda node: (node.rank, KINDS[node.kind])
    ):
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
            message = next(
                (sent for sent in early[rank] if (sent.rank, sent.tag) == (node.peer, node.tag)),
                None,
            )
            if message is None:
                waiting[rank].append(node)
            else:
                early[rank].remove(message)
                release(node.done)
        else:
            to = node.peer
            free = max(cpu[to], into[to])
            if free > time:
                heapq.heappush(queue, (free, order, what, node))
                continue
            cpu[to] = time + o + body * max(O, G)
            into[to] = time + g + body * G
            receive = next(
                (wait for wait in waiting[to] if (wait.peer, wait.tag) == (rank, node.tag)), None
            )
            if receive is None:
                early[to].append(node)
            else:
                waiting[to].remove(receive)
                release(receive.done)
    assert not any(waiting), "a receive without its message"
    assert not any(early), "a message without its receive"
    return cpu
