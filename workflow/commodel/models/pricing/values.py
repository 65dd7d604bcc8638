"""What a price sees of a parameter set: numbers and functions as stacks of draws, and how they are to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.keys import parse, without_class
from commodel.models.pricing.functions import TABLE, Samples, evaluate
from commodel.parameters import ParameterSet

MANY = 64  # sizes


@dataclass(frozen=True, eq=False)
class Values:
    """Every number has the shape (draws, 1), to be broadcast over rows or ranks. Row 0 is the estimate."""

    numbers: Mapping[str, Array]
    forms: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, parameters: ParameterSet, draws: int | None = 0) -> "Values":
        """The values of a set, then so many of its joint bootstrap draws, of None all: a row each."""
        count = min((len(column[:draws]) for column in parameters.draws.values()), default=0)
        numbers = {
            name: np.array([[value] for value in (estimate.value, *drawn[:count])])
            for name, estimate in parameters.values.items()
            for drawn in [parameters.draws.get(name, (estimate.value,) * count)]
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
        return self._table(function).at(np.asarray(x), level)

    def up_to_last(self, function: str, x: ArrayLike) -> Array:
        """The same, but a table stays at its last sample, as costs of a byte do, which do not grow for ever."""
        x = np.asarray(x)
        if x.size > MANY and (x == x[..., :1]).all():  # of messages of one size it is worked out once
            once = self.up_to_last(function, x[..., :1])
            return np.broadcast_to(once, (*once.shape[:-1], x.shape[-1]))
        known = self.forms.get(function) == TABLE
        return self.at(function, np.minimum(x, self._table(function).places[-1]) if known else x)

    def _table(self, function: str) -> Samples:
        if function not in self._samples:
            self._samples[function] = Samples(function, self.numbers)
        return self._samples[function]

    @property
    def classes(self) -> tuple[str, ...]:
        """The distance classes that have values of their own."""
        return tuple(self.settings.get("classes", ()))

    @cached_property
    def levels(self) -> Hierarchy:
        """Which nodes are near each other, as far as values tell the distance; no levels where none does."""
        return Hierarchy.of(self.settings["levels"]) if self.classes else Hierarchy()

    def of_class(self, name: str) -> "Values":
        """What holds between nodes of a distance class: its own values, and where it has none those of all."""
        if name not in self.classes:
            return self
        if name not in self._of_classes:
            own = {short: text for text in self.numbers if (short := without_class(text, name))}
            functions = {parse(short).function for short, text in own.items() if parse(text).part != name}
            rest = {text: rows for text, rows in self.numbers.items() if parse(text).function not in functions}
            numbers = rest | {short: self.numbers[text] for short, text in own.items()}
            forms = {short: form for text, form in self.forms.items() if (short := without_class(text, name))}
            self._of_classes[name] = replace(self, numbers=numbers, forms={**self.forms, **forms})
        return self._of_classes[name]

    @cached_property
    def _of_classes(self) -> "dict[str, Values]":
        return {}

    def some(self, start: int, stop: int) -> "Values":
        """Some of the draws only. What all of them share, as a default, stays."""
        part = {name: rows if len(rows) == 1 else rows[start:stop] for name, rows in self.numbers.items()}
        return replace(self, numbers=part)

    @cached_property
    def lead(self) -> tuple[int, ...]:
        """The shape of the draws."""
        return np.broadcast_shapes((1,), *(np.shape(draws)[:-1] for draws in self.numbers.values()))
