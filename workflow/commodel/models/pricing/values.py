"""What a price sees of a parameter set: numbers and functions as stacks of draws, and how they are to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from commodel.keys import parse
from commodel.models import Array
from commodel.models.pricing.functions import TABLE, Samples, evaluate
from commodel.parameters import ParameterSet


@dataclass(frozen=True, eq=False)
class Values:
    """Every number has the shape (draws, 1), to be broadcast over rows or ranks. Row 0 is the estimate."""

    numbers: Mapping[str, Array]
    forms: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, parameters: ParameterSet, draws: int | None = 0) -> "Values":
        """The values of a set, then so many of its joint bootstrap draws, of None all: a row each."""
        several = min((len(column[:draws]) for column in parameters.draws.values()), default=0)
        numbers = {
            name: np.array([[value] for value in (estimate.value, *drawn[:several])])
            for name, estimate in parameters.values.items()
            for drawn in [parameters.draws.get(name, (estimate.value,) * several)]
        }
        return cls(numbers, parameters.forms, parameters.settings)

    def __getitem__(self, name: str) -> Array:
        return self.numbers[name]

    def __contains__(self, name: str) -> bool:
        return name in self.numbers

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of all functions, with the node types that they hold for."""
        return frozenset(parse(name).function for name in self.numbers)

    @cached_property
    def _samples(self) -> dict[str, Samples]:
        return {}

    @cached_property
    def worked_out(self) -> dict:
        """What a family keeps of them, since schedule after schedule asks for it again."""
        return {}

    def at(self, function: str, x: ArrayLike, level: ArrayLike | None = None) -> Array:
        """A function's value; `level` for one that also depends on how many do the same at once. Where that is not
        known, each takes its share: in proportion."""
        form = self.forms.get(function, "constant")
        if form != TABLE:
            return evaluate(form, function, self.numbers, x) * (1 if level is None else level)
        if function not in self._samples:
            self._samples[function] = Samples(function, self.numbers)
        return self._samples[function].at(np.asarray(x), level)

    def some(self, start: int, stop: int) -> "Values":
        """Some of the draws only. What all of them share, as a default, stays."""
        part = {name: rows if len(rows) == 1 else rows[start:stop] for name, rows in self.numbers.items()}
        return replace(self, numbers=part)

    @cached_property
    def lead(self) -> tuple[int, ...]:
        """The shape of the draws."""
        return np.broadcast_shapes((1,), *(np.shape(draws)[:-1] for draws in self.numbers.values()))
