"""A stream of waves, each the same pattern: how long after one wave the next is done, once the stream runs.

A family may have an equation for that (`pipelined`). Where ranks go on independently (`independent`), the waves of a
schedule follow one another as its steps do, and the time between them is what further waves add. A family that adds up
steps for all ranks at once says nothing about a stream.
"""

from dataclasses import replace

import numpy as np

from commodel.families import Family
from commodel.schedule import Schedule, Work, check_rows
from commodel.values import Values

FEW, MANY = 8, 16  # waves: what the second half of a stream takes is not about its start
BRIEF = 2, 4  # of long schedules
LONG = 100_000


def period(entry: Family, pattern: Schedule, values: Values) -> np.ndarray | None:
    """The time between waves, one a draw; None where the family says nothing about it."""
    if entry.pipelined is not None:
        return entry.pipelined(pattern, values)
    if not entry.independent:
        return None
    few, many = (FEW, MANY) if len(pattern.src) < LONG else BRIEF
    early, late = (
        stream.cost(entry.price(stream, values)) for stream in (repeated(pattern, few), repeated(pattern, many))
    )
    return (late - early) / (many - few)


def repeated(pattern: Schedule, waves: int) -> Schedule:
    """A pattern so many times: a rank begins the next wave when it is done with its part of the last."""
    work = pattern.work
    steps = int(max(pattern.step.max(initial=-1), work.step.max(initial=-1))) + 1
    check_rows(waves * len(pattern.src))

    def again(column: np.ndarray, apart: int = 0) -> np.ndarray:
        return (column + apart * np.arange(waves)[:, None]).ravel()

    columns = (work.rank, work.kind, work.bytes, work.seconds)
    return replace(
        pattern,
        step=again(pattern.step, steps),
        **{name: again(getattr(pattern, name)) for name in ("src", "dst", "bytes")},
        work=Work(again(work.step, steps), *(again(column) for column in columns)),
        holds=None,
    )
