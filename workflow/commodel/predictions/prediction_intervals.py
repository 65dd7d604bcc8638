"""Prediction intervals from residuals of held-out groups: their construction, and the interval of each prediction.

A group has the residuals ln(measured/predicted) of one workload. A residual interval lies between two quantiles over
all groups, which have equal weight. It is widened at both ends until it covers 95 % of the groups, each left out in
turn. If the points have several settings, each setting is left out in turn as well. A size, number of ranks, number of
nodes or operation that was not measured has a wider interval. The widening covers 95 % of the points of a left-out
value. Beyond the measured range the interval grows with each doubling or halving. The growth covers 95 % of the points
beyond a cut, at which larger, or smaller, values are left out. Sizes beyond the range start from the interval of the
nearest sizes. Operations with fewer than MIN_GROUPS_OF_CLASS groups use the interval of their kind, or of all
operations.

A conformal quantile would add one group with infinite residuals. It is not used: groups have several points, so it
would cover 98 to 99 % instead of 95 %.

Messages within a node and between nodes take different paths. If only one of these was measured, the other has no
interval from residuals, only the parameter interval. The same is true beyond the farthest measured level of the
network. Nearer levels keep their interval from residuals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from commodel.hierarchy import Hierarchy, covers_levels, describe_levels_crossed
from commodel.models import Array
from commodel.parameters import SIZE_SIDES, Errors
from commodel.patterns.layouts import place_ranks
from commodel.predictions.residuals import (
    ALL,
    AXES,
    BYTES,
    MIN_GROUPS_OF_CLASS,
    MIN_OF_AXIS,
    NODES,
    OPERATIONS_OF_KIND,
    PLACEMENT_NAMES,
    RANKS,
    Residuals,
    compute_latency_share,
    estimate_half_size,
    find_kind,
    find_operation_class,
    list_classes,
    measure_size_distance,
    name_placed_class,
    number_labels,
)
from commodel.records import Point

if TYPE_CHECKING:
    from commodel.predictions.predictions import PredictedTimes


COVERAGE = 0.95
MAX_FOLDS = 20  # parts of groups that are left out in turn, if there are more groups
LOG_2 = float(np.log(2))
CUTS_CHECKED_SEPARATELY = 4  # outermost cuts; the growth covers 95 % of the points beyond each one separately, too
NO_INFORMATION = "no information"
MAX_INFORMATIVE_WIDTH = 100.0  # high over low of an interval; a wider one is shown as "no information"
ROUNDING_OF_LOGARITHM = 1e-9  # tolerance for rounding errors


def fit_residual_intervals(residuals: Residuals) -> dict[str, Errors]:
    """Return the residual interval of each class with enough groups."""
    return _collect_intervals(residuals, fit_residual_interval)


def outline_residual_intervals(residuals: Residuals) -> dict[str, Errors]:
    """Return the residual intervals with widths of 0: only the measured points of each class."""
    return _collect_intervals(residuals, _outline_interval)


def _collect_intervals(residuals: Residuals, make: Callable[[Residuals], Errors | None]) -> dict[str, Errors]:
    intervals = {}
    for name, residuals_of_class in list_classes(residuals, np.unique(residuals.operation).tolist()):
        if name not in intervals and (interval := make(residuals_of_class)) is not None:
            intervals[name] = interval
    return intervals


def _outline_interval(part: Residuals) -> Errors | None:
    """Return the interval of one class with widths of 0; None if no group can be left out."""
    if (count := len(np.unique(part.group))) < 2:
        return None
    zeros = dict.fromkeys((*part.axes, "operation"), 0.0)
    return Errors(
        0.0,
        0.0,
        count,
        len(np.unique(part.allocation[part.allocation != ""])),
        tuple(np.unique(part.operation).tolist()),
        {name: tuple(float(value) for value in np.unique(part.axes[name])) for name in part.axes},
        zeros,
        zeros,
        levels_crossed=()
        if part.levels_crossed is None
        else tuple(np.unique(part.levels_crossed[part.levels_crossed != ""]).tolist()),
    )


def fit_residual_interval(part: Residuals) -> Errors | None:
    """Return the residual interval of one class; None if no group can be left out."""
    if (outline := _outline_interval(part)) is None:
        return None
    groups = number_labels(part.group)
    setting_excess = 0.0
    if part.setting is not None and len(np.unique(part.setting)) > 1:  # the next allocation has another setting
        setting_excess = _measure_excess(part.logs, part.logs, number_labels(part.setting), groups)
    low, high = _cover_groups(part.logs, groups, setting_excess)
    widening, growth = {}, {}
    for name in part.axes:
        widening[name], growth[name] = _widen_for_axis(part, name, groups, (high - low) / 2)
    operations, half_size = number_labels(part.operation), estimate_half_size(part)
    has_several = operations.max() > 0
    widening["operation"] = (
        _measure_excess(part.logs, part.left_out_logs("operation"), operations, groups)
        if has_several
        else (high - low) / 2
    )
    return replace(
        outline,
        low=float(low),
        high=float(high),
        widening={name: float(value) for name, value in widening.items()},
        growth={name: float(value) for name, value in growth.items()},
        beyond=_extrapolate_sizes(part, groups, setting_excess, (low, high), half_size),
        half_size=half_size,
    )


def _cover_groups(logs: Array, groups: np.ndarray, min_widening: float) -> tuple[float, float]:
    """Return the interval that covers 95 % of left-out groups. It is widened by at least `min_widening` at both
    ends."""
    low, high = _find_quantiles(logs, groups)
    widening = max(_measure_excess(logs, logs, groups, groups), min_widening)
    return low - widening, high + widening


def _find_quantiles(logs: Array, groups: np.ndarray) -> tuple[float, float]:
    """Return the interval between two quantiles over groups of equal weight."""
    weight, share = _weigh_labels(groups), (1 + COVERAGE) / 2
    return -_find_weighted_quantile(-logs, weight, share), _find_weighted_quantile(logs, weight, share)


def _weigh_labels(labels: np.ndarray) -> Array:
    """Return the weight of each point such that all labels have equal weight; the sum is 1."""
    counts = np.bincount(labels)
    return 1 / (np.count_nonzero(counts) * counts[labels])


def _find_weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the smallest value up to which values have this share of the total weight."""
    order = np.argsort(values, kind="stable")
    position = int(np.searchsorted(np.cumsum(weight[order]), share - ROUNDING_OF_LOGARITHM))
    return float(values[order[min(position, len(values) - 1)]])


