"""Halving and doubling: exchanges between partners whose distance is a power of two, over any number of ranks.

`ends` has one entry more than there are blocks: block i lies from ends[i] to ends[i + 1].
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from commodel.patterns.phases import Phase, every_step, phase
from commodel.patterns.repeated import Rounds
from commodel.patterns.rounds import hypercube, scatter


def halves(bytes: int, times: int) -> np.ndarray:
    """Ends of the blocks when `bytes` are halved so many times, the shorter half first."""
    ends = np.array([0, bytes])
    for _ in range(times):
        ends = np.sort(np.append(ends, (ends[:-1] + ends[1:]) // 2))
    return ends


def doubling(ends: np.ndarray) -> Phase:
    """Allgather by recursive doubling over any number of ranks, as in the broadcasts of MPICH and Open MPI: partners at
    distance 1, 2, 4, … give each other what their groups have. Where the last group is short, some have no partner;
    their own group tells them what it got, down a binomial tree."""
    ranks, distance, rounds = len(ends) - 1, 1, []
    while distance < ranks:
        rank = np.arange(ranks)
        rank = rank[rank ^ distance < ranks]
        group = rank & -distance
        rounds.append((rank, rank ^ distance, group, np.minimum(group + distance, ranks)))
        upper = ranks // (2 * distance) * 2 * distance + distance  # the short group, if there is one
        for knows, asks in _telling(distance, ranks - upper):
            group = np.full_like(knows, upper)
            rounds.append((upper - distance + knows, upper - distance + asks, group, np.full_like(knows, ranks)))
        distance *= 2
    step = np.repeat(np.arange(len(rounds)), [len(columns[0]) for columns in rounds])
    source, target, low, high = (np.concatenate(column) for column in zip(*rounds, strict=True))
    return phase(step, source, target, ends[high] - ends[low], lambda: ends[low])


def _telling(places: int, knowing: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rounds in which the first of so many places tell all others: who tells whom."""
    far = places // 2
    while far and 0 < knowing < places:
        place = np.arange(places)
        within = place % (2 * far)
        knows = place[(within < min(far, knowing)) & (within + far >= knowing)]
        yield knows, knows + far
        far //= 2


@dataclass(frozen=True, eq=False)
class Core:
    """A power of two of the ranks, where partners at distance 1, 2, 4, … meet. Of the first pairs of ranks only one is
    in it; the other hands over what it has first, and gets the result at the end. In MPICH and Open MPI the odd one is,
    but the even one where they halve vectors as Rabenseifner does. There places are mirrored, too (bits of their
    numbers turned round): the places that halves of the blocks go to first are neighbours."""

    ranks: int
    odd: bool = True
    mirrored: bool = False

    @property
    def rounds(self) -> int:
        return self.ranks.bit_length() - 1

    @property
    def extra(self) -> int:
        """How many ranks are not in the core."""
        return self.ranks - (1 << self.rounds)

    @property
    def inner(self) -> np.ndarray:
        """Of the pairs of which one rank is in the core, that rank."""
        return 2 * np.arange(self.extra) + self.odd

    @property
    def outer(self) -> np.ndarray:
        """And the other."""
        return self.inner ^ 1

    @property
    def rank(self) -> np.ndarray:
        """The rank of every place in the core."""
        place = np.arange(1 << self.rounds)
        if self.mirrored:
            place = sum((place >> bit & 1) << self.rounds - 1 - bit for bit in range(self.rounds)) + 0 * place
        return np.where(place < self.extra, 2 * place + self.odd, place + self.extra)

    def ends(self, ends: np.ndarray) -> np.ndarray:
        """Ends of what a place in the core stands for: its own block, or those of its pair."""
        place = np.arange((1 << self.rounds) + 1)
        return ends[np.where(place < self.extra, 2 * place, place + self.extra)]

    def fold(self, bytes: int) -> Phase:
        """Those outside hand over their vectors."""
        return phase(0, self.outer, self.inner, bytes, combines=True)

    def fold_halves(self, bytes: int) -> tuple[tuple[Phase, Phase], Phase]:
        """The same in two steps, so that both combine a half: the one inside the first."""
        first = bytes // 2
        to_inner = phase(0, self.outer, self.inner, first, combines=True)
        to_outer = phase(0, self.inner, self.outer, bytes - first, first, combines=True)
        return (to_inner, to_outer), phase(0, self.outer, self.inner, bytes - first, first)

    def unfold(self, first: ArrayLike, bytes: ArrayLike) -> Phase:
        """Those outside get the result."""
        return phase(0, self.inner, self.outer, bytes, lambda: first)

    def exchange(self, bytes: int) -> Phase | Rounds:
        """Partners at distance 1, 2, 4, … exchange and combine everything."""
        if not self.extra:
            return hypercube(self.ranks, bytes)
        step, place = every_step(self.rounds, 1 << self.rounds)
        return phase(step, self.rank[place], self.rank[place ^ (1 << step)], bytes, combines=True)

    def double(self, ends: np.ndarray) -> Phase:
        """Partners at distance 1, 2, 4, … give each other the blocks they have: all have all. Blocks by place."""
        step, place = every_step(self.rounds, 1 << self.rounds)
        return self._blocks(step, place, place, step, ends)

    def halve(self, ends: np.ndarray) -> Phase:
        """Partners at distance …, 4, 2, 1 combine the half that each is to keep: each ends with its block, by place."""
        step, place = every_step(self.rounds, 1 << self.rounds)
        bit = self.rounds - 1 - step
        return replace(self._blocks(step, place, place ^ (1 << bit), bit, ends), combines=True)

    def collect(self, ends: np.ndarray) -> Phase:
        """Blocks by place up the binomial tree to place 0."""
        tree = scatter(ends).backwards()
        return Phase(tree.step, self.rank[tree.src], self.rank[tree.dst], tree.bytes, tree.holds)

    def _blocks(self, step: np.ndarray, place: np.ndarray, of: np.ndarray, bit: np.ndarray, ends: np.ndarray) -> Phase:
        """Each place sends the partner whose number differs in a bit the blocks of the 2^bit places that share the
        higher bits with `of`."""
        first = of >> bit << bit
        start = ends[first]
        return phase(
            step, self.rank[place], self.rank[place ^ (1 << bit)], ends[first + (1 << bit)] - start, lambda: start
        )
