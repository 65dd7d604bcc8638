"""The covariance of the residuals of the MPI default (`GrowthScales`), for the residual model.

The base of these residuals is a growth law without knowledge of algorithms. Its errors therefore
grow with the ranks, and change abruptly where the library switches algorithms:

- Each branch of the library (see `predictions/mpi_default.py`) has a process of its own.
- It has a linear trend over the doublings of the ranks, common to all sizes, and one that changes
  with the size.
- Each number of nodes was measured in another job, whose times all differ a little.
- A library switches at a size of the message, or of all data. One part of the residuals is
  therefore shared by points of similar size, one by points whose size times ranks is similar.
- All correlations over sizes are exponential, since the curves have kinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from commodel.models import Array
from commodel.predictions.places import Places
from commodel.predictions.residual_model import Correlations, Likeness, Scales


@dataclass(frozen=True, slots=True)
class GrowthScales(Scales):
    """Scales with a trend over the ranks. The parts of other operations and algorithms are 0."""

    trend: float = 0.0  # for each doubling of the ranks, twice: at all sizes, and at similar ones
    total: float = 0.0  # shared by points of similar size times ranks
    place: float = 0.0  # shared by points on the same nodes: these were measured in one job
    origin: float = 0.0  # doublings of the ranks at which the trend is 0; not fitted

    @classmethod
    def of_numbers(cls, numbers: Iterable[float]) -> GrowthScales:
        """Return the scales from the fitted numbers, and the origin."""
        algorithm, size, near, trend, total, place, point, doublings, origin = numbers
        return cls(
            everywhere=0.0,
            operation=0.0,
            algorithm=algorithm,
            size=size,
            near=near,
            point=point,
            doublings=doublings,
            trend=trend,
            total=total,
            place=place,
            origin=origin,
        )

    @property
    def fitted(self) -> tuple[float, ...]:
        parts = (self.algorithm, self.size, self.near, self.trend, self.total, self.place)
        return (*parts, self.point, self.doublings)

    @property
    def number_of_point(self) -> int:
        return 6

    @property
    def logs(self) -> Array:
        return np.log(self.fitted)

    @property
    def numbers(self) -> tuple[float, ...]:
        return (*self.fitted, self.origin)

    def refit(self, numbers: Iterable[float]) -> GrowthScales:
        return GrowthScales.of_numbers([*numbers, self.origin])

    def compare(self, first: Places, second: Places) -> Likeness:
        likeness = Likeness.of(first, second)
        total = (first.size + first.ranks)[:, None] - (second.size + second.ranks)
        return GrowthLikeness(
            operation=likeness.operation,
            algorithm=likeness.algorithm,
            size=likeness.size,
            place=likeness.place,
            setting=likeness.setting,
            growth=np.outer(first.ranks - self.origin, second.ranks - self.origin),
            total=total**2,
        )


@dataclass(frozen=True, eq=False)
class GrowthCorrelations(Correlations):
    """Also the correlation of points by their size times ranks."""

    total: Array
    total_decay: Array


@dataclass(frozen=True, eq=False)
class GrowthLikeness(Likeness):
    """Also the product of the doublings of the ranks from the origin, and the squared doublings
    between sizes times ranks."""

    growth: Array
    total: Array

    def correlate(self, scales: Scales) -> GrowthCorrelations:
        length = scales.doublings**2
        size, total = self.size / length, self.total / length
        near = size + self.place
        return GrowthCorrelations(
            *_correlate_roughly(size, size),
            *_correlate_roughly(near, size),
            *_correlate_roughly(total, total),
        )

    def covariance(self, scales: Scales, correlations: Correlations | None = None) -> Array:
        scales = cast(GrowthScales, scales)
        found = cast(GrowthCorrelations, correlations or self.correlate(scales))
        parts = scales.algorithm**2 + scales.size**2 * found.size + scales.near**2 * found.near
        parts += scales.trend**2 * self.growth * (1 + found.size)
        parts += scales.total**2 * found.total + scales.place**2 * (self.place == 0)
        return (self.algorithm == 1) * parts

    def gradient(self, scales: Scales, correlations: Correlations) -> Iterator[Array]:
        scales = cast(GrowthScales, scales)
        found = cast(GrowthCorrelations, correlations)
        same = self.algorithm == 1
        yield 2 * scales.algorithm**2 * same
        yield 2 * scales.size**2 * same * found.size
        yield 2 * scales.near**2 * same * found.near
        yield 2 * scales.trend**2 * same * self.growth * (1 + found.size)
        yield 2 * scales.total**2 * same * found.total
        yield 2 * scales.place**2 * same * (self.place == 0)
        of_size = (scales.size**2 + scales.trend**2 * self.growth) * found.size_decay
        decay = of_size + scales.near**2 * found.near_decay + scales.total**2 * found.total_decay
        yield same * decay


def _correlate_roughly(squared_distances: Array, squared_sizes: Array) -> tuple[Array, Array]:
    """Return the exponential correlation, and its derivative by the logarithm of the doublings over
    which it decays. `squared_sizes` is the part of the squared distances that is in doublings of
    the size."""
    distances = np.sqrt(squared_distances)
    correlation = np.exp(-distances)
    slope = np.divide(squared_sizes, distances, out=np.zeros_like(distances), where=distances > 0)
    return correlation, correlation * slope
