"""Collectives composed of others over groups of ranks (`Composer`), such as a broadcast between
nodes and then one within each node.

A `Call` is one collective over some of the ranks, its root the first. It has addresses of its own:
`Pieces` say where its data lie in those of the whole operation. Calls of a stage run at once, over
other ranks or other data. Stages follow each other without a barrier. A segment of the data may be
in one stage while the next segment is in the stage before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.patterns.schedule import KINDS, Runs, Schedule, Work, check_rows

REDUCE = KINDS.index("reduce")


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of the data of a call in the order of its own addresses: where each begins there, its
    length, and its address in the data of the whole operation."""

    first: np.ndarray
    length: np.ndarray
    address: np.ndarray

    @classmethod
    def of_blocks(cls, block: int, addresses: Sequence[np.ndarray], length: int) -> Pieces:
        """Return the pieces of blocks, which begin at multiples of `block`. Each has runs of
        `length` bytes at its addresses, one after the other."""
        counts = np.array([len(of_block) for of_block in addresses])
        start = np.repeat(block * np.arange(len(counts)), counts)
        position = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        address = np.concatenate(addresses)
        return cls(start + position * length, np.full(len(address), length), address).join()

    @classmethod
    def of_runs(cls, block: int, runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Pieces:
        """Return the pieces of blocks, which begin at multiples of `block`. Each has runs of these
        addresses and lengths, one after the other."""
        starts = [
            number * block + np.cumsum(length) - length for number, (_, length) in enumerate(runs)
        ]
        return cls(
            np.concatenate(starts),
            np.concatenate([length for _, length in runs]),
            np.concatenate([address for address, _ in runs]),
        ).join()

    def join(self) -> Pieces:
        """Return the same pieces; those that continue each other at both ends are one."""
        end = self.first + self.length
        continues = (self.first[1:] == end[:-1]) & (
            self.address[1:] - self.address[:-1] == self.length[:-1]
        )
        begin = np.flatnonzero(np.concatenate([[True], ~continues]))
        last = np.concatenate([begin[1:], [len(end)]]) - 1
        return Pieces(self.first[begin], end[last] - self.first[begin], self.address[begin])

    def map(self, runs: Runs) -> Runs:
        """Return the runs by addresses of the whole operation. Addresses between pieces have no
        data."""
        low = np.maximum(np.searchsorted(self.first, runs.first, "right") - 1, 0)
        high = np.searchsorted(self.first, runs.first + runs.length, "left")
        counts = np.maximum(high - low, 0)
        run = np.repeat(np.arange(len(counts)), counts)
        offset = np.arange(len(run)) - np.repeat(np.cumsum(counts) - counts, counts)
        piece = low[run] + offset
        begin = np.maximum(runs.first[run], self.first[piece])
        end = np.minimum((runs.first + runs.length)[run], (self.first + self.length)[piece])
        nonempty = end > begin
        run, piece = run[nonempty], piece[nonempty]
        begin, end = begin[nonempty], end[nonempty]
        return Runs(runs.row[run], self.address[piece] + begin - self.first[piece], end - begin)


@dataclass(frozen=True, eq=False)
class Call:
    """A collective over some of the ranks.

    `bytes` are those of the vector, or of each block; of a reduce-scatter, those of each share.
    `sizes` are the bytes of the blocks, if they differ: blocks then begin at multiples of the
    largest. Only checks of the data call `pieces`.
    """

    operation: str
    algorithm: str
    members: np.ndarray  # ranks, the root first
    bytes: int
    pieces: Callable[[], Pieces]
    sizes: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Copies:
    """A copy of `bytes` within the memory of each of these ranks."""

    ranks: np.ndarray
    bytes: int


Stage = Sequence[Call | Copies]


@dataclass(frozen=True, eq=False)
class Segments:
    """The stages of `count` segments of the data. They are those of the first one; each further one
    has data that lie `bytes` further on."""

    stages: Sequence[Stage]
    count: int = 1
    bytes: int = 0


Build = Callable[[str, str, int, int, np.ndarray], Schedule]


@dataclass(frozen=True, eq=False)
class _Columns:
    """The messages and work of a stage. `combines`: the receiver reduces the message into its
    data."""

    step: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    bytes: np.ndarray
    combines: np.ndarray
    copies: Work
    contents: Callable[[], Runs]

    @property
    def steps(self) -> int:
        return int(max(self.step.max(initial=-1), self.copies.step.max(initial=-1))) + 1

    def move(self, start: int, stride: int = 1) -> _Columns:
        """Return them later. With a stride of 2, messages that replace data come in the steps
        between those that combine."""
        step = start + stride * self.step + (stride - 1) * ~self.combines
        copies = replace(self.copies, step=start + stride * self.copies.step)
        return replace(self, step=step, copies=copies)


class Composer:
    """Builds the Schedule of stages. `build(operation, algorithm, ranks, bytes, node)` returns the
    Schedule of a call, over its own ranks."""

    def __init__(self, node: np.ndarray, build: Build) -> None:
        self.node = node
        self.ranks = len(node)
        self._build = build
        self._built: dict[tuple[object, ...], Schedule] = {}

    def compose(self, segments: Sequence[Segments], root: int | None) -> Schedule:
        """Return the Schedule of segments, each of which goes through its stages one after the
        other. A stage takes a segment when it has done with the last one."""
        columns = [[self._join_calls(stage) for stage in part.stages] for part in segments]
        count = sum(part.count for part in segments)
        check_rows(
            sum(
                part.count * _count_rows(of_part)
                for part, of_part in zip(segments, columns, strict=True)
            )
        )
        if count == 1:
            starts = np.cumsum([0, *(stage.steps for stage in columns[0])])
            parts = [
                stage.move(int(start)) for stage, start in zip(columns[0], starts[:-1], strict=True)
            ]
        else:
            parts = _pipeline(segments, columns)
        whole = _concatenate(parts)
        reduced = Work.reduce(
            whole.step[whole.combines], whole.dst[whole.combines], whole.bytes[whole.combines]
        )
        return Schedule.of(
            self.ranks,
            whole.step,
            whole.src,
            whole.dst,
            whole.bytes,
            work=Work.concatenate([reduced, whole.copies]),
            root=root,
            contents=whole.contents,
        )

    def _join_calls(self, stage: Stage) -> _Columns:
        """Return the columns of calls that run at once. If a rank takes part in several, messages
        that combine and messages that do not are in different steps."""
        parts = [_copy(call) if isinstance(call, Copies) else self._perform(call) for call in stage]
        members = [call.members for call in stage if isinstance(call, Call)]
        taking_part = np.concatenate([np.empty(0, dtype=int), *members])
        whole = _concatenate(parts)
        overlaps = len(np.unique(taking_part)) < len(taking_part)
        if overlaps and whole.combines.any() and not whole.combines.all():
            return whole.move(0, stride=2)
        return whole

    def _perform(self, call: Call) -> _Columns:
        """Return the columns of one call."""
        if len(call.members) < 2:
            return _NOTHING
        flat = self._build_once(call)
        combines = _find_combining(flat)
        bytes = flat.bytes
        share = 1.0
        if call.sizes is not None:
            bytes = _count_bytes(flat, call.bytes, call.sizes)
            share = call.sizes.sum() / max(call.bytes * len(call.sizes), 1)
        copied = flat.work.kind != REDUCE
        copies = Work.copy(
            flat.work.step[copied],
            call.members[flat.work.rank[copied]],
            np.ceil(share * flat.work.bytes[copied]),
        )
        get_contents = flat.contents
        assert get_contents is not None, "collectives have contents"
        return _Columns(
            step=flat.step,
            src=call.members[flat.src],
            dst=call.members[flat.dst],
            bytes=bytes,
            combines=combines,
            copies=copies,
            contents=lambda: call.pieces().map(get_contents()),
        )

    def _build_once(self, call: Call) -> Schedule:
        """Return the Schedule of a call, whose blocks all have one size; calls that are alike share
        one."""
        bytes = call.bytes
        if call.operation == "reduce-scatter":
            bytes = call.bytes * len(call.members)
        node = np.unique(self.node[call.members], return_inverse=True)[1]
        key = (call.operation, call.algorithm, len(call.members), bytes, node.tobytes())
        if key not in self._built:
            built = self._build(call.operation, call.algorithm, len(call.members), bytes, node)
            self._built[key] = built.whole
        return self._built[key]


def _count_rows(stages: Sequence[_Columns]) -> int:
    return sum(len(stage.step) for stage in stages)


def _pipeline(
    segments: Sequence[Segments], columns: Sequence[Sequence[_Columns]]
) -> list[_Columns]:
    """Return the columns of segments that go through stages one behind the other. All stages take
    as many steps as the longest. Messages that combine alternate with those that do not."""
    every = [stage for stages in columns for stage in stages]
    are_alike = len({bool(stage.combines.any()) for stage in every if len(stage.step)}) < 2
    stride = 1 if are_alike else 2
    length = stride * max(stage.steps for stage in every)
    parts = []
    number = 0
    for segment, stages in zip(segments, columns, strict=True):
        for position, stage in enumerate(stages):
            moved = stage.move((number + position) * length, stride)
            parts.append(_repeat(moved, segment.count, length, segment.bytes))
        number += segment.count
    return parts


def _repeat(columns: _Columns, count: int, steps: int, bytes: int) -> _Columns:
    """Return the columns `count` times, each time `steps` later and with data `bytes` further
    on."""
    if count == 1:
        return columns
    number = np.arange(count)[:, None]
    rows = len(columns.step)

    def contents() -> Runs:
        runs = columns.contents()
        return Runs(
            (runs.row + rows * number).ravel(),
            (runs.first + bytes * number).ravel(),
            np.tile(runs.length, count),
        )

    copies = columns.copies
    return _Columns(
        step=(columns.step + steps * number).ravel(),
        src=np.tile(columns.src, count),
        dst=np.tile(columns.dst, count),
        bytes=np.tile(columns.bytes, count),
        combines=np.tile(columns.combines, count),
        copies=Work.copy(
            (copies.step + steps * number).ravel(),
            np.tile(copies.rank, count),
            np.tile(copies.bytes, count),
        ),
        contents=contents,
    )


def _find_combining(flat: Schedule) -> np.ndarray:
    """Return whether the receiver of each message reduces it: it then has such work in that
    step."""
    span = flat.last_step + 1
    reduced = flat.work.kind == REDUCE
    places = flat.work.rank[reduced] * span + flat.work.step[reduced]
    return np.isin(flat.dst * span + flat.step, places)


def _count_bytes(flat: Schedule, block: int, sizes: np.ndarray) -> np.ndarray:
    """Return the bytes of each message of a call whose blocks have these sizes. In its Schedule all
    blocks have the size `block`."""
    assert flat.contents is not None
    first = block * np.arange(len(sizes))
    runs = Pieces(first, sizes, first).map(flat.contents())
    return np.bincount(runs.row, runs.length, minlength=len(flat.src)).astype(np.int64)


def _copy(copies: Copies) -> _Columns:
    return replace(_NOTHING, copies=Work.copy(0, copies.ranks, copies.bytes))


def _concatenate(parts: Sequence[_Columns]) -> _Columns:
    """Return the columns of all parts, in their order."""
    if len(parts) < 2:
        return parts[0] if parts else _NOTHING
    names = ("step", "src", "dst", "bytes", "combines")
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in names]

    def contents() -> Runs:
        rows = np.cumsum([0, *(len(part.step) for part in parts)])
        of_parts = [part.contents() for part in parts]
        shifted = [runs.row + row for runs, row in zip(of_parts, rows[:-1], strict=True)]
        return Runs(
            np.concatenate(shifted),
            np.concatenate([runs.first for runs in of_parts]),
            np.concatenate([runs.length for runs in of_parts]),
        )

    step, src, dst, bytes, combines = columns
    return _Columns(
        step=step,
        src=src,
        dst=dst,
        bytes=bytes,
        combines=combines,
        copies=Work.concatenate([part.copies for part in parts]),
        contents=contents,
    )


_EMPTY = np.empty(0, dtype=np.int64)
_NOTHING = _Columns(
    step=_EMPTY,
    src=_EMPTY,
    dst=_EMPTY,
    bytes=_EMPTY,
    combines=np.empty(0, dtype=bool),
    copies=Work.empty(),
    contents=lambda: Runs(_EMPTY, _EMPTY, _EMPTY),
)
