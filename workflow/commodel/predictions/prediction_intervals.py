"""Prediction intervals from residuals of held-out groups: their construction, and the interval of each prediction.

A group holds the residuals of one workload. The interval reaches between two quantiles over all groups of equal weight.
It is widened at both ends until it covers 95 % of the groups, each left out in turn. If the points have several
settings, the same is done with these. For a size, number of ranks, number of nodes or operation that was not measured,
the interval is wider, by what it takes to cover 95 % of the points of a left-out value. Beyond the measured range it
grows with each doubling, by what covers 95 % of the points beyond any cut. Sizes beyond the range start from the band
of the nearest sizes. Operations with fewer than FEWEST_GROUPS groups use the band of their kind, or of all operations.

A conformal quantile would add one group that is infinitely far off. It is not used: groups have several points, so it
would cover 98 to 99 % instead of 95 %.

Messages within a node and between nodes take different paths. If only one of these was measured, the other has no
interval from residuals, only that of the parameters. The same holds beyond the farthest level of the network that was
measured. Nearer levels keep their interval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from commodel.hierarchy import Hierarchy, covers_reach, describe_reach
from commodel.models import Array
from commodel.parameters import SIZE_SIDES, Errors
from commodel.patterns.layouts import place
from commodel.predictions.residuals import (
    ABSENT_AT,
    ALL,
    AXES,
    BYTES,
    FEWEST_GROUPS,
    NODES,
    PLACEMENT_NAMES,
    RANKS,
    Residuals,
    compute_latency_share,
    estimate_half_size,
    kind_of,
    list_classes,
    measure_size_distance,
    name_placed_class,
    number_labels,
    operation_class,
)
from commodel.records import Point

if TYPE_CHECKING:
    from commodel.predictions.predictions import PredictedTimes


COVERAGE = 0.95
FOLDS = 20  # parts that groups are left out in, where there are more
LOG_2 = float(np.log(2))
LAST_CUTS = 4  # cuts before an end, each of which estimates the error beyond it
NO_INFORMATION = "no information"
MAX_INFORMATIVE_WIDTH = 100.0  # high over low of an interval; a wider one is shown as "no information"
NEGLIGIBLE_RESIDUAL = 1e-9  # of a logarithm: rounding


def fit_bands(residuals: Residuals) -> dict[str, Errors]:
    """Return the residual bands of all classes with enough groups."""
    bands = {}
    for name, part in list_classes(residuals, np.unique(residuals.operation).tolist()):
        if name not in bands and (band := fit_band(part)) is not None:
            bands[name] = band
    return bands


def fit_band(part: Residuals) -> Errors | None:
    """Return the residual band of one class; None if no group can be left out."""
    groups = number_labels(part.group)
    count = int(groups.max(initial=-1)) + 1
    if count < 2:
        return None
    settings = part.setting is not None and len(np.unique(part.setting)) > 1  # the next allocation has another setting
    other = _measure_excess(part.logs, part.logs, number_labels(part.setting), groups) if settings else 0.0
    low, high = _cover_groups(part.logs, groups, other)
    wider, growth = {}, {}
    for name in part.axes:
        wider[name], growth[name] = _widen_for_axis(part, name, groups, (high - low) / 2)
    operations, half = number_labels(part.operation), estimate_half_size(part)
    differ = operations.max() > 0
    wider["operation"] = (
        _measure_excess(part.logs, part.of_axis("operation"), operations, groups) if differ else (high - low) / 2
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
        _extrapolate_sizes(part, groups, other, (low, high), half),
        half,
        () if part.reach is None else tuple(np.unique(part.reach[part.reach != ""]).tolist()),
        _find_weighted_quantile(part.logs, _weigh_labels(groups), 0.5),
    )


def _cover_groups(logs: Array, groups: np.ndarray, least: float) -> tuple[float, float]:
    """Return the band that covers 95 % of left-out groups, with a minimum widening at both ends."""
    low, high = _find_quantiles(logs, groups)
    more = max(_measure_excess(logs, logs, groups, groups), least)
    return low - more, high + more


def _find_quantiles(logs: Array, groups: np.ndarray) -> tuple[float, float]:
    """Return the band between two quantiles over groups of equal weight."""
    weight = _weigh_labels(groups)
    return -_find_weighted_quantile(-logs, weight, (1 + COVERAGE) / 2), _find_weighted_quantile(
        logs, weight, (1 + COVERAGE) / 2
    )


def _weigh_labels(labels: np.ndarray) -> Array:
    """Return the weight of each point such that all labels have equal weight; the sum is 1."""
    counts = np.bincount(labels)
    return 1 / (np.count_nonzero(counts) * counts[labels])


def _find_weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the smallest value that, with all smaller ones, has this share of the weight; else the largest value."""
    order = np.argsort(values, kind="stable")
    place = int(np.searchsorted(np.cumsum(weight[order]), share - NEGLIGIBLE_RESIDUAL))
    return float(values[order[min(place, len(values) - 1)]])


