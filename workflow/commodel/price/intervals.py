"""The interval of a price, from the bands of what prices were off elsewhere, and in words what it rests on.

Messages within a node and between nodes go ways that have nothing to do with each other. Where all that was measured
went one of them, it says nothing of the other: then there is no interval by errors, only that of the parameters. So it
is beyond the farthest level of the network that was measured, such as a leaf switch; of nearer ones it says enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from commodel.hierarchy import Hierarchy, as_far, reached
from commodel.models import Array
from commodel.parameters import Errors
from commodel.patterns.layouts import place
from commodel.price.bands import DOUBLE, FOLDS, band_of
from commodel.price.residuals import (
    ALL,
    AXES,
    BYTES,
    NODES,
    RANKS,
    SIDES,
    WITHOUT,
    Residuals,
    classes,
    kind_of,
    numbered,
    of_side,
    operation_class,
)
from commodel.price.sizes import apart, of_empty
from commodel.price.status import PriceStatus
from commodel.records import Point

if TYPE_CHECKING:
    from commodel.price.stack import Prices

JOBS = 5  # allocations, from which on what changes from one to the next is taken to be seen
PARAMETERS, AT_LEAST, BEYOND = "parameters only", "at least: ", "doublings beyond"
NOTHING = f"{PARAMETERS}: nothing measured "
TRIFLE = 0.05  # doublings


@dataclass(frozen=True, eq=False)
class Asked:
    """What prices are asked for: one for each size."""

    operation: str  # as `operation_class` has it
    ranks: float  # leaves of a tree
    sizes: Array
    nodes: float | None = None  # None: nobody knows
    reach: str = ""  # as of a Point

    @classmethod
    def of(
        cls, point: Point, sizes: Iterable[float] | None = None, waves: float | None = None, levels: object = None
    ) -> Asked:
        """Of a point, or of several that differ in their sizes; waves too may be others. `levels`: those of the set, in
        case the point was made without a platform."""
        named = operation_class(point.operation, point.waves if waves is None else waves)
        sizes = np.array([point.bytes] if sizes is None else list(sizes), dtype=float)
        reach = point.reach or (_reach(point, levels) if levels else "")
        return cls(named, float(point.leaves or point.ranks), sizes, float(point.nodes), reach)

    @property
    def side(self) -> str:
        """As of `Residuals`; nothing where nobody knows."""
        if self.reach:
            return reached(self.reach)
        return "" if self.nodes is None else SIDES[self.nodes > WITHOUT[NODES]]


def _reach(point: Point, levels: object) -> str:
    hierarchy, node = Hierarchy.of(levels), place(point.layout, point.ranks)
    return hierarchy.reach(node) if hierarchy.nodes and node.max() < hierarchy.nodes else ""


def between(bands: Mapping[str, Errors], asked: Asked) -> tuple[Array, Array, list[str]]:
    """ln(measured/price) at each size: from, to, and in words what that rests on. What was measured on the same side
    comes first, if it is enough."""
    names = asked.operation, kind_of(asked.operation), ALL
    side, both = (
        [name for name in group if name in bands] for group in ([of_side(n, asked.side) for n in names], names)
    )
    telling = side + [name for name in both if _tells(bands[name], asked)]
    if not telling:
        nothing = np.zeros(len(asked.sizes))
        return nothing, nothing, [f"{NOTHING}{asked.side}" if both else PARAMETERS] * len(nothing)
    band = bands[telling[0]]
    measured = asked.operation in band.operations and telling[0] in [*side, *both[:1]]
    widest = next((bands[name] for name in (of_side(ALL, asked.side), ALL) if name in telling), band)
    low, high, more, doublings = _farther(band, widest, asked)
    more = np.maximum(more, 0.0 if measured else band.wider["operation"])
    return low - more, high + more, [_words(telling[0], band, float(count)) for count in doublings]


def _tells(band: Errors, asked: Asked) -> bool:
    """Whether what was measured says anything of messages that go so far."""
    within, counts = asked.side == SIDES[False], band.seen.get(NODES)
    if asked.reach and band.reach:
        return asked.reach in band.reach if within else any(as_far(seen, asked.reach) for seen in band.reach)
    return counts is None or not asked.side or any((count > WITHOUT[NODES]) != within for count in counts)


def _farther(band: Errors, of_all: Errors, asked: Asked) -> tuple[Array, Array, Array, Array]:
    """The band of what was asked, what all that was not measured adds to it, and how many doublings away that is. Where
    sizes go on, another protocol may begin, which an operation that was exact so far knows nothing of: it grows as much
    as all operations do."""
    shape = len(asked.sizes)
    low, high, more, doublings = np.full(shape, band.low), np.full(shape, band.high), np.zeros(shape), np.zeros(shape)
    values = {RANKS: np.full(shape, asked.ranks), BYTES: asked.sizes, NODES: np.full(shape, asked.nodes or 1.0)}
    for name in (name for name in AXES if name in band.seen):
        seen, wanted = np.array(band.seen[name]), values[name]
        without = wanted <= WITHOUT[name]
        if name == BYTES and asked.operation in band.operations:
            without &= np.isin(wanted, seen)  # an operation that has sizes is asked for an empty message
        known, wanted = np.maximum(seen, 1.0), np.maximum(wanted, 1.0)
        known = known[seen > WITHOUT[name]] if (seen > WITHOUT[name]).any() else known
        away = {"larger": np.log2(wanted / known.max()), "smaller": np.log2(known.min() / wanted)}
        away = {end: np.where(without, 0.0, np.maximum(count, 0.0)) for end, count in away.items()}
        beyond = sum(away.values())
        added = np.where(without | np.isin(wanted, known), 0.0, band.wider[name])
        added = np.maximum(added, band.growth[name] * beyond)
        if name == BYTES:
            for end, (first, last, _) in band.beyond.items():
                out, nearest = away[end] > 0, known.max() if end == "larger" else known.min()
                low, high = np.where(out, first, low), np.where(out, last, high)
                grown = [_grown(errors, end, wanted, nearest, away[end]) for errors in (band, of_all)]
                added = np.where(out, np.maximum(*grown), added)
        more = np.maximum(more, added)
        doublings += 0.0 if name == NODES else beyond  # more ranks mostly are on more nodes
    return low, high, more, doublings


def _grown(errors: Errors, end: str, sizes: Array, nearest: float, doublings: Array) -> Array:
    """What sizes beyond the nearest add; no doubling more than a time can double."""
    growth = errors.beyond.get(end, (0.0, 0.0, 0.0))[2]
    distance = apart(doublings, *(of_empty(size, errors.half_size) for size in (sizes, np.float64(nearest))))
    return np.minimum(growth * distance, DOUBLE * np.maximum(doublings, 1))


def _words(named: str, band: Errors, doublings: float) -> str:
    jobs = f"{AT_LEAST if band.jobs < JOBS else ''}{band.jobs} allocation{'' if band.jobs == 1 else 's'}"
    text = f"{jobs}, {band.groups} groups of {named}"
    return f"{text}, {doublings:.1f} {BEYOND}" if doublings > TRIFLE else text


def by_errors(words: str) -> bool:
    """Whether an interval that rests on this is one of errors, and not of the parameters only."""
    return not words.startswith(PARAMETERS)


def in_a_sentence(words: str) -> str:
    """What an interval is, as the end of a sentence, from the words that say what it rests on."""
    if by_errors(words):
        return f"95 % by how far off prices were at other jobs ({words})"
    where = unseen(words) or "here"
    return f"what the parameters leave open; how far off the model is, nobody has measured {where}"


def unseen(words: str) -> str:
    """Where nothing was measured, though elsewhere something was; empty where that is not the reason, or no lack."""
    return words.removeprefix(NOTHING) if words.startswith(NOTHING) else ""


def rests_on_few(words: str) -> bool:
    """Whether an interval rests on so few allocations that it is no more than the least."""
    return words.startswith(AT_LEAST)


def banded(bands: Mapping[str, Errors], asked: Asked, prices: Prices) -> tuple[Array, Array, Sequence[str]]:
    """The interval of prices, and in words what it rests on. It is put around what a price becomes where each message
    takes what it takes alone. Beyond what was measured it is never narrower than that of the parameters; within, what
    they leave open is among the errors."""
    return put_on(prices, between(bands, asked))


def put_on(prices: Prices, logs: tuple[Array, Array, Sequence[str]]) -> tuple[Array, Array, Sequence[str]]:
    """`banded` with what `between` said; of a price that is blind to its size no error is known."""
    seconds, least, most, (low, high, words) = prices.seconds, prices.low, prices.high, logs
    if prices.status:
        words = [
            text if PriceStatus.votes(status) else PARAMETERS for text, status in zip(words, prices.status, strict=True)
        ]
    known = np.array([by_errors(text) for text in words], dtype=bool)
    outside = np.array([BEYOND in text for text in words], dtype=bool)
    low, high = seconds * prices.alone * np.exp(low), seconds * prices.alone * np.exp(high)
    low, high = np.where(outside, np.fmin(low, least), low), np.where(outside, np.fmax(high, most), high)
    words = [text if price == price else "" for text, price in zip(words, seconds, strict=True)]
    return np.where(known, low, least), np.where(known, high, most), words


def judged(residuals: Residuals) -> tuple[Array, Array, list[str]]:
    """For each point the band of the other jobs, never of its own: from, to, and what it rests on. Of many jobs of an
    operation FOLDS parts are left out in turn, and not one at a time."""
    low, high = np.zeros(len(residuals.logs)), np.full(len(residuals.logs), inf)
    words: dict[int, str] = {}
    for operation in np.unique(residuals.operation):
        of_operation = np.flatnonzero(residuals.operation == operation)
        fold = numbered(residuals.group[of_operation]) % FOLDS
        for number in range(fold.max() + 1):
            left = of_operation[fold == number]
            known = np.ones(len(low), dtype=bool)
            known[left] = False
            others = residuals.only(known)
            bands = {side: _Lazily(others, str(operation), side) for side in np.unique(residuals.sides[left]).tolist()}
            for places, asked in _asked(residuals, left):
                low[places], high[places], texts = between(bands[asked.side].bands(asked), asked)
                words.update(zip(places.tolist(), texts, strict=True))
    return low, high, [words.get(place, PARAMETERS) for place in range(len(low))]


def _asked(residuals: Residuals, places: np.ndarray) -> Iterator[tuple[np.ndarray, Asked]]:
    """Some points of one operation, those of the same number of ranks and nodes on one side together."""
    alike = [residuals.axes[name][places] for name in (RANKS, NODES) if name in residuals.axes]
    alike = np.stack([*alike, numbered(residuals.sides[places])], axis=1)
    for values in np.unique(alike, axis=0):
        places_alike = places[(alike == values).all(axis=1)]
        first, nodes = places_alike[0], residuals.axes.get(NODES)
        over = float(residuals.axes[RANKS][first]), residuals.axes[BYTES][places_alike]
        where = (
            None if nodes is None else float(nodes[first]),
            "" if residuals.reach is None else str(residuals.reach[first]),
        )
        yield places_alike, Asked(str(residuals.operation[first]), *over, *where)


class _Lazily:
    """The bands of an operation's classes, made when they are asked for: mostly the first is enough."""

    def __init__(self, residuals: Residuals, operation: str, side: str) -> None:
        self._classes = classes(residuals, [operation], [side]) if len(residuals.logs) else iter(())
        self._bands: dict[str, Errors] = {}
        self._all = {ALL, of_side(ALL, side)}

    def bands(self, asked: Asked) -> dict[str, Errors]:
        while not any(self._enough(band, asked) for band in self._bands.values()):
            if (entry := next(self._classes, None)) is None:
                break
            if (band := band_of(entry[1])) is not None:
                self._bands[entry[0]] = band
        return self._bands

    def _enough(self, band: Errors, asked: Asked) -> bool:
        sizes = band.seen[BYTES]
        within = (asked.sizes >= min(sizes)).all() and (asked.sizes <= max(sizes)).all()
        return _tells(band, asked) and (within or not self._all.isdisjoint(self._bands))