def _measure_excess(
    logs: Array, left_out_residuals: Array, labels: np.ndarray, groups: np.ndarray, counted: np.ndarray | None = None
) -> float:
    """Return the widening with which the interval of all other points covers 95 % of the points of a left-out label.
    `counted` flags the points that are evaluated; None: all."""
    distances, fold = np.zeros(len(logs)), labels % MAX_FOLDS
    for number in range(fold.max() + 1):
        left_out = fold == number
        low, high = _find_quantiles(logs[~left_out], groups[~left_out])
        distances[left_out] = _measure_distance_outside(left_out_residuals[left_out], low, high)
    flags = slice(None) if counted is None else counted
    return cover_labels(distances[flags], labels[flags])


def measure_widening(logs: Array, labels: np.ndarray, low: float, high: float) -> float:
    """Return the widening at both ends with which an interval covers 95 % of points, with equal weight for each
    label."""
    return cover_labels(_measure_distance_outside(logs, low, high), labels)


def cover_labels(values: Array, labels: np.ndarray) -> float:
    """Return the 95 % quantile of the values, with equal weight for each label."""
    return _find_weighted_quantile(values, _weigh_labels(number_labels(labels)), COVERAGE)


def _measure_distance_outside(logs: Array, low: float, high: float) -> Array:
    """Return how far each residual lies outside an interval; 0 inside."""
    return np.maximum(np.maximum(low - logs, logs - high), 0.0)


