"""Random GOAL programs."""

import numpy as np
from hypothesis import strategies as st

from commodel.patterns.written.tasks import CALCULATE, RECEIVE, SEND, Needs, Tasks


@st.composite
def programs(draw):
    """Any tasks with any needs among those of a rank, so that some can never begin."""
    ranks = draw(st.integers(2, 4))
    rows, needs = [[] for _ in range(ranks)], []
    for _ in range(draw(st.integers(1, 10))):
        src = draw(st.integers(0, ranks - 1))
        dst = (src + draw(st.integers(1, ranks - 1))) % ranks
        size, tag = draw(st.integers(0, 50)), draw(st.integers(0, 1))
        rows[src].append((SEND, size, dst, tag))
        rows[dst].append((RECEIVE, size, src, tag))
    for own in rows:
        own += [(CALCULATE, time, 0, 0) for time in draw(st.lists(st.sampled_from((0, 0, 7)), max_size=4))]
    rows = [draw(st.permutations(own)) for own in rows]
    first = 0
    for own in rows:
        for _ in range(draw(st.integers(0, 2 * len(own)))):
            before, after = draw(st.integers(0, len(own) - 1)), draw(st.integers(0, len(own) - 1))
            if draw(st.integers(0, 9)):  # seldom a circle
                before, after = min(before, after), max(before, after)
            if before != after:
                needs.append((first + before, first + after, draw(st.booleans())))
        first += len(own)
    rank = np.repeat(np.arange(ranks), [len(own) for own in rows])
    kind, size, peer, tag = np.array([row for own in rows for row in own]).T
    before, after, begun = np.array(needs, dtype=int).reshape(-1, 3).T
    return Tasks("made up", ranks, rank, kind, size, peer, tag, Needs(before, after, begun.astype(bool)))
