"""How far off prices are where nobody has looked: bands for ln(measured/price) from groups that were left out.

A group is what was measured of one job, so a new job is as one more of them. The band reaches from one quantile of all
groups to the other, each counting alike, and is wider at both ends by what it takes to hold 95 % of them when each is
left out in turn: of few groups that is how far the outermost lie outside of all others. Where people tell settings
apart, the same is done with these. By what it takes with sizes, ranks or operations, when all of one is left out, it is
wider for one that was never measured; beyond the smallest and the largest, by as much as those beyond any cut are off,
for each doubling. Operations with fewer than FEWEST groups share the band of their kind, or of all.

A conformal quantile would count one more group as infinitely far off. That is not done: groups have several points,
of which it then holds 98 to 99 of 100, and not 95.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from commodel.models import Array
from commodel.parameters import Errors
from commodel.patterns.operations import base

SHARE = 0.95
FEWEST = 9  # groups of one operation
JOBS = 5  # allocations, from which on what changes from one to the next is taken to be seen
FOLDS = 20  # parts that groups are left out in, where there are more
PARAMETERS, LEAST = "parameters only", "at least: "
ALL, STREAMS = "all", "streams"
KINDS = {
    "one to all": ("bcast", "scatter"),
    "all to one": ("reduce", "gather"),
    "all to all": ("allreduce", "allgather", "alltoall", "reduce-scatter", "barrier"),
}
KIND = {name: kind for kind, names in KINDS.items() for name in names}
STREAM = "stream of "
AXES = ("ranks", "bytes")
DOUBLE = float(np.log(2))
TRIFLE = 1e-9  # of a logarithm: rounding


@dataclass(frozen=True, eq=False)
class Residuals:
    """ln(measured/price) of one family at points that its fit has not seen: what each is of, the job that it belongs to
    and the allocation that it was measured in. `left`: the same from fits that have seen nothing of that size, of that
    number of ranks or of that operation, where there are such."""

    logs: Array
    operation: np.ndarray
    group: np.ndarray
    allocation: np.ndarray
    axes: Mapping[str, Array]  # AXES
    left: Mapping[str, Array] = field(default_factory=dict)
    job: np.ndarray | None = None  # the setting, where people tell jobs apart; None: nobody does

    def only(self, flags: np.ndarray) -> Residuals:
        named = {name: getattr(self, name)[flags] for name in ("logs", "operation", "group", "allocation")}
        tables = {name: {key: row[flags] for key, row in getattr(self, name).items()} for name in ("axes", "left")}
        return replace(self, **named, **tables, job=None if self.job is None else self.job[flags])

    def of_axis(self, name: str) -> Array:
        return self.left.get(name, self.logs)


def operation_class(operation: str, waves: float = 1) -> str:
    return f"{STREAM if waves != 1 else ''}{base(operation)}"


def kind_of(operation: str) -> str:
    return STREAMS if operation.startswith(STREAM) else KIND.get(operation, operation)


def errors(residuals: Residuals) -> dict[str, Errors]:
    """The bands of all classes that have groups enough."""
    bands = {}
    for name, part in _classes(residuals, np.unique(residuals.operation).tolist()):
        if name not in bands and (band := _errors(part)) is not None:
            bands[name] = band
    return bands


def _classes(residuals: Residuals, operations: Sequence[str]) -> Iterator[tuple[str, Residuals]]:
    """Every class of these operations with enough groups, an operation's own first, then all of its kind, then all."""
    kinds = np.array([kind_of(name) for name in residuals.operation.tolist()])
    levels = [(name, residuals.operation == name) for name in operations]
    levels += [(kind, kinds == kind) for kind in dict.fromkeys(map(kind_of, operations))]
    for name, flags in levels:
        if len(np.unique(residuals.group[flags])) >= FEWEST:
            yield name, residuals.only(flags)
    yield ALL, residuals


