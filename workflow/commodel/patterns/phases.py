"""What collective algorithms are made of: phases, trees, rings, and exchanges between partners at doubling distances.

A `Phase` is messages in steps and what they hold; `sequence` puts phases and repeated `Rounds` one after the other and
returns the Schedule. Addresses count the bytes of all data that the operation is about (see `operations`). A rank that
combines what it gets in a step adds it to what it has there; any other takes it in place of what it has.

Where data are cut into blocks, `ends` has one entry more than there are blocks: block i lies from ends[i] to ends[i +
1]. Trees and exchanges are those of MPICH and Open MPI (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from commodel.patterns.repeated import Long, Of, Rounds
from commodel.patterns.schedule import Runs, Schedule, Work, check_rows
from commodel.patterns.trees.tree import Tree

Holds = Callable[[], Runs]


@dataclass(frozen=True, eq=False)
class Phase:
    """Messages as columns of one length, steps counted from 0. `holds` is called only by those who check the data."""

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    holds: Holds
    combines: bool = False
    copies: Work | None = None  # local copies, steps counted likewise

    @property
    def steps(self) -> int:
        columns = [self.step] if self.copies is None else [self.step, self.copies.step]
        return int(max(column.max(initial=-1) for column in columns)) + 1

    def backwards(self) -> "Phase":
        """The same messages from their receivers to their senders, the last first."""
        return replace(self, step=self.steps - 1 - self.step, src=self.dst, dst=self.src)


def phase(
    step: ArrayLike,
    src: ArrayLike,
    dst: ArrayLike,
    bytes: ArrayLike,
    at: Callable[[], ArrayLike | Runs] | int = 0,
    *,
    combines: bool = False,
    copies: Work | None = None,
) -> Phase:
    """A phase from columns or numbers; `at` is the address of each message's first byte, or a function that returns
    those, or Runs where a message is more than one run."""
    columns = np.broadcast_arrays(*(np.asarray(column) for column in (step, src, dst, bytes)))
    step, src, dst, bytes = (column.ravel() for column in columns)

    def holds() -> Runs:
        runs = at() if callable(at) else at
        if isinstance(runs, Runs):
            return runs
        return Runs(np.arange(len(bytes)), np.broadcast_to(np.asarray(runs), bytes.shape), bytes)

    return Phase(step, src, dst, bytes, holds, combines, copies)


def every_step(steps: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns step and src of a phase in which every rank sends one message a step."""
    check_rows(steps * ranks)
    return np.divmod(np.arange(steps * ranks), ranks)


def around(first: np.ndarray, bytes: np.ndarray, end: int) -> Runs:
    """Every message is one run of addresses that goes on at 0 when it reaches `end`: two runs where it does."""
    before = np.minimum(bytes, end - first)
    row = np.repeat(np.arange(len(bytes)), 2)
    starts = np.stack([first, np.zeros_like(first)], axis=1).ravel()
    lengths = np.stack([before, bytes - before], axis=1).ravel()
    kept = lengths > 0
    return Runs(row[kept], starts[kept], lengths[kept])


def pipelined(whole: Phase, bytes: int, segment: int | None, apart: int = 1, start: int = 0) -> Phase:
    """Cut each message of a phase, which has `bytes` from address `start` on, into segments: every segment goes the way
    of the one before it, `apart` steps behind."""
    if segment is None:
        return whole
    rows, segments = len(whole.step), max(-(-bytes // segment), 1)
    check_rows(segments * rows)
    number, row = np.divmod(np.arange(segments * rows), max(rows, 1))
    size = np.minimum(segment, bytes - number * segment)  # the last one is shorter; an empty message is one segment
    step = whole.step[row] + number * apart
    at = start + number * segment
    return phase(step, whole.src[row], whole.dst[row], size, lambda: at, combines=whole.combines)


Stage = Phase | Rounds | tuple[Phase, ...]


def sequence(ranks: int, *stages: Stage, root: int | None = None) -> Schedule:
    """The schedule of phases one after the other, or side by side where several are given as one. A rank goes on when
    its own part is done: nothing else separates them. What a combining phase brings is reduced where it arrives."""

    def write() -> Schedule:
        return _sequence(ranks, [_written(stage) if isinstance(stage, Rounds) else stage for stage in stages], root)

    if not any(isinstance(stage, Rounds) for stage in stages):
        return write()
    parts: list[Schedule | Rounds] = []
    for repeat, alike in groupby(stages, lambda stage: isinstance(stage, Rounds)):
        together = list(alike)
        parts += together if repeat else [_sequence(ranks, together, None)]
    return Long(ranks, parts, root, write)


def _written(rounds: Rounds) -> Phase:
    step, source = every_step(rounds.count, rounds.ranks)
    return phase(step, source, *rounds.sent(step, source), lambda: rounds.at(step, source), combines=rounds.combines)


def _sequence(ranks: int, stages: Sequence[Phase | tuple[Phase, ...]], root: int | None) -> Schedule:
    phases, start = [], 0
    for stage in stages:
        together = stage if isinstance(stage, tuple) else (stage,)
        phases += [_later(part, start) for part in together]
        start += max(part.steps for part in together)
    work = [Work.reduce(part.step, part.dst, part.bytes) for part in phases if part.combines]
    work += [part.copies for part in phases if part.copies is not None]

    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in phases])

    return Schedule.of(
        ranks,
        *(column(name) for name in ("step", "src", "dst", "bytes")),
        work=Work.joined(work) if work else None,
        root=root,
        holds=lambda: _joined(phases),
    )


