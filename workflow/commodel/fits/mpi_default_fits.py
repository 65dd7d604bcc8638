"""Fits of the MPI default to its own measured times (`fit_default`).

1. The law of each branch is fitted by least squares of relative errors with coefficients ≥ 0.
   Points far from it get a lower weight.
2. The scales of the residuals have the largest posterior density, as in the residual model. Their
   errors have heavy tails: a point far from its neighbours gets a larger variance, as under
   Student's distribution (Lange, Little and Taylor 1989).
3. Beyond the measured ranks, the width comes from the same extrapolation on what was measured: each
   number of ranks is predicted from the smaller ones, with a law of its own. The interval covers
   95 % of these errors. It is wider if few numbers of ranks were measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.parameters import ALL_OPERATIONS, Estimate, ParameterSet
from commodel.predictions.growth_scales import GrowthScales
from commodel.predictions.mpi_default import (
    BEYOND_KEY,
    MIN_LAW_SECONDS,
    PER_NODE_KEY,
    TERMS,
    evaluate_laws,
    locate_defaults,
    name_branch,
    tabulate_terms,
)
from commodel.predictions.places import ONE_NODE, SEVERAL_NODES
from commodel.predictions.residual_model import (
    COVERAGE,
    FAR_DOUBLINGS,
    MAX_FITTED_POINTS,
    MIN_FITTED_WORKLOADS,
    MeasuredResiduals,
    Posterior,
    ResidualModel,
    fit_scales,
    name_beyond,
)
from commodel.predictions.stored_residuals import store_residuals
from commodel.records import LIBRARY, Point
from commodel.stats import MAD_TO_SIGMA, NORMAL_QUANTILE

LAW_STEPS = 8  # of the robust fit of a law
MIN_SCATTER = 0.02  # of logarithms, below which a residual of the law counts as no outlier
COEFFICIENT_DIGITS = 6
# Scales of the residuals before any measurement: times differ by a factor of two from a law, and by
# 20 % more for each doubling of the ranks.
PRIOR = GrowthScales.of_numbers([0.6, 0.6, 0.2, 0.2, 0.2, 0.1, 0.05, 4.0, 1.0])
# Of their logarithms: a standard deviation may be 7 times as large or as small, the doublings 1.8
# times.
PRIOR_DEVIATIONS = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.3])
# Of the same logarithms, of a branch from the mean of all branches. Few numbers of nodes hardly show
# how much jobs differ, so that all branches have nearly the same scale of it.
SHARED_DEVIATIONS = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.2, 1.0, 0.3])
DEGREES_OF_FREEDOM = 4.0  # of Student's distribution of the residuals
WEIGHT_STEPS, FEWER_WEIGHT_STEPS = 2, 2  # of the weights of points, with and without new scales
MAX_STORED_POINTS = 5000


def fit_default(points: Sequence[Point], seconds: Sequence[float], source: str) -> ParameterSet:
    """Return the parameter set of the MPI default, from points of the algorithm `library` and their
    times."""
    measured = _select_branches(DefaultTimes(list(points), np.array(seconds, dtype=float)))
    if not measured.points:
        raise UserError(
            f"found too few times of the MPI default, wanted {MIN_FITTED_WORKLOADS} workloads of an operation"
        )
    laws = _fit_laws(measured)
    residuals = measured.find_residuals(laws)
    residuals, scales = _fit_scales(residuals)
    model = ResidualModel.fit(residuals, scales)
    assert model is not None  # a branch has MIN_FITTED_WORKLOADS
    errors = [
        error
        for branch in _split_branches(measured)
        for error in _extrapolate(branch, scales[branch.name])
    ]
    deviations = dict(model.deviations)
    # A number of nodes was measured in one job, so that all its points count as one.
    jobs = {(name_branch(point), point.nodes, point.ranks) for point in measured.points}
    deviations["place"] = round(deviations["place"] * _widen_for_few(len(jobs)), 4)
    for placement in (ONE_NODE, SEVERAL_NODES):
        of_placement = [of_ranks for of_ranks in errors if placement in of_ranks.branch]
        near = [of_ranks for of_ranks in of_placement if of_ranks.doublings < FAR_DOUBLINGS]
        far = [of_ranks for of_ranks in of_placement if of_ranks.doublings >= FAR_DOUBLINGS]
        of_near = _count_beyond(near or far)
        deviations[name_beyond(placement)] = of_near
        deviations[name_beyond(placement, is_far=True)] = max(of_near, _count_beyond(far or near))
    model = replace(model, deviations=deviations)
    values = {
        f"{branch}: {term}": Estimate.exact(float(value), unit)
        for branch, coefficients in laws.items()
        for (term, unit), value in zip(TERMS.items(), coefficients, strict=True)
        if value > 0
    }
    sizes = [point.bytes for point in measured.points]
    return ParameterSet(
        model=LIBRARY,
        platform="",
        source=f"the MPI default at {len(measured.points)} points of {source}",
        values=values,
        bytes_range=(float(min(sizes)), float(max(sizes))),
        residuals=store_residuals(model, MAX_STORED_POINTS),
        provenance={
            PER_NODE_KEY: measured.find_per_node(),
            BEYOND_KEY: _describe_beyond(errors),
            "points": len(measured.points),
        },
    )


@dataclass(frozen=True, eq=False)
class DefaultTimes:
    """Measured times of the MPI default."""

    points: Sequence[Point]
    seconds: Array

    @property
    def ranks(self) -> Array:
        return np.array([point.leaves or point.ranks for point in self.points])

    @property
    def name(self) -> str:
        """The branch of the first point."""
        return name_branch(self.points[0])

    def only(self, flags: np.ndarray) -> DefaultTimes:
        """Return those of some points."""
        numbers = np.flatnonzero(flags).tolist()
        return DefaultTimes([self.points[number] for number in numbers], self.seconds[numbers])

    def find_residuals(self, laws: Mapping[str, Array]) -> MeasuredResiduals:
        """Return the logarithms of the times over those of the laws."""
        logs = np.log(self.seconds / evaluate_laws(laws, self.points))
        return MeasuredResiduals.of(locate_defaults(self.points), logs)

    def find_per_node(self) -> int:
        """Return the number of ranks on a node of most points between nodes, else the largest one
        on a node."""
        between = [point.per_node for point in self.points if point.nodes > 1]
        if not between:
            return max(point.per_node for point in self.points)
        counts = {number: between.count(number) for number in sorted(set(between), reverse=True)}
        return max(counts, key=counts.__getitem__)


def _split_branches(measured: DefaultTimes) -> Iterator[DefaultTimes]:
    names = np.array([name_branch(point) for point in measured.points], dtype=str)
    for name in np.unique(names).tolist():
        yield measured.only(names == name)


def _select_branches(measured: DefaultTimes) -> DefaultTimes:
    """Return the times of the branches that have enough workloads."""
    branches = []
    for branch in _split_branches(measured):
        # times on several layouts are those of one workload
        if len({point.workload for point in branch.points}) >= MIN_FITTED_WORKLOADS:
            branches.append(branch)
    if not branches:
        return DefaultTimes([], np.zeros(0))
    points = [point for branch in branches for point in branch.points]
    return DefaultTimes(points, np.concatenate([branch.seconds for branch in branches]))


def _fit_laws(measured: DefaultTimes) -> dict[str, Array]:
    """Return the coefficients of each branch."""
    return {branch.name: _fit_law(branch) for branch in _split_branches(measured)}


def _fit_law(branch: DefaultTimes) -> Array:
    """Return the coefficients of the law of one branch, rounded, so that the last bit of a processor
    does not matter."""
    from scipy.optimize import nnls  # here, because it is slow to load

    terms = tabulate_terms(branch.points)
    weights = 1 / branch.seconds
    coefficients = np.zeros(len(TERMS))
    for _ in range(LAW_STEPS):
        coefficients = nnls(terms * weights[:, None], branch.seconds * weights)[0]
        predicted = np.maximum(terms @ coefficients, MIN_LAW_SECONDS)
        logs = np.log(branch.seconds / predicted)
        scatter = MAD_TO_SIGMA * float(np.median(np.abs(logs))) + MIN_SCATTER
        outlying = np.sqrt(1 + (logs / scatter) ** 2)
        weights = 1 / (np.sqrt(branch.seconds * predicted) * outlying)
    return np.array([float(f"{value:.{COEFFICIENT_DIGITS}g}") for value in coefficients])


def _fit_scales(
    residuals: MeasuredResiduals,
) -> tuple[MeasuredResiduals, dict[str, GrowthScales]]:
    """Return the residuals with the variance of each point, and the scales of each branch."""
    scales: dict[str, GrowthScales] = {ALL_OPERATIONS: PRIOR}
    variances = np.zeros(len(residuals))
    on_one_node = residuals.places.on_one_node
    for is_within in np.unique(on_one_node):
        numbers = np.flatnonzero(on_one_node == is_within)
        of_placement = residuals.only(numbers)
        found, variances[numbers] = _fit_placement_scales(of_placement)
        scales |= found
    return replace(residuals, variances=variances), scales


def _fit_placement_scales(residuals: MeasuredResiduals) -> tuple[dict[str, GrowthScales], Array]:
    """Return the scales of the branches of one placement, and the variance of each point. They are
    fitted twice: with the prior, and close to the mean of the branches."""
    branches = residuals.places.operation
    rows = {name: np.flatnonzero(branches == name) for name in np.unique(branches).tolist()}
    prior, deviations = PRIOR, PRIOR_DEVIATIONS
    scales: dict[str, GrowthScales] = {}
    variances = np.zeros(len(residuals))
    for _ in range(2):
        for name, numbers in rows.items():
            of_branch = residuals.only(numbers)
            scales[name], variances[numbers] = _fit_branch_scales(of_branch, prior, deviations)
        logs = [scales[name].logs for name in rows]
        weights = [len(numbers) for numbers in rows.values()]
        shared = np.exp(np.average(logs, axis=0, weights=weights))
        prior = prior.refit(float(f"{number:.3g}") for number in shared)
        deviations = SHARED_DEVIATIONS
    return scales, variances


def _fit_branch_scales(
    residuals: MeasuredResiduals, prior: GrowthScales, deviations: Array
) -> tuple[GrowthScales, Array]:
    """Return the scales of a branch, and the variance of each of its points."""
    origin = float(residuals.places.ranks.max().round(6))
    prior = GrowthScales.of_numbers([*prior.fitted, origin])
    scales = prior
    for _ in range(WEIGHT_STEPS):
        found = fit_scales(residuals.draw(MAX_FITTED_POINTS), prior, deviations)
        scales = prior.refit(found.numbers[:-1])
        residuals = replace(residuals, variances=_find_variances(residuals, scales))
    return scales, residuals.variances


def _find_variances(residuals: MeasuredResiduals, scales: GrowthScales) -> Array:
    """Return the variance of each point: above 0 for those far from what the others predict."""
    posterior = Posterior.of(residuals, str(residuals.places.operation[0]), scales)
    errors, deviations = posterior.leave_out(posterior.residuals.places.workload)
    squares = (errors / deviations) ** 2
    weight = np.minimum((DEGREES_OF_FREEDOM + 1) / (DEGREES_OF_FREEDOM + squares), 1.0)
    variances = np.zeros(len(residuals))
    variances[posterior.own] = (scales.point**2 * (1 / weight - 1)).round(9)
    return variances


@dataclass(frozen=True, eq=False)
class ExtrapolationErrors:
    """Errors at a number of ranks of a branch, predicted from the smaller numbers."""

    branch: str
    ranks: int
    doublings: float  # from the largest of the smaller numbers
    errors: Array  # logarithms
    deviations: Array  # their standard deviations by the residual model


def _extrapolate(branch: DefaultTimes, scales: GrowthScales) -> Iterator[ExtrapolationErrors]:
    """Yield the errors at each number of ranks and all larger ones, predicted from at least two
    smaller numbers, or from one if there are only two."""
    counts = np.unique(branch.ranks).tolist()
    first = min(2, len(counts) - 1)
    for number in range(first, len(counts) if first else 0):
        fitted = branch.only(branch.ranks < counts[number])
        laws = {branch.name: _fit_law(fitted)}
        residuals = fitted.find_residuals(laws)
        for _ in range(FEWER_WEIGHT_STEPS):
            residuals = replace(residuals, variances=_find_variances(residuals, scales))
        posterior = Posterior.of(residuals, branch.name, scales)
        for count in counts[number:]:
            found = branch.only(branch.ranks == count).find_residuals(laws)
            logs, covariance = posterior.correct(found.places)
            yield ExtrapolationErrors(
                branch=branch.name,
                ranks=count,
                doublings=float(np.log2(count / counts[number - 1])),
                errors=found.logs - logs,
                deviations=np.sqrt(np.diag(covariance)),
            )


def _count_beyond(errors: Sequence[ExtrapolationErrors]) -> float:
    """Return the standard deviations that cover 95 % of extrapolation errors; more if there are few
    numbers of ranks."""
    ratios = [np.abs(of_ranks.errors) / of_ranks.deviations for of_ranks in errors]
    covering = float(np.quantile(np.concatenate(ratios), COVERAGE)) if ratios else 0.0
    return round(max(covering, NORMAL_QUANTILE) * _widen_for_few(len(errors)), 4)


def _widen_for_few(count: int) -> float:
    """Return the factor of an interval whose width is known from so many errors."""
    from scipy.special import stdtrit  # here, because it is slow to load

    return float(stdtrit(count + 1, (1 + COVERAGE) / 2)) / NORMAL_QUANTILE


def _describe_beyond(errors: Sequence[ExtrapolationErrors]) -> dict[str, list[float]]:
    """Return for each branch the largest number of ranks that was predicted from smaller ones, and
    the factor by which the times differ: median and largest."""
    described: dict[str, list[float]] = {}
    largest = {of_ranks.branch: of_ranks.ranks for of_ranks in errors}
    for of_ranks in errors:
        if of_ranks.ranks != largest[of_ranks.branch]:
            continue
        factors = np.exp(np.abs(of_ranks.errors))
        described[of_ranks.branch] = [
            of_ranks.ranks,
            float(f"{np.median(factors):.3g}"),
            float(f"{factors.max():.3g}"),
        ]
    return described


def describe_extrapolation(parameters: ParameterSet) -> Iterator[str]:
    """Yield a line for each branch: how well the larger numbers of ranks were predicted from the
    smaller ones."""
    for branch, (ranks, median, largest) in parameters.provenance[BEYOND_KEY].items():
        yield (
            f"{branch}: {ranks} ranks, predicted from fewer, are off by a factor of {median:g} in "
            f"median and {largest:g} at most"
        )