def _errors(part: Residuals) -> Errors | None:
    """Of one class; None where there is nothing to leave out."""
    groups = _numbered(part.group)
    count = int(groups.max(initial=-1)) + 1
    if count < 2:
        return None
    low, high = _ends(part.logs, groups)
    more = _outside(part.logs, part.logs, groups, groups)
    if part.job is not None and len(np.unique(part.job)) > 1:  # the next job is none of these
        more = max(more, _outside(part.logs, part.logs, _numbered(part.job), groups))
    low, high = low - more, high + more
    wider, growth = {}, {}
    for name in AXES:
        wider[name], growth[name] = _left_out(part, name, groups, (high - low) / 2)
    operations = _numbered(part.operation)
    several = operations.max() > 0
    wider["operation"] = (
        _outside(part.logs, part.of_axis("operation"), operations, groups) if several else (high - low) / 2
    )
    return Errors(
        float(low),
        float(high),
        count,
        len(np.unique(part.allocation)),
        tuple(np.unique(part.operation).tolist()),
        {name: tuple(float(value) for value in np.unique(part.axes[name])) for name in AXES},
        {name: float(value) for name, value in wider.items()},
        {name: float(value) for name, value in growth.items()},
    )


def _numbered(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def _ends(logs: Array, groups: np.ndarray) -> tuple[float, float]:
    """The band of groups that count alike."""
    weight = _alike(groups)
    return -_upper(-logs, weight, (1 + SHARE) / 2), _upper(logs, weight, (1 + SHARE) / 2)


def _alike(labels: np.ndarray) -> Array:
    """What each point weighs where all labels weigh the same; all together weigh 1."""
    counts = np.bincount(labels)
    return 1 / (np.count_nonzero(counts) * counts[labels])


def _upper(values: Array, weight: Array, share: float) -> float:
    """The smallest value that, with all below it, has this share of the weight; the largest where all have less."""
    order = np.argsort(values, kind="stable")
    place = int(np.searchsorted(np.cumsum(weight[order]), share - TRIFLE))
    return float(values[order[min(place, len(values) - 1)]])


def _outside(logs: Array, left: Array, labels: np.ndarray, groups: np.ndarray) -> float:
    """What makes the band of all others hold 95 % of what bears a label that is left out."""
    away, fold = np.zeros(len(logs)), labels % FOLDS
    for number in range(fold.max() + 1):
        own = fold == number
        low, high = _ends(logs[~own], groups[~own])
        away[own] = _away(left[own], low, high)
    return _upper(away, _alike(labels), SHARE)


def wider_for(logs: Array, labels: np.ndarray, low: float, high: float) -> float:
    """What a band lacks at both ends to hold 95 % of points whose labels count alike."""
    return _upper(_away(logs, low, high), _alike(_numbered(labels)), SHARE)


def _away(logs: Array, low: float, high: float) -> Array:
    return np.maximum(np.maximum(low - logs, logs - high), 0.0)


def _left_out(part: Residuals, name: str, groups: np.ndarray, half: float) -> tuple[float, float]:
    """What a value that was not measured adds to the band, and what each doubling beyond the last adds. Where only one
    was measured nothing is known of others: they add half the band, and as much again for each doubling. A time and its
    price both lie between one that does not grow and one that doubles: no doubling can add more than DOUBLE."""
    values, left = np.maximum(part.axes[name], 1.0), part.of_axis(name)
    known = np.unique(values)
    if len(known) < 2:
        return half, min(half, DOUBLE)
    growth, power = 0.0, np.log2(values)
    for sign in (1, -1):
        for cut in np.sort(sign * np.log2(known))[:-1]:
            beyond = sign * power > cut
            if np.count_nonzero(beyond) > np.count_nonzero(~beyond):
                continue  # too little is left to tell what is usual
            low, high = _ends(part.logs[~beyond], groups[~beyond])
            away = _away(left[beyond], low, high) / (sign * power[beyond] - cut)
            growth = max(growth, float(np.max(away)))
    return _outside(part.logs, left, _numbered(values), groups), min(growth, DOUBLE)


def between(bands: Mapping[str, Errors], operation: str, ranks: float, sizes: Array) -> tuple[Array, Array, list[str]]:
    """ln(measured/price) at each size: from, to, and in words what that rests on."""
    if not (named := next((name for name in (operation, kind_of(operation), ALL) if name in bands), "")):
        nothing = np.zeros(len(sizes))
        return nothing, nothing, [PARAMETERS] * len(sizes)
    band = bands[named]
    more = np.full(len(sizes), 0.0 if operation in band.operations else band.wider["operation"])
    doublings = np.zeros(len(sizes))
    for name, asked in (("ranks", np.full(len(sizes), float(ranks))), ("bytes", np.asarray(sizes, float))):
        known = np.maximum(band.seen[name], 1.0)
        asked = np.maximum(asked, 1.0)
        beyond = np.maximum(np.log2(asked / known.max()), 0) + np.maximum(np.log2(known.min() / asked), 0)
        unseen = np.where(np.isin(asked, known), 0.0, band.wider[name])
        more = np.maximum(more, np.maximum(unseen, band.growth[name] * beyond))
        doublings += beyond
    return band.low - more, band.high + more, [_words(named, band, float(count)) for count in doublings]


def _words(named: str, band: Errors, doublings: float) -> str:
    jobs = f"{LEAST if band.jobs < JOBS else ''}{band.jobs} allocation{'' if band.jobs == 1 else 's'}"
    text = f"{jobs}, {band.groups} groups of {named}"
    return f"{text}, {doublings:.1f} doublings beyond" if doublings > 0.05 else text


def told(words: str) -> str:
    """What an interval is, as the end of a sentence, from the words that say what it rests on."""
    if words == PARAMETERS:
        return "what the parameters leave open; how far off the model is, nobody has measured here"
    return f"95 % by how far off prices were at other jobs ({words})"


def banded(
    bands: Mapping[str, Errors], operation: str, ranks: float, sizes: Array, times: tuple[Array, Array, Array]
) -> tuple[Array, Array, Sequence[str]]:
    """The interval of prices, given as seconds with the ends of what the parameters alone leave open, and in words what
    it rests on. Beyond what was measured it is never narrower than that of the parameters; within, what they leave
    open is among the errors."""
    return put_on(times, between(bands, operation, ranks, sizes))


def put_on(
    times: tuple[Array, Array, Array], logs: tuple[Array, Array, Sequence[str]]
) -> tuple[Array, Array, Sequence[str]]:
    """`banded` with what `between` said."""
    (seconds, least, most), (low, high, words) = times, logs
    known = np.array([text != PARAMETERS for text in words], dtype=bool)
    outside = np.array(["beyond" in text for text in words], dtype=bool)
    low, high = seconds * np.exp(low), seconds * np.exp(high)
    low, high = np.where(outside, np.fmin(low, least), low), np.where(outside, np.fmax(high, most), high)
    words = [text if price == price else "" for text, price in zip(words, seconds, strict=True)]
    return np.where(known, low, least), np.where(known, high, most), words


def judged(residuals: Residuals) -> tuple[Array, Array, list[str]]:
    """For each point the band of the other jobs, never of its own: from, to, and what it rests on. Of many jobs of an
    operation FOLDS parts are left out in turn, and not one at a time."""
    low, high = np.zeros(len(residuals.logs)), np.full(len(residuals.logs), inf)
    words = [PARAMETERS] * len(low)
    for operation in np.unique(residuals.operation):
        own = np.flatnonzero(residuals.operation == operation)
        fold = _numbered(residuals.group[own]) % FOLDS
        for number in range(fold.max() + 1):
            left = own[fold == number]
            rest = np.ones(len(low), dtype=bool)
            rest[left] = False
            first = next(_classes(residuals.only(rest), [str(operation)]), None)
            band = _errors(first[1]) if first and len(first[1].logs) else None
            for place in left:
                size = residuals.axes["bytes"][place : place + 1]
                bands = {first[0]: band} if band else {}
                (low[place],), (high[place],), (words[place],) = between(
                    bands, str(operation), float(residuals.axes["ranks"][place]), size
                )
    return low, high, words
