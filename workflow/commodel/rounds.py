"""Rounds that many algorithms are made of: binomial trees, halving and doubling, rings. All over blocks of any sizes.

`ends` has one entry more than there are blocks: block i lies from ends[i] to ends[i + 1].
"""

from dataclasses import dataclass, replace

import numpy as np

from commodel.phases import Phase, phase
from commodel.segments import share
from commodel.tree import Tree


def equal(bytes: int, blocks: int) -> np.ndarray:
    """Ends of blocks of `bytes` each."""
    return bytes * np.arange(blocks + 1)


def shares(bytes: int, blocks: int) -> np.ndarray:
    """Ends of blocks that divide `bytes` as evenly as can be, the larger ones first."""
    return np.concatenate([[0], np.cumsum(share(bytes, blocks))])


@dataclass(frozen=True, eq=False)
class Edges:
    """A tree of ranks as messages from parent to child: the round each is sent in, and the consecutive ranks below the
    child, itself among them."""

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    below: np.ndarray

    @property
    def rounds(self) -> int:
        return int(self.step.max(initial=-1)) + 1


def knomial(ranks: int, radix: int = 2) -> Edges:
    """The k-nomial tree, farthest rank first: in a round every rank that is reached sends to radix − 1 others."""
    distances = [1]
    while distances[-1] * radix < ranks:
        distances.append(distances[-1] * radix)
    found = []
    for step, distance in enumerate(reversed(distances if ranks > 1 else [])):
        source = np.arange(0, ranks, distance * radix)
        turn = np.arange(1, radix) * distance
        target = (source[:, None] + turn).ravel()
        kept = target < ranks
        target, source = target[kept], np.repeat(source, radix - 1)[kept]
        found.append((np.full(len(target), step), source, target, np.minimum(distance, ranks - target)))
    return Edges(*(np.concatenate(column).astype(int) for column in zip(*found, strict=True))) if found else _no_edges()