def _measure_excess(
    logs: Array, left: Array, labels: np.ndarray, groups: np.ndarray, scored: np.ndarray | None = None
) -> float:
    """Return the widening with which the band of all other points covers 95 % of the points of a left-out label.
    `scored` selects the points that count."""
    away, fold = np.zeros(len(logs)), labels % FOLDS
    for number in range(fold.max() + 1):
        left_out = fold == number
        low, high = _find_quantiles(logs[~left_out], groups[~left_out])
        away[left_out] = _measure_distance_outside(left[left_out], low, high)
    return cover_labels(away if scored is None else away[scored], labels if scored is None else labels[scored])


def measure_widening(logs: Array, labels: np.ndarray, low: float, high: float) -> float:
    """Return the widening at both ends with which a band covers 95 % of points, with equal weight for each label."""
    return cover_labels(_measure_distance_outside(logs, low, high), labels)


def cover_labels(values: Array, labels: np.ndarray) -> float:
    """Return the 95 % quantile of the values, with equal weight for each label."""
    return _find_weighted_quantile(values, _weigh_labels(number_labels(labels)), COVERAGE)


def _measure_distance_outside(logs: Array, low: float, high: float) -> Array:
    """Return how far each residual lies outside a band; 0 inside."""
    return np.maximum(np.maximum(low - logs, logs - high), 0.0)


def _widen_for_axis(part: Residuals, name: str, groups: np.ndarray, half: float) -> tuple[float, float]:
    """Return the widening for a value that was not measured, and the growth with each doubling beyond the last value.
    Points of an operation or placement with a single value are ignored. If only one value was measured, the widening is
    half the band, and as much again for each doubling."""
    present, kinds = part.axes[name] > ABSENT_AT[name], _number_kinds(part)
    logs, left, groups, values = (
        part.logs[present],
        part.of_axis(name)[present],
        groups[present],
        part.axes[name][present],
    )
    kinds, power = kinds[present], np.log2(values)
    spread = [kind for kind in np.unique(kinds) if np.ptp(values[kinds == kind]) > 0]
    if not spread:
        return half, min(half, LOG_2)
    (above, cuts), (below, others) = (
        _collect_growth_rates(sign * power, logs, left, groups, kinds) for sign in (1, -1)
    )
    growth = _find_growth(np.concatenate([above, below]), np.concatenate([cuts, -others]), half)
    scored, between = np.isin(kinds, spread), (values > values.min()) & (values < values.max())
    if name == BYTES and (scored & between).any():  # those at the ends have bands of their own
        scored &= between
    return _measure_excess(logs, left, number_labels(values), groups, scored), growth


def _extrapolate_sizes(
    part: Residuals, groups: np.ndarray, other: float, whole: tuple[float, float], half: float
) -> dict[str, tuple[float, float, float]]:
    """Return, for sizes below the smallest and above the largest, the band of the nearest sizes and its growth with
    each doubling. Predictions of long messages are often more accurate than those of short ones, or the reverse.
    `whole` is the band of all sizes."""
    present = part.axes[BYTES] > ABSENT_AT[BYTES]
    logs, left, groups, kinds = (
        part.logs[present],
        part.of_axis(BYTES)[present],
        groups[present],
        _number_kinds(part)[present],
    )
    if len(np.unique(groups)) < 2:
        return {}
    sizes, ends = part.axes[BYTES][present], {}
    empty = compute_latency_share(sizes, half)
    for name, sign in SIZE_SIDES.items():
        power = sign * np.log2(sizes)
        near = _select_outermost(power, groups)
        low, high = (
            whole if present.all() and near.all() else _cover_groups(logs[near], number_labels(groups[near]), other)
        )
        growth = _find_worst_growth(*_collect_growth_rates(power, logs, left, groups, kinds, empty), (high - low) / 2)
        ends[name] = (float(low), float(high), float(growth))
    return ends


