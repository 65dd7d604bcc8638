"""The basis of a prediction interval: on which measured points it rests (`IntervalBasis`).

Messages within a node and between nodes take different paths. If only one of these was measured,
the other has no interval from measured errors, only the parameter interval. The same is true beyond
the farthest measured level of the network. Nearer levels keep their interval."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from commodel.hierarchy import covers_levels
from commodel.models import Array
from commodel.parameters import ALL_OPERATIONS
from commodel.predictions.places import ONE_NODE, Places

MIN_ALLOCATIONS = 5  # allocations from which on an interval is assumed to cover their differences
# doublings of sizes and ranks up to which a workload does not count as extrapolated
NEGLIGIBLE_DOUBLINGS = 0.05
LARGEST_SEGMENT = 64.0  # doublings of bytes; more than any message has
PARAMETERS_ONLY_TEXT = "parameters only"
UNMEASURED_PREFIX = "parameters only: nothing measured "
NO_INFORMATION = "no information"
# high over low of an interval; a wider one is shown as "no information"
MAX_INFORMATIVE_WIDTH = 100.0


def is_informative(low: float, high: float) -> bool:
    """Return whether an interval is narrower than MAX_INFORMATIVE_WIDTH. An unknown one (NaN)
    counts as informative."""
    return not high > MAX_INFORMATIVE_WIDTH * low


def format_doublings(doublings: float) -> str:
    """Return an extent of extrapolation: `1 doubling`, `2.5 doublings`."""
    number = f"{doublings:.1f}".removesuffix(".0")
    return f"{number} doubling{'' if number == '1' else 's'}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


BASIS_PATTERN = re.compile(
    r"(?:(?:at least: )?([0-9]+) allocations?, )?([0-9]+) workloads? of (.*?)"
    r"(?:, ([0-9.]+) doublings? beyond)?(?:, ([0-9.]+) doublings? of the number of segments beyond)?"
)


@dataclass(frozen=True, slots=True)
class IntervalBasis:
    """The basis of a prediction interval: errors at the measured points of an operation, or only
    the parameters."""

    pooled: str = ""  # the operation, or `all` if it was not measured itself
    workloads: int = 0
    allocations: int = 0  # 0: they do not differ, as on a simulator
    doublings: float = 0.0  # of extrapolation beyond the measured sizes and ranks
    segments: float = 0.0  # doublings of the number of segments beyond the measured ones
    unmeasured: str = ""  # the distance without measurements, if others have some

    @property
    def of_residuals(self) -> bool:
        """Whether the interval rests on measured errors."""
        return self.workloads > 0

    @property
    def is_lower_bound(self) -> bool:
        """Whether the errors come from so few allocations that the true interval may be wider."""
        return self.of_residuals and 0 < self.allocations < MIN_ALLOCATIONS

    @property
    def is_extrapolated(self) -> bool:
        """Whether the workload lies beyond the measured sizes, ranks or segments."""
        return max(self.doublings, self.segments) > NEGLIGIBLE_DOUBLINGS

    @property
    def extents(self) -> list[str]:
        """The extents of the extrapolation: in sizes and ranks, and in the number of segments."""
        extents = []
        if self.doublings > NEGLIGIBLE_DOUBLINGS:
            extents.append(format_doublings(self.doublings))
        if self.segments > NEGLIGIBLE_DOUBLINGS:
            extents.append(f"{format_doublings(self.segments)} of the number of segments")
        return extents

    @property
    def text(self) -> str:
        """The text in tables."""
        if not self.of_residuals:
            return (
                f"{UNMEASURED_PREFIX}{self.unmeasured}" if self.unmeasured else PARAMETERS_ONLY_TEXT
            )
        allocations = f"{_count(self.allocations, 'allocation')}, " if self.allocations else ""
        least = "at least: " if self.is_lower_bound else ""
        text = f"{least}{allocations}{_count(self.workloads, 'workload')} of {self.pooled}"
        return "".join([text, *(f", {extent} beyond" for extent in self.extents)])

    @property
    def sentence(self) -> str:
        """The description of the interval, as the end of a sentence."""
        if self.of_residuals:
            pooled = "all operations" if self.pooled == ALL_OPERATIONS else self.pooled
            workloads = _count(self.workloads, "workload")
            text = f"95 % prediction interval from residuals at {workloads} of {pooled}"
            text += f" in {_count(self.allocations, 'allocation')}" if self.allocations else ""
            text += f", extrapolated by {' and '.join(self.extents)}" if self.extents else ""
            return text + (
                "; with fewer than five allocations the interval may be too narrow"
                if self.is_lower_bound
                else ""
            )
        where = self.unmeasured or "here"
        return f"the parameter interval; no error of the model was measured {where}"

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, text: str) -> IntervalBasis:
        """Return the basis with this text of a table. Any other text counts as parameters only."""
        match = BASIS_PATTERN.fullmatch(text)
        if match:
            return cls(
                pooled=match[3],
                workloads=int(match[2]),
                allocations=int(match[1] or 0),
                doublings=float(match[4] or 0),
                segments=float(match[5] or 0),
            )
        return (
            cls(unmeasured=text.removeprefix(UNMEASURED_PREFIX))
            if text.startswith(UNMEASURED_PREFIX)
            else PARAMETERS_ONLY
        )


PARAMETERS_ONLY = IntervalBasis()


def find_bases(measured: Places, allocation: np.ndarray, wanted: Places) -> list[IntervalBasis]:
    """Return the basis of the interval of each wanted place. `allocation` is that of each measured
    point, empty if allocations do not differ."""
    doublings = measure_size_beyond(measured, wanted) + measure_ranks_beyond(measured, wanted)
    segments = measure_segments_beyond(measured, wanted)
    bases: list[IntervalBasis] = []
    pools = {
        name: _describe_pool(measured, allocation, name)
        for name in np.unique(wanted.operation).tolist()
    }
    distances = _list_distances(wanted)
    is_measured = {
        distance: _is_distance_measured(measured, *distance) for distance in set(distances)
    }
    for number, distance in enumerate(distances):
        if is_measured[distance]:
            pool = pools[str(wanted.operation[number])]
            bases.append(IntervalBasis(*pool, float(doublings[number]), float(segments[number])))
        else:
            bases.append(
                IntervalBasis(unmeasured=wanted.describe_distance(number) if len(measured) else "")
            )
    return bases


def _list_distances(places: Places) -> list[tuple[str, bool]]:
    """Return the levels that the messages of each place cross, and whether they stay within a
    node."""
    is_within = [places.describe_distance(number) == ONE_NODE for number in range(len(places))]
    return list(zip(places.levels_crossed.tolist(), is_within, strict=True))


def _is_distance_measured(measured: Places, levels_crossed: str, on_one_node: bool) -> bool:
    """Return whether messages over this distance were measured, or over a farther one."""
    names = [name for name in np.unique(measured.levels_crossed).tolist() if name]
    if levels_crossed and names:
        return (
            levels_crossed in names
            if on_one_node
            else any(covers_levels(name, levels_crossed) for name in names)
        )
    return bool((measured.on_one_node == on_one_node).any())


def _describe_pool(
    measured: Places, allocation: np.ndarray, operation: str
) -> tuple[str, int, int]:
    """Return the operation, or `all` if it was not measured, with its numbers of workloads and of
    allocations."""
    of_operation = measured.operation == operation
    rows = of_operation if of_operation.any() else np.ones(len(measured), dtype=bool)
    allocations = set(allocation[rows].tolist()) - {""}
    pooled = operation if of_operation.any() else ALL_OPERATIONS
    return pooled, len(np.unique(measured.workload[rows])), len(allocations)


def measure_size_beyond(measured: Places, wanted: Places) -> Array:
    """Return the doublings from each wanted size to the measured ones of the operation, or of all
    if it has none; 0 between them. A message without payload is not extrapolated."""
    has_payload = measured.size > 0
    doublings = _measure_beyond(
        measured.only(has_payload), measured.size[has_payload], wanted, wanted.size
    )
    return np.where(wanted.size > 0, doublings, 0.0)


def measure_segments_beyond(measured: Places, wanted: Places) -> Array:
    """Return how many doublings more and smaller segments a message of each wanted point has than
    those of the measured points of its operation, or of all if it has none."""
    beyond = np.zeros(len(wanted))
    if not wanted.segments.any():
        return beyond
    for rows, known_rows in _pair_operations(measured, wanted):
        known = measured.only(known_rows)
        more = wanted.segments[rows] - known.segments.max(initial=0.0)
        smallest = known.segment[known.segments > 0].min(initial=LARGEST_SEGMENT)
        smaller = smallest - wanted.segment[rows]
        beyond[rows] = np.where(more > 0, np.clip(smaller, 0.0, more), 0.0)
    return beyond


def measure_ranks_beyond(measured: Places, wanted: Places) -> Array:
    """Return the doublings from each wanted number of ranks to the measured ones."""
    return _measure_beyond(measured, measured.ranks, wanted, wanted.ranks)


def _measure_beyond(measured: Places, values: Array, wanted: Places, wanted_values: Array) -> Array:
    """Return how far each wanted value lies outside the range of those of its operation, or of all
    if it has none."""
    distances = np.zeros(len(wanted))
    for rows, known_rows in _pair_operations(measured, wanted):
        measured_values = values[known_rows]
        if len(measured_values):
            low, high = measured_values.min(), measured_values.max()
            distances[rows] = np.maximum(
                np.maximum(low - wanted_values[rows], wanted_values[rows] - high), 0.0
            )
    return distances


def _pair_operations(measured: Places, wanted: Places) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield flags of the wanted points of each operation, and of its measured points, or of all if
    it has none."""
    for name in np.unique(wanted.operation):
        of_operation = measured.operation == name
        known = of_operation if of_operation.any() else np.ones(len(measured), dtype=bool)
        yield wanted.operation == name, known