def _later(part: Phase, start: int) -> Phase:
    copies = replace(part.copies, step=part.copies.step + start) if part.copies is not None else None
    return replace(part, step=part.step + start, copies=copies)


def _joined(phases: Sequence[Phase]) -> Runs:
    rows = np.cumsum([0, *(len(part.step) for part in phases)])
    held = [part.holds() for part in phases]
    return Runs(
        np.concatenate([runs.row + start for runs, start in zip(held, rows, strict=False)]),
        np.concatenate([runs.first for runs in held]),
        np.concatenate([runs.length for runs in held]),
    )


def share(bytes: int, parts: int) -> np.ndarray:
    """Return whole bytes over parts as evenly as can be, the larger shares first."""
    return bytes // parts + (np.arange(parts) < bytes % parts)


def equal(bytes: int, blocks: int) -> np.ndarray:
    """Ends of blocks of `bytes` each."""
    return bytes * np.arange(blocks + 1)


def shares(bytes: int, blocks: int) -> np.ndarray:
    """Ends of blocks that divide `bytes` as evenly as can be, the larger ones first."""
    return np.concatenate([[0], np.cumsum(share(bytes, blocks))])


@dataclass(frozen=True, eq=False)
class Edges:
    """A tree of ranks as messages from parent to child, and the round each is sent in. `below` is how many consecutive
    ranks are below the child, itself among them; None where these are no row of ranks."""

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    below: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> "Edges":
        below = None if self.below is None else self.below[rows]
        return Edges(self.step[rows], self.src[rows], self.dst[rows], below)


def knomial(ranks: int, radix: int = 2) -> Edges:
    """Return the k-nomial tree, farthest rank first: in a round every rank that is reached sends to radix − 1 others. A
    rank's parent has its number to the base radix, but for the last digit that is not 0."""
    level, rounds, distance = np.zeros(ranks, dtype=int), 0, 1  # level: zeros at the end of the number
    while distance < ranks:
        level[::distance] = rounds
        rounds, distance = rounds + 1, distance * radix
    target, distance = np.arange(1, ranks), radix ** level[1:]
    source = target - target % (radix * distance)
    return Edges(rounds - 1 - level[1:], source, target, np.minimum(distance, ranks - target))


def near_first(ranks: int) -> Edges:
    """Return the binomial tree, nearest rank first."""
    target = np.arange(1, ranks)
    step = np.frexp(target)[1] - 1  # the highest set bit: the round in which a rank is reached
    return Edges(step, target - (1 << step), target)


def binary(ranks: int) -> Edges:
    """Return Open MPI's binary tree: rank r of a level with room for w ranks has the children r + w and r + 2w, so that
    odd ranks are below rank 1 and even ones below rank 2. A rank sends to both at once."""
    child = np.arange(1, ranks)
    level = np.frexp(child + 1)[1] - 2  # of the parent
    room = 1 << level
    second = child - room >= 2 * room - 1  # else the rank `room` before it would be on its own level
    return Edges(level, child - np.where(second, 2, 1) * room, child)


