"""A stream of waves, each the same pattern: how long after one wave the next is done.

A family may have an equation for that (`pipelined`). Where ranks go on independently (`independent`), the waves of a
schedule follow one another as its steps do, and the time between them is what further waves add. A family that adds up
steps for all ranks at once says nothing about a stream.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import inf

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.families import Family
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import Ends, Schedule, check_rows
from commodel.patterns.work import Work
from commodel.price.model import Model

FEW_WAVES, MANY_WAVES = 8, 16  # waves: what the second half of a stream takes is not about its start
WAVES_OF_LONG = 2, 4  # of long schedules
MESSAGES, STEPS = 100_000, 500

Cost = Callable[[Model, Schedule], Array]  # of a pattern, or what an equation says of it
Ask = Callable[[Cost, Schedule], Array]  # has a model answer


class Stream:
    """Waves of one pattern, at one size or several; the schedules of each number of waves are made once, for all
    families."""

    def __init__(self, pattern: Schedule) -> None:
        self.pattern = pattern
        self._repeated: dict[int, Schedule] = {}

    def period(self, entry: Family, ask: Ask, waves: float = inf) -> Array:
        """The mean time between the ends of two waves: of a stream of so many, as it is measured, or of one without
        end. A price goes through few waves; from there on each is taken to add what the last ones did."""
        if entry.pipelined is not None:
            return ask(Model.period, self.pattern)
        if not entry.independent:
            raise UserError(f"family {entry.name} adds up steps for all ranks at once: it says nothing about waves")
        few, many = self._lengths
        first = ask(Model.cost, self.pattern)
        if waves <= many:
            return (self._cost(ask, int(waves)) - first) / (waves - 1)
        late = self._cost(ask, many)
        rate = (late - self._cost(ask, few)) / (many - few)
        return rate if waves == inf else (late - first + (waves - many) * rate) / (waves - 1)

    def _cost(self, ask: Ask, waves: int) -> Array:
        if waves not in self._repeated:
            self._repeated[waves] = repeated(self.pattern, waves)
        return ask(Model.cost, self._repeated[waves])

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        return (
            WAVES_OF_LONG
            if self.pattern.messages > MESSAGES or self.pattern.last_step >= STEPS
            else (FEW_WAVES, MANY_WAVES)
        )


def says(entry: Family) -> bool:
    """Whether a family says anything about a stream."""
    return entry.pipelined is not None or entry.independent


def repeated(pattern: Schedule, waves: int) -> Schedule:
    """A pattern so many times: a rank begins the next wave when it is done with its part of the last. Of a stack of
    sizes, each so many times."""
    if isinstance(pattern, Long):
        stream = Long(pattern.ranks, pattern.parts * waves, pattern.root, lambda: repeated(pattern.whole, waves))
        return stream.placed(pattern.node)
    work = pattern.work
    steps = pattern.last_step + 1
    check_rows(waves * pattern.messages)

    def again(column: np.ndarray, apart: int = 0) -> np.ndarray:
        return (column + apart * np.arange(waves)[:, None]).ravel() if apart else np.tile(column, waves)

    return replace(
        pattern,
        step=again(pattern.step, steps),
        **{name: again(getattr(pattern, name)) for name in ("src", "dst", "bytes")},
        ends=pattern.ends and Ends(*(again(column, steps) for column in pattern.ends.columns)),
        work=Work(again(work.step, steps), *map(again, work.columns[1:])),
        holds=None,
    )
