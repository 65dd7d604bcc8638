"""What a price sees of a parameter set: numbers and functions as stacks of draws, and how they are to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from commodel.models.pricing.functions import TABLE, Samples, evaluate
from commodel.records import ParameterSet


@dataclass(frozen=True, eq=False)
class Values:
    """Every number has the shape (draws, 1), to be broadcast over rows or ranks."""

    numbers: Mapping[str, np.ndarray]
    forms: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    _samples: dict[str, Samples] = field(default_factory=dict)

    @classmethod
    def exact(cls, parameters: ParameterSet) -> "Values":
        """One draw: the values themselves."""
        numbers = {name: np.array([[estimate.value]]) for name, estimate in parameters.values.items()}
        return cls(numbers, parameters.forms, parameters.settings)

    @classmethod
    def drawn(cls, parameters: ParameterSet) -> "Values":
        """All joint bootstrap draws of the set; without draws, the values themselves."""
        if not parameters.draws:
            return cls.exact(parameters)
        count = len(next(iter(parameters.draws.values())))
        numbers = {
            name: np.array(parameters.draws.get(name, (estimate.value,) * count), dtype=float)[:, None]
            for name, estimate in parameters.values.items()
        }
        return cls(numbers, parameters.forms, parameters.settings)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.numbers[name]

    def __contains__(self, name: str) -> bool:
        return name in self.numbers

    def has(self, function: str) -> bool:
        """Whether there is a function of that name."""
        return any(key.rpartition(".")[0] == function for key in self.numbers)

    def at(self, function: str, x, level=None) -> np.ndarray:
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
        return replace(self, numbers=part, _samples={})

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of the draws."""
        return np.broadcast_shapes((1,), *(np.shape(draws)[:-1] for draws in self.numbers.values()))
