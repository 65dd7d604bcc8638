"""How far off prices are where nobody has looked: bands for ln(measured/price) from groups that were left out.

A group is what was measured of one job, so a new job is as one more of them. The band reaches from one quantile of all
groups to the other, each counting alike, and is wider at both ends by what it takes to hold 95 % of them when each is
left out in turn: of few groups that is how far the outermost lie outside of all others. Where people tell settings
apart, the same is done with these. By what it takes with sizes, ranks, nodes or operations, when all of one is left
out, it is wider for one that was never measured; beyond the smallest and the largest, by as much as 95 % of those
beyond any cut are off, for each doubling. Sizes beyond them have a band of their own, of the nearest, and its growth.
Operations with fewer than FEWEST_GROUPS groups share the band of their kind, or of all.

A conformal quantile would count one more group as infinitely far off. That is not done: groups have several points,
of which it then holds 98 to 99 of 100, and not 95.
"""

from __future__ import annotations

import numpy as np

from commodel.models import Array
from commodel.parameters import ENDS, Errors
from commodel.price.residuals import BYTES, FEWEST_GROUPS, WITHOUT, Residuals, classes, numbered
from commodel.price.sizes import apart, half_size, of_empty

SHARE = 0.95
FOLDS = 20  # parts that groups are left out in, where there are more
DOUBLE = float(np.log(2))
LAST_CUTS = 4  # cuts before an end, each of which tells what may come behind it
TRIFLE = 1e-9  # of a logarithm: rounding


def errors(residuals: Residuals) -> dict[str, Errors]:
    """The bands of all classes that have groups enough."""
    bands = {}
    for name, part in classes(residuals, np.unique(residuals.operation).tolist()):
        if name not in bands and (band := band_of(part)) is not None:
            bands[name] = band
    return bands


def band_of(part: Residuals) -> Errors | None:
    """Of one class; None where there is nothing to leave out."""
    groups = numbered(part.group)
    count = int(groups.max(initial=-1)) + 1
    if count < 2:
        return None
    jobs = part.job is not None and len(np.unique(part.job)) > 1  # the next job is none of these
    other = _outside(part.logs, part.logs, numbered(part.job), groups) if jobs else 0.0
    low, high = _held(part.logs, groups, other)
    wider, growth = {}, {}
    for name in part.axes:
        wider[name], growth[name] = _left_out(part, name, groups, (high - low) / 2)
    operations, half = numbered(part.operation), half_size(part)
    differ = operations.max() > 0
    wider["operation"] = (
        _outside(part.logs, part.of_axis("operation"), operations, groups) if differ else (high - low) / 2
    )
    return Errors(
        float(low),
        float(high),
        count,
        len(np.unique(part.allocation)),
        tuple(np.unique(part.operation).tolist()),
        {name: tuple(float(value) for value in np.unique(part.axes[name])) for name in part.axes},
        {name: float(value) for name, value in wider.items()},
        {name: float(value) for name, value in growth.items()},
        _beyond(part, groups, other, (low, high), half),
        half,
        () if part.reach is None else tuple(np.unique(part.reach[part.reach != ""]).tolist()),
    )


def _held(logs: Array, groups: np.ndarray, least: float) -> tuple[float, float]:
    """The band that holds 95 % of groups that are left out, wider at both ends at least by so much."""
    low, high = _ends(logs, groups)
    more = max(_outside(logs, logs, groups, groups), least)
    return low - more, high + more


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


def _outside(
    logs: Array, left: Array, labels: np.ndarray, groups: np.ndarray, scored: np.ndarray | None = None
) -> float:
    """What makes the band of all others hold 95 % of what bears a label that is left out; `scored`: of which points."""
    away, fold = np.zeros(len(logs)), labels % FOLDS
    for number in range(fold.max() + 1):
        left_out = fold == number
        low, high = _ends(logs[~left_out], groups[~left_out])
        away[left_out] = _away(left[left_out], low, high)
    return _most(away if scored is None else away[scored], labels if scored is None else labels[scored])


def wider_for(logs: Array, labels: np.ndarray, low: float, high: float) -> float:
    """What a band lacks at both ends to hold 95 % of points whose labels count alike."""
    return _most(_away(logs, low, high), labels)


def _most(values: Array, labels: np.ndarray) -> float:
    """What 95 % of the values are not above, where labels count alike."""
    return _upper(values, _alike(numbered(labels)), SHARE)


def _away(logs: Array, low: float, high: float) -> Array:
    return np.maximum(np.maximum(low - logs, logs - high), 0.0)


