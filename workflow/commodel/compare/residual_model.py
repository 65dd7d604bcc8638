"""The residual model: how wrong a prediction will be at a point, from what was measured at others.

A residual is ln(measured/base), `base` being the prediction of a model, or of several. `ResidualModel.fit` takes the
residuals at measured points, and `predict` returns the corrections of any points, with the covariance of their errors.

- It is a Gaussian process. Its covariance has a part that all points share, one of the operation, one of the
  algorithm, and one of the point alone. Those of operation and algorithm become less alike with the doublings of size,
  nodes and ranks a node between two points. There is no trend: beyond the measured points, the correction of the
  algorithm at this size persists, and the interval widens.
- Its scales have the largest posterior density (Rasmussen and Williams 2006, chapter 5), with weak priors. An operation
  with enough points has scales of its own, close to those of all points.
- Measured errors have heavier tails than a normal distribution. The interval is therefore a number of standard
  deviations that covers 95 % of the measured workloads, each left out. At a size, a place, an algorithm or an operation
  without measurement, it also covers 95 % of the points of left-out ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields

import numpy as np
import pandas as pd

from commodel.models import Array
from commodel.patterns.operations import find_base_name
from commodel.predictions.prediction_intervals import COVERAGE, cover_labels
from commodel.predictions.residuals import NODES, compute_matern, number_labels
from commodel.records import Point
from commodel.stats import NORMAL_QUANTILE

# Points to which scales are fitted: those of all points, and those of an operation. Of more points, only evenly spread
# workloads are used.
MAX_FITTED_POINTS, MAX_FITTED_POINTS_OF_OPERATION = 400, 200
MIN_POINTS_OF_SCALES = 20  # points of an operation from which on it has scales of its own
MAX_OPERATION_POINTS, MAX_OTHER_POINTS = 1000, 200  # measured points of an operation, and of others, in a correction
MAX_JOINT_POINTS = 500  # points that are corrected together, where their covariance is not wanted
# Doublings over which residuals stay alike, and the distance, in these units, of points on one node and on several.
NODES_DOUBLINGS, PER_NODE_DOUBLINGS, DISTANCE_OF_ONE_NODE = 4.0, 2.0, 2.0
SCALES_DEVIATION = 0.2  # prior of the logarithms of an operation's scales: from those of all points
MIN_FREEDOM = 3  # degrees of freedom: the least number of workloads with a recommended prediction
WORKLOAD = "workload"


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of the parts of a residual, all logarithms, and the doublings of the size over which
    residuals stay alike."""

    everywhere: float  # shared by all points
    operation: float  # shared by points of an operation with similar sizes, nodes and ranks a node
    algorithm: float  # shared by all points of an algorithm
    size: float  # shared by points of an algorithm with similar sizes
    near: float  # shared by points of an algorithm with similar sizes, nodes and ranks a node
    point: float
    doublings: float

    @classmethod
    def of_logs(cls, logs: Array) -> Scales:
        return cls(*np.exp(logs).tolist())

    @property
    def logs(self) -> Array:
        return np.log(astuple(self))


# Published models that fit a machine are wrong by 5 to 20 %; a size informs its neighbours, not the other protocol.
PRIOR = Scales(everywhere=0.1, operation=0.1, algorithm=0.2, size=0.2, near=0.1, point=0.05, doublings=6.0)
# Of their logarithms: a standard deviation may be 20 times as large or as small, the doublings four times.
PRIOR_DEVIATIONS = np.array([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.7])
SEARCH = {"maxiter": 60, "ftol": 1e-7}
MIN_SCALE, MAX_SCALE = 1e-4, 1e2  # bounds of the search
PLACE_OF_POINT = 5  # number of the field `point` of Scales
POINT_VARIANCE = 1e-8  # added to that of a point: keeps matrices invertible where residuals are exact


