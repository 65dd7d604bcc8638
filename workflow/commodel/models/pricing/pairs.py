"""Which values hold between two ranks: by the types of their nodes, and whether they share one.

The value of a pair is called `L.fat.thin`, within a node `L.fat.same`; a plain `L` holds wherever nothing else is said.
"""

from collections.abc import Mapping

import numpy as np

from commodel.errors import UserError
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule

SAME = "same"


class Pairs:
    """The pair of types of every message of a schedule: `labels`, and `of` every row the number of its label."""

    def __init__(self, schedule: Schedule, types: Mapping[str, int] | None):
        self.types = list(types or ("node",))
        bounds = np.cumsum(list(types.values())) if types else np.array([np.iinfo(int).max])
        self.rank_type = np.searchsorted(bounds, schedule.node, side="right")
        if self.rank_type.size and self.rank_type.max() >= len(self.types):
            raise UserError(f"the parameters know {bounds[-1]} nodes, this placement has more")
        source, target = self.rank_type[schedule.src], self.rank_type[schedule.dst]
        same = schedule.node[schedule.src] == schedule.node[schedule.dst]
        count = len(self.types)
        codes = np.where(same, count * count + source, source * count + target)
        used, self.of = np.unique(codes, return_inverse=True)
        self.labels = [self._label(int(code)) for code in used]
        self.same = same

    def _label(self, code: int) -> str:
        count = len(self.types)
        if code >= count * count:
            return f"{self.types[code - count * count]}.{SAME}"
        return f"{self.types[code // count]}.{self.types[code % count]}"

    def numbers(self, values: Values, name: str) -> np.ndarray:
        """A pair's number for every row: (draws, rows)."""
        columns = [values[key(values, name, label)] for label in self.labels]
        return _spread(columns, self.of, values)

    def of_sender(self, values: Values, name: str, schedule: Schedule) -> np.ndarray:
        """The number of each row's sending node."""
        return self._of_ranks(values, name, schedule.src)

    def of_receiver(self, values: Values, name: str, schedule: Schedule) -> np.ndarray:
        return self._of_ranks(values, name, schedule.dst)

    def _of_ranks(self, values: Values, name: str, ranks: np.ndarray) -> np.ndarray:
        columns = [values[key(values, name, kind)] for kind in self.types]
        return _spread(columns, self.rank_type[ranks], values)


def channel_values(schedule: Schedule, values: Values, name: str) -> np.ndarray:
    """A number for every row by its channel: `L.within` a node or `L.between` nodes."""
    same = schedule.node[schedule.src] == schedule.node[schedule.dst]
    found = 0.0
    for channel, rows in (("within", same), ("between", ~same)):
        if rows.any():
            found = found + np.where(rows, values[key(values, name, channel)], 0.0)
    return found if len(same) else np.zeros((*values.lead, 0))


def _spread(columns: list[np.ndarray], of: np.ndarray, values: Values) -> np.ndarray:
    if not columns:
        return np.zeros((*values.lead, len(of)))
    return np.concatenate([np.broadcast_to(column, (*values.lead, 1)) for column in columns], axis=-1)[..., of]


def key(values: Values, name: str, label: str) -> str:
    """The key of a number that holds for a pair or a type."""
    found = next((each for each in candidates(name, label) if each in values), None)
    if found is None:
        raise UserError(f"the parameters have no {name} for {label}")
    return found


def function(values: Values, name: str, label: str) -> str:
    """The name of a function that holds for a pair."""
    found = next((each for each in candidates(name, label) if values.has(each)), None)
    if found is None:
        raise UserError(f"the parameters have no {name} for {label}")
    return found


def candidates(name: str, label: str) -> list[str]:
    """A pair may be named either way round."""
    one, _, two = label.partition(".")
    return [f"{name}.{label}", *([f"{name}.{two}.{one}"] if two and two != SAME else []), name]
