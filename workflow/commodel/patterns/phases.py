"""Building blocks of collective algorithms: phases, trees, rings, and exchanges between partners at doubling distances.

A `Phase` is messages in steps and their contents; `sequence` joins phases and repeated `Rounds` into a Schedule.
Addresses count the bytes of all data of the operation (see `operations`). A rank that combines adds a received message
to its data at these addresses; any other replaces its data.

If data are cut into blocks, block i lies from `ends[i]` to `ends[i + 1]`. Trees and exchanges are those of MPICH and
Open MPI (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from commodel.patterns.repeated import CompactSchedule, RoundFunction, Rounds
from commodel.patterns.schedule import Runs, Schedule, Work, check_rows
from commodel.patterns.trees.tree import Tree

GetContents = Callable[[], Runs]


@dataclass(frozen=True, eq=False)
class Phase:
    """Messages as columns of equal length, steps counted from 0. Only checks of the data call `holds`."""

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    holds: GetContents
    combines: bool = False
    copies: Work | None = None  # local copies, steps counted likewise

    @property
    def steps(self) -> int:
        columns = [self.step] if self.copies is None else [self.step, self.copies.step]
        return int(max(column.max(initial=-1) for column in columns)) + 1

    def backwards(self) -> "Phase":
        """Return the messages from their receivers to their senders, in opposite order."""
        return replace(self, step=self.steps - 1 - self.step, src=self.dst, dst=self.src)


def make_phase(
    step: ArrayLike,
    src: ArrayLike,
    dst: ArrayLike,
    bytes: ArrayLike,
    at: Callable[[], ArrayLike | Runs] | int = 0,
    *,
    combines: bool = False,
    copies: Work | None = None,
) -> Phase:
    """Return a phase from columns or scalars.

    `at` is the address of each message's first byte, or a function that returns it, or Runs if a message has several
    runs.
    """
    columns = np.broadcast_arrays(*(np.asarray(column) for column in (step, src, dst, bytes)))
    step, src, dst, bytes = (column.ravel() for column in columns)

    def holds() -> Runs:
        runs = at() if callable(at) else at
        if isinstance(runs, Runs):
            return runs
        return Runs(np.arange(len(bytes)), np.broadcast_to(np.asarray(runs), bytes.shape), bytes)

    return Phase(step, src, dst, bytes, holds, combines, copies)


def list_steps_and_sources(steps: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns step and src of a phase in which every rank sends one message in each step."""
    check_rows(steps * ranks)
    return np.divmod(np.arange(steps * ranks), ranks)


def wrap_addresses(first: np.ndarray, bytes: np.ndarray, end: int) -> Runs:
    """Return one run of addresses for each message, or two if it continues at 0 after `end`."""
    before = np.minimum(bytes, end - first)
    row = np.repeat(np.arange(len(bytes)), 2)
    starts = np.stack([first, np.zeros_like(first)], axis=1).ravel()
    lengths = np.stack([before, bytes - before], axis=1).ravel()
    kept = lengths > 0
    return Runs(row[kept], starts[kept], lengths[kept])


