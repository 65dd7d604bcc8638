"""The concurrency algebra of τ–Lop: a schedule as transmissions that go on at the same time on channels.

T^c(m) is one transmission of m bytes over channel c, n‖T n of them at once. Two of different length on one channel go
on together for the shorter one's time (A2): T(m₁)‖T(m₂) = 2‖T(m₁) + T(m₂−m₁). Different channels do not disturb each
other: the longest counts (A3). Transmissions that follow one another over a channel, n at a time, may be joined into
one of the summed size (A1): those of a sender, and those of stage after stage.
(Rico-Gallego, Lastovetsky, Díaz-Martín: Model-based estimation of the communication cost of hybrid data-parallel
applications on heterogeneous clusters, 2017, section 3.)

    >>> alike, sizes = np.zeros(2, dtype=int), np.array([100, 40])  # both over one channel into one node
    >>> sums = terms(position=alike, channel=alike, target=alike, bytes=sizes, label=alike)
    >>> [f"{n}‖T({m})" for n, m in zip(sums.count, sums.bytes)]
    ['2‖T(40)', '1‖T(60)']
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from commodel.models import Array

EQUAL = 1e-12  # times that differ by less, relatively, are equal


@dataclass(frozen=True, eq=False)
class Terms:
    """n‖T^c(m) as columns, grouped: terms of a group add up, the longest group of a stage counts, stages add up."""

    count: np.ndarray  # n
    channel: np.ndarray  # c
    bytes: np.ndarray  # m
    done: np.ndarray  # of those messages, what terms before this one have carried; 0 in a group's first
    message: np.ndarray  # the size of the message whose overhead is in this term; -1: none, it only goes on
    label: np.ndarray  # which pairs of types are going on, as numbers of `labels`
    labels: list[tuple[int, ...]]  # sets of them, as given
    group: np.ndarray  # first term of every group
    stage: np.ndarray  # first group of every stage


def in_turn(src: np.ndarray) -> np.ndarray:
    """Position of every transmission in its sender's order."""
    order = np.argsort(src, kind="stable")
    ordered = src[order]
    position = np.empty(len(src), dtype=int)
    position[order] = np.arange(len(src)) - np.searchsorted(ordered, ordered, side="left")
    return position


def one_a_channel(src: np.ndarray, channel: np.ndarray, bytes: np.ndarray) -> tuple[np.ndarray, ...]:
    """A1 for each sender: its messages over a channel become one, channel after channel as in equation 8. Position and
    size of each, the row of its first message, and of every message which of them it is in."""
    _, first, of = np.unique(2 * src + channel, return_index=True, return_inverse=True)
    size = np.zeros(len(first), dtype=bytes.dtype)
    np.add.at(size, of, bytes)
    return in_turn(src[first]), size, first, of


def terms(
    position: np.ndarray,
    channel: np.ndarray,
    target: np.ndarray,
    bytes: np.ndarray,
    label: np.ndarray,
    anew: bool = False,
    turn: np.ndarray | int = 0,
) -> Terms:
    """The terms of transmissions: those of one position go on at the same time, concurrency counted by channel and
    target (A2 within, A3 between); of a target those of another `turn` follow. `anew`: the rest of a longer message is
    a message of its own."""
    turn = np.broadcast_to(turn, position.shape)
    order = np.lexsort((bytes, turn, target, channel, position))
    columns = (column[order] for column in (position, channel, target, turn, bytes, label))
    position, channel, target, turn, size, label = columns
    new_stage = _changes(position)
    new_group = new_stage | _changes(channel) | _changes(target)
    new_turn = new_group | _changes(turn)
    first = np.flatnonzero(new_turn)
    lengths = np.diff(first, append=len(size))
    before = np.where(new_turn, 0, np.concatenate([[0], size[:-1]]))
    left = np.repeat(first + lengths, lengths) - np.arange(len(size))  # how many of the turn are still going on
    rest = size - before
    kept = new_turn | (rest > 0)
    starts = np.cumsum(kept) - 1  # where a kept term stands among the kept
    label, labels = _going_on(label, first, lengths)
    message = np.where(new_turn, np.repeat(size[first + lengths - 1], lengths), -1)
    if anew:
        before, message = np.zeros_like(size), rest
    columns = left[kept], channel[kept], rest[kept], before[kept], message[kept], label[kept]
    groups = np.flatnonzero(new_group)
    return Terms(*columns, labels, starts[groups], np.flatnonzero(new_stage[groups]))


