"""Building blocks of collective algorithms: phases, trees, rings, and exchanges between partners at
doubling distances.

A `Phase` has messages in steps and their contents. `join_stages` joins phases and repeated `Rounds`
into a Schedule. Addresses count the bytes of all data of the operation (see `operations`). In a
phase that combines, the receiver reduces each message into its data at these addresses; otherwise
the message replaces them.

If data are cut into blocks, block i lies between `ends[i]` and `ends[i + 1]`. Trees and exchanges
are those of MPICH and Open MPI (Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005).
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
    """Messages as columns of equal length, with steps from 0. Only checks of the data call
    `contents`."""

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    contents: GetContents
    combines: bool = False
    copies: Work | None = None  # local copies, with steps from 0

    @property
    def steps(self) -> int:
        columns = [self.step] if self.copies is None else [self.step, self.copies.step]
        return int(max(column.max(initial=-1) for column in columns)) + 1

    def reverse(self) -> "Phase":
        """Return the messages from their receivers to their senders, in reverse order."""
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

    `at` is the address of each message's first byte, or a function that returns it, or Runs if a
    message has several runs.
    """
    columns = np.broadcast_arrays(*(np.asarray(column) for column in (step, src, dst, bytes)))
    step, src, dst, bytes = (column.ravel() for column in columns)

    def contents() -> Runs:
        runs = at() if callable(at) else at
        if isinstance(runs, Runs):
            return runs
        return Runs(np.arange(len(bytes)), np.broadcast_to(np.asarray(runs), bytes.shape), bytes)

    return Phase(
        step=step,
        src=src,
        dst=dst,
        bytes=bytes,
        contents=contents,
        combines=combines,
        copies=copies,
    )