def _widen_for_axis(part: Residuals, name: str, groups: np.ndarray, half_width: float) -> tuple[float, float]:
    """Return the widening for a value that was not measured, and the growth with each doubling beyond the last value.
    The widening ignores operations with a single value at their placement. If all have a single value, the widening is
    half the interval's width; the growth is the same, but at most LOG_2."""
    has_effect, kinds = part.axes[name] > MIN_OF_AXIS[name], _number_kinds(part)
    logs, left_out_residuals, groups, values = (
        part.logs[has_effect],
        part.left_out_logs(name)[has_effect],
        groups[has_effect],
        part.axes[name][has_effect],
    )
    kinds, log_values = kinds[has_effect], np.log2(values)
    varied = [kind for kind in np.unique(kinds) if np.ptp(values[kinds == kind]) > 0]
    if not varied:
        return half_width, min(half_width, LOG_2)
    (above, cuts), (below, lower_cuts) = (
        _collect_growth_rates(sign * log_values, logs, left_out_residuals, groups, kinds) for sign in (1, -1)
    )
    growth = _find_growth(np.concatenate([above, below]), np.concatenate([cuts, -lower_cuts]), half_width)
    counted, is_inner = np.isin(kinds, varied), (values > values.min()) & (values < values.max())
    if name == BYTES and (counted & is_inner).any():  # the smallest and largest sizes have intervals of their own
        counted &= is_inner
    return _measure_excess(logs, left_out_residuals, number_labels(values), groups, counted), growth


def _extrapolate_sizes(
    part: Residuals, groups: np.ndarray, setting_excess: float, whole_interval: tuple[float, float], half_size: float
) -> dict[str, tuple[float, float, float]]:
    """Return, for sizes below the smallest and above the largest, the interval of the nearest sizes and its growth with
    each doubling. Predictions of long messages are often more accurate than those of short ones, or the reverse.
    `whole_interval` is that of all sizes."""
    has_payload = part.axes[BYTES] > MIN_OF_AXIS[BYTES]
    logs, left_out_residuals, groups, kinds = (
        part.logs[has_payload],
        part.left_out_logs(BYTES)[has_payload],
        groups[has_payload],
        _number_kinds(part)[has_payload],
    )
    if len(np.unique(groups)) < 2:
        return {}
    sizes, intervals = part.axes[BYTES][has_payload], {}
    latency_shares = compute_latency_share(sizes, half_size)
    for name, sign in SIZE_SIDES.items():
        log_sizes = sign * np.log2(sizes)
        is_outermost = _select_outermost(log_sizes, groups)
        low, high = (
            whole_interval
            if has_payload.all() and is_outermost.all()
            else _cover_groups(logs[is_outermost], number_labels(groups[is_outermost]), setting_excess)
        )
        growth = _find_worst_growth(
            *_collect_growth_rates(log_sizes, logs, left_out_residuals, groups, kinds, latency_shares), (high - low) / 2
        )
        intervals[name] = (float(low), float(high), float(growth))
    return intervals


def _select_outermost(log_values: Array, groups: np.ndarray) -> np.ndarray:
    """Return flags of the points with the largest values: as many values as MIN_GROUPS_OF_CLASS groups have."""
    order = np.argsort(-log_values, kind="stable")
    first = np.sort(np.unique(groups[order], return_index=True)[1])  # where each group begins
    return log_values >= log_values[order[first[:MIN_GROUPS_OF_CLASS][-1]]]


def _collect_growth_rates(
    log_values: Array,
    logs: Array,
    left_out_residuals: Array,
    groups: np.ndarray,
    kinds: np.ndarray,
    latency_shares: Array | None = None,
) -> tuple[Array, Array]:
    """Return growth rates: for each point above a cut, its distance outside the interval of all points below the cut,
    per doubling (at least one). Also return a label of each rate's cut and value. With latency shares, only the nearest
    points on both sides of the cut are compared."""
    distinct, position = np.unique(log_values, return_inverse=True)
    rates, labels = [np.zeros(0)], [np.zeros(0, dtype=int)]
    for number, cut in enumerate(distinct[:-1]):
        below, above = np.flatnonzero(position <= number), position > number
        if latency_shares is not None:
            above = position == number + 1
            below = below[_select_outermost(log_values[below], groups[below])]
        elif np.count_nonzero(above) > len(below):
            continue  # too few points remain below the cut
        low, high = _find_quantiles(logs[below], groups[below])
        above &= np.bincount(kinds[position <= number], minlength=kinds.max() + 1)[kinds] > 0
        rates.append(
            _measure_distance_outside(left_out_residuals[above], low, high)
            / _measure_distance(log_values, cut, latency_shares)[above]
        )
        labels.append(number * len(distinct) + position[above])
    return np.concatenate(rates), np.concatenate(labels)