def pipeline_phase(whole: Phase, bytes: int, segment: int | None, apart: int = 1, start: int = 0) -> Phase:
    """Return a phase with each message cut into segments; every segment follows the one before it `apart` steps later.

    The messages have `bytes` from address `start` on.
    """
    if segment is None:
        return whole
    rows, segments = len(whole.step), max(-(-bytes // segment), 1)
    check_rows(segments * rows)
    number, row = np.divmod(np.arange(segments * rows), max(rows, 1))
    size = np.minimum(segment, bytes - number * segment)  # the last one is shorter; an empty message is one segment
    step = whole.step[row] + number * apart
    at = start + number * segment
    return make_phase(step, whole.src[row], whole.dst[row], size, lambda: at, combines=whole.combines)


Stage = Phase | Rounds | tuple[Phase, ...]


def join_stages(ranks: int, *stages: Stage, root: int | None = None) -> Schedule:
    """Return the schedule of phases one after the other; several in a tuple are concurrent.

    A rank continues when its own part is done, without a barrier. Messages of a combining phase are reduced on
    arrival.
    """

    def expand() -> Schedule:
        return _join_phases(
            ranks, [_expand_rounds(stage) if isinstance(stage, Rounds) else stage for stage in stages], root
        )

    if not any(isinstance(stage, Rounds) for stage in stages):
        return expand()
    parts: list[Schedule | Rounds] = []
    for repeat, group in groupby(stages, lambda stage: isinstance(stage, Rounds)):
        together = list(group)
        parts += together if repeat else [_join_phases(ranks, together, None)]
    return CompactSchedule(ranks, parts, root, expand)


def _expand_rounds(rounds: Rounds) -> Phase:
    step, source = list_steps_and_sources(rounds.count, rounds.ranks)
    return make_phase(
        step,
        source,
        *rounds.receivers_and_bytes(step, source),
        lambda: rounds.address(step, source),
        combines=rounds.combines,
    )


def _join_phases(ranks: int, stages: Sequence[Phase | tuple[Phase, ...]], root: int | None) -> Schedule:
    phases, start = [], 0
    for stage in stages:
        together = stage if isinstance(stage, tuple) else (stage,)
        phases += [_delay_phase(part, start) for part in together]
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
        holds=lambda: _join_contents(phases),
    )


def _delay_phase(part: Phase, start: int) -> Phase:
    copies = replace(part.copies, step=part.copies.step + start) if part.copies is not None else None
    return replace(part, step=part.step + start, copies=copies)


def _join_contents(phases: Sequence[Phase]) -> Runs:
    rows = np.cumsum([0, *(len(part.step) for part in phases)])
    held = [part.holds() for part in phases]
    return Runs(
        np.concatenate([runs.row + start for runs, start in zip(held, rows, strict=False)]),
        np.concatenate([runs.first for runs in held]),
        np.concatenate([runs.length for runs in held]),
    )


def divide_evenly(bytes: int, parts: int) -> np.ndarray:
    """Return `bytes` divided into parts as evenly as possible, the larger shares first."""
    return bytes // parts + (np.arange(parts) < bytes % parts)


def split_equally(bytes: int, blocks: int) -> np.ndarray:
    """Return the ends of blocks of `bytes` each."""
    return bytes * np.arange(blocks + 1)


def split_evenly(bytes: int, blocks: int) -> np.ndarray:
    """Return the ends of blocks that divide `bytes` as evenly as possible, the larger ones first."""
    return np.concatenate([[0], np.cumsum(divide_evenly(bytes, blocks))])


@dataclass(frozen=True, eq=False)
class Edges:
    """A tree of ranks as messages from parent to child, and the round of each.

    `below` is the number of consecutive ranks in the child's subtree; None if they are not consecutive.
    """

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    below: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> "Edges":
        below = None if self.below is None else self.below[rows]
        return Edges(self.step[rows], self.src[rows], self.dst[rows], below)


def knomial_tree(ranks: int, radix: int = 2) -> Edges:
    """Return the k-nomial tree, farthest rank first: in a round every reached rank sends to radix − 1 others.

    The number of a rank's parent to the base radix is its own with the last nonzero digit set to 0.
    """
    level, rounds, distance = np.zeros(ranks, dtype=int), 0, 1  # level: trailing zeros of the number
    while distance < ranks:
        level[::distance] = rounds
        rounds, distance = rounds + 1, distance * radix
    target, distance = np.arange(1, ranks), radix ** level[1:]
    source = target - target % (radix * distance)
    return Edges(rounds - 1 - level[1:], source, target, np.minimum(distance, ranks - target))


def near_first_tree(ranks: int) -> Edges:
    """Return the binomial tree, nearest rank first."""
    target = np.arange(1, ranks)
    step = np.frexp(target)[1] - 1  # the highest set bit: the round in which a rank is reached
    return Edges(step, target - (1 << step), target)


def binary_tree(ranks: int) -> Edges:
    """Return Open MPI's binary tree.

    Rank r of a level with room for w ranks has the children r + w and r + 2w. Odd ranks are below rank 1, even ones
    below rank 2. A rank sends to both children at once.
    """
    child = np.arange(1, ranks)
    level = np.frexp(child + 1)[1] - 2  # of the parent
    room = 1 << level
    second = child - room >= 2 * room - 1  # else the rank `room` before it would be on its own level
    return Edges(level, child - np.where(second, 2, 1) * room, child)


def in_order_tree(ranks: int) -> Edges:
    """Return the binary tree in which every rank comes after its subtree, the left one first; its root is the last
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


def split_rounding_up(bytes: int, blocks: int) -> np.ndarray:
    """Return the ends of blocks of equal size, rounded up: the last ones are shorter, or empty."""
    return np.minimum(-(-bytes // blocks) * np.arange(blocks + 1), bytes)


def scatter_tree(ends: np.ndarray) -> Phase:
    """Return the scatter of blocks down the binomial tree; a message has the blocks of its receiver's whole subtree.

    Empty blocks after the end of the data are not sent.
    """
    edges = knomial_tree(len(ends) - 1)
    edges = edges.select(ends[edges.dst] < max(ends[-1], 1))
    first = ends[edges.dst]
    return make_phase(edges.step, edges.src, edges.dst, ends[edges.dst + edges.below] - first, lambda: first)


def broadcast_unsplit(edges: Edges, bytes: int) -> Phase:
    """Return the broadcast of everything down a tree."""
    return make_phase(edges.step, edges.src, edges.dst, bytes)


def reduce_unsplit(edges: Edges, bytes: int) -> Phase:
    """Return the reduction of everything up a tree."""
    return replace(broadcast_unsplit(edges, bytes).backwards(), combines=True)


def send_down_tree(tree: Tree, bytes: int) -> Phase:
    """Return the broadcast of everything down a topology."""
    node = np.arange(1, tree.nodes)
    return make_phase(tree.depth[node] - 1, tree.parent[node], node, bytes)


def send_up_tree(tree: Tree, bytes: int, *, combines: bool = False) -> Phase:
    """Return messages up a topology.

    A node receives all its children in one step, deeper nodes earlier, so it can receive them in the order of
    arrival.
    """
    node = np.arange(1, tree.nodes)
    return make_phase(tree.height - tree.depth[node], node, tree.parent[node], bytes, combines=combines)


def ring_rounds(ends: np.ndarray, ahead: int = 0, *, combines: bool = False, part: int = 0, parts: int = 1) -> Rounds:
    """Return P − 1 rounds around the ring: in round s rank r passes on block r − s + ahead.

    With several parts, which divide a block as evenly as possible, it is one of them.
    """
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
        relays_blocks=True,
    )


def pairwise_rounds(
    sizes: np.ndarray, at: Callable[[np.ndarray, np.ndarray], np.ndarray], *, combines: bool = False
) -> Rounds:
    """Return P − 1 rounds: in round s rank r sends rank t = r + s + 1 the `sizes[t]` bytes from address `at(r, t)`
    on."""
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
        periodic=False,
        receivers_advance=True,
    )


def dissemination_rounds(ranks: int, bytes: int) -> Rounds:
    """Return the rounds s = 0, 1, … in which every rank sends to the rank 2^s further on, until information has reached
    all."""
    return _equal_size_rounds(
        ranks, (ranks - 1).bit_length(), lambda number, source: (source + (1 << number)) % ranks, bytes
    )


def hypercube_rounds(ranks: int, bytes: int) -> Rounds:
    """Return the rounds s = 0, 1, … in which a power of two ranks exchange and combine with the rank whose number
    differs in bit s."""
    rounds = _equal_size_rounds(ranks, ranks.bit_length() - 1, lambda number, source: source ^ (1 << number), bytes)
    return replace(rounds, combines=True, shift=ranks, bit_flip_symmetric=True)


def _equal_size_rounds(ranks: int, count: int, to: RoundFunction, bytes: int) -> Rounds:
    def block(number: np.ndarray, source: np.ndarray) -> np.ndarray:
        return 0 * (source + number)

    return Rounds(ranks, count, to, block, np.array([bytes]), block, periodic=False)


def halve_blocks(bytes: int, times: int) -> np.ndarray:
    """Return the ends of blocks when `bytes` are halved `times` times, the shorter half first."""
    ends = np.array([0, bytes])
    for _ in range(times):
        ends = np.sort(np.append(ends, (ends[:-1] + ends[1:]) // 2))
    return ends


def allgather_by_doubling(ends: np.ndarray) -> Phase:
    """Return the allgather by recursive doubling over any number of ranks, as in the broadcasts of MPICH and Open MPI.

    Partners at distance 1, 2, 4, … exchange the blocks of their groups. If the last group is short, some ranks have no
    partner and get the blocks within their own group, down a binomial tree.
    """
    ranks, distance, rounds = len(ends) - 1, 1, []
    while distance < ranks:
        rank = np.arange(ranks)
        rank = rank[rank ^ distance < ranks]
        group = rank & -distance
        rounds.append((rank, rank ^ distance, group, np.minimum(group + distance, ranks)))
        upper = ranks // (2 * distance) * 2 * distance + distance  # the short group, if there is one
        for source, target in _spread_in_group(distance, ranks - upper):
            group, end = np.full_like(source, upper), np.full_like(source, ranks)
            rounds.append((upper - distance + source, upper - distance + target, group, end))
        distance *= 2
    step = np.repeat(np.arange(len(rounds)), [len(columns[0]) for columns in rounds])
    source, target, low, high = (np.concatenate(column) for column in zip(*rounds, strict=True))
    return make_phase(step, source, target, ends[high] - ends[low], lambda: ends[low])


def _spread_in_group(places: int, informed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rounds in which the first `informed` places of a group send to all others: sources and targets."""
    distance = places // 2
    while distance and 0 < informed < places:
        place = np.arange(places)
        within = place % (2 * distance)
        source = place[(within < min(distance, informed)) & (within + distance >= informed)]
        yield source, source + distance
        distance //= 2


@dataclass(frozen=True, eq=False)
class Core:
    """A power of two of the ranks, in which partners at distance 1, 2, 4, … exchange.

    Of each of the first pairs of ranks only one is in it. The other sends its data first, and gets the result at the
    end. In MPICH and Open MPI the odd one is in the core, but the even one if vectors are halved as by Rabenseifner.
    Places are then mirrored too (bits of their numbers reversed): the places that first exchange halves are
    neighbours.
    """

    ranks: int
    odd: bool = True
    mirrored: bool = False

    @property
    def rounds(self) -> int:
        return self.ranks.bit_length() - 1

    @property
    def extra(self) -> int:
        """The number of ranks outside the core."""
        return self.ranks - (1 << self.rounds)

    @property
    def inner(self) -> np.ndarray:
        """The core's rank of each pair."""
        return 2 * np.arange(self.extra) + self.odd

    @property
    def outer(self) -> np.ndarray:
        """The other rank of each pair."""
        return self.inner ^ 1

    @property
    def rank(self) -> np.ndarray:
        """The rank of every place in the core."""
        place = np.arange(1 << self.rounds)
        if self.mirrored:
            place = sum((place >> bit & 1) << self.rounds - 1 - bit for bit in range(self.rounds)) + 0 * place
        return np.where(place < self.extra, 2 * place + self.odd, place + self.extra)

    def ends(self, ends: np.ndarray) -> np.ndarray:
        """Return the ends of the blocks of each place: its own block, or those of its pair."""
        place = np.arange((1 << self.rounds) + 1)
        return ends[np.where(place < self.extra, 2 * place, place + self.extra)]

    def fold(self, bytes: int) -> Phase:
        """Return the messages of ranks outside, which send their vectors."""
        return make_phase(0, self.outer, self.inner, bytes, combines=True)

    def fold_halves(self, bytes: int) -> tuple[tuple[Phase, Phase], Phase]:
        """Return the messages of `fold` in two steps, in which both ranks of a pair combine one half.

        The rank inside the core combines the first half.
        """
        first = bytes // 2
        to_inner = make_phase(0, self.outer, self.inner, first, combines=True)
        to_outer = make_phase(0, self.inner, self.outer, bytes - first, first, combines=True)
        return (to_inner, to_outer), make_phase(0, self.outer, self.inner, bytes - first, first)

    def unfold(self, first: ArrayLike, bytes: ArrayLike) -> Phase:
        """Return the messages of the result to ranks outside."""
        return make_phase(0, self.inner, self.outer, bytes, lambda: first)

    def exchange(self, bytes: int) -> Phase | Rounds:
        """Return the rounds in which partners at distance 1, 2, 4, … exchange and combine everything."""
        if not self.extra:
            return hypercube_rounds(self.ranks, bytes)
        step, place = list_steps_and_sources(self.rounds, 1 << self.rounds)
        return make_phase(step, self.rank[place], self.rank[place ^ (1 << step)], bytes, combines=True)

    def double(self, ends: np.ndarray) -> Phase:
        """Return the rounds in which partners at distance 1, 2, 4, … exchange all their blocks. Blocks are by place."""
        step, place = list_steps_and_sources(self.rounds, 1 << self.rounds)
        return self._blocks(step, place, place, step, ends)

    def halve(self, ends: np.ndarray) -> Phase:
        """Return the rounds in which partners at distance …, 4, 2, 1 combine the half that each keeps: each ends with
        its block."""
        step, place = list_steps_and_sources(self.rounds, 1 << self.rounds)
        bit = self.rounds - 1 - step
        return replace(self._blocks(step, place, place ^ (1 << bit), bit, ends), combines=True)

    def collect(self, ends: np.ndarray) -> Phase:
        """Return the blocks by place up the binomial tree to place 0."""
        tree = scatter_tree(ends).backwards()
        return Phase(tree.step, self.rank[tree.src], self.rank[tree.dst], tree.bytes, tree.holds)

    def _blocks(self, step: np.ndarray, place: np.ndarray, of: np.ndarray, bit: np.ndarray, ends: np.ndarray) -> Phase:
        """Return messages in which each place sends its partner the blocks of 2^bit places.

        The partner's number differs in the bit. The places share the higher bits with `of`.
        """
        first = of >> bit << bit
        start = ends[first]
        return make_phase(
            step, self.rank[place], self.rank[place ^ (1 << bit)], ends[first + (1 << bit)] - start, lambda: start
        )
