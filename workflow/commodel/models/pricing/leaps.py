"""One function of the clocks of ranks, so many times, without going through it each time: exactly.

If f has added d twice, a number for every clock, it is taken to add it K times more, and one more f afterwards tells
whether it did: f takes maxima of clocks plus constants, so it is convex, and what is added along a line cannot fall
back to d once it was more. The largest such K is found by halving, and from there it goes on one by one.
"""

from collections.abc import Callable

import numpy as np

from commodel.models import Array

ROUNDING = 1e-13  # of the clocks' spread and of what f adds
UNWORTHY = 64  # times: a leap over fewer costs more than it spares

State = tuple[Array, ...]  # clocks by rank (last axis)


def repeated(f: Callable[[State], State], state: State, times: int) -> State:
    """f so many times."""
    base = np.zeros(1)
    added, patience, waiting, leap = None, 1, 0, 0
    while times:
        shift = state[0].max(axis=-1, keepdims=True)  # clocks near 0, or the differences would lose digits
        state, base = _moved(state, -shift), base + shift
        after = f(state)
        before, added = added, _added(state, after)
        state, times, waiting = after, times - 1, waiting - 1
        if times < 2 or before is None or waiting > 0 or not _near(before, added, state, added):
            continue
        leap = _leap(f, state, added, times - 1, leap)
        state = tuple(clock + leap * own for clock, own in zip(state, added, strict=True))
        times -= leap
        worthy = leap >= UNWORTHY
        patience = 1 if worthy else 2 * patience
        waiting, added = 0 if worthy else patience, None
    return _moved(state, base)


def _leap(f: Callable[[State], State], state: State, added: State, most: int, guess: int) -> int:
    """How many times f adds the same."""

    def holds(times: int) -> bool:
        there = tuple(clock + times * own for clock, own in zip(state, added, strict=True))
        return _near(_added(there, f(there)), added, there, added)

    if holds(most):
        return most
    low, high, reach = 0, most, 1
    while low < guess < high:  # as far as last time, or from there on in ever longer strides
        if holds(guess):
            low, guess = guess, guess + reach
        else:
            high, guess = guess, guess - reach
        reach *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _added(before: State, after: State) -> State:
    with np.errstate(invalid="ignore"):  # what has not begun is at −∞
        return tuple(late - early for early, late in zip(before, after, strict=True))


def _near(first: State, second: State, state: State, added: State) -> bool:
    # Draws are machines of their own, with clocks of their own size.
    size = sum(np.abs(clock - state[0].max(axis=-1, keepdims=True)).max(axis=-1, keepdims=True) for clock in state)
    size = size + np.abs(added[0]).max(axis=-1, keepdims=True)
    pairs = zip(first, second, strict=True)
    with np.errstate(invalid="ignore"):
        return all((np.abs(own - its) <= ROUNDING * size).all() for own, its in pairs)


def _moved(state: State, by: Array) -> State:
    return tuple(clock + by for clock in state)