def _select_outermost(power: Array, groups: np.ndarray) -> np.ndarray:
    """Return the points of the largest values: as many values as FEWEST_GROUPS groups have."""
    order = np.argsort(-power, kind="stable")
    first = np.sort(np.unique(groups[order], return_index=True)[1])  # where each group begins
    return power >= power[order[first[:FEWEST_GROUPS][-1]]]


def _collect_growth_rates(
    power: Array, logs: Array, left: Array, groups: np.ndarray, kinds: np.ndarray, empty: Array | None = None
) -> tuple[Array, Array]:
    """Return the distance outside the band per doubling of the points above each cut, at least one doubling; and the
    number of the cut and value of each. The band is that of all points below the cut. With latency shares given, only
    the nearest points on both sides are compared."""
    known, place = np.unique(power, return_inverse=True)
    rates, labels = [np.zeros(0)], [np.zeros(0, dtype=int)]
    for number, cut in enumerate(known[:-1]):
        below, above = np.flatnonzero(place <= number), place > number
        if empty is not None:
            above = place == number + 1
            below = below[_select_outermost(power[below], groups[below])]
        elif np.count_nonzero(above) > len(below):
            continue  # too few are left for an estimate
        low, high = _find_quantiles(logs[below], groups[below])
        above &= np.bincount(kinds[place <= number], minlength=kinds.max() + 1)[kinds] > 0
        rates.append(_measure_distance_outside(left[above], low, high) / _measure_distance(power, cut, empty)[above])
        labels.append(number * len(known) + place[above])
    return np.concatenate(rates), np.concatenate(labels)


def _measure_distance(power: Array, cut: float, empty: Array | None) -> Array:
    beyond = power - cut
    return np.maximum(beyond, 1) if empty is None else measure_size_distance(beyond, empty, empty[power == cut][0])


def _find_worst_growth(rates: Array, labels: np.ndarray, unknown: float) -> float:
    """Return the growth that covers 95 % beyond all cuts and beyond each of the LAST_CUTS."""
    last = [rates[labels == label] for label in np.unique(labels)[-LAST_CUTS:]]
    cuts = [_find_growth(part, np.zeros(len(part), dtype=int), unknown) for part in last]
    return max([_find_growth(rates, labels, unknown), *cuts])


def _find_growth(rates: Array, labels: Array, unknown: float) -> float:
    """Return the growth that covers 95 % of the rates. A doubling multiplies a time and its prediction by 1 to 2, so no
    doubling adds more than LOG_2."""
    return min(cover_labels(rates, labels) if len(rates) else unknown, LOG_2)


def _number_kinds(part: Residuals) -> np.ndarray:
    """Return a number for each combination of operation and placement."""
    sides = number_labels(part.placements)
    return (sides.max(initial=0) + 1) * number_labels(part.operation) + sides


ENOUGH_ALLOCATIONS = 5  # from which on differences between allocations count as covered
NEGLIGIBLE_DOUBLINGS = 0.05  # of sizes and ranks, up to which a workload is not extrapolated
PARAMETERS, UNMEASURED = "parameters only", "parameters only: nothing measured "
BASIS = re.compile(  # older tables have groups in place of workloads
    r"(?:at least: )?([0-9]+) allocations?, ([0-9]+) (?:workloads|groups) of (.*?)(?:, ([0-9.]+) doublings beyond)?"
)