def _measure_distance(log_values: Array, cut: float, latency_shares: Array | None) -> Array:
    distance = log_values - cut
    return (
        np.maximum(distance, 1)
        if latency_shares is None
        else measure_size_distance(distance, latency_shares, latency_shares[log_values == cut][0])
    )


def _find_worst_growth(rates: Array, labels: np.ndarray, default: float) -> float:
    """Return the growth that covers 95 % of the points beyond all cuts, and of those beyond each of the
    last CUTS_CHECKED_SEPARATELY cuts."""
    cuts = (labels == label for label in np.unique(labels)[-CUTS_CHECKED_SEPARATELY:])
    growths = (_find_growth(rates[of_cut], labels[of_cut], default) for of_cut in cuts)
    return max([_find_growth(rates, labels, default), *growths])


def _find_growth(rates: Array, labels: Array, default: float) -> float:
    """Return the growth that covers 95 % of the rates, or `default` without rates. A doubling multiplies a time and its
    prediction by 1 to 2, so it adds at most LOG_2."""
    return min(cover_labels(rates, labels) if len(rates) else default, LOG_2)


def _number_kinds(part: Residuals) -> np.ndarray:
    """Return a number for each combination of operation and placement."""
    placements = number_labels(part.placements)
    return (placements.max(initial=0) + 1) * number_labels(part.operation) + placements


MIN_ALLOCATIONS = 5  # allocations from which on an interval is assumed to cover their differences
NEGLIGIBLE_DOUBLINGS = 0.05  # doublings of sizes and ranks up to which a workload does not count as extrapolated
PARAMETERS_ONLY_TEXT, UNMEASURED_PREFIX = "parameters only", "parameters only: nothing measured "


def _name_pool(pooled: str) -> str:
    """Return the description of a class of workloads: an operation, similar operations, or all."""
    for kind in OPERATIONS_OF_KIND:
        if pooled.startswith(kind):
            return f"similar operations ({kind}){pooled.removeprefix(kind)}"
    return f"all operations{pooled.removeprefix(ALL)}" if pooled.partition(" ")[0] == ALL else pooled


BASIS_PATTERN = re.compile(
    r"(?:(?:at least: )?([0-9]+) allocations?, )?([0-9]+) workloads of (.*?)"
    r"(?:, ([0-9.]+) doublings beyond)?"
)


@dataclass(frozen=True, slots=True)
class IntervalBasis:
    """The basis of a prediction interval: the residuals of a class of operations, or only the parameters."""

    pooled: str = ""  # name of the class: an operation, its kind or `all`, perhaps followed by a placement
    workloads: int = 0
    allocations: int = 0  # 0: they do not differ, as on a simulator
    doublings: float = 0.0  # of extrapolation beyond the measured sizes and ranks
    unmeasured: str = ""  # the placement without measurements, if other placements have some

    @property
    def of_residuals(self) -> bool:
        return self.workloads > 0

    @property
    def is_lower_bound(self) -> bool:
        """Whether the residuals come from so few allocations that the true interval may be wider."""
        return self.of_residuals and 0 < self.allocations < MIN_ALLOCATIONS

    @property
    def is_extrapolated(self) -> bool:
        return self.doublings > NEGLIGIBLE_DOUBLINGS

    @property
    def text(self) -> str:
        """The text in tables."""
        if not self.of_residuals:
            return f"{UNMEASURED_PREFIX}{self.unmeasured}" if self.unmeasured else PARAMETERS_ONLY_TEXT
        allocations = (
            f"{self.allocations} allocation{'' if self.allocations == 1 else 's'}, " if self.allocations else ""
        )
        least = "at least: " if self.is_lower_bound else ""
        text = f"{least}{allocations}{self.workloads} workloads of {self.pooled}"
        return f"{text}, {self.doublings:.1f} doublings beyond" if self.is_extrapolated else text

    @property
    def sentence(self) -> str:
        """The description of the interval, as the end of a sentence."""
        if self.of_residuals:
            plural = "" if self.allocations == 1 else "s"
            text = f"95 % prediction interval from residuals at {self.workloads} workloads of {_name_pool(self.pooled)}"
            text += f" in {self.allocations} allocation{plural}" if self.allocations else ""
            text += f", extrapolated by {self.doublings:.1f} doublings" if self.is_extrapolated else ""
            return text + (
                "; with fewer than five allocations the interval may be too narrow" if self.is_lower_bound else ""
            )
        where = self.unmeasured or "here"
        return f"the parameter interval; no error of the model was measured {where}"

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> IntervalBasis:
        """Return the basis with this text of a table. Any other text counts as parameters only."""
        if match := BASIS_PATTERN.fullmatch(text):
            return cls(match[3], int(match[2]), int(match[1] or 0), float(match[4] or 0))
        return (
            cls(unmeasured=text.removeprefix(UNMEASURED_PREFIX))
            if text.startswith(UNMEASURED_PREFIX)
            else PARAMETERS_ONLY
        )


