"""Functional performance models: the speed of a kind of process with a kernel at each size of its
share (`Speeds`, `Speed`).

A file has rows of sizes and speeds. Sizes count blocks of C for `gemm` and cells for `wave`, speeds
are such units per second: x / s(x) is the computation of one iteration. A constant speed is a curve
of one row. (Lastovetsky, Reddy: Data partitioning with a functional performance model of
heterogeneous processors, 2007.)
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from commodel.errors import UserError, suggest_name
from commodel.files.atomic import write_text
from commodel.files.safe_paths import AnyPath
from commodel.files.typed_records import parse_record
from commodel.files.yaml import format_yaml, read_yaml
from commodel.records import Finite
from commodel.units import show_value

SPEED_FORMS = ("piecewise", "akima")
KERNELS = ("gemm", "wave")
MIN_NUMBER, MAX_NUMBER = 1e-30, 1e30  # limits of sizes and speeds, so that no time overflows
MAX_BLOCK = 1 << 20  # elements per side
SPLINE_POINTS = 64  # points between two rows at which a spline is evaluated


@dataclass(frozen=True)
class KernelSpeeds:
    """Rows [size, speed] or [size, speed, low, high] of each kind of process, by growing size.

    low and high are a 95 % interval of the speed. `block`: elements per side of the unit of sizes.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kinds: Mapping[str, tuple[tuple[Finite, ...], ...]]
    block: int = 1


@dataclass(frozen=True)
class Speeds:
    """A file of speeds. `simulated`: declared for a simulated platform, not measured."""

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012

    kernels: Mapping[str, KernelSpeeds]
    platform: str = ""
    simulated: bool = False
    source: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def of(self, kernel: str) -> KernelSpeeds:
        """Return the speeds of a kernel."""
        if kernel not in self.kernels:
            raise UserError(f"no speeds of kernel '{kernel}'; {suggest_name(kernel, self.kernels)}")
        return self.kernels[kernel]

    def curves(self, kernel: str, kinds: list[str], form: str = "piecewise") -> "list[Speed]":
        """Return the curve of each process; processes of one kind share one object."""
        rows = self.of(kernel).kinds
        for kind in dict.fromkeys(kinds):
            if kind not in rows:
                raise UserError(
                    f"no speeds of '{kind}' for {kernel}; there are those of {', '.join(sorted(rows))}"
                )
        by_kind = {kind: Speed.of(rows[kind], form) for kind in dict.fromkeys(kinds)}
        return [by_kind[kind] for kind in kinds]

    def joined(
        self, kernel: str, block: int, rows: Mapping[str, tuple[tuple[float, ...], ...]]
    ) -> "Speeds":
        """Return the speeds with the rows of some kinds replaced."""
        old_rows = self.kernels[kernel].kinds if kernel in self.kernels else {}
        return replace(
            self, kernels={**self.kernels, kernel: KernelSpeeds({**old_rows, **rows}, block)}
        )


SPEEDS_ADAPTER = TypeAdapter(Speeds)


