"""Functions of the size that a set has for each distance class, as `L.leaf` and `L.beyond`, asked for every message."""

from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.keys import key
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Classes:
    """Which messages of a schedule go how far."""

    apart: np.ndarray  # of each its class
    rows: dict[int, np.ndarray]  # of each class that there is
    levels: Hierarchy

    @classmethod
    def of(cls, schedule: Schedule, levels: Hierarchy) -> "Classes":
        apart = levels.distance(schedule.node[schedule.src], schedule.node[schedule.dst])
        every = {distance: np.flatnonzero(apart == distance) for distance in range(len(levels.names))}
        return cls(apart, {distance: rows for distance, rows in every.items() if len(rows)}, levels)

    def column(self, name: str, bytes: np.ndarray, values: Values) -> Array:
        """A function of the class of every message: (draws, rows), or (sizes, draws, rows). A plain one holds where a
        class has none of its own."""
        lead = np.broadcast_shapes((*values.lead, 1), (*bytes.shape[:-1], 1)) if bytes.ndim > 1 else (*values.lead, 1)
        column = np.zeros((*lead[:-1], len(self.apart)))
        for distance, rows in self.rows.items():
            function = key(name, self.levels.names[distance])
            if function not in values.functions:
                function = name
            if function not in values.functions:
                raise UserError(f"not probed: ranks in {self.levels.crossed(distance)}")
            column[..., rows] = values.up_to_last(function, bytes[..., rows])
        return column


def by_distance(schedule: Schedule, name: str, values: Values, levels: Hierarchy) -> Array:
    return Classes.of(schedule, levels).column(name, schedule.bytes, values)