PARAMETERS_ONLY = IntervalBasis()


@dataclass(frozen=True, eq=False)
class Interval:
    """An interval at each size: its ends, and its basis. The values are logarithms ln(measured/predicted), or
    seconds."""

    low: Array
    high: Array
    bases: list[IntervalBasis]


@dataclass(frozen=True, eq=False)
class PointSeries:
    """A workload at several sizes, for which an interval is wanted."""

    operation: str  # as `find_operation_class` returns it
    ranks: float  # leaves of a tree
    sizes: Array
    nodes: float | None = None  # None: unknown
    levels_crossed: str = ""  # farthest distance class of its messages, as in `Point.reach`

    @classmethod
    def of(
        cls, point: Point, sizes: Iterable[float] | None = None, waves: float | None = None, levels: object = None
    ) -> PointSeries:
        """Return the series of a point, with other sizes or another number of waves if given. `levels` are those of the
        parameter set. They are needed for a point without a platform."""
        operation = find_operation_class(point.operation, point.waves if waves is None else waves)
        sizes, levels_crossed = np.array([point.bytes] if sizes is None else list(sizes), dtype=float), point.reach
        if levels and not levels_crossed:
            hierarchy, node = Hierarchy.of(levels), place_ranks(point.layout, point.ranks)
            levels_crossed = hierarchy.levels_crossed(node) if hierarchy.nodes and node.max() < hierarchy.nodes else ""
        return cls(operation, float(point.leaves or point.ranks), sizes, float(point.nodes), levels_crossed)

    @property
    def placement(self) -> str:
        """The placement, named as in `Residuals.placements`; empty if unknown."""
        if self.levels_crossed:
            return describe_levels_crossed(self.levels_crossed)
        return "" if self.nodes is None else PLACEMENT_NAMES[self.nodes > MIN_OF_AXIS[NODES]]


def find_residual_interval(intervals: Mapping[str, Errors], workload: PointSeries) -> Interval:
    """Return the interval of ln(measured/predicted) at each size. If there are enough residuals of the same placement,
    these are used."""
    names, placement = (workload.operation, find_kind(workload.operation), ALL), workload.placement
    of_placement, of_any_placement = (
        [name for name in classes if name in intervals]
        for classes in ([name_placed_class(n, placement) for n in names], names)
    )
    applicable = of_placement + [name for name in of_any_placement if _has_distance(intervals[name], workload)]
    if not applicable:
        zeros = np.zeros(len(workload.sizes))
        return Interval(zeros, zeros, [IntervalBasis(unmeasured=placement if of_any_placement else "")] * len(zeros))
    first, interval = applicable[0], intervals[applicable[0]]
    is_measured = workload.operation in interval.operations and first in [*of_placement, *of_any_placement[:1]]
    widest = next(
        (intervals[name] for name in (name_placed_class(ALL, placement), ALL) if name in applicable), interval
    )
    low, high, widening, doublings = _extrapolate_interval(interval, widest, workload)
    widening = np.maximum(widening, 0.0 if is_measured else interval.widening["operation"])
    bases = [IntervalBasis(first, interval.workloads, interval.allocations, float(count)) for count in doublings]
    return Interval(low - widening, high + widening, bases)