@dataclass(frozen=True, eq=False)
class Places:
    """Properties of points that make their residuals alike."""

    operation: np.ndarray
    algorithm: np.ndarray  # alternative of an operation
    stem: np.ndarray  # the same without the arguments: `chain` of `chain:4`
    workload: np.ndarray
    doublings: Array  # (points, 3): logarithms to base 2 of bytes, nodes, and ranks of a node

    @classmethod
    def of_rows(cls, rows: pd.DataFrame) -> Places:
        ranks = rows["leaves"].where(rows["leaves"] > 0, rows["ranks"]).to_numpy(float)
        nodes = rows[NODES].where(rows[NODES] > 0, ranks).to_numpy(float)
        operation, alternative = rows["operation"].map(find_base_name).to_numpy(str), rows["alternative"].to_numpy(str)
        size = rows["bytes"].to_numpy(float)
        return cls._of(operation, alternative, rows["workload"].to_numpy(str), size, nodes, ranks)

    @classmethod
    def of_points(cls, points: Sequence[Point]) -> Places:
        names = [(find_base_name(point.operation), point.alternative, point.workload) for point in points]
        amounts = [(point.bytes, point.nodes, point.leaves or point.ranks) for point in points]
        operation, alternative, workload = np.array(names, dtype=str).reshape(-1, 3).T
        size, nodes, ranks = np.array(amounts, dtype=float).reshape(-1, 3).T
        return cls._of(operation, alternative, workload, size, nodes, ranks)

    @classmethod
    def _of(
        cls,
        operation: np.ndarray,
        alternative: np.ndarray,
        workload: np.ndarray,
        size: Array,
        nodes: Array,
        ranks: Array,
    ) -> Places:
        stem = np.char.partition(alternative, ":")[:, 0] if len(alternative) else alternative
        amounts = np.log2(np.maximum(np.stack([size, nodes, ranks / nodes], axis=1), 1.0))
        operation_and_space = np.char.add(operation, " ")
        algorithm = np.char.add(operation_and_space, alternative)
        return cls(operation, algorithm, np.char.add(operation_and_space, stem), workload, amounts)

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def on_one_node(self) -> np.ndarray:
        return self.doublings[:, 1] == 0

    def labels(self) -> dict[str, np.ndarray]:
        """Return the labels by which points are left out in turn."""
        size, nodes, per_node = self.doublings.T
        rounded_place = nodes.round(6) + 1j * per_node.round(6)
        names = {WORKLOAD: self.workload, "operation": self.operation, "algorithm": self.algorithm}
        return names | {"size": size, "place": rounded_place}

    def only(self, flags: np.ndarray) -> Places:
        """Return some of the points."""
        return Places(*(getattr(self, entry.name)[flags] for entry in fields(self)))

    def select_evenly(self, max_points: int) -> np.ndarray:
        """Return flags of the points of evenly spread workloads, about `max_points`; of all if there are fewer."""
        if len(self) <= max_points:
            return np.ones(len(self), dtype=bool)
        workloads = pd.unique(self.workload)
        numbers = np.linspace(0, len(workloads) - 1, max(len(workloads) * max_points // len(self), 1)).astype(int)
        return np.isin(self.workload, workloads[numbers])

    def join(self, other: Places) -> Places:
        """Return the points of both."""
        columns = ((getattr(self, entry.name), getattr(other, entry.name)) for entry in fields(self))
        return Places(*map(np.concatenate, columns))


@dataclass(frozen=True, eq=False)
class Likeness:
    """How alike the points of two lists are, as arrays with a row for each point of the first."""

    operation: Array  # 1: the same
    algorithm: Array  # 1: the same, 1/2: the same but for its arguments
    size: Array  # squared doublings between sizes
    place: Array  # squared distance in nodes and ranks of a node

    @classmethod
    def of(cls, first: Places, second: Places) -> Likeness:
        same_algorithm = (_equal(first.algorithm, second.algorithm) + _equal(first.stem, second.stem)) / 2
        size, nodes, per_node = ((first.doublings[:, None] - second.doublings) ** 2).transpose(2, 0, 1)
        differs = first.on_one_node[:, None] != second.on_one_node
        of_place = nodes / NODES_DOUBLINGS**2 + per_node / PER_NODE_DOUBLINGS**2 + DISTANCE_OF_ONE_NODE**2 * differs
        return cls(_equal(first.operation, second.operation), same_algorithm, size, of_place)

    def covariance(self, scales: Scales) -> Array:
        """Return the prior covariance of the residuals, without the part of each point alone."""
        size = _correlate(self.size / scales.doublings**2)
        near = _correlate(self.size / scales.doublings**2 + self.place)
        of_algorithm = scales.algorithm**2 + scales.size**2 * size + scales.near**2 * near
        return scales.everywhere**2 + scales.operation**2 * self.operation * near + self.algorithm * of_algorithm

    def gradient(self, scales: Scales) -> Iterator[Array]:
        """Yield the derivative of the covariance by the logarithm of each scale; that of `point` is not included."""
        squared = self.size / scales.doublings**2
        size, near = _correlate(squared), _correlate(squared + self.place)
        yield np.full(near.shape, 2 * scales.everywhere**2)
        yield 2 * scales.operation**2 * self.operation * near
        yield 2 * scales.algorithm**2 * self.algorithm
        yield 2 * scales.size**2 * self.algorithm * size
        yield 2 * scales.near**2 * self.algorithm * near
        amplitude = scales.operation**2 * self.operation + scales.near**2 * self.algorithm
        yield (
            3 * squared * (amplitude * _decay(squared + self.place) + scales.size**2 * self.algorithm * _decay(squared))
        )


def _correlate(squared_distances: Array) -> Array:
    return compute_matern(np.sqrt(squared_distances), 1.0)


def _decay(squared_distances: Array) -> Array:
    """Return the exponential factor of the correlation, which its derivative has."""
    return np.exp(-np.sqrt(3 * squared_distances))


def _equal(first: np.ndarray, second: np.ndarray) -> Array:
    labels = number_labels(np.concatenate([first, second]))
    return (labels[: len(first), None] == labels[len(first) :]).astype(float)


@dataclass(frozen=True, eq=False)
class MeasuredResiduals:
    """Residuals at measured points, and the variance of each by the scatter of its samples."""

    places: Places
    logs: Array
    variances: Array

    def __len__(self) -> int:
        return len(self.logs)

    def only(self, flags: np.ndarray) -> MeasuredResiduals:
        """Return those of some of the points."""
        return MeasuredResiduals(self.places.only(flags), self.logs[flags], self.variances[flags])

    def thin_out(self, max_points: int) -> MeasuredResiduals:
        """Return those of evenly spread workloads, about `max_points`; all if there are fewer."""
        return self.only(self.places.select_evenly(max_points))

    def join(self, other: MeasuredResiduals) -> MeasuredResiduals:
        """Return both."""
        places = self.places.join(other.places)
        logs, variances = np.concatenate([self.logs, other.logs]), np.concatenate([self.variances, other.variances])
        return MeasuredResiduals(places, logs, variances)


def fit_scales(residuals: MeasuredResiduals, prior: Scales, deviations: Array) -> Scales:
    """Return the scales with the largest posterior density. `deviations` are those of the logarithms of the prior."""
    # Here, because they are slow to load.
    from scipy.linalg.lapack import dpotrf, dpotri
    from scipy.optimize import minimize

    likeness = Likeness.of(residuals.places, residuals.places)

    def penalize(logs: Array) -> tuple[float, Array]:
        """Return the negative logarithm of the density, and its gradient."""
        scales = Scales.of_logs(logs)
        covariance = _add_points(likeness.covariance(scales), scales, residuals.variances)
        factor = dpotrf(covariance, lower=1)[0]
        half_inverse = np.tril(dpotri(factor, lower=1)[0])
        inverse = half_inverse + np.tril(half_inverse, -1).T
        scaled = inverse @ residuals.logs
        length = 0.5 * residuals.logs @ scaled + np.log(np.diag(factor)).sum()
        slope = inverse - np.outer(scaled, scaled)
        slopes = [0.5 * float(np.vdot(slope, derivative)) for derivative in likeness.gradient(scales)]
        slopes.insert(PLACE_OF_POINT, float(np.trace(slope)) * scales.point**2)
        distance = (logs - prior.logs) / deviations
        return float(length + 0.5 * distance @ distance), np.array(slopes) + distance / deviations

    bounds = [(np.log(MIN_SCALE), np.log(MAX_SCALE))] * len(deviations)
    found = minimize(penalize, prior.logs, jac=True, method="L-BFGS-B", bounds=bounds, options=SEARCH)
    # Rounded, so that the last bit of a processor does not matter.
    return Scales.of_logs(found.x.round(2))


def _add_points(covariance: Array, scales: Scales, variances: Array | float = 0.0) -> Array:
    """Return a covariance with the part of each point alone, and these variances of its measurement."""
    return covariance + np.diag(np.broadcast_to(scales.point**2 + POINT_VARIANCE + variances, len(covariance)))


@dataclass(frozen=True, eq=False)
class Corrections:
    """The corrections of some points: logarithms, with the covariance of their errors, and the half width of their
    prediction intervals."""

    logs: Array
    covariance: Array
    half_width: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """The process given the measured points, for points of one operation."""

    scales: Scales
    residuals: MeasuredResiduals
    inverse: np.ndarray  # of the covariance of the measured points

    @classmethod
    def of(cls, residuals: MeasuredResiduals, scales: Scales) -> Posterior:
        covariance = Likeness.of(residuals.places, residuals.places).covariance(scales)
        return cls(scales, residuals, np.linalg.inv(_add_points(covariance, scales, residuals.variances)))

    def correct(self, places: Places) -> tuple[Array, Array]:
        """Return the corrections of points, and the covariance of their errors."""
        shared = Likeness.of(places, self.residuals.places).covariance(self.scales)
        prior = Likeness.of(places, places).covariance(self.scales)
        covariance = _add_points(prior - shared @ self.inverse @ shared.T, self.scales)
        return shared @ (self.inverse @ self.residuals.logs), (covariance + covariance.T) / 2

    def leave_out(self, label: np.ndarray) -> Array:
        """Return the error of the correction of each point over its standard deviation, if all points of its label are
        left out; in closed form."""
        scaled, ratios = self.inverse @ self.residuals.logs, np.zeros(len(label))
        for value in np.unique(label):
            rows = np.flatnonzero(label == value)
            covariance = np.linalg.inv(self.inverse[np.ix_(rows, rows)])
            ratios[rows] = covariance @ scaled[rows] / np.sqrt(np.diag(covariance))
        return ratios


@dataclass(frozen=True, eq=False)
class ResidualModel:
    """Residuals at measured points, and what they say about others."""

    residuals: MeasuredResiduals
    scales: Scales  # of an operation without scales of its own
    deviations: Mapping[str, float]  # that cover 95 % of the points of a left-out workload, operation, …
    _of_operation: dict[str, Posterior] = field(repr=False)

    @classmethod
    def fit(cls, residuals: MeasuredResiduals) -> ResidualModel:
        """Return the model of residuals at measured points of at least two workloads."""
        scales = fit_scales(residuals.thin_out(MAX_FITTED_POINTS), PRIOR, PRIOR_DEVIATIONS)
        operations = np.unique(residuals.places.operation).tolist()
        posteriors = {name: _fit_operation(residuals, name, scales) for name in operations}
        return cls(residuals, scales, _calibrate(posteriors), posteriors)

    def predict(self, places: Places) -> Corrections:
        """Return the corrections of points. Errors at points of different operations count as independent."""
        logs, covariance = np.zeros(len(places)), np.zeros((len(places), len(places)))
        for name in np.unique(places.operation).tolist():
            rows = np.flatnonzero(places.operation == name)
            logs[rows], covariance[np.ix_(rows, rows)] = self._find_posterior(name).correct(places.only(rows))
        deviations = self._count_deviations(places)
        half_width = deviations * np.sqrt(np.diag(covariance))
        return Corrections(logs, covariance * np.outer(deviations, deviations) / NORMAL_QUANTILE**2, half_width)

    def predict_singly(self, places: Places) -> tuple[Array, Array]:
        """Return the correction of each point, and the half width of its prediction interval."""
        logs, half_width = np.zeros(len(places)), np.zeros(len(places))
        for first in range(0, len(places), MAX_JOINT_POINTS):
            rows = np.arange(first, min(first + MAX_JOINT_POINTS, len(places)))
            corrections = self.predict(places.only(rows))
            logs[rows], half_width[rows] = corrections.logs, corrections.half_width
        return logs, half_width

    def _find_posterior(self, operation: str) -> Posterior:
        if operation not in self._of_operation:
            self._of_operation[operation] = Posterior.of(self.residuals.thin_out(MAX_OTHER_POINTS), self.scales)
        return self._of_operation[operation]

    def _count_deviations(self, places: Places) -> Array:
        """Return the standard deviations from the middle to the end of the interval of each point."""
        counts, measured = np.full(len(places), self.deviations[WORKLOAD]), self.residuals.places.labels()
        for name, label in places.labels().items():
            if name != WORKLOAD:
                counts = np.maximum(counts, np.where(np.isin(label, measured[name]), 0.0, self.deviations[name]))
        return counts


def _fit_operation(residuals: MeasuredResiduals, name: str, scales: Scales) -> Posterior:
    """Return the process for points of an operation, given its own points and some of the others."""
    of_operation = residuals.places.operation == name
    own, of_others = residuals.only(of_operation), residuals.only(~of_operation)
    if len(own) >= MIN_POINTS_OF_SCALES:
        deviations = np.minimum(SCALES_DEVIATION, PRIOR_DEVIATIONS)
        scales = fit_scales(own.thin_out(MAX_FITTED_POINTS_OF_OPERATION), scales, deviations)
    return Posterior.of(own.thin_out(MAX_OPERATION_POINTS).join(of_others.thin_out(MAX_OTHER_POINTS)), scales)


def _calibrate(posteriors: Mapping[str, Posterior]) -> dict[str, float]:
    """Return how many standard deviations cover 95 % of the points, if a workload, an operation, an algorithm, a size
    or a place is left out. All workloads have equal weight."""
    from scipy.special import stdtrit  # here, because it is slow to load

    ratios: dict[str, list[Array]] = {}
    workloads: list[np.ndarray] = []
    for name, posterior in posteriors.items():
        places = posterior.residuals.places
        own = places.operation == name
        workloads.append(places.workload[own])
        for kind, label in places.labels().items():
            ratios.setdefault(kind, []).append(np.abs(posterior.leave_out(label)[own]))
    groups = number_labels(np.concatenate(workloads))
    # The quantile of few workloads is too low, since the scales are fitted to these, too.
    freedom = max(int(groups.max()) + 1 - len(PRIOR_DEVIATIONS), MIN_FREEDOM)
    of_few = float(stdtrit(freedom, (1 + COVERAGE) / 2)) / NORMAL_QUANTILE
    covering = {kind: cover_labels(np.concatenate(parts), groups) for kind, parts in ratios.items()}
    return {kind: of_few * max(count, NORMAL_QUANTILE) for kind, count in covering.items()}
