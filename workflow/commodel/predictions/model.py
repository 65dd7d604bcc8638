"""A model with values for all of its parameters: the one place where predictions of a pattern are
evaluated."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.values import Values
from commodel.models.families import Family, complete_values, find_family
from commodel.models.fitting.observed import Fitted
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.sockets import find_memory_seconds


@dataclass(frozen=True, eq=False)
class Model:
    """A model family with complete, checked parameter values. Results that depend on the values
    only are cached."""

    family: Family
    values: Values

    @classmethod
    def of(cls, family: Family, values: Values) -> "Model":
        return cls(family, complete_values(family, values))

    @classmethod
    def of_set(cls, parameters: ParameterSet, draws: int | None = 0) -> "Model":
        """Return the model with the values of a set and at most so many of its draws; None: all."""
        return cls.of(find_family(parameters.model), Values.of(parameters, draws))

    @classmethod
    def of_fit(cls, family: Family, fitted: Fitted) -> "Model":
        """Return the model with the estimates of a fit, without draws."""
        first = {name: np.array([[draws[0]]]) for name, draws in fitted.values.items()}
        return cls.of(family, Values(first, fitted.forms, fitted.settings))

    @property
    def rows(self) -> int:
        """The estimate and its draws, as rows."""
        return self.values.draw_shape[0]

    @property
    def estimate(self) -> "Model":
        return self.select_rows(0, 1)

    def cost(self, pattern: Schedule) -> Array:
        """Return the predicted times (rows,), or (sizes, rows) of a stack; without the sizes if the
        model ignores them. A model that adds up steps for all ranks at once predicts the same time
        for each rank. No prediction is faster than the memory of a node, if its bandwidth is known.
        Raise UserError if computation overlaps messages, and its time is unknown or
        the model neglects overlap."""
        if pattern.overlapped_seconds is not None:
            if np.isnan(pattern.overlapped_seconds).any():
                raise UserError(
                    "the time of the overlapped computation is unknown: the partition has no column 'speed'"
                )
            if not self.family.overlaps_work:
                raise UserError(f"{self.family.title} does not model overlap with computation")
        return self._limit(pattern, pattern.cost(self.family.predict(pattern, self.values)))

    def period(self, pattern: Schedule) -> Array:
        """Return the time between two waves, of the shape of `cost`. The model must have an
        equation for it."""
        assert self.family.pipelined is not None
        return self._limit(pattern, self.family.pipelined(pattern, self.values))

    def _limit(self, pattern: Schedule, seconds: Array) -> Array:
        """Return the time of a pattern, at least that in which the memory of a node copies its
        messages."""
        least = find_memory_seconds(pattern, self.values.settings)
        if not least.any():
            return seconds
        return np.maximum(seconds, least[:, None] if seconds.ndim > 1 else least.max())

    def select_rows(self, start: int, stop: int) -> "Model":
        """Return the model with the rows from `start` to `stop`. Calls with equal arguments return
        the same object."""
        if (start, stop) == (0, self.rows):
            return self
        if (start, stop) not in self._blocks:
            self._blocks[start, stop] = Model(self.family, self.values.select_draws(start, stop))
        return self._blocks[start, stop]

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], "Model"]:
        return {}