@dataclass(frozen=True, eq=False)
class Speed:
    """A curve through rows, constant beyond the first and the last.

    A larger share must take longer, or processes could be balanced in several ways. The curve
    therefore keeps the largest number of rows whose times x / s(x) grow.
    """

    size: np.ndarray
    speed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    form: str = "piecewise"
    dropped: int = 0  # rows left out so that times grow

    @classmethod
    def of(cls, rows: tuple[tuple[float, ...], ...], form: str = "piecewise") -> "Speed":
        """Return the curve of rows from a file."""
        if form not in SPEED_FORMS:
            raise UserError(
                f"found interpolation {show_value(form)}, wanted {' or '.join(SPEED_FORMS)}"
            )
        all_rows = np.array(
            [row if len(row) == 4 else (row[0], row[1], row[1], row[1]) for row in rows],
            dtype=float,
        )
        growing = all_rows[find_longest_growing(all_rows[:, 0] / all_rows[:, 1])]
        size, speed, low, high = growing.T
        return cls(size, speed, low, high, form=form, dropped=len(all_rows) - len(growing))

    def at(self, x: np.ndarray | float) -> np.ndarray:
        """Return the units per second with a share of x units.

        A spline is limited to the speeds of the rows, so that it is nowhere 0.
        """
        if self._spline is None:
            return np.interp(x, self.size, self.speed)
        within_rows = np.clip(x, self.size[0], self.size[-1])
        return np.clip(self._spline(within_rows), self.speed.min(), self.speed.max())

    def interval(self, x: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the speed's interval."""
        speed = self.at(x)
        low, high = (np.interp(x, self.size, row / self.speed) for row in (self.low, self.high))
        return speed * low, speed * high

    def seconds(self, x: np.ndarray | float) -> np.ndarray:
        """Return the seconds of the computation of one iteration."""
        return np.asarray(x) / self.at(x)

    def largest_share(self, seconds: float) -> float:
        """Return the largest share that takes at most `seconds`.

        It is where the line through the origin with slope 1 / seconds leaves the curve for good:
        exact between rows, for a spline up to the distance of its points.
        """
        size, time = self._inverse
        if seconds <= time[0]:
            return seconds * size[0] / time[0]
        if seconds >= time[-1]:
            return seconds * size[-1] / time[-1]
        right = int(np.searchsorted(time, seconds, side="right"))
        (x0, x1), (s0, s1) = (
            size[right - 1 : right + 1],
            size[right - 1 : right + 1] / time[right - 1 : right + 1],
        )
        slope = (s1 - s0) / (x1 - x0)
        return (s0 - slope * x0) * seconds / (1 - slope * seconds)

    @cached_property
    def _spline(self) -> Callable[[np.ndarray | float], np.ndarray] | None:
        if self.form == "piecewise" or len(self.size) < 3:
            return None
        # takes longer to load than most verbs to run
        from scipy.interpolate import Akima1DInterpolator

        return Akima1DInterpolator(self.size, self.speed)

    @cached_property
    def _inverse(self) -> tuple[np.ndarray, np.ndarray]:
        """Sizes and their times, both growing.

        If a spline's times fall between two rows, they are replaced by the largest so far: a larger
        share that takes no longer is always preferred.
        """
        size = self.size
        if self._spline is not None:
            steps = np.arange(len(size) * SPLINE_POINTS - SPLINE_POINTS + 1) / SPLINE_POINTS
            size = np.interp(steps, np.arange(len(size)), size)
        time = np.maximum.accumulate(self.seconds(size))
        last = np.r_[time[1:] > time[:-1], True]  # the largest size of equal times
        return size[last], time[last]


def find_longest_growing(times: np.ndarray) -> list[int]:
    """Return the indices of a longest growing subsequence, so that an outlier removes itself
    only."""
    ends: list[float] = []
    last: list[int] = []
    predecessor: list[int] = []
    for index, time in enumerate(times):
        length = bisect_left(ends, time)
        predecessor.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [time], [index]
    indices = [last[-1]]
    while predecessor[indices[-1]] >= 0:
        indices.append(predecessor[indices[-1]])
    return indices[::-1]


def read_speeds(path: AnyPath) -> Speeds:
    document = read_yaml(path)
    speeds = parse_record(SPEEDS_ADAPTER, document.data, document)
    for key, complaint in _list_contradictions(speeds):
        raise document.error(key, complaint)
    return speeds


def _list_contradictions(speeds: Speeds) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the mistakes in a file that types cannot exclude: the place and a text."""
    if not speeds.kernels:
        yield ("kernels",), f"found none, wanted {' or '.join(KERNELS)}"
    for name, kernel in speeds.kernels.items():
        if name not in KERNELS:
            yield ("kernels", name), f"found an unknown kernel; {suggest_name(name, KERNELS)}"
        if not 1 <= kernel.block <= MAX_BLOCK:
            wanted = f"wanted the elements a side of a block, 1 to {MAX_BLOCK}"
            yield ("kernels", name, "block"), f"found {kernel.block}, {wanted}"
        if not kernel.kinds:
            yield ("kernels", name, "kinds"), "found none, wanted a curve for each kind of process"
        for kind, rows in kernel.kinds.items():
            for position, complaint in _list_mistakes(rows):
                yield ("kernels", name, "kinds", kind, *position), complaint


def _list_mistakes(rows: tuple[tuple[float, ...], ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the mistakes in the rows of a kind: the place and a text."""
    if not rows:
        yield (), "found no rows, wanted [size, speed, low, high], sizes growing"
    for number, row in enumerate(rows):
        if len(row) not in (2, 4):
            yield (
                (number,),
                f"found {len(row)} numbers, wanted [size, speed] or [size, speed, low, high]",
            )
        for index, quantity in enumerate(("size", "speed", "low", "high")[: len(row)]):
            if row[index] <= 0:
                yield (number, index), f"found a {quantity} of {row[index]:g}, wanted more than 0"
            if not MIN_NUMBER <= row[index] <= MAX_NUMBER:
                yield (
                    (number, index),
                    f"found a {quantity} of {row[index]:g}, wanted {MIN_NUMBER:g} to {MAX_NUMBER:g}",
                )
        if number and row[0] <= rows[number - 1][0]:
            yield (
                (number, 0),
                f"found size {row[0]:g} after {rows[number - 1][0]:g}, wanted sizes that grow",
            )
        if len(row) == 4 and not row[2] <= row[1] <= row[3]:
            yield (
                (number,),
                f"found speed {row[1]:g} with an interval from {row[2]:g} to {row[3]:g}, which lacks it",
            )


def write_speeds(path: AnyPath, speeds: Speeds) -> None:
    document = {"platform": speeds.platform, "simulated": speeds.simulated, "source": speeds.source}
    document |= {"provenance": dict(speeds.provenance)}
    document["kernels"] = {
        name: {
            "block": kernel.block,
            "kinds": {kind: list(map(list, rows)) for kind, rows in kernel.kinds.items()},
        }
        for name, kernel in speeds.kernels.items()
    }
    present = {key: value for key, value in document.items() if value not in ("", {})}
    write_text(path, format_yaml(present))
