"""Phases of an algorithm, one after the other, and segments of a message.

Phases of an algorithm: messages in steps, and what they hold. Put one after the other they are a Schedule.

Addresses count the bytes of all data that the operation is about (see `operations`). A rank that combines what it gets
in a step adds it to what it has there; any other takes it in place of what it has.

How a message is cut: into segments of a size, or into equal shares.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike

from commodel.errors import UserError
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Runs, Schedule, Work, check_rows
from commodel.units import parse_bytes

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
        return runs if isinstance(runs, Runs) else one_run(runs, bytes)

    return Phase(step, src, dst, bytes, holds, combines, copies)


def every_step(steps: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns step and src of a phase in which every rank sends one message a step."""
    check_rows(steps * ranks)
    return np.divmod(np.arange(steps * ranks), ranks)


def copies(work: Work) -> Phase:
    """A phase of local copies alone."""
    return phase(*(np.empty(0, dtype=int) for _ in range(4)), copies=work)


def one_run(first: ArrayLike, bytes: np.ndarray) -> Runs:
    """Every message is one run."""
    return Runs(np.arange(len(bytes)), np.broadcast_to(np.asarray(first), bytes.shape), bytes)


def around(first: np.ndarray, bytes: np.ndarray, end: int) -> Runs:
    """Every message is one run of addresses that goes on at 0 when it reaches `end`: two runs where it does."""
    before = np.minimum(bytes, end - first)
    row = np.repeat(np.arange(len(bytes)), 2)
    starts = np.stack([first, np.zeros_like(first)], axis=1).ravel()
    lengths = np.stack([before, bytes - before], axis=1).ravel()
    kept = lengths > 0
    return Runs(row[kept], starts[kept], lengths[kept])


def segmented(whole: Phase, sizes: np.ndarray, apart: int = 1, start: int = 0) -> Phase:
    """Each message of a phase cut into segments of these sizes: every segment goes the way of the one before it,
    `apart` steps behind. `start` is the address of the first."""
    rows, ends = len(whole.step), start + np.cumsum(sizes)
    check_rows(len(sizes) * rows)
    segment, row = np.divmod(np.arange(len(sizes) * rows), max(rows, 1))
    bytes = sizes[segment]
    step = whole.step[row] + segment * apart
    return phase(step, whole.src[row], whole.dst[row], bytes, lambda: (ends - sizes)[segment], combines=whole.combines)


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


DEFAULT_SEGMENT = 8192
UNCUT = 1 << 30  # segments as long as this are none

PIPELINED = "[SEGMENT BYTES, else 8 KiB]"  # how the argument of a pipeline is written
MOST_SEGMENTS = 50_000_000


def segment_size(text: str) -> int:
    """The size that `text` gives."""
    size = parse_bytes(text) if text else DEFAULT_SEGMENT
    if size < 1:
        raise UserError(f"found segments of '{text}', wanted at least 1 byte")
    return size


def segment_sizes(bytes: int, text: str) -> np.ndarray:
    """Segments of the size that `text` gives, the last one shorter; an empty message is one empty segment."""
    size = segment_size(text)
    count = max(-(-bytes // size), 1)
    if count > MOST_SEGMENTS:
        raise UserError(f"found {count:,} segments of '{text}', wanted at most {MOST_SEGMENTS:,}")
    sizes = np.full(count, size)
    sizes[-1] = bytes - size * (count - 1)
    return sizes


def share(bytes: int, parts: int) -> np.ndarray:
    """Whole bytes over parts as evenly as can be, the larger shares first."""
    return bytes // parts + (np.arange(parts) < bytes % parts)