def binary(ranks: int) -> Edges:
    """The binary tree whose levels are filled from the left; a rank sends to both children at once. What lies below a
    child is not a row of ranks, and not told."""
    child = np.arange(1, ranks)
    return Edges(_depth(child) - 1, (child - 1) // 2, child, np.zeros_like(child))


def below_root(members: np.ndarray) -> Edges:
    """A binary tree of these ranks, its top a child of rank 0."""
    place = np.arange(len(members))
    above = np.where(place > 0, members[(place - 1) // 2], 0) if len(members) else place
    return Edges(_depth(place), above, members, np.zeros_like(place))


def _depth(place: np.ndarray) -> np.ndarray:
    """In a binary tree filled from the left."""
    return np.frexp(place + 1)[1] - 1


def in_order(ranks: int) -> Edges:
    """The binary tree in which every rank comes after all below it, the left ones first: its top is the last rank."""
    low, high = np.array([0]), np.array([ranks - 1])  # the ranks that one subtree holds; its top is the last of them
    found, step = [], 0
    while len(low):
        middle = low + (high - low + 1) // 2 - 1  # the left child, and with it the end of its ranks
        left, right = high > low, high - 1 > middle
        found.append((step, high[left], middle[left], (middle - low + 1)[left]))
        found.append((step, high[right], high[right] - 1, (high - 1 - middle)[right]))
        low, high = np.concatenate([low[left], middle[right] + 1]), np.concatenate([middle[left], high[right] - 1])
        step += 1
    rounds, *columns = zip(*found, strict=True)
    counts = [len(parent) for parent in columns[0]]
    return Edges(np.repeat(rounds, counts), *(np.concatenate(column) for column in columns))


def _no_edges() -> Edges:
    return Edges(*(np.empty(0, dtype=int) for _ in range(4)))


def scatter(ends: np.ndarray, radix: int = 2) -> Phase:
    """Down the k-nomial tree, to each rank its block: a message holds those of its receiver's whole subtree."""
    edges = knomial(len(ends) - 1, radix)
    first = ends[edges.dst]
    return phase(edges.step, edges.src, edges.dst, ends[edges.dst + edges.below] - first, lambda: first)


def whole(edges: Edges, bytes: int) -> Phase:
    """Down a tree, to each rank everything."""
    return phase(edges.step, edges.src, edges.dst, bytes)


def up(edges: Edges, bytes: int) -> Phase:
    """Up a tree, everything combined on the way."""
    return replace(whole(edges, bytes).backwards(), combines=True)


def down_tree(tree: Tree, bytes: int) -> Phase:
    """Down a topology, to each node everything."""
    node = np.arange(1, tree.nodes)
    return phase(tree.depth[node] - 1, tree.parent[node], node, bytes)


def up_tree(tree: Tree, bytes: int, *, combines: bool = False) -> Phase:
    """Up a topology. A node takes all its children in one step, the deeper the earlier, so it can take them in order of
    arrival."""
    node = np.arange(1, tree.nodes)
    return phase(tree.height - tree.depth[node], node, tree.parent[node], bytes, combines=combines)


def ring(ends: np.ndarray, ahead: int = 0, *, combines: bool = False, part: tuple[int, int] | None = None) -> Phase:
    """P − 1 steps around the ring: in step s rank r passes on block r − s + ahead; or of every block only the part that
    begins so many bytes after its start and is so long."""
    ranks = len(ends) - 1
    step, source = np.divmod(np.arange((ranks - 1) * ranks), ranks)
    block = (source - step + ahead) % ranks
    offset, length = part or (0, ends[-1])
    sizes = np.clip(np.diff(ends) - offset, 0, length)
    first = np.minimum(ends[:-1] + offset, ends[1:])
    return phase(step, source, (source + 1) % ranks, sizes[block], lambda: first[block], combines=combines)


@dataclass(frozen=True, eq=False)
class Core:
    """A power of two of the ranks, where partners at distance 1, 2, 4, … meet. Of the first pairs of ranks only the
    even one is in it; the odd one hands over what it has first, and gets the result at the end (as MPICH does it, whose
    core has the odd ones)."""

    ranks: int

    @property
    def rounds(self) -> int:
        return self.ranks.bit_length() - 1

    @property
    def extra(self) -> int:
        """How many ranks are not in the core."""
        return self.ranks - (1 << self.rounds)

    @property
    def pairs(self) -> np.ndarray:
        """The numbers of the pairs of which only one rank is in the core."""
        return np.arange(self.extra)

    @property
    def rank(self) -> np.ndarray:
        """The rank of every place in the core."""
        place = np.arange(1 << self.rounds)
        return np.where(place < self.extra, 2 * place, place + self.extra)

    def ends(self, ends: np.ndarray) -> np.ndarray:
        """Ends of what a place in the core stands for: its own block, or those of its pair."""
        return ends[np.append(self.rank, self.ranks)]

    def fold(self, first, bytes, *, combines: bool = False) -> Phase:
        """The odd ones hand over what they have."""
        even = 2 * self.pairs
        return phase(0, even + 1, even, bytes, lambda: first, combines=combines)

    def unfold(self, first, bytes) -> Phase:
        """The odd ones get the result."""
        even = 2 * self.pairs
        return phase(0, even, even + 1, bytes, lambda: first)

    def allgather(self, ends: np.ndarray) -> tuple[Phase, Phase, Phase]:
        """From every rank's block to all blocks everywhere."""
        odd = 2 * self.pairs + 1
        folded = self.fold(ends[odd], ends[odd + 1] - ends[odd])
        return folded, self.double(self.ends(ends)), self.unfold(0, int(ends[-1]))

    def exchange(self, bytes: int) -> Phase:
        """Partners at distance 1, 2, 4, … exchange and combine everything."""
        step, place = np.divmod(np.arange(self.rounds << self.rounds), 1 << self.rounds)
        return phase(step, self.rank[place], self.rank[place ^ (1 << step)], bytes, combines=True)

    def double(self, ends: np.ndarray) -> Phase:
        """Partners at distance 1, 2, 4, … give each other the blocks they have: all have all. Blocks by place."""
        step, place = np.divmod(np.arange(self.rounds << self.rounds), 1 << self.rounds)
        first = place >> step << step
        return self._blocks(step, place, place ^ (1 << step), first, 1 << step, ends)

    def halve(self, ends: np.ndarray) -> Phase:
        """Partners at distance …, 4, 2, 1 combine the half that each is to keep: each ends with its block, by place."""
        step, place = np.divmod(np.arange(self.rounds << self.rounds), 1 << self.rounds)
        bit = self.rounds - 1 - step
        partner = place ^ (1 << bit)
        return self._blocks(step, place, partner, partner >> bit << bit, 1 << bit, ends, combines=True)

    def collect(self, ends: np.ndarray) -> Phase:
        """Blocks by place up the binomial tree to place 0."""
        found = scatter(ends).backwards()
        return Phase(found.step, self.rank[found.src], self.rank[found.dst], found.bytes, found.holds)

    def _blocks(self, step, place, partner, first, count, ends, *, combines: bool = False) -> Phase:
        start = ends[first]
        bytes = ends[first + count] - start
        return phase(step, self.rank[place], self.rank[partner], bytes, lambda: start, combines=combines)
