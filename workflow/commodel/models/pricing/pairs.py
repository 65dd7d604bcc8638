"""Which values hold between two ranks: by the types of their nodes, whether they share one, and how far these are from
each other.

The value of a pair is called `L.fat.thin`, within a node `L.fat.same`, of a distance class `L.beyond`; a plain `L`
holds wherever nothing else is said.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.keys import SAME, Pair, key
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import MEMORY, Schedule


class Pairs:
    """The types of the nodes of every message of a schedule: the pairs that occur, and `of` every row its number; by
    the distance classes of some values, too."""

    def __init__(
        self, schedule: Schedule, types: Mapping[str, int] | None = None, values: Values | None = None
    ) -> None:
        self.types = list(types or ("node",))
        rank_type = rank_types(schedule.node, types)
        self.sender, self.receiver = rank_type[schedule.src], rank_type[schedule.dst]
        self.within = schedule.channel == MEMORY
        count = len(self.types)
        second = np.where(self.within, count, self.receiver)
        names, apart = classes(schedule, values) if values else ([""], 0)
        codes = np.ravel_multi_index(np.broadcast_arrays(self.sender, second, apart), (count, count + 1, len(names)))
        used, self.of = np.unique(codes, return_inverse=True)
        seconds = [*self.types, SAME]
        self.pairs = [
            Pair(self.types[one], seconds[two], names[far])
            for one, two, far in zip(*np.unravel_index(used, (count, count + 1, len(names))), strict=True)
        ]

    def of_pair(self, values: Values, name: str) -> Array:
        """A pair's number for every row: (draws, rows)."""
        return _spread(values, name, self.pairs, self.of)

    def of_sender(self, values: Values, name: str) -> Array:
        return _spread(values, name, self.types, self.sender)

    def of_receiver(self, values: Values, name: str) -> Array:
        return _spread(values, name, self.types, self.receiver)


def classes(schedule: Schedule, values: Values) -> tuple[list[str], np.ndarray]:
    """The distance classes that have values of their own, after one for all others, and which of them each message is
    of."""
    names, levels = ["", *values.classes], values.levels
    number = np.array([names.index(name) if name in names else 0 for name in levels.names])
    return names, number[levels.distance(schedule.node[schedule.src], schedule.node[schedule.dst])]


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
    columns = [value_of(values, name, place) for place in places]
    return np.concatenate([np.broadcast_to(column, (*values.lead, 1)) for column in columns], axis=-1)[..., of]


def placed(values: Values, place: str | Pair) -> Values:
    """What holds as far from each other as a pair is."""
    return values.of_class(place.apart) if isinstance(place, Pair) else values


def value_of(values: Values, name: str, place: str | Pair) -> Array:
    return values[holding(values.numbers.__contains__, name, place)]


def holding(known: Callable[[str], bool], name: str, place: str | Pair) -> str:
    """Under which name what is `known` holds for a type, a channel or a pair, which may be named either way round."""
    names = [key(name, place), name]
    if isinstance(place, Pair) and not place.within:
        names.insert(1, key(name, place.two, place.one))
    if not any(map(known, names)):
        raise UserError(f"the parameters have no {name} for {place}")
    return next(filter(known, names))
