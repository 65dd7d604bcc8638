"""Functions of the size that a set has for each distance class, as `L.leaf` and `L.beyond`, asked for every message."""

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.keys import key
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule


def by_distance(schedule: Schedule, name: str, values: Values, levels: Hierarchy) -> Array:
    """The function of the class of every message: (draws, rows), or (sizes, draws, rows). A plain one holds where a
    class has none of its own."""
    bytes, apart = schedule.bytes, levels.distance(schedule.node[schedule.src], schedule.node[schedule.dst])
    lead = np.broadcast_shapes((*values.lead, 1), (*bytes.shape[:-1], 1)) if bytes.ndim > 1 else (*values.lead, 1)
    column = np.zeros((*lead[:-1], len(apart)))
    for distance in np.unique(apart).tolist():
        function = key(name, levels.names[distance])
        if function not in values.functions:
            function = name
        if function not in values.functions:
            raise UserError(f"not probed: ranks in {levels.crossed(distance)}")
        rows = np.flatnonzero(apart == distance)
        column[..., rows] = values.up_to_last(function, bytes[..., rows])
    return column