def in_order(ranks: int) -> Edges:
    """Return the binary tree in which every rank comes after all below it, the left ones first: its top is the last
    rank."""
    low, high = np.array([0]), np.array([ranks - 1])  # the ranks that one subtree holds; its top is the last of them
    levels = []
    while len(low):
        middle = low + (high - low + 1) // 2 - 1  # the left child, and with it the end of its ranks
        left, right = high > low, high - 1 > middle
        levels.append((np.concatenate([high[left], high[right]]), np.concatenate([middle[left], high[right] - 1])))
        low, high = np.concatenate([low[left], middle[right] + 1]), np.concatenate([middle[left], high[right] - 1])
    step = np.repeat(np.arange(len(levels)), [len(parents) for parents, _ in levels])
    return Edges(step, *(np.concatenate(column) for column in zip(*levels, strict=True)))


def rounded_up(bytes: int, blocks: int) -> np.ndarray:
    """Ends of blocks of equal size, rounded up: the last ones are shorter, or empty."""
    return np.minimum(-(-bytes // blocks) * np.arange(blocks + 1), bytes)


def scatter_tree(ends: np.ndarray) -> Phase:
    """Down the binomial tree, to each rank its block: a message holds those of its receiver's whole subtree. Where the
    data ends before the last blocks, nothing is sent for them."""
    edges = knomial(len(ends) - 1)
    edges = edges.select(ends[edges.dst] < max(ends[-1], 1))
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


def ring(ends: np.ndarray, ahead: int = 0, *, combines: bool = False, part: int = 0, parts: int = 1) -> Rounds:
    """P − 1 rounds around the ring: in round s rank r passes on block r − s + ahead; or of every block only one of so
    many parts, which divide it as evenly as can be."""
    ranks = len(ends) - 1
    least, larger = np.divmod(np.diff(ends), parts)
    first = ends[:-1] + part * least + np.minimum(part, larger)

    def block(number: np.ndarray, source: np.ndarray) -> np.ndarray:
        return (source - number + ahead) % ranks

    return Rounds(
        ranks,
        ranks - 1,
        lambda number, source: (source + 1) % ranks,
        block,
        least + (part < larger),
        lambda number, source: first[block(number, source)],
        combines=combines,
        follows=True,
    )


def pairwise(
    sizes: np.ndarray, at: Callable[[np.ndarray, np.ndarray], np.ndarray], *, combines: bool = False
) -> Rounds:
    """P − 1 rounds: in round s rank r sends the rank t = r + s + 1 what is meant for it, `sizes[t]` bytes from address
    `at(r, t)` on."""
    ranks = len(sizes)

    def to(number: np.ndarray, source: np.ndarray) -> np.ndarray:
        return (source + number + 1) % ranks

    return Rounds(
        ranks,
        ranks - 1,
        to,
        to,
        sizes,
        lambda number, source: at(source, to(number, source)),
        combines=combines,
        repeats=False,
        advances=True,
    )


def dissemination(ranks: int, bytes: int) -> Rounds:
    """Return the rounds s = 0, 1, … in which every rank sends to the rank 2^s further on, until all know of all."""
    return _of_one_size(ranks, (ranks - 1).bit_length(), lambda number, source: (source + (1 << number)) % ranks, bytes)


def hypercube(ranks: int, bytes: int) -> Rounds:
    """Return the rounds s = 0, 1, … in which a power of two ranks exchange and combine with the rank whose number
    differs in bit s."""
    rounds = _of_one_size(ranks, ranks.bit_length() - 1, lambda number, source: source ^ (1 << number), bytes)
    return replace(rounds, combines=True, turn=ranks, flips=True)


def _of_one_size(ranks: int, count: int, to: Of, bytes: int) -> Rounds:
    def block(number: np.ndarray, source: np.ndarray) -> np.ndarray:
        return 0 * (source + number)

    return Rounds(ranks, count, to, block, np.array([bytes]), block, repeats=False)


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
        tree = scatter_tree(ends).backwards()
        return Phase(tree.step, self.rank[tree.src], self.rank[tree.dst], tree.bytes, tree.holds)

    def _blocks(self, step: np.ndarray, place: np.ndarray, of: np.ndarray, bit: np.ndarray, ends: np.ndarray) -> Phase:
        """Each place sends the partner whose number differs in a bit the blocks of the 2^bit places that share the
        higher bits with `of`."""
        first = of >> bit << bit
        start = ends[first]
        return phase(
            step, self.rank[place], self.rank[place ^ (1 << bit)], ends[first + (1 << bit)] - start, lambda: start
        )