def across_stages(
    parts: Iterable[Terms], chosen: Iterable[np.ndarray], times: Iterable[int], anew: bool = False
) -> Terms:
    """A1 from stage to stage: of each, so many times, the terms of its `chosen` groups, joined where channel and count
    are the same.
    One group a channel, each a stage of its own, so that channels add up: what follows one another is not at once."""
    sizes: dict[tuple, int] = defaultdict(int)
    for part, groups, occurs in zip(parts, chosen, times, strict=True):
        ends = np.append(part.group[1:], len(part.bytes))
        for row in (row for group in groups for row in range(part.group[group], ends[group])):
            sizes[int(part.channel[row]), -int(part.count[row]), part.labels[part.label[row]]] += occurs * int(
                part.bytes[row]
            )
    labels = sorted({going_on for _, _, going_on in sizes})
    columns = [(-most, channel, size, labels.index(on)) for (channel, most, on), size in sorted(sizes.items())]
    count, channel, size, label = np.array(columns, dtype=int).T
    first = np.flatnonzero(_changes(channel))
    before, message = np.zeros_like(size), size
    if not anew:
        lengths = np.diff(first, append=len(size))
        until = np.cumsum(size) - size
        before = until - np.repeat(until[first], lengths)
        message = np.full_like(size, -1)
        message[first] = np.add.reduceat(size, first)
    return Terms(count, channel, size, before, message, label, labels, first, np.arange(len(first)))


def _going_on(label: np.ndarray, first: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """For every row the labels of the rows from it to the end of its group: a number, and what it stands for."""
    labels = [(number,) for number in range(label.max() + 1)]
    known = {members: number for number, members in enumerate(labels)}
    mixed = np.maximum.reduceat(label, first) != np.minimum.reduceat(label, first)
    sets = label.copy()
    for start, length in zip(first[mixed], lengths[mixed], strict=True):
        going: set[int] = set()
        for row in range(start + length - 1, start - 1, -1):
            going.add(int(label[row]))
            name = tuple(sorted(going))
            sets[row] = known.setdefault(name, len(known))
    return sets, list(known)


def _changes(column: np.ndarray) -> np.ndarray:
    return np.concatenate([[True], column[1:] != column[:-1]])


def total(terms: Terms, seconds: Array) -> Array:
    """The cost of the terms, each lasting `seconds` (last axis): sums, maxima, sums."""
    groups = np.add.reduceat(seconds, terms.group, axis=-1)
    return np.maximum.reduceat(groups, terms.stage, axis=-1).sum(axis=-1)


def longest(terms: Terms, seconds: Array) -> np.ndarray:
    """The group of every stage that lasts longest, for every draw: (draws, stages). Of those that last as long it is
    the one of the most bytes, and then that of the largest terms: whichever nodes they are on."""
    groups = np.add.reduceat(seconds, terms.group, axis=-1)
    ends = np.append(terms.stage[1:], len(terms.group))
    slowest = []
    for first, end in zip(terms.stage, ends, strict=True):
        lasting = groups[..., first:end]
        as_long = lasting >= (1 - EQUAL) * lasting.max(axis=-1, keepdims=True)
        equals = np.flatnonzero(as_long.any(axis=tuple(range(as_long.ndim - 1))))
        largest_first = sorted(equals.tolist(), key=lambda group: _contents(terms, first + group), reverse=True)
        order = np.array(largest_first)
        slowest.append(first + order[as_long[..., order].argmax(axis=-1)])
    return np.stack(slowest, axis=-1)


def _contents(terms: Terms, group: int) -> tuple:
    """All that a group's terms are, its bytes first."""
    end = terms.group[group + 1] if group + 1 < len(terms.group) else len(terms.bytes)
    rows = slice(terms.group[group], end)
    columns = terms.bytes[rows], terms.count[rows], terms.channel[rows], terms.done[rows], terms.message[rows]
    going_on = tuple(terms.labels[label] for label in terms.label[rows])
    return (terms.count[rows] * terms.bytes[rows]).sum(), *(tuple(column.tolist()) for column in columns), going_on
