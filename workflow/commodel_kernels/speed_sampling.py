"""Selection of the sizes to measure for a functional performance model: few where speed is linear
in the size, else more. A size is the area of a rectangle that is as square as possible. Processes
of one kind are equally fast, such as `node/6`, on six cores of a node, or `fat/gpu`."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from math import isqrt, sqrt

Sample = tuple[float, float, float]  # speed and the ends of its interval
# measures some kinds of processes, each at its size
Measure = Callable[[Mapping[str, int]], Mapping[str, Sample]]
Rows = tuple[tuple[float, ...], ...]  # size, speed and its interval
MIN_SIZE_RATIO = 1.25  # ratio of two neighbouring sizes above which their middle may be measured


class SizeSelection:
    """The sizes to measure for one kind of process: both ends, then middles of intervals. If the
    speed at a middle is not on the straight line between both ends, the two halves follow.
    Intervals with the largest deviation come first."""

    def __init__(self, smallest: int, largest: int, tolerance: float, max_sizes: int) -> None:
        self.tolerance, self.max_sizes = tolerance, max_sizes
        self.rows: dict[int, Sample] = {}
        self.ends = [smallest, largest] if smallest < largest else [smallest]
        # negative deviation from the line, ends and middle
        self.intervals: list[tuple[float, int, int, int]] = []
        self._add_interval(1.0, smallest, largest)

    def next(self) -> int | None:
        """Return the next size to measure, None if there is none."""
        if self.ends:
            return self.ends[0]
        if not self.intervals or len(self.rows) >= self.max_sizes:
            return None
        return self.intervals[0][-1]

    def store(self, size: int, sample: Sample) -> None:
        """Store the result of the size that `next` returned."""
        self.rows[size] = sample
        if self.ends:
            self.ends.pop(0)
            return
        _, low, high, _ = heapq.heappop(self.intervals)
        share = (size - low) / (high - low)
        line = [
            before + (after - before) * share
            for before, after in zip(self.rows[low], self.rows[high], strict=True)
        ]
        # gap between both 95 % intervals
        deviation = max(sample[1] - line[2], line[1] - sample[2]) / sample[0]
        if deviation > self.tolerance:
            self._add_interval(deviation, low, size)
            self._add_interval(deviation, size, high)

    def _add_interval(self, deviation: float, low: int, high: int) -> None:
        middle = round_to_rectangle(round(sqrt(low * high)))
        if high > MIN_SIZE_RATIO * low and low < middle < high:
            heapq.heappush(self.intervals, (-deviation, low, high, middle))


def make_rectangle(size: int) -> tuple[int, int]:
    """Return width and height of a rectangle of at most this area that is as square as possible."""
    width = isqrt(size)
    return width, size // width


def round_to_rectangle(size: int) -> int:
    """Return the largest size that a rectangle of `make_rectangle` can have, at most this one."""
    width, height = make_rectangle(size)
    return width * height


def sample_speeds(
    kinds: Iterable[str],
    measure: Measure,
    smallest: int,
    largest: int,
    tolerance: float = 0.05,
    max_sizes: int = 20,
) -> dict[str, Rows]:
    """Return the measured rows of each kind, at most `max_sizes`. Each round measures all kinds
    that have a next size."""
    selections = {
        kind: SizeSelection(
            round_to_rectangle(smallest), round_to_rectangle(largest), tolerance, max_sizes
        )
        for kind in kinds
    }
    while next_sizes := {
        kind: size
        for kind, selection in selections.items()
        if (size := selection.next()) is not None
    }:
        for kind, sample in measure(next_sizes).items():
            selections[kind].store(next_sizes[kind], sample)
    return {
        kind: tuple((float(size), *selection.rows[size]) for size in sorted(selection.rows))
        for kind, selection in selections.items()
    }
