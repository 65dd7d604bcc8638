"""A stream of waves, each the same pattern: how long after one wave the next is done, once the stream runs.

A family may have an equation for that (`pipelined`). Where ranks go on independently (`independent`), the waves of a
schedule follow one another as its steps do, and the time between them is what further waves add. A family that adds up
steps for all ranks at once says nothing about a stream.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from commodel.models import Array
from commodel.patterns.schedule import Ends, Schedule, Work, check_rows
from commodel.price.model import Model

FEW, MANY = 8, 16  # waves: what the second half of a stream takes is not about its start
BRIEF = 2, 4  # of long schedules
MESSAGES, STEPS = 100_000, 500


class Stream:
    """Waves of one pattern; the schedules of few and of many are made once, for all families."""

    def __init__(self, pattern: Schedule) -> None:
        self.pattern = pattern

    @cached_property
    def _lengths(self) -> tuple[tuple[int, Schedule], ...]:
        long = len(self.pattern.src) > MESSAGES or len(self.pattern.steps) > STEPS
        lengths = BRIEF if long else (FEW, MANY)
        return tuple((waves, repeated(self.pattern, waves)) for waves in lengths)

    def period(self, model: Model) -> Array | None:
        """The time between waves, one a draw; None where the family says nothing about it."""
        if model.entry.pipelined is not None:
            return model.period(self.pattern)
        if not model.entry.independent:
            return None
        (few, early), (many, late) = self._lengths
        return (model.cost(late) - model.cost(early)) / (many - few)


def repeated(pattern: Schedule, waves: int) -> Schedule:
    """A pattern so many times: a rank begins the next wave when it is done with its part of the last."""
    work = pattern.work
    steps = pattern.last_step + 1
    check_rows(waves * len(pattern.src))

    def again(column: np.ndarray, apart: int = 0) -> np.ndarray:
        return (column + apart * np.arange(waves)[:, None]).ravel()

    return replace(
        pattern,
        step=again(pattern.step, steps),
        **{name: again(getattr(pattern, name)) for name in ("src", "dst", "bytes")},
        ends=pattern.ends and Ends(*(again(column, steps) for column in pattern.ends.columns)),
        work=Work(again(work.step, steps), *map(again, work.columns[1:])),
        holds=None,
    )