@dataclass(frozen=True, slots=True)
class IntervalBasis:
    """What a prediction interval rests on: residuals of a class of operations; without any, the parameters only."""

    pooled: str = ""  # the class: an operation, its kind or all; with a placement, of this one
    workloads: int = 0
    allocations: int = 0
    doublings: float = 0.0  # beyond the sizes and ranks that were measured
    unmeasured: str = ""  # the placement at which nothing was measured, though elsewhere something was

    @property
    def of_residuals(self) -> bool:
        return self.workloads > 0

    @property
    def is_lower_bound(self) -> bool:
        """Whether the residuals come from so few allocations that the true interval may be wider."""
        return self.of_residuals and self.allocations < ENOUGH_ALLOCATIONS

    @property
    def is_extrapolated(self) -> bool:
        return self.doublings > NEGLIGIBLE_DOUBLINGS

    @property
    def text(self) -> str:
        """Return what tables have."""
        if not self.of_residuals:
            return f"{UNMEASURED}{self.unmeasured}" if self.unmeasured else PARAMETERS
        least, plural = "at least: " if self.is_lower_bound else "", "" if self.allocations == 1 else "s"
        text = f"{least}{self.allocations} allocation{plural}, {self.workloads} workloads of {self.pooled}"
        return f"{text}, {self.doublings:.1f} doublings beyond" if self.is_extrapolated else text

    @property
    def sentence(self) -> str:
        """Return what the interval is, as the end of a sentence."""
        if self.of_residuals:
            plural = "" if self.allocations == 1 else "s"
            text = f"95 % prediction interval from residuals at {self.workloads} workloads of {self.pooled}"
            text += f" in {self.allocations} allocation{plural}"
            text += f", extrapolated by {self.doublings:.1f} doublings" if self.is_extrapolated else ""
            return text + ("; fewer than five, so the interval may be too narrow" if self.is_lower_bound else "")
        where = self.unmeasured or "here"
        return f"the parameter interval; no error of the model was measured {where}"

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> IntervalBasis:
        """Return the basis whose text a table has; any other text counts as parameters only."""
        if match := BASIS.fullmatch(text):
            return cls(match[3], int(match[2]), int(match[1]), float(match[4] or 0))
        return cls(unmeasured=text.removeprefix(UNMEASURED)) if text.startswith(UNMEASURED) else PARAMETERS_ONLY


PARAMETERS_ONLY = IntervalBasis()


@dataclass(frozen=True, eq=False)
class Interval:
    """The ends of an interval, the corrected prediction inside it, and its basis, at each size: of
    ln(measured/predicted), or in seconds."""

    low: Array
    high: Array
    corrected: Array
    bases: list[IntervalBasis]


@dataclass(frozen=True, eq=False)
class PointSeries:
    """The workload of a prediction interval, at several sizes."""

    operation: str  # as `operation_class` has it
    ranks: float  # leaves of a tree
    sizes: Array
    nodes: float | None = None  # None: not known
    reach: str = ""  # as of a Point

    @classmethod
    def of(
        cls, point: Point, sizes: Iterable[float] | None = None, waves: float | None = None, levels: object = None
    ) -> PointSeries:
        """Return the workload of a point, or of several that differ in size, or of a stream of so many waves. `levels`
        are those of the parameter set, for a point without a platform."""
        named = operation_class(point.operation, point.waves if waves is None else waves)
        sizes, reach = np.array([point.bytes] if sizes is None else list(sizes), dtype=float), point.reach
        if levels and not reach:
            hierarchy, node = Hierarchy.of(levels), place(point.layout, point.ranks)
            reach = hierarchy.reach(node) if hierarchy.nodes and node.max() < hierarchy.nodes else ""
        return cls(named, float(point.leaves or point.ranks), sizes, float(point.nodes), reach)

    @property
    def side(self) -> str:
        """The placement, written as in `Residuals`; empty if unknown."""
        if self.reach:
            return describe_reach(self.reach)
        return "" if self.nodes is None else PLACEMENT_NAMES[self.nodes > ABSENT_AT[NODES]]


