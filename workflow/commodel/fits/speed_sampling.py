"""Selection of the sizes to measure for a functional performance model: few where speed is linear in the size, more
where it bends. A size is the area of a rectangle that is as square as possible."""

import heapq
from collections.abc import Callable, Iterable, Mapping
from math import isqrt, sqrt

Sample = tuple[float, float, float]  # speed and the ends of its interval
Measure = Callable[[Mapping[str, int]], Mapping[str, Sample]]  # of some kinds, each at a size of its own
Rows = tuple[tuple[float, ...], ...]  # size, speed and its interval
NEAREST = 1.25  # between two sizes that have none between them


class Bends:
    """The sizes to measure for one kind of process. Both ends come first, then middles of intervals. If a middle is off
    the straight line, its halves follow; the interval with the largest deviation comes first."""

    def __init__(self, smallest: int, largest: int, tolerance: float, most: int) -> None:
        self.tolerance, self.most = tolerance, most
        self.rows: dict[int, Sample] = {}
        self.ends = [smallest, largest] if smallest < largest else [smallest]
        self.open: list[tuple[float, int, int, int]] = []  # its largest error, negative; interval and middle
        self._open(1.0, smallest, largest)

    def next(self) -> int | None:
        """Return the next size to measure, None if there is none."""
        if self.ends:
            return self.ends[0]
        if not self.open or len(self.rows) >= self.most:
            return None
        return self.open[0][-1]

    def note(self, size: int, sample: Sample) -> None:
        """Store the result of the size that `next` returned."""
        self.rows[size] = sample
        if self.ends:
            self.ends.pop(0)
            return
        _, low, high, _ = heapq.heappop(self.open)
        part = (size - low) / (high - low)
        line = [before + (after - before) * part for before, after in zip(self.rows[low], self.rows[high], strict=True)]
        off = max(sample[1] - line[2], line[1] - sample[2]) / sample[0]  # beyond what noise explains
        if off > self.tolerance:
            self._open(off, low, size)
            self._open(off, size, high)

    def _open(self, off: float, low: int, high: int) -> None:
        middle = area(round(sqrt(low * high)))
        if high > NEAREST * low and low < middle < high:
            heapq.heappush(self.open, (-off, low, high, middle))


def rectangle(size: int) -> tuple[int, int]:
    """Return width and height of the largest rectangle that is as square as possible and has at most so many units."""
    width = isqrt(size)
    return width, size // width


def area(size: int) -> int:
    width, height = rectangle(size)
    return width * height


def sample_speeds(
    kinds: Iterable[str], measure: Measure, smallest: int, largest: int, tolerance: float = 0.05, most: int = 20
) -> dict[str, Rows]:
    """Return the measured rows of every kind, with a limit for each. Each round measures all kinds that still bend."""
    bends = {kind: Bends(area(smallest), area(largest), tolerance, most) for kind in kinds}
    while wanted := {kind: size for kind, bend in bends.items() if (size := bend.next()) is not None}:
        for kind, sample in measure(wanted).items():
            bends[kind].note(wanted[kind], sample)
    return {kind: tuple((float(size), *bend.rows[size]) for size in sorted(bend.rows)) for kind, bend in bends.items()}
