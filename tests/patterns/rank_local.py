"""Random schedules with rank-local steps. About half of them deadlock."""

import numpy as np
from hypothesis import strategies as st

from commodel.models.evaluation.replay import Costs, finish_times
from commodel.patterns.rank_local_steps import make_rank_local_schedule
from commodel.patterns.schedule import KINDS, Work
from tests.patterns.slow_events import Message

LOGGP = Costs(send=1.0, receive=1.0, wire=1.0, gap_out=1.0, gap_in=1.0)  # L = o = g = 1 s, G = 0


def ends(pattern, costs=LOGGP):
    """Return the finish time of each rank."""
    return finish_times(pattern, costs, pattern.work_seconds(0.0)).tolist()


@st.composite
def programs(draw, most_ranks=5, most_messages=14, last=4):
    """Draw (ranks, messages, work) with any steps; about half of them deadlock. The bytes of a
    message are its number."""
    ranks = draw(st.integers(2, most_ranks))
    rank, step, later = st.integers(0, ranks - 1), st.integers(0, last), st.integers(0, 2)
    rows = []
    for number in range(draw(st.integers(1, most_messages))):
        src = draw(rank)
        dst = (src + draw(st.integers(1, ranks - 1))) % ranks
        out, back = draw(step), draw(step)
        rows.append(Message(src, dst, number, out, out + draw(later), back, back + draw(later)))
    work = draw(st.lists(st.tuples(rank, st.integers(0, last + 2), st.integers(0, 30)), max_size=5))
    return ranks, rows, work


def built(ranks, rows, work, bytes=None):
    """Return the schedule of a drawn program. `bytes` replaces the numbers of the messages."""
    src, dst, number, *steps = np.array([list(vars(row).values()) for row in rows], dtype=int).T
    return make_rank_local_schedule(
        ranks, src, dst, number if bytes is None else bytes[number], *steps, work=computed(work)
    )


def computed(work):
    rank, step, seconds = np.array(work, dtype=float).reshape(-1, 3).T
    kind = np.full(len(rank), KINDS.index("compute"))
    return Work(step.astype(int), rank.astype(int), kind, np.zeros(len(rank)), seconds)