def list_steps_and_sources(steps: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns step and src of a phase in which every rank sends one message in each
    step."""
    check_rows(steps * ranks)
    return np.divmod(np.arange(steps * ranks), ranks)


def wrap_addresses(first: np.ndarray, bytes: np.ndarray, end: int) -> Runs:
    """Return one run of addresses for each message, or two if it continues at 0 after `end`."""
    before = np.minimum(bytes, end - first)
    row = np.repeat(np.arange(len(bytes)), 2)
    starts = np.stack([first, np.zeros_like(first)], axis=1).ravel()
    lengths = np.stack([before, bytes - before], axis=1).ravel()
    nonempty = lengths > 0
    return Runs(row[nonempty], starts[nonempty], lengths[nonempty])


def cut_phase(
    phase: Phase, bytes: int, segment: int | None, stride: int = 1, start: int = 0
) -> Phase:
    """Return a phase with each message cut into segments, which follow each other at intervals of
    `stride` steps.

    The messages have `bytes` bytes from address `start` on.
    """
    if segment is None:
        return phase
    rows = len(phase.step)
    segments = max(-(-bytes // segment), 1)
    check_rows(segments * rows)
    number, row = np.divmod(np.arange(segments * rows), max(rows, 1))
    # the last one is shorter; an empty message is one segment
    size = np.minimum(segment, bytes - number * segment)
    step = phase.step[row] + number * stride
    at = start + number * segment
    return make_phase(
        step, phase.src[row], phase.dst[row], size, lambda: at, combines=phase.combines
    )


Stage = Phase | Rounds | tuple[Phase, ...]


def join_stages(ranks: int, *stages: Stage, root: int | None = None) -> Schedule:
    """Return the schedule of phases that follow each other; phases in a tuple are concurrent.

    A rank continues when it has completed its part of a phase, without a barrier. Messages of a
    combining phase are reduced on arrival.
    """

    def expand() -> Schedule:
        phases = [_expand_rounds(stage) if isinstance(stage, Rounds) else stage for stage in stages]
        return _join_phases(ranks, phases, root)

    if not any(isinstance(stage, Rounds) for stage in stages):
        return expand()
    parts: list[Schedule | Rounds] = []
    for _, group in groupby(stages, lambda stage: isinstance(stage, Rounds)):
        phases: list[Phase | tuple[Phase, ...]] = []
        for stage in group:
            if isinstance(stage, Rounds):
                parts.append(stage)
            else:
                phases.append(stage)
        parts += [_join_phases(ranks, phases, None)] if phases else []
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


def _join_phases(
    ranks: int, stages: Sequence[Phase | tuple[Phase, ...]], root: int | None
) -> Schedule:
    phases = []
    start = 0
    for stage in stages:
        concurrent = stage if isinstance(stage, tuple) else (stage,)
        phases += [_delay_phase(part, start) for part in concurrent]
        start += max(part.steps for part in concurrent)
    work = [Work.reduce(part.step, part.dst, part.bytes) for part in phases if part.combines]
    work += [part.copies for part in phases if part.copies is not None]

    def column(name: str) -> np.ndarray:
        columns = [getattr(part, name) for part in phases]
        return np.concatenate(columns) if len(columns) > 1 else columns[0]

    return Schedule.of(
        ranks,
        *(column(name) for name in ("step", "src", "dst", "bytes")),
        work=Work.concatenate(work) if work else None,
        root=root,
        contents=lambda: _join_contents(phases),
    )


def _delay_phase(part: Phase, start: int) -> Phase:
    if start == 0:
        return part
    copies = (
        replace(part.copies, step=part.copies.step + start) if part.copies is not None else None
    )
    return replace(part, step=part.step + start, copies=copies)


def _join_contents(phases: Sequence[Phase]) -> Runs:
    rows = np.cumsum([0, *(len(part.step) for part in phases)])
    contents = [part.contents() for part in phases]
    return Runs(
        np.concatenate([runs.row + start for runs, start in zip(contents, rows, strict=False)]),
        np.concatenate([runs.first for runs in contents]),
        np.concatenate([runs.length for runs in contents]),
    )


def divide_evenly(bytes: int, parts: int) -> np.ndarray:
    """Return the sizes of parts that divide `bytes` as evenly as possible, the larger ones
    first."""
    return bytes // parts + (np.arange(parts) < bytes % parts)


def split_equally(bytes: int, blocks: int) -> np.ndarray:
    """Return the ends of blocks of `bytes` each."""
    return bytes * np.arange(blocks + 1)


def split_evenly(bytes: int, blocks: int) -> np.ndarray:
    """Return the ends of blocks that divide `bytes` as evenly as possible, the larger ones
    first."""
    return np.concatenate([[0], np.cumsum(divide_evenly(bytes, blocks))])


@dataclass(frozen=True, eq=False)
class Edges:
    """A tree of ranks as messages from parent to child, and the round of each.

    `subtree` is the number of ranks in the child's subtree; None if they are not consecutive.
    """

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    subtree: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> "Edges":
        subtree = None if self.subtree is None else self.subtree[rows]
        return Edges(step=self.step[rows], src=self.src[rows], dst=self.dst[rows], subtree=subtree)


def make_knomial_tree(ranks: int, radix: int = 2) -> Edges:
    """Return the k-nomial tree, farthest rank first: in a round every rank that has the data sends
    to radix − 1 others.

    In base `radix`, a rank's parent has the same number with the last nonzero digit set to 0.
    """
    # level: trailing zeros of the number
    level = np.zeros(ranks, dtype=int)
    rounds = 0
    distance = 1
    while distance < ranks:
        level[::distance] = rounds
        rounds = rounds + 1
        distance = distance * radix
    target = np.arange(1, ranks)
    subtree = radix ** level[1:]
    source = target - target % (radix * subtree)
    return Edges(
        step=rounds - 1 - level[1:],
        src=source,
        dst=target,
        subtree=np.minimum(subtree, ranks - target),
    )


def make_near_first_tree(ranks: int) -> Edges:
    """Return the binomial tree, nearest rank first."""
    target = np.arange(1, ranks)
    step = np.frexp(target)[1] - 1  # the highest set bit: the round in which a rank receives
    return Edges(step, target - (1 << step), target)


def make_binary_tree(ranks: int) -> Edges:
    """Return Open MPI's binary tree.

    Rank r of a level with at most w ranks has the children r + w and r + 2w. Odd ranks are below
    rank 1, even ones below rank 2. A rank sends to both children at once.
    """
    child = np.arange(1, ranks)
    level = np.frexp(child + 1)[1] - 2  # of the parent
    width = 1 << level
    # else the rank `width` before it would be on its own level
    second = child - width >= 2 * width - 1
    return Edges(level, child - np.where(second, 2, 1) * width, child)


def make_in_order_tree(ranks: int) -> Edges:
    """Return the binary tree whose ranks are numbered in postorder; its root is the last rank."""
    # first and last rank of each subtree; the last is its root
    low = np.array([0])
    high = np.array([ranks - 1])
    levels = []
    while len(low):
        middle = low + (high - low + 1) // 2 - 1  # the left child, the last rank of its subtree
        has_left = high > low
        has_right = high - 1 > middle
        children = np.concatenate([middle[has_left], high[has_right] - 1])
        levels.append((np.concatenate([high[has_left], high[has_right]]), children))
        low = np.concatenate([low[has_left], middle[has_right] + 1])
        high = children
    step = np.repeat(np.arange(len(levels)), [len(parents) for parents, _ in levels])
    return Edges(step, *(np.concatenate(column) for column in zip(*levels, strict=True)))


def split_rounding_up(bytes: int, blocks: int) -> np.ndarray:
    """Return the ends of blocks whose equal size is rounded up; the last blocks are shorter or
    empty."""
    return np.minimum(-(-bytes // blocks) * np.arange(blocks + 1), bytes)


def make_scatter_tree(ends: np.ndarray) -> Phase:
    """Return the scatter of blocks down the binomial tree; a message has the blocks of its
    receiver's whole subtree.

    Messages with only empty blocks are not sent.
    """
    edges = make_knomial_tree(len(ends) - 1)
    edges = edges.select(ends[edges.dst] < max(ends[-1], 1))
    first = ends[edges.dst]
    return make_phase(
        edges.step, edges.src, edges.dst, ends[edges.dst + edges.subtree] - first, lambda: first
    )


def broadcast_unsplit(edges: Edges, bytes: int) -> Phase:
    """Return the broadcast of whole messages down a tree."""
    return make_phase(edges.step, edges.src, edges.dst, bytes)


def reduce_unsplit(edges: Edges, bytes: int) -> Phase:
    """Return the reduction of whole messages up a tree."""
    return replace(broadcast_unsplit(edges, bytes).reverse(), combines=True)


def send_down_tree(tree: Tree, bytes: int) -> Phase:
    """Return the broadcast of whole messages down a topology."""
    node = np.arange(1, tree.nodes)
    return make_phase(tree.depth[node] - 1, tree.parent[node], node, bytes)


def send_up_tree(tree: Tree, bytes: int, *, combines: bool = False) -> Phase:
    """Return messages up a topology.

    A node receives from all its children in one step, in the order of arrival. Deeper nodes send in
    earlier steps.
    """
    node = np.arange(1, tree.nodes)
    return make_phase(
        tree.height - tree.depth[node], node, tree.parent[node], bytes, combines=combines
    )


def make_ring_rounds(
    ends: np.ndarray, offset: int = 0, *, combines: bool = False, part: int = 0, parts: int = 1
) -> Rounds:
    """Return P − 1 rounds around the ring: in round s rank r sends block r − s + `offset` to rank r
    + 1.

    If a block is divided into `parts` parts, as evenly as possible, only the part number `part` is
    sent.
    """
    ranks = len(ends) - 1
    size, larger = np.divmod(np.diff(ends), parts)  # the first `larger` parts have a byte more
    first = ends[:-1] + part * size + np.minimum(part, larger)

    def block(number: np.ndarray | int, source: np.ndarray) -> np.ndarray:
        return (source - number + offset) % ranks

    return Rounds(
        ranks=ranks,
        count=ranks - 1,
        receiver=lambda number, source: (source + 1) % ranks,
        block=block,
        sizes=size + (part < larger),
        address=lambda number, source: first[block(number, source)],
        combines=combines,
        relays_blocks=True,
    )


def make_pairwise_rounds(
    sizes: np.ndarray, at: Callable[[np.ndarray, np.ndarray], np.ndarray], *, combines: bool = False
) -> Rounds:
    """Return P − 1 rounds: in round s rank r sends `sizes[t]` bytes from address `at(r, t)` on to
    rank t = r + s + 1."""
    ranks = len(sizes)

    def to(number: np.ndarray | int, source: np.ndarray) -> np.ndarray:
        return (source + number + 1) % ranks

    return Rounds(
        ranks=ranks,
        count=ranks - 1,
        receiver=to,
        block=to,
        sizes=sizes,
        address=lambda number, source: at(source, to(number, source)),
        combines=combines,
        periodic=False,
        receivers_advance=True,
    )


def make_dissemination_rounds(ranks: int) -> Rounds:
    """Return the ⌈log2 P⌉ rounds in which rank r sends an empty message to rank r + 2^s, s = 0, 1,
    …."""
    return _make_equal_size_rounds(
        ranks, (ranks - 1).bit_length(), lambda number, source: (source + (1 << number)) % ranks, 0
    )


def make_hypercube_rounds(ranks: int, bytes: int) -> Rounds:
    """Return the rounds s = 0, 1, … in which a power of two ranks exchange and combine with the
    rank whose number differs in bit s."""
    rounds = _make_equal_size_rounds(
        ranks, ranks.bit_length() - 1, lambda number, source: source ^ (1 << number), bytes
    )
    return replace(rounds, combines=True, shift=ranks, bit_flip_symmetric=True)


def _make_equal_size_rounds(ranks: int, count: int, to: RoundFunction, bytes: int) -> Rounds:
    def block(number: np.ndarray | int, source: np.ndarray) -> np.ndarray:
        return 0 * (source + number)

    return Rounds(
        ranks=ranks,
        count=count,
        receiver=to,
        block=block,
        sizes=np.array([bytes]),
        address=block,
        periodic=False,
    )


def halve_blocks(bytes: int, times: int) -> np.ndarray:
    """Return the ends of blocks if `bytes` are halved `times` times, with the smaller half
    first."""
    ends = np.array([0, bytes])
    for _ in range(times):
        ends = np.sort(np.append(ends, (ends[:-1] + ends[1:]) // 2))
    return ends


def make_doubling_allgather(ends: np.ndarray) -> Phase:
    """Return the allgather by recursive doubling over any number of ranks, as in the broadcasts of
    MPICH and Open MPI.

    Partners at distance 1, 2, 4, … exchange the blocks of their groups. If the last group is
    incomplete, some ranks have no partner. They receive the blocks within their own group, down a
    binomial tree.
    """
    ranks = len(ends) - 1
    distance = 1
    rounds = []
    while distance < ranks:
        rank = np.arange(ranks)
        rank = rank[rank ^ distance < ranks]
        group = rank & -distance
        rounds.append((rank, rank ^ distance, group, np.minimum(group + distance, ranks)))
        # first rank of the incomplete group, if any
        upper = ranks // (2 * distance) * 2 * distance + distance
        for source, target in _broadcast_in_group(distance, ranks - upper):
            group = np.full_like(source, upper)
            end = np.full_like(source, ranks)
            rounds.append((upper - distance + source, upper - distance + target, group, end))
        distance *= 2
    step = np.repeat(np.arange(len(rounds)), [len(columns[0]) for columns in rounds])
    source, target, low, high = (np.concatenate(column) for column in zip(*rounds, strict=True))
    return make_phase(step, source, target, ends[high] - ends[low], lambda: ends[low])


def _broadcast_in_group(size: int, informed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rounds in which the first `informed` ranks of a group send to all others: sources and
    targets."""
    distance = size // 2
    while distance and 0 < informed < size:
        rank = np.arange(size)
        within = rank % (2 * distance)
        source = rank[(within < min(distance, informed)) & (within + distance >= informed)]
        yield source, source + distance
        distance //= 2


@dataclass(frozen=True, eq=False)
class PowerOfTwoCore:
    """The largest power of two of the ranks, in which partners at distance 1, 2, 4, … exchange.

    The other ranks are paired with ranks of the core, in the first pairs. They first send their
    data to their partner, and receive the result at the end. In MPICH and Open MPI the odd rank of
    a pair is in the core; in Rabenseifner's algorithm, the even rank. The latter also reverses the
    bits of positions in the core, so that neighbours exchange the largest halves.
    """

    ranks: int
    second_of_pair: bool = True
    bits_reversed: bool = False

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
        return 2 * np.arange(self.extra) + self.second_of_pair

    @property
    def outer(self) -> np.ndarray:
        """The other rank of each pair."""
        return self.inner ^ 1

    @property
    def rank(self) -> np.ndarray:
        """The rank of every position in the core."""
        position = np.arange(1 << self.rounds)
        if self.bits_reversed:
            position = (
                sum((position >> bit & 1) << self.rounds - 1 - bit for bit in range(self.rounds))
                + 0 * position
            )
        return np.where(
            position < self.extra, 2 * position + self.second_of_pair, position + self.extra
        )

    def merge_blocks(self, ends: np.ndarray) -> np.ndarray:
        """Return the ends of the blocks by position in the core: both blocks of a pair are one."""
        position = np.arange((1 << self.rounds) + 1)
        return ends[np.where(position < self.extra, 2 * position, position + self.extra)]

    def fold(self, bytes: int) -> Phase:
        """Return the messages in which ranks outside the core send their vectors."""
        return make_phase(0, self.outer, self.inner, bytes, combines=True)

    def fold_halves(self, bytes: int) -> tuple[tuple[Phase, Phase], Phase]:
        """Return the messages of `fold` in two steps: the ranks of a pair combine one half each,
        then join them.

        The rank in the core combines the first half.
        """
        first = bytes // 2
        to_inner = make_phase(0, self.outer, self.inner, first, combines=True)
        to_outer = make_phase(0, self.inner, self.outer, bytes - first, first, combines=True)
        return (to_inner, to_outer), make_phase(0, self.outer, self.inner, bytes - first, first)

    def unfold(self, first: ArrayLike, bytes: ArrayLike) -> Phase:
        """Return the messages that bring the result to ranks outside the core."""
        return make_phase(0, self.inner, self.outer, bytes, lambda: first)

    def exchange(self, bytes: int) -> Phase | Rounds:
        """Return the rounds in which partners at distance 1, 2, 4, … exchange and combine whole
        vectors."""
        if not self.extra:
            return make_hypercube_rounds(self.ranks, bytes)
        step, position = list_steps_and_sources(self.rounds, 1 << self.rounds)
        return make_phase(
            step, self.rank[position], self.rank[position ^ (1 << step)], bytes, combines=True
        )

    def double(self, ends: np.ndarray) -> Phase:
        """Return the rounds in which partners at distance 1, 2, 4, … exchange all their blocks,
        ordered by position."""
        step, position = list_steps_and_sources(self.rounds, 1 << self.rounds)
        return self._exchange_blocks(step, position, position, step, ends)

    def halve(self, ends: np.ndarray) -> Phase:
        """Return the rounds in which partners at distance …, 4, 2, 1 send each other the half that
        the other combines.

        In the end, each position has its own block.
        """
        step, position = list_steps_and_sources(self.rounds, 1 << self.rounds)
        bit = self.rounds - 1 - step
        return replace(
            self._exchange_blocks(step, position, position ^ (1 << bit), bit, ends), combines=True
        )

    def collect(self, ends: np.ndarray) -> Phase:
        """Return the gather of blocks up the binomial tree to position 0."""
        tree = make_scatter_tree(ends).reverse()
        return Phase(
            step=tree.step,
            src=self.rank[tree.src],
            dst=self.rank[tree.dst],
            bytes=tree.bytes,
            contents=tree.contents,
        )

    def _exchange_blocks(
        self,
        step: np.ndarray,
        position: np.ndarray,
        owner: np.ndarray,
        bit: np.ndarray,
        ends: np.ndarray,
    ) -> Phase:
        """Return messages in which each position sends its partner, which differs in the bit, 2^bit
        blocks.

        They are the blocks of the positions that have the same higher bits as `owner`.
        """
        first = owner >> bit << bit
        start = ends[first]
        partner = position ^ (1 << bit)
        return make_phase(
            step,
            self.rank[position],
            self.rank[partner],
            ends[first + (1 << bit)] - start,
            lambda: start,
        )
