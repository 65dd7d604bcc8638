"""Messages between the two ranks of each pair: all at once, or one direction after the other."""

import numpy as np

from commodel.patterns.algorithms import Algorithm
from commodel.patterns.operations.pairs import BOTH_DIRECTIONS
from commodel.patterns.phases import Phase, join_stages, make_phase
from commodel.patterns.schedule import Schedule, check_rows


def at_once(ranks: int, bytes: int, messages: int, directions: int) -> Schedule:
    """Return the windows of bandwidth tests. A receiver that sends nothing itself acknowledges the
    window by an empty message."""
    first = np.arange(ranks // 2)
    partner = first + len(first)
    forth = _make_window(0, first, partner, bytes, messages)
    if directions == BOTH_DIRECTIONS:
        return join_stages(ranks, (forth, _make_window(0, partner, first, bytes, messages)))
    return join_stages(ranks, forth, make_phase(0, partner, first, 0))


def in_turn(ranks: int, bytes: int, messages: int, directions: int) -> Schedule:
    """Return windows whose answer, if there is one, begins when they have arrived: with one
    message, a round trip."""
    first = np.arange(ranks // 2)
    partner = first + len(first)
    forth = _make_window(0, first, partner, bytes, messages)
    answers = (
        [_make_window(0, partner, first, bytes, messages)] if directions == BOTH_DIRECTIONS else []
    )
    return join_stages(ranks, forth, *answers)


def _make_window(step: int, src: np.ndarray, dst: np.ndarray, bytes: int, messages: int) -> Phase:
    """Return so many messages of each sender at once."""
    check_rows(messages * len(src))
    number = np.tile(np.arange(messages), len(src))
    src, dst = np.repeat(src, messages), np.repeat(dst, messages)
    return make_phase(step, src, dst, bytes, lambda: (src * messages + number) * bytes)


ALGORITHM = (
    Algorithm(
        operation="pairs",
        short_name="at-once",
        title="all messages at once; an acknowledgement if only one rank sends",
        build=at_once,
    ),
    Algorithm(
        operation="pairs",
        short_name="in-turn",
        title="the answers begin when the messages have arrived",
        build=in_turn,
    ),
)