def find_residuals(bands: Mapping[str, Errors], workload: PointSeries) -> Interval:
    """Return the interval of ln(measured/predicted) at each size. Residuals of the same placement come first, if there
    are enough."""
    names, side = (workload.operation, kind_of(workload.operation), ALL), workload.side
    placed, pooled = (
        [name for name in some if name in bands] for some in ([name_placed_class(n, side) for n in names], names)
    )
    applicable = placed + [name for name in pooled if _applies(bands[name], workload)]
    if not applicable:
        nothing = np.zeros(len(workload.sizes))
        return Interval(nothing, nothing, nothing, [IntervalBasis(unmeasured=side if pooled else "")] * len(nothing))
    first, band = applicable[0], bands[applicable[0]]
    measured = workload.operation in band.operations and first in [*placed, *pooled[:1]]
    widest = next((bands[name] for name in (name_placed_class(ALL, side), ALL) if name in applicable), band)
    low, high, more, doublings = _extrapolate(band, widest, workload)
    corrected = np.clip(band.centre, low, high)
    more = np.maximum(more, 0.0 if measured else band.widening["operation"])
    bases = [IntervalBasis(first, band.workloads, band.allocations, float(count)) for count in doublings]
    return Interval(low - more, high + more, corrected, bases)


def _applies(band: Errors, workload: PointSeries) -> bool:
    """Return whether the residuals are valid for messages over this distance."""
    within, counts = workload.side == PLACEMENT_NAMES[False], band.measured.get(NODES)
    if workload.reach and band.levels_crossed:
        return (
            workload.reach in band.levels_crossed
            if within
            else any(covers_reach(seen, workload.reach) for seen in band.levels_crossed)
        )
    return counts is None or not workload.side or any((count > ABSENT_AT[NODES]) != within for count in counts)


def _extrapolate(band: Errors, of_all: Errors, workload: PointSeries) -> tuple[Array, Array, Array, Array]:
    """Return, at each size, the band, the widening for values that were not measured, and the doublings of
    extrapolation. Another protocol may begin beyond the measured sizes. The band therefore grows at least as that of
    all operations."""
    shape = len(workload.sizes)
    low, high, more, doublings = (np.full(shape, value) for value in (band.low, band.high, 0.0, 0.0))
    values = {RANKS: workload.ranks, BYTES: workload.sizes, NODES: workload.nodes or 1.0}
    for name in (name for name in AXES if name in band.measured):
        seen, wanted = np.array(band.measured[name]), np.broadcast_to(values[name], shape)
        without = wanted <= ABSENT_AT[name]
        if name == BYTES and workload.operation in band.operations:
            without &= np.isin(wanted, seen)  # an empty message of an operation that has sizes
        known, wanted = np.maximum(seen, 1.0), np.maximum(wanted, 1.0)
        known = known[seen > ABSENT_AT[name]] if (seen > ABSENT_AT[name]).any() else known
        away = {"larger": np.log2(wanted / known.max()), "smaller": np.log2(known.min() / wanted)}
        away = {end: np.where(without, 0.0, np.maximum(count, 0.0)) for end, count in away.items()}
        beyond = sum(away.values())
        added = np.where(without | np.isin(wanted, known), 0.0, band.widening[name])
        added = np.maximum(added, band.growth[name] * beyond)
        for end, (first, last, _) in band.beyond.items() if name == BYTES else ():
            out, nearest = away[end] > 0, known.max() if end == "larger" else known.min()
            low, high = np.where(out, first, low), np.where(out, last, high)
            added = np.where(
                out, np.maximum(*(_grow(b, end, wanted, nearest, away[end]) for b in (band, of_all))), added
            )
        more = np.maximum(more, added)
        doublings += 0.0 if name == NODES else beyond  # more ranks mostly are on more nodes
    return low, high, more, doublings


def _grow(band: Errors, end: str, sizes: Array, nearest: float, doublings: Array) -> Array:
    """Return the growth beyond the nearest measured sizes. No doubling adds more than a factor of two."""
    growth = band.beyond.get(end, (0.0, 0.0, 0.0))[2]
    shares = (compute_latency_share(size, band.half_size) for size in (sizes, np.float64(nearest)))
    return np.minimum(growth * measure_size_distance(doublings, *shares), LOG_2 * np.maximum(doublings, 1))