def _left_out(part: Residuals, name: str, groups: np.ndarray, half: float) -> tuple[float, float]:
    """What a value that was not measured adds to the band, and what each doubling beyond the last adds. Points that
    stand for more than their value are not looked at: those of an operation that has no other, and those within a node,
    between nodes or of a level of the network that have no other. Where only one value was measured nothing is known of
    others: they add half the band, and as much again for each doubling."""
    tells, kinds = part.axes[name] > WITHOUT[name], _kinds(part)
    logs, left, groups, values = part.logs[tells], part.of_axis(name)[tells], groups[tells], part.axes[name][tells]
    kinds, power = kinds[tells], np.log2(values)
    spread = [kind for kind in np.unique(kinds) if np.ptp(values[kinds == kind]) > 0]
    if not spread:
        return half, min(half, DOUBLE)
    (above, cuts), (below, others) = (_grown(sign * power, logs, left, groups, kinds) for sign in (1, -1))
    growth = _growth(np.concatenate([above, below]), np.concatenate([cuts, -others]), half)
    scored, between = np.isin(kinds, spread), (values > values.min()) & (values < values.max())
    if name == BYTES and (scored & between).any():  # those at the ends have bands of their own
        scored &= between
    return _outside(logs, left, numbered(values), groups, scored), growth


def _beyond(
    part: Residuals, groups: np.ndarray, other: float, whole: tuple[float, float], half: float
) -> dict[str, tuple[float, float, float]]:
    """Of sizes below the smallest and above the largest: the band of those nearest to them, and what each doubling adds
    to it, or what counts as one. Prices of long messages often are nearer than those of short ones, or the other way
    round. `whole`: the band of all."""
    tells = part.axes[BYTES] > WITHOUT[BYTES]
    logs, left, groups, kinds = part.logs[tells], part.of_axis(BYTES)[tells], groups[tells], _kinds(part)[tells]
    if len(np.unique(groups)) < 2:
        return {}
    sizes, ends = part.axes[BYTES][tells], {}
    empty = of_empty(sizes, half)
    for name, sign in ENDS.items():
        power = sign * np.log2(sizes)
        near = _near(power, groups)
        low, high = whole if tells.all() and near.all() else _held(logs[near], numbered(groups[near]), other)
        growth = _worst(*_grown(power, logs, left, groups, kinds, empty), (high - low) / 2)
        ends[name] = (float(low), float(high), float(growth))
    return ends


def _near(power: Array, groups: np.ndarray) -> np.ndarray:
    """Which points are of the largest values, as many of these as FEWEST_GROUPS groups have."""
    order = np.argsort(-power, kind="stable")
    first = np.sort(np.unique(groups[order], return_index=True)[1])  # where each group begins
    return power >= power[order[first[:FEWEST_GROUPS][-1]]]


def _grown(
    power: Array, logs: Array, left: Array, groups: np.ndarray, kinds: np.ndarray, empty: Array | None = None
) -> tuple[Array, Array]:
    """What points above any cut are off for each doubling, where less than one counts as one, and of each the number of
    its cut and value: all of them by the band of all below, or, given which part of each time is an empty message's,
    those just above it by the band of those just below."""
    known, place = np.unique(power, return_inverse=True)
    rates, labels = [np.zeros(0)], [np.zeros(0, dtype=int)]
    for number, cut in enumerate(known[:-1]):
        below, above = np.flatnonzero(place <= number), place > number
        if empty is not None:
            above = place == number + 1
            below = below[_near(power[below], groups[below])]
        elif np.count_nonzero(above) > len(below):
            continue  # too little is left to tell what is usual
        low, high = _ends(logs[below], groups[below])
        above &= np.bincount(kinds[place <= number], minlength=kinds.max() + 1)[kinds] > 0
        rates.append(_away(left[above], low, high) / _distance(power, cut, empty)[above])
        labels.append(number * len(known) + place[above])
    return np.concatenate(rates), np.concatenate(labels)


def _distance(power: Array, cut: float, empty: Array | None) -> Array:
    beyond = power - cut
    return np.maximum(beyond, 1) if empty is None else apart(beyond, empty, empty[power == cut][0])


def _worst(rates: Array, labels: np.ndarray, unknown: float) -> float:
    """What holds 95 % beyond all cuts, and beyond each of the LAST_CUTS."""
    last = [rates[labels == label] for label in np.unique(labels)[-LAST_CUTS:]]
    cuts = [_growth(part, np.zeros(len(part), dtype=int), unknown) for part in last]
    return max([_growth(rates, labels, unknown), *cuts])


def _growth(rates: Array, labels: Array, unknown: float) -> float:
    """What holds 95 % of them. A time and its price both lie between one that does not grow and one that doubles: no
    doubling can add more than DOUBLE."""
    return min(_most(rates, labels) if len(rates) else unknown, DOUBLE)


def _kinds(part: Residuals) -> np.ndarray:
    """Of which operation points are, and on which side."""
    sides = numbered(part.sides)
    return (sides.max(initial=0) + 1) * numbered(part.operation) + sides
