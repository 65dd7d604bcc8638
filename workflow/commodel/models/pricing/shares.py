"""When messages that share lines are through them: the port of a node, all that leads out of a group, what joins two
groups. A line carries a byte in so many seconds, and all that are on it at the same time get equal shares of it. What
goes through several lines is as late as the latest of them makes it. Where a line is still busy with messages of
earlier steps, those of a later one wait for them, by the clock, whichever step they belong to.

    >>> Busy(1).through(np.array([0, 0]), np.array([0.0, 1.0]), np.array([3.0, 3.0]))  # 3 s each, over one line
    array([6., 6.])
"""

import numpy as np

from commodel.models import Array


class Busy:
    """From when until when each of some lines is busy, and with how many messages."""

    def __init__(self, count: int) -> None:
        self.since, self.until, self.several = (np.zeros(count) for _ in range(3))

    def through(self, number: np.ndarray, start: Array, last: Array) -> Array:
        if self.since.ndim < start.ndim:
            full = (*start.shape[:-1], len(self.since))
            self.since, self.until = np.zeros(full), np.zeros(full)
        users = np.bincount(number, minlength=self.since.shape[-1])
        lines = np.flatnonzero(users)
        counts, of = users[lines], (np.cumsum(users > 0) - 1)[number]
        # numpy sorts short integers by radix, in linear time
        order = np.argsort(of.astype(np.int16) if len(lines) < 1 << 15 else of, kind="stable")
        row, place = of[order], np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = (*start.shape[:-1], len(lines), 1 + counts.max())  # a row for each line, what is still on it first
        begun, lasting = np.full(table, np.inf), np.zeros(table)
        begun[..., row, 1 + place], lasting[..., row, 1 + place] = start[..., order], last[..., order]
        since, until, several = self.since[..., lines], self.until[..., lines], self.several[lines]
        first = begun.min(axis=-1)
        meets = (first < until) & (first + lasting.sum(axis=-1) > since)
        begun[..., 0] = np.where(meets, np.maximum(first, since), np.inf)
        lasting[..., 0] = np.where(meets, until - np.maximum(first, since), 0.0)
        ends, end = _together(begun, lasting, several)
        later = meets | (first >= until)
        self.since[..., lines] = np.where(meets, np.minimum(first, since), np.where(later, first, since))
        self.until[..., lines] = np.where(later, end, until)
        self.several[lines] = counts
        through = np.empty_like(start)
        through[..., order] = ends[..., row, 1 + place]
        return through


def _together(begun: Array, lasting: Array, several: np.ndarray) -> tuple[Array, Array]:
    """When those of each row are through that share a line, and when it is free; at ∞ nobody begins. Whoever is on it
    gets as much: of those that begin together each is through when all others have had as much as it needs, or all they
    need. The first of a row is what `several` earlier messages have left. Nobody lasts longer than the line is busy."""
    if begun.shape[-1] == 2 and not lasting[..., 0].any():
        ends = begun + lasting
        return ends, ends[..., 1]
    order = np.argsort(begun, axis=-1, kind="stable")
    start, last = (np.take_along_axis(column, order, axis=-1) for column in (begun, lasting))
    work = np.cumsum(last, axis=-1)
    end = work + np.maximum.accumulate(start - work + last, axis=-1)  # one after the other
    idle = np.concatenate([start[..., 1:] > end[..., :-1], np.ones((*start.shape[:-1], 1), dtype=bool)], axis=-1)
    busy = np.empty_like(last)
    until = np.minimum.accumulate(np.where(idle, end, np.inf)[..., ::-1], axis=-1)[..., ::-1]
    np.put_along_axis(busy, order, until, axis=-1)
    own = lasting.copy()
    own[..., 0] = 0.0
    by_size, shares = np.argsort(own, axis=-1, kind="stable"), np.empty_like(own)
    sizes, rest = np.take_along_axis(own, by_size, axis=-1), np.arange(own.shape[-1])[::-1]
    np.put_along_axis(shares, by_size, np.cumsum(sizes, axis=-1) + rest * sizes, axis=-1)
    before = np.minimum(lasting[..., :1], several[:, None] * own)
    return np.minimum(busy, begun + shares + before), np.where(np.isfinite(end), end, -np.inf).max(axis=-1)