def _has_distance(interval: Errors, workload: PointSeries) -> bool:
    """Return whether the interval has residuals of messages over this distance."""
    within, counts = workload.placement == PLACEMENT_NAMES[False], interval.measured.get(NODES)
    if workload.levels_crossed and interval.levels_crossed:
        return (
            workload.levels_crossed in interval.levels_crossed
            if within
            else any(covers_levels(crossed, workload.levels_crossed) for crossed in interval.levels_crossed)
        )
    return counts is None or not workload.placement or any((count > MIN_OF_AXIS[NODES]) != within for count in counts)


def _extrapolate_interval(interval: Errors, of_all: Errors, workload: PointSeries) -> tuple[Array, Array, Array, Array]:
    """Return, at each size, the interval, the widening for values that were not measured, and the doublings of
    extrapolation. Another protocol may begin beyond the measured sizes. The interval therefore grows at least as that
    of all operations."""
    count = len(workload.sizes)
    low, high, widening, doublings = (np.full(count, value) for value in (interval.low, interval.high, 0.0, 0.0))
    values: dict[str, Array | float] = {RANKS: workload.ranks, BYTES: workload.sizes, NODES: workload.nodes or 1.0}
    for name in (name for name in AXES if name in interval.measured):
        measured, wanted = np.array(interval.measured[name]), np.broadcast_to(values[name], count)
        is_minimum = wanted <= MIN_OF_AXIS[name]
        if name == BYTES and workload.operation in interval.operations:
            is_minimum &= np.isin(
                wanted, measured
            )  # an empty message counts as unmeasured if the operation was measured with payload
        has_effect, positive, wanted = measured > MIN_OF_AXIS[name], np.maximum(measured, 1.0), np.maximum(wanted, 1.0)
        positive = positive[has_effect] if has_effect.any() else positive
        doublings_beyond = {"larger": np.log2(wanted / positive.max()), "smaller": np.log2(positive.min() / wanted)}
        doublings_beyond = {
            end: np.where(is_minimum, 0.0, np.maximum(count, 0.0)) for end, count in doublings_beyond.items()
        }
        total_doublings = sum(doublings_beyond.values())
        added = np.where(is_minimum | np.isin(wanted, positive), 0.0, interval.widening[name])
        added = np.maximum(added, interval.growth[name] * total_doublings)
        for end, (first, last, _) in interval.beyond.items() if name == BYTES else ():
            is_beyond, nearest = doublings_beyond[end] > 0, positive.max() if end == "larger" else positive.min()
            low, high = np.where(is_beyond, first, low), np.where(is_beyond, last, high)
            added = np.where(
                is_beyond,
                np.maximum(
                    *(
                        _compute_growth(errors, end, wanted, nearest, doublings_beyond[end])
                        for errors in (interval, of_all)
                    )
                ),
                added,
            )
        widening = np.maximum(widening, added)
        doublings += (
            0.0 if name == NODES else total_doublings
        )  # ranks and nodes mostly grow together, so only ranks count
    return low, high, widening, doublings


def _compute_growth(interval: Errors, end: str, sizes: Array, nearest: float, doublings: Array) -> Array:
    """Return the growth beyond the nearest measured sizes. No doubling adds more than a factor of two."""
    growth = interval.beyond.get(end, (0.0, 0.0, 0.0))[2]
    shares = (compute_latency_share(size, interval.half_size) for size in (sizes, np.asarray(nearest)))
    return np.minimum(growth * measure_size_distance(doublings, *shares), LOG_2 * np.maximum(doublings, 1))


def apply_residuals(predictions: PredictedTimes, residuals: Interval) -> Interval:
    """Return the interval of predictions in seconds. It always contains the prediction. A prediction interval never
    begins below the time of the shortest message. Beyond the measured range it is never narrower than the parameter
    interval; within, residuals include that uncertainty. A model that ignores message size has no residuals."""
    bases = residuals.bases
    if predictions.validity:
        pairs = zip(bases, predictions.validity, strict=True)
        bases = [basis if validity.has_weight else PARAMETERS_ONLY for basis, validity in pairs]
    has_residuals = np.array([basis.of_residuals for basis in bases], dtype=bool)
    is_extrapolated = np.array([basis.is_extrapolated for basis in bases], dtype=bool)
    low, high = (
        predictions.seconds * predictions.single_message_ratio * np.exp(end) for end in (residuals.low, residuals.high)
    )
    low = np.where(is_extrapolated, np.fmin(low, predictions.low), low)
    high = np.where(is_extrapolated, np.fmax(high, predictions.high), high)
    low, high = np.where(has_residuals, [low, high], [predictions.low, predictions.high])
    low, high = contain_prediction(low, high, predictions.seconds)
    # The draws of a parameter interval contain the uncertainty of a message's latency.
    bound = np.where(has_residuals, np.fmin(predictions.message_seconds, predictions.seconds), 0.0)
    return Interval(np.maximum(low, bound), high, bases)


