"""How far off a family's price of a message alone is, by what the probes' round trips took at every size. A pattern's
price is off by as much before any of its messages meet: its interval is put around what that makes of the price.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.parameters import ParameterSet
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule

SMALLEST_SIZE = 1  # bytes; an empty message takes as long
OFF = 1.5  # times: a price that is off by less is one that we can live with
FEW_ROUNDS = 64  # so many are all looked at


def misfits(times: float) -> bool:
    """Whether what takes so many times as long as it is priced is priced wrong."""
    return max(times, 1 / times) > OFF


def as_long(times: float) -> str:
    return f"{times:.1f} times as long as priced" if times > 1 else f"only {times:.2f} of their price"


def at_worst(times: float) -> str:
    return f"up to {as_long(times)}" if times > 1 else f"as little as {times:.2f} of their price"


def alone(parameters: ParameterSet, pattern: Schedule) -> Array:
    """For each size of a stack how many times as long as they are priced its messages took, each alone; 1 where no
    probe says."""
    known = parameters.settings.get("alone")
    if not known or not pattern.messages:
        return np.ones(pattern.sizes)
    took, priced = np.zeros(pattern.sizes), np.zeros(pattern.sizes)
    levels = Hierarchy.of(parameters.settings.get("levels", {}))
    for count, part in _parts(pattern):
        distance = levels.distance(part.node[part.src], part.node[part.dst])
        bytes = part.bytes.reshape(pattern.sizes, -1)
        for number, name in enumerate(levels.names):
            if name in known and (there := distance == number).any():
                sizes = np.maximum(bytes[:, there], SMALLEST_SIZE)
                took += count * _at(sizes, known[name], "took")
                priced += count * _at(sizes, known[name], "priced")
    return np.divide(took, priced, out=np.ones(pattern.sizes), where=priced > 0)


def _parts(pattern: Schedule) -> Iterator[tuple[int, Schedule]]:
    """What is written down, and of rounds the middle one for all where they are many."""
    for part in pattern.parts if isinstance(pattern, Long) else (pattern,):
        if isinstance(part, Rounds):
            numbers = range(part.count) if part.count <= FEW_ROUNDS else (part.count // 2,)
            yield from ((part.count // len(numbers), part.round(number, pattern.node)) for number in numbers)
        elif part.messages:
            yield 1, part


def _at(sizes: Array, known: Mapping[str, list[float]], key: str) -> Array:
    """The sum over messages at each size of a stack; between two sizes as on a line of logarithms."""
    known_sizes = np.log(np.maximum(known["bytes"], SMALLEST_SIZE))
    return np.exp(np.interp(np.log(sizes), known_sizes, np.log(known[key]))).sum(axis=-1)
