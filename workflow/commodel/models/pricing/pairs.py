"""Which values hold between two ranks: by the types of their nodes, and whether they share one.

The value of a pair is called `L.fat.thin`, within a node `L.fat.same`; a plain `L` holds wherever nothing else is said.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from commodel.errors import UserError
from commodel.keys import SAME, Pair, key
from commodel.models import Array
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import MEMORY, Schedule


class Pairs:
    """The types of the nodes of every message of a schedule: the pairs that occur, and `of` every row its number."""

    def __init__(self, schedule: Schedule, types: Mapping[str, int] | None) -> None:
        self.types = list(types or ("node",))
        rank_type = rank_types(schedule.node, types)
        self.sender, self.receiver = rank_type[schedule.src], rank_type[schedule.dst]
        self.within = schedule.channel == MEMORY
        count = len(self.types)
        second = np.where(self.within, count, self.receiver)
        used, self.of = np.unique(self.sender * (count + 1) + second, return_inverse=True)
        seconds = [*self.types, SAME]
        self.pairs = [Pair(self.types[code // (count + 1)], seconds[code % (count + 1)]) for code in used]

    def of_pair(self, values: Values, name: str) -> Array:
        """A pair's number for every row: (draws, rows)."""
        return _spread(values, name, self.pairs, self.of)

    def of_sender(self, values: Values, name: str) -> Array:
        return _spread(values, name, self.types, self.sender)

    def of_receiver(self, values: Values, name: str) -> Array:
        return _spread(values, name, self.types, self.receiver)


def rank_types(node: np.ndarray, types: Mapping[str, int] | None) -> np.ndarray:
    """The number of the type of each rank's node; of each type there are so many nodes."""
    bounds = np.cumsum(list(types.values())) if types else np.array([np.iinfo(int).max])
    rank_type = np.searchsorted(bounds, node, side="right")
    if rank_type.size and rank_type.max() >= len(bounds):
        raise UserError(f"the parameters know {bounds[-1]} nodes, this placement has more")
    return rank_type


def of_channel(schedule: Schedule, values: Values, name: str) -> Array:
    """A number for every row by its channel: `L.within` a node or `L.between` nodes."""
    channels, of = np.unique(schedule.channel, return_inverse=True)
    return _spread(values, name, ["within" if channel == MEMORY else "between" for channel in channels], of)


def _spread(values: Values, name: str, places: Sequence[str | Pair], of: np.ndarray) -> Array:
    if not places:
        return np.zeros((*values.lead, len(of)))
    columns = [values[holding(values.numbers.__contains__, name, place)] for place in places]
    return np.concatenate([np.broadcast_to(column, (*values.lead, 1)) for column in columns], axis=-1)[..., of]


def holding(known: Callable[[str], bool], name: str, place: str | Pair) -> str:
    """Under which name what is `known` holds for a type, a channel or a pair, which may be named either way round."""
    names = [key(name, place), name]
    if isinstance(place, Pair) and not place.within:
        names.insert(1, key(name, place.two, place.one))
    if not any(map(known, names)):
        raise UserError(f"the parameters have no {name} for {place}")
    return next(filter(known, names))