def apply_residuals(predictions: PredictedTimes, residuals: Interval) -> Interval:
    """Return the interval of predictions in seconds. The corrected prediction inside it is the prediction times the
    single-message ratio and the median residual. Beyond the measured range the interval is never narrower than the
    parameter interval; within, residuals include that uncertainty. A model that ignores message size has no
    residuals."""
    bases = residuals.bases
    if predictions.validity:
        pairs = zip(bases, predictions.validity, strict=True)
        bases = [basis if validity.has_weight else PARAMETERS_ONLY for basis, validity in pairs]
    known = np.array([basis.of_residuals for basis in bases], dtype=bool)
    outside = np.array([basis.is_extrapolated for basis in bases], dtype=bool)
    low, high, corrected = (
        predictions.seconds * predictions.single_message_ratio * np.exp(end)
        for end in (residuals.low, residuals.high, residuals.corrected)
    )
    low = np.where(outside, np.fmin(low, predictions.low), low)
    high = np.where(outside, np.fmax(high, predictions.high), high)
    low, high = np.where(known, low, predictions.low), np.where(known, high, predictions.high)
    return Interval(low, high, np.where(known, np.clip(corrected, low, high), predictions.seconds), bases)


def is_informative(low: float, high: float) -> bool:
    """Return whether an interval is narrow enough to say anything; an unknown one (NaN) counts."""
    return not high > MAX_INFORMATIVE_WIDTH * low


def cross_validate(residuals: Residuals) -> Interval:
    """Return for each point the residual interval from all other groups. For operations with many groups, one of FOLDS
    parts is left out in turn."""
    low, high = np.zeros(len(residuals.logs)), np.full(len(residuals.logs), inf)
    corrected = np.zeros(len(residuals.logs))
    bases = [PARAMETERS_ONLY] * len(low)
    for operation in np.unique(residuals.operation):
        of_operation = np.flatnonzero(residuals.operation == operation)
        fold = number_labels(residuals.group[of_operation]) % FOLDS
        for number in range(fold.max() + 1):
            left_out = of_operation[fold == number]
            known = np.ones(len(low), dtype=bool)
            known[left_out] = False
            others, sides = residuals.only(known), np.unique(residuals.placements[left_out]).tolist()
            bands = {side: _LazyBands(others, str(operation), side) for side in sides}
            for places, workload in _select_series(residuals, left_out):
                interval = find_residuals(bands[workload.side].fit_for(workload), workload)
                low[places], high[places], corrected[places] = interval.low, interval.high, interval.corrected
                for point, basis in zip(places.tolist(), interval.bases, strict=True):
                    bases[point] = basis
    return Interval(low, high, corrected, bases)


def _select_series(residuals: Residuals, places: np.ndarray) -> Iterator[tuple[np.ndarray, PointSeries]]:
    """Yield some points of one operation, those of the same number of ranks and nodes and the same placement
    together."""
    alike = [residuals.axes[name][places] for name in (RANKS, NODES) if name in residuals.axes]
    alike = np.stack([*alike, number_labels(residuals.placements[places])], axis=1)
    for values in np.unique(alike, axis=0):
        together = places[(alike == values).all(axis=1)]
        first, nodes = together[0], residuals.axes.get(NODES)
        yield (
            together,
            PointSeries(
                str(residuals.operation[first]),
                float(residuals.axes[RANKS][first]),
                residuals.axes[BYTES][together],
                None if nodes is None else float(nodes[first]),
                "" if residuals.reach is None else str(residuals.reach[first]),
            ),
        )


class _LazyBands:
    """The bands of an operation's classes, fitted on first use. Mostly the first one suffices."""

    def __init__(self, residuals: Residuals, operation: str, side: str) -> None:
        self._classes = list_classes(residuals, [operation], [side]) if len(residuals.logs) else iter(())
        self._bands: dict[str, Errors] = {}
        self._all = {ALL, name_placed_class(ALL, side)}

    def fit_for(self, workload: PointSeries) -> dict[str, Errors]:
        while not any(self._suffices(band, workload) for band in self._bands.values()):
            if (entry := next(self._classes, None)) is None:
                break
            if (band := fit_band(entry[1])) is not None:
                self._bands[entry[0]] = band
        return self._bands

    def _suffices(self, band: Errors, workload: PointSeries) -> bool:
        sizes = band.measured[BYTES]
        within = (workload.sizes >= min(sizes)).all() and (workload.sizes <= max(sizes)).all()
        return _applies(band, workload) and (within or not self._all.isdisjoint(self._bands))