def contain_prediction(low: Array, high: Array, seconds: Array) -> tuple[Array, Array]:
    """Return the ends of intervals, moved as far outward as the prediction lies outside."""
    return np.minimum(low, seconds), np.maximum(high, seconds)


def is_informative(low: float, high: float) -> bool:
    """Return whether an interval is narrower than MAX_INFORMATIVE_WIDTH. An unknown one (NaN) counts as informative."""
    return not high > MAX_INFORMATIVE_WIDTH * low


def cross_validate(residuals: Residuals) -> Interval:
    """Return for each point the residual interval from all other groups. In operations with more than
    MAX_FOLDS groups, these are divided into MAX_FOLDS parts, each of which is left out once."""
    low, high = np.zeros(len(residuals.logs)), np.full(len(residuals.logs), inf)
    bases = [PARAMETERS_ONLY] * len(low)
    for operation in np.unique(residuals.operation):
        of_operation = np.flatnonzero(residuals.operation == operation)
        fold = number_labels(residuals.group[of_operation]) % MAX_FOLDS
        for number in range(fold.max() + 1):
            left_out = of_operation[fold == number]
            is_kept = np.ones(len(low), dtype=bool)
            is_kept[left_out] = False
            other_groups, placements = residuals.only(is_kept), np.unique(residuals.placements[left_out]).tolist()
            intervals_of_placement = {
                placement: _IntervalsOnDemand(other_groups, str(operation), placement) for placement in placements
            }
            for positions, workload in _select_series(residuals, left_out):
                interval = find_residual_interval(
                    intervals_of_placement[workload.placement].fit_for(workload), workload
                )
                low[positions], high[positions] = interval.low, interval.high
                for point, basis in zip(positions.tolist(), interval.bases, strict=True):
                    bases[point] = basis
    return Interval(low, high, bases)


def _select_series(residuals: Residuals, positions: np.ndarray) -> Iterator[tuple[np.ndarray, PointSeries]]:
    """Yield series of points of one operation that have equal ranks, nodes and placement."""
    axes = [residuals.axes[name][positions] for name in (RANKS, NODES) if name in residuals.axes]
    keys = np.stack([*axes, number_labels(residuals.placements[positions])], axis=1)
    for values in np.unique(keys, axis=0):
        series = positions[(keys == values).all(axis=1)]
        first, nodes = series[0], residuals.axes.get(NODES)
        yield (
            series,
            PointSeries(
                str(residuals.operation[first]),
                float(residuals.axes[RANKS][first]),
                residuals.axes[BYTES][series],
                None if nodes is None else float(nodes[first]),
                "" if residuals.levels_crossed is None else str(residuals.levels_crossed[first]),
            ),
        )


class _IntervalsOnDemand:
    """The intervals of an operation's classes, each fitted when it is needed. Mostly the first one suffices."""

    def __init__(self, residuals: Residuals, operation: str, placement: str) -> None:
        self._classes = list_classes(residuals, [operation], [placement]) if len(residuals.logs) else iter(())
        self._intervals: dict[str, Errors] = {}
        self._all = {ALL, name_placed_class(ALL, placement)}

    def fit_for(self, workload: PointSeries) -> dict[str, Errors]:
        while not any(self._suffices(interval, workload) for interval in self._intervals.values()):
            if (entry := next(self._classes, None)) is None:
                break
            if (interval := fit_residual_interval(entry[1])) is not None:
                self._intervals[entry[0]] = interval
        return self._intervals

    def _suffices(self, interval: Errors, workload: PointSeries) -> bool:
        sizes = interval.measured[BYTES]
        covers_sizes = bool((workload.sizes >= min(sizes)).all() and (workload.sizes <= max(sizes)).all())
        return _has_distance(interval, workload) and (covers_sizes or not self._all.isdisjoint(self._intervals))
