"""The residual model: how wrong a prediction will be at a point, from what was measured at others.

A residual is ln(measured/base), `base` being the prediction of a model, or of several.
`ResidualModel.fit` takes the residuals at measured points, and `predict` returns the corrections of
any points, with the covariance of their errors.

- It is a Gaussian process. Its covariance has a part that all points share, one of the operation,
  one of the algorithm, one of the setting if settings differ, and one of the point alone. Those of
  operation and algorithm become less alike with the doublings of size, nodes and ranks a node
  between two points. There is no trend: beyond the measured points, the correction of the algorithm
  at this size persists, and the interval widens.
- Its scales have the largest posterior density (Rasmussen and Williams 2006, chapter 5), with weak
  priors. An operation with enough points has scales of its own, close to those of all points.
- Measured errors have heavier tails than a normal distribution. The interval is therefore a number
  of standard deviations that covers 95 % of the measured workloads, each left out. At a size, a
  place, an algorithm, an operation or a setting without measurement, it also covers 95 % of the
  points of left-out ones.

`Scales` have the covariance of the errors of models. Another kind of scales may have another one,
such as that of the MPI default (`predictions/growth_scales.py`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from functools import lru_cache

import numpy as np

from commodel.models import Array
from commodel.parameters import ALL_OPERATIONS
from commodel.predictions.interval_basis import (
    NEGLIGIBLE_DOUBLINGS,
    PARAMETERS_ONLY,
    IntervalBasis,
    find_bases,
    measure_ranks_beyond,
    measure_segments_beyond,
    measure_size_beyond,
)
from commodel.predictions.places import (
    ONE_NODE,
    SETTING,
    SEVERAL_NODES,
    WORKLOAD,
    Places,
    number_labels,
)
from commodel.stats import NORMAL_QUANTILE

COVERAGE = 0.95
# points to which scales are fitted; of more, so many are drawn at random
MAX_FITTED_POINTS = 400
SEED = 1
MIN_POINTS_OF_SCALES = 20  # points of an operation from which on it has scales of its own
# measured points of an operation, and of others, in a correction
MAX_OPERATION_POINTS, MAX_OTHER_POINTS = 1000, 200
MAX_JOINT_POINTS = 500  # points that are corrected together, where their covariance is not wanted
# Doublings over which residuals stay alike, and the distance, in these units, of points on one node
# and on several.
NODES_DOUBLINGS = 4.0
PER_NODE_DOUBLINGS = 2.0
DISTANCE_OF_ONE_NODE = 1.0
# Standard deviation of a logarithm for each doubling beyond the measured sizes: no measured point
# shows whether latency, bandwidth or another protocol dominates there. Fits of published models
# differ by 5 to 10 % between these.
DEVIATION_BEYOND_SIZES = 0.05
# The same for each doubling of the number of segments beyond the measured ones, if the segments are
# smaller, too; shared by the points of an algorithm. On simulated networks, models that are right
# about segments of 4 KiB are wrong by 5 to 20 % about those of 1 KiB, and by up to a factor of 2
# about smaller ones.
DEVIATION_BEYOND_SEGMENTS = 0.1
SCALES_DEVIATION = 0.2  # prior of the logarithms of an operation's scales: from those of all points
# workloads of points to which a model was fitted: their residuals are too small unless one is left
# out
MIN_FITTED_WORKLOADS = 2
MIN_FREEDOM = 3  # least number of degrees of freedom
ROUNDING = 1e-9  # tolerance of a sum of weights


FAR_DOUBLINGS = 1.5  # of the ranks beyond the measured ones, from which on a point is far beyond


def name_beyond(placement: str, is_far: bool = False) -> str:
    """Return the kind of the points beyond the measured ranks at a placement. A model has its
    standard deviations if larger numbers of ranks were predicted from smaller ones."""
    return f"{'far ' if is_far else ''}beyond {placement}"


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of the parts of a residual, all logarithms, and the doublings of the size
    over which residuals stay alike."""

    everywhere: float  # shared by all points
    operation: float  # shared by points of an operation with similar sizes, nodes and ranks a node
    algorithm: float  # shared by all points of an algorithm
    size: float  # shared by points of an algorithm with similar sizes
    near: float  # shared by points of an algorithm with similar sizes, nodes and ranks a node
    point: float
    doublings: float
    # shared by points of one setting and operation with similar sizes; 0 if settings do not differ
    setting: float = 0.0

    @property
    def logs(self) -> Array:
        """The logarithms of the numbers that are fitted."""
        return np.log(self.numbers)

    @property
    def number_of_point(self) -> int:
        """The place of `point` among the numbers that are fitted."""
        return 5

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that are fitted, as a parameter set stores them."""
        numbers = astuple(self)
        return numbers if self.setting else numbers[:-1]

    def refit(self, numbers: Iterable[float]) -> Scales:
        """Return the same kind of scales with other fitted numbers."""
        return Scales(*numbers)

    def compare(self, first: Places, second: Places) -> Likeness:
        """Return how alike the points of two lists are, as the covariance needs it."""
        return Likeness.of(first, second)


# Published models that fit a machine are wrong by 5 to 20 %; a size informs its neighbours, not the
# other protocol.
PRIOR = Scales(
    everywhere=0.1, operation=0.1, algorithm=0.2, size=0.2, near=0.1, point=0.05, doublings=6.0
)
# Of their logarithms: a standard deviation may be 20 times as large or as small, the doublings four
# times.
PRIOR_DEVIATIONS = np.array([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.7])
# Of the part `setting`, where settings differ: jobs on one machine differ by 5 to 20 %.
PRIOR_OF_SETTING, DEVIATION_OF_SETTING = 0.1, 1.5
SEARCH = {"maxiter": 60, "ftol": 1e-7}
MIN_SCALE, MAX_SCALE = 1e-4, 1e2  # bounds of the search
# added to that of a point: keeps matrices invertible where residuals are exact
POINT_VARIANCE = 1e-8


@dataclass(frozen=True, eq=False)
class Likeness:
    """How alike the points of two lists are, as arrays with a row for each point of the first."""

    operation: Array  # 1: the same
    algorithm: Array  # 1: the same, 1/2: the same but for its arguments
    size: Array  # squared doublings between sizes
    place: Array  # squared distance in nodes and ranks of a node
    setting: Array  # 1: the same

    @classmethod
    def of(cls, first: Places, second: Places) -> Likeness:
        same_algorithm = (
            _equal(first.algorithm, second.algorithm) + _equal(first.stem, second.stem)
        ) / 2
        size, nodes, per_node = ((first.doublings[:, None] - second.doublings) ** 2).transpose(
            2, 0, 1
        )
        differs = first.on_one_node[:, None] != second.on_one_node
        of_place = (
            nodes / NODES_DOUBLINGS**2
            + per_node / PER_NODE_DOUBLINGS**2
            + DISTANCE_OF_ONE_NODE**2 * differs
        )
        return cls(
            operation=_equal(first.operation, second.operation),
            algorithm=same_algorithm,
            size=size,
            place=of_place,
            setting=_equal(first.setting, second.setting),
        )

    def only(self, pairs: tuple[np.ndarray, np.ndarray]) -> Likeness:
        """Return that of some pairs of points, given by their rows and columns, as arrays of one
        dimension."""
        return type(self)(*(getattr(self, entry.name)[pairs] for entry in fields(self)))

    def correlate(self, scales: Scales) -> Correlations:
        squared = self.size / scales.doublings**2
        return Correlations(*_correlate(squared), *_correlate(squared + self.place))

    def covariance(self, scales: Scales, correlations: Correlations | None = None) -> Array:
        """Return the prior covariance of the residuals, without the part of each point alone."""
        found = correlations or self.correlate(scales)
        of_algorithm = (
            scales.algorithm**2 + scales.size**2 * found.size + scales.near**2 * found.near
        )
        of_operation = scales.operation**2 * self.operation * found.near
        of_setting = scales.setting**2 * self.operation * self.setting * found.size
        return scales.everywhere**2 + of_operation + self.algorithm * of_algorithm + of_setting

    def gradient(self, scales: Scales, correlations: Correlations) -> Iterator[Array]:
        """Yield the derivative of the covariance by the logarithm of each scale; that of `point` is
        not included."""
        size = self.algorithm * correlations.size
        near = self.algorithm * correlations.near
        of_operation = self.operation * correlations.near
        yield np.full(near.shape, 2 * scales.everywhere**2)
        yield 2 * scales.operation**2 * of_operation
        yield 2 * scales.algorithm**2 * self.algorithm
        yield 2 * scales.size**2 * size
        yield 2 * scales.near**2 * near
        amplitude = scales.operation**2 * self.operation + scales.near**2 * self.algorithm
        decay = (
            amplitude * correlations.near_decay
            + scales.size**2 * self.algorithm * correlations.size_decay
        )
        in_setting = scales.setting**2 * self.operation * self.setting
        decay += in_setting * correlations.size_decay
        yield 3 / scales.doublings**2 * self.size * decay
        if scales.setting:
            yield 2 * in_setting * correlations.size


@dataclass(frozen=True, eq=False)
class Correlations:
    """The correlations of points by their size, and by their size and place; each with its
    exponential factor, which its derivative has."""

    size: Array
    size_decay: Array
    near: Array
    near_decay: Array


def _correlate(squared_distances: Array) -> tuple[Array, Array]:
    """Return Matérn's correlation of order 3/2, and its exponential factor. A smoother correlation
    would underestimate the variance between two measurements."""
    scaled = np.sqrt(3 * squared_distances)
    decay = np.exp(-scaled)
    return (1 + scaled) * decay, decay


def _equal(first: np.ndarray, second: np.ndarray) -> Array:
    """Return 1 where a label of the first list equals one of the second, else 0."""
    # numbers are compared much faster than texts, and need not be in order
    numbers: dict[object, int] = {}
    of_first, of_second = (
        np.array([numbers.setdefault(label, len(numbers)) for label in labels.tolist()], dtype=int)
        for labels in (first, second)
    )
    return (of_first[:, None] == of_second).astype(float)


@dataclass(frozen=True, eq=False)
class MeasuredResiduals:
    """Residuals at measured points, and the variance of each by the scatter of its samples. The
    allocation is empty if allocations do not differ."""

    places: Places
    logs: Array
    variances: Array
    allocation: np.ndarray
    # Residuals of fits without the operation, size or place of each point, where these can be had.
    left_out: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        places: Places,
        logs: Array,
        variances: Array | float = 0.0,
        allocation: np.ndarray | str = "",
    ) -> MeasuredResiduals:
        """Return residuals; a single value is that of all points."""
        variance, allocations = (
            np.broadcast_to(column, len(logs)) for column in (variances, allocation)
        )
        return cls(places=places, logs=logs, variances=variance, allocation=allocations)

    def __len__(self) -> int:
        return len(self.logs)

    def digest(self) -> bytes:
        """Return a digest of what a search for scales depends on."""
        places = self.places
        columns = (places.operation, places.alternative, places.setting)
        names = "\0".join(name for column in columns for name in column.tolist())
        numbers = np.column_stack([places.doublings, self.logs, self.variances])
        return hashlib.sha256(names.encode() + numbers.tobytes()).digest()

    def only(self, flags: np.ndarray) -> MeasuredResiduals:
        """Return those of some of the points."""
        return MeasuredResiduals(
            places=self.places.only(flags),
            logs=self.logs[flags],
            variances=self.variances[flags],
            allocation=self.allocation[flags],
            left_out={name: column[flags] for name, column in self.left_out.items()},
        )

    def thin_out(self, max_points: int) -> MeasuredResiduals:
        """Return those of evenly spread workloads, about `max_points`; all if there are fewer."""
        return self.only(self.places.select_evenly(max_points))

    def draw(self, max_points: int) -> MeasuredResiduals:
        """Return those of `max_points` points drawn at random, always the same; all if there are
        fewer. Some of them are neighbours: without any, all that differs between neighbours would
        seem to be the part of one point."""
        drawn = np.random.default_rng(SEED).permutation(len(self))[:max_points]
        return self.only(np.sort(drawn))

    def join(self, other: MeasuredResiduals) -> MeasuredResiduals:
        """Return both, as the residuals of one fit."""
        logs, variances, allocation = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("logs", "variances", "allocation")
        )
        return MeasuredResiduals(
            places=self.places.join(other.places),
            logs=logs,
            variances=variances,
            allocation=allocation,
        )


@dataclass(frozen=True)
class _ScalesSearch:
    """A search for scales; equal ones have the same residuals, errors of the base, prior and
    deviations."""

    digest: bytes  # of the residuals and the errors of the base
    prior: Scales
    deviations: tuple[float, ...]  # of the logarithms of the prior
    residuals: MeasuredResiduals = field(compare=False)
    base_covariance: Array = field(compare=False)


def fit_scales(
    residuals: MeasuredResiduals,
    prior: Scales,
    deviations: Array,
    base_covariance: Array | float = 0.0,
) -> Scales:
    """Return the scales with the largest posterior density. `deviations` are those of the
    logarithms of the prior, `base_covariance` is that of known errors of the base."""
    base = np.asarray(base_covariance, dtype=float)
    digest = hashlib.sha256(residuals.digest() + base.tobytes()).digest()
    return _find_scales(
        _ScalesSearch(
            digest=digest,
            prior=prior,
            deviations=tuple(deviations.tolist()),
            residuals=residuals,
            base_covariance=base,
        )
    )


@lru_cache(maxsize=512)
def _find_scales(search: _ScalesSearch) -> Scales:
    # Here, because they are slow to load.
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
    from scipy.optimize import minimize

    residuals = search.residuals
    prior = search.prior
    deviations = np.array(search.deviations)
    # Matrices are symmetric: only their lower halves are computed, as lists of pairs of points.
    count = len(residuals)
    half = np.tril_indices(count)
    is_diagonal = half[0] == half[1]
    multiplicity = np.where(is_diagonal, 1.0, 2.0)
    likeness = prior.compare(residuals.places, residuals.places).only(half)
    fixed_covariance = np.broadcast_to(search.base_covariance, (count, count))[half].copy()
    fixed_covariance[is_diagonal] += POINT_VARIANCE + residuals.variances

    def penalize(logs: Array) -> tuple[float, Array]:
        """Return the negative logarithm of the density, and its gradient."""
        scales = prior.refit(np.exp(logs).tolist())
        correlations = likeness.correlate(scales)
        matrix = np.zeros((count, count))
        matrix[half] = likeness.covariance(scales, correlations) + fixed_covariance
        np.fill_diagonal(matrix, np.diag(matrix) + scales.point**2)
        factor = dpotrf(matrix, lower=1)[0]
        scaled = dpotrs(factor, residuals.logs, lower=1)[0]
        length = 0.5 * residuals.logs @ scaled + np.log(np.diag(factor)).sum()
        inverse = dpotri(factor, lower=1)[0]
        slope = inverse[half] - scaled[half[0]] * scaled[half[1]]
        weighted = slope * multiplicity
        slopes = [
            0.5 * float(weighted @ derivative)
            for derivative in likeness.gradient(scales, correlations)
        ]
        slopes.insert(prior.number_of_point, float(slope[is_diagonal].sum()) * scales.point**2)
        distance = (logs - prior.logs) / deviations
        return float(length + 0.5 * distance @ distance), np.array(slopes) + distance / deviations

    bounds = [(np.log(MIN_SCALE), np.log(MAX_SCALE))] * len(deviations)
    found = minimize(
        penalize, prior.logs, jac=True, method="L-BFGS-B", bounds=bounds, options=SEARCH
    )
    # Rounded, so that the last bit of a processor does not matter.
    return prior.refit(float(f"{value:.3g}") for value in np.exp(found.x))


def _add_points(covariance: Array, scales: Scales, variances: Array | float = 0.0) -> Array:
    """Return a covariance with the part of each point alone, and these variances of its
    measurement."""
    return covariance + np.diag(
        np.broadcast_to(scales.point**2 + POINT_VARIANCE + variances, len(covariance))
    )


@dataclass(frozen=True, eq=False)
class Corrections:
    """The corrections of some points: logarithms, with the covariance of their errors, and the half
    width of their prediction intervals."""

    logs: Array
    covariance: Array
    half_width: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """The process given measured points, for points of one operation."""

    scales: Scales
    residuals: MeasuredResiduals
    own: np.ndarray  # numbers of the operation's points among all measured ones
    others: np.ndarray  # those of other operations; `residuals` has first the own, then these
    inverse: np.ndarray  # of the covariance of the measured points

    @classmethod
    def of(cls, residuals: MeasuredResiduals, operation: str, scales: Scales) -> Posterior:
        """Return the process for points of an operation, given its own measured points and some of
        the others."""
        of_operation = residuals.places.operation == operation
        own, other_numbers = (
            numbers[residuals.places.only(numbers).select_evenly(max_points)]
            for numbers, max_points in (
                (np.flatnonzero(of_operation), MAX_OPERATION_POINTS),
                (np.flatnonzero(~of_operation), MAX_OTHER_POINTS),
            )
        )
        used = residuals.only(np.concatenate([own, other_numbers]))
        covariance = scales.compare(used.places, used.places).covariance(scales)
        return cls(
            scales=scales,
            residuals=used,
            own=own,
            others=other_numbers,
            inverse=np.linalg.inv(_add_points(covariance, scales, used.variances)),
        )

    def correct(self, places: Places) -> tuple[Array, Array]:
        """Return the corrections of points, and the covariance of their errors."""
        shared = self.scales.compare(places, self.residuals.places).covariance(self.scales)
        prior = self.scales.compare(places, places).covariance(self.scales)
        covariance = prior - shared @ self.inverse @ shared.T
        # Where many points are at one place, rounding may leave less than nothing.
        np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
        covariance = _add_points(covariance, self.scales)
        return shared @ (self.inverse @ self.residuals.logs), (covariance + covariance.T) / 2

    def leave_out(self, label: np.ndarray) -> tuple[Array, Array]:
        """Return the error of the correction of each own point, and its standard deviation, if all
        points of its label are left out; in closed form."""
        scaled = self.inverse @ self.residuals.logs
        errors = np.zeros(len(label))
        deviations = np.zeros(len(label))
        for value in np.unique(label[: len(self.own)]):
            rows = np.flatnonzero(label == value)
            covariance = np.linalg.inv(self.inverse[np.ix_(rows, rows)])
            errors[rows] = covariance @ scaled[rows]
            deviations[rows] = np.sqrt(np.diag(covariance))
        return errors[: len(self.own)], deviations[: len(self.own)]


@dataclass(frozen=True, eq=False)
class ResidualModel:
    """Residuals at measured points, and what they say about others."""

    residuals: MeasuredResiduals
    scales: Mapping[str, Scales]  # by operation
    error: float  # root mean square of the errors at left-out workloads
    # that cover 95 % of the points of a left-out workload, operation, …
    deviations: Mapping[str, float]
    _posteriors: dict[str, Posterior] = field(default_factory=dict, repr=False)

    @classmethod
    def fit(
        cls, residuals: MeasuredResiduals, scales: Mapping[str, Scales] | None = None
    ) -> ResidualModel | None:
        """Return the model of residuals at measured points; None without any. With `scales`, it has
        these, and none are searched."""
        if not len(residuals):
            return None
        return cls(
            residuals=residuals,
            scales=scales or cls._fit_scales(residuals),
            error=0.0,
            deviations={},
        ).calibrate()

    @staticmethod
    def _fit_scales(residuals: MeasuredResiduals) -> dict[str, Scales]:
        prior, prior_deviations = PRIOR, PRIOR_DEVIATIONS
        if residuals.places.has_settings:
            prior = replace(PRIOR, setting=PRIOR_OF_SETTING)
            prior_deviations = np.append(PRIOR_DEVIATIONS, DEVIATION_OF_SETTING)
        pooled = fit_scales(residuals.draw(MAX_FITTED_POINTS), prior, prior_deviations)
        scales = {ALL_OPERATIONS: pooled}
        for name in np.unique(residuals.places.operation).tolist():
            own = residuals.only(residuals.places.operation == name)
            if len(own) >= MIN_POINTS_OF_SCALES:
                deviations = np.minimum(SCALES_DEVIATION, prior_deviations)
                scales[name] = fit_scales(own.draw(MAX_FITTED_POINTS), pooled, deviations)
        return scales

    def predict(self, places: Places) -> Corrections:
        """Return the corrections of points. Errors at points of different operations count as
        independent."""
        logs = np.zeros(len(places))
        covariance = np.zeros((len(places), len(places)))
        for name in np.unique(places.operation).tolist():
            rows = np.flatnonzero(places.operation == name)
            logs[rows], covariance[np.ix_(rows, rows)] = self._find_posterior(name).correct(
                places.only(rows)
            )
        counts = self.count_deviations(places)
        half_width = _widen_beyond(
            counts * np.sqrt(np.diag(covariance)), self.residuals.places, places
        )
        covariance *= np.outer(counts, counts) / NORMAL_QUANTILE**2
        # Errors beyond the measured sizes are those of all alternatives, and change no comparison.
        of_segments = DEVIATION_BEYOND_SEGMENTS * measure_segments_beyond(
            self.residuals.places, places
        )
        covariance += np.outer(of_segments, of_segments) * _equal(places.stem, places.stem)
        return Corrections(logs, covariance, half_width)

    def predict_singly(self, places: Places) -> tuple[Array, Array]:
        """Return the correction of each point, and the half width of its prediction interval."""
        logs, half_width = np.zeros(len(places)), np.zeros(len(places))
        for first in range(0, len(places), MAX_JOINT_POINTS):
            rows = np.arange(first, min(first + MAX_JOINT_POINTS, len(places)))
            corrections = self.predict(places.only(rows))
            logs[rows] = corrections.logs
            half_width[rows] = corrections.half_width
        return logs, half_width

    def predict_left_out(self) -> tuple[Array, Array, list[IntervalBasis]]:
        """Return for each measured point, with its workload left out: the correction, the half
        width of its interval, and the basis of it. The scales are those of all points."""
        places = self.residuals.places
        allocation = self.residuals.allocation
        logs, half_width = self.predict_singly(places)
        counts = self._count_deviations_left_out()
        for name in np.unique(places.operation).tolist():
            posterior = self._find_posterior(name)
            errors, deviations = posterior.leave_out(posterior.residuals.places.workload)
            logs[posterior.own] = self.residuals.logs[posterior.own] - errors
            half_width[posterior.own] = counts[posterior.own] * deviations
        bases = [PARAMETERS_ONLY] * len(places)
        for workload in np.unique(places.workload):
            left_out = places.workload == workload
            measured_places = places.only(~left_out)
            wanted_places = places.only(left_out)
            half_width[left_out] = _widen_beyond(
                half_width[left_out], measured_places, wanted_places
            )
            of_workload = find_bases(measured_places, allocation[~left_out], wanted_places)
            for number, basis in zip(np.flatnonzero(left_out).tolist(), of_workload, strict=True):
                bases[number] = basis
        return logs, half_width, bases

    def measures(self, placement: str, workloads: int) -> bool:
        """Return whether at least so many workloads were measured at a placement."""
        places = self.residuals.places
        at_placement = places.on_one_node == (placement == ONE_NODE)
        return len(np.unique(places.workload[at_placement])) >= workloads

    def count_deviations(self, places: Places) -> Array:
        """Return the standard deviations from the middle to the end of the interval of each
        point."""
        measured_labels = self.residuals.places.labels()
        wanted_labels = places.labels()
        unknown = {}
        for kind, label in measured_labels.items():
            if kind not in (WORKLOAD, SETTING):
                unknown[kind] = ~np.isin(wanted_labels[kind], label)
        if SETTING in measured_labels:
            measured_settings = self.residuals.places.setting_of_operation
            unknown[SETTING] = ~np.isin(places.setting_of_operation, measured_settings)
        beyond = measure_ranks_beyond(self.residuals.places, places)
        for placement in (ONE_NODE, SEVERAL_NODES):
            is_placed = places.on_one_node == (placement == ONE_NODE)
            unknown[name_beyond(placement)] = is_placed & (beyond > NEGLIGIBLE_DOUBLINGS)
            is_far = beyond >= FAR_DOUBLINGS
            unknown[name_beyond(placement, is_far=True)] = is_placed & is_far
        return self._count_unknown(unknown)

    def find_bases(self, places: Places) -> list[IntervalBasis]:
        """Return on which measured points the interval of each point rests."""
        return find_bases(self.residuals.places, self.residuals.allocation, places)

    def calibrate(self) -> ResidualModel:
        """Return the model with its error, and with the numbers of standard deviations that cover
        95 % of the points if a workload, an operation, an algorithm, a size, a place or a setting
        is left out. All workloads have equal weight."""
        from scipy.special import stdtrit  # here, because it is slow to load

        kinds = self.residuals.places.labels()
        ratios: dict[str, list[Array]] = {kind: [] for kind in kinds}
        errors_of_workloads: list[Array] = []
        workloads: list[np.ndarray] = []
        for name in np.unique(self.residuals.places.operation).tolist():
            posterior = self._find_posterior(name)
            workloads.append(self.residuals.places.workload[posterior.own])
            used = np.concatenate([posterior.own, posterior.others])
            for kind, label in kinds.items():
                errors, deviations = posterior.leave_out(label[used])
                if kind in self.residuals.left_out:
                    errors = (
                        errors
                        + (self.residuals.left_out[kind] - self.residuals.logs)[posterior.own]
                    )
                ratios[kind].append(np.abs(errors) / deviations)
                errors_of_workloads += [errors] if kind == WORKLOAD else []
        groups = number_labels(np.concatenate(workloads))
        deviations_of_kinds = {}
        for kind, parts in ratios.items():
            # The quantile of few workloads is too low, since the scales are fitted to these, too.
            freedom = int(groups.max()) + 1 - len(PRIOR_DEVIATIONS) - (SETTING in kinds)
            if kind == SETTING:
                # Points of one setting share an error.
                freedom = min(freedom, len(np.unique(kinds[SETTING])) - 1)
            of_few = float(stdtrit(max(freedom, MIN_FREEDOM), (1 + COVERAGE) / 2)) / NORMAL_QUANTILE
            count = _cover_groups(np.concatenate(parts), groups)
            deviations_of_kinds[kind] = round(of_few * max(count, NORMAL_QUANTILE), 4)
        error = float(np.sqrt(np.mean(np.concatenate(errors_of_workloads) ** 2)))
        return replace(self, error=round(error, 6), deviations=deviations_of_kinds)

    def _find_posterior(self, operation: str) -> Posterior:
        if operation not in self._posteriors:
            scales = self.scales.get(operation, self.scales[ALL_OPERATIONS])
            self._posteriors[operation] = Posterior.of(self.residuals, operation, scales)
        return self._posteriors[operation]

    def _count_deviations_left_out(self) -> Array:
        """Return the same for each measured point, its workload left out."""
        workload = number_labels(self.residuals.places.workload)
        unknown = {}
        labels = self.residuals.places.labels()
        if SETTING in labels:
            labels[SETTING] = self.residuals.places.setting_of_operation
        for kind, label in labels.items():
            if kind != WORKLOAD:
                number = number_labels(label)
                of_workload = number_labels(number + 1j * workload)
                unknown[kind] = np.bincount(number)[number] == np.bincount(of_workload)[of_workload]
        return self._count_unknown(unknown)

    def _count_unknown(self, unknown: Mapping[str, np.ndarray]) -> Array:
        """Return the standard deviations of points, from flags of those with an unmeasured
        operation, size, …. Every prediction is for another workload."""
        counts = np.full(len(unknown["size"]), self.deviations[WORKLOAD])
        for kind, flags in unknown.items():
            counts = np.maximum(counts, np.where(flags, self.deviations.get(kind, 0.0), 0.0))
        return counts


def _widen_beyond(half_width: Array, measured: Places, wanted: Places) -> Array:
    """Return half widths, wider for sizes and numbers of segments beyond the measured ones."""
    of_size = DEVIATION_BEYOND_SIZES * measure_size_beyond(measured, wanted)
    of_segments = DEVIATION_BEYOND_SEGMENTS * measure_segments_beyond(measured, wanted)
    return np.hypot(half_width, NORMAL_QUANTILE * np.hypot(of_size, of_segments))


def _cover_groups(values: Array, groups: np.ndarray) -> float:
    """Return the 95 % quantile of the values, with equal weight for each group."""
    counts = np.bincount(groups)
    weight = 1 / (np.count_nonzero(counts) * counts[groups])
    order = np.argsort(values, kind="stable")
    position = int(np.searchsorted(np.cumsum(weight[order]), COVERAGE - ROUNDING))
    return float(values[order[min(position, len(values) - 1)]])
