"""Phases of an algorithm: messages in steps, and what they hold. Put one after the other they are a Schedule.

Addresses count the bytes of all data that the operation is about (see `operations`). A rank that combines what it gets
in a step adds it to what it has there; any other takes it in place of what it has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.patterns.schedule import Runs, Schedule, Work, check_rows

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


def phase(step, src, dst, bytes, at: Callable[[], object] | int | Holds = 0, *, combines=False, copies=None) -> Phase:
    """A phase from columns or numbers; `at` is the address of each message's first byte, or a function that returns
    those, or Runs where a message is more than one run."""
    columns = np.broadcast_arrays(*(np.asarray(column) for column in (step, src, dst, bytes)))
    step, src, dst, bytes = (column.ravel() for column in columns)

    def holds() -> Runs:
        found = at() if callable(at) else at
        return found if isinstance(found, Runs) else one_run(found, bytes)

    return Phase(step, src, dst, bytes, holds, combines, copies)


def copies(work: Work) -> Phase:
    """A phase of local copies alone."""
    return phase(*(np.empty(0, dtype=int) for _ in range(4)), copies=work)


def one_run(first, bytes: np.ndarray) -> Runs:
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


def sequence(ranks: int, *stages: Phase | tuple[Phase, ...], root: int | None = None) -> Schedule:
    """The schedule of phases one after the other, or side by side where several are given as one. A rank goes on when
    its own part is done: nothing else separates them. What a combining phase brings is reduced where it arrives."""
    phases, start = [], 0
    for stage in stages:
        together = stage if isinstance(stage, tuple) else (stage,)
        phases += [_later(each, start) for each in together]
        start += max(each.steps for each in together)
    work = [Work.reduce(each.step, each.dst, each.bytes) for each in phases if each.combines]
    work += [each.copies for each in phases if each.copies is not None]

    def column(name: str) -> np.ndarray:
        return np.concatenate([getattr(each, name) for each in phases])

    return Schedule.of(
        ranks,
        *(column(name) for name in ("step", "src", "dst", "bytes")),
        work=Work.joined(work) if work else None,
        root=root,
        holds=lambda: _joined(phases),
    )


def _later(each: Phase, start: int) -> Phase:
    copies = replace(each.copies, step=each.copies.step + start) if each.copies is not None else None
    return replace(each, step=each.step + start, copies=copies)


def _joined(phases: Sequence[Phase]) -> Runs:
    rows = np.cumsum([0, *(len(each.step) for each in phases)])
    found = [each.holds() for each in phases]
    return Runs(
        np.concatenate([runs.row + start for runs, start in zip(found, rows, strict=False)]),
        np.concatenate([runs.first for runs in found]),
        np.concatenate([runs.length for runs in found]),
    )
