"""Sequential sampling: which alternative to measure next, and when the expected regret is low
enough to stop.

`compute_belief` returns a `Belief`: one Gaussian over the logarithms of the times of all
alternatives (`Arms`). `Belief.next_points` returns the alternatives whose measurement is expected
to change the choices most, and `Belief.regret` the expected regret of the present choices.

- Alternatives: the library default without any rules is the alternative LIBRARY. In some MPI
  libraries a rule for one size of an operation changes the library default at all other sizes. That
  default is the alternative DEFAULT_WITH_RULES, and either all workloads of the operation have
  rules, or none.
- Mean: the predictions, if there are any.
- Covariance: that of the residual model (`commodel.predictions.residual_model`), whose scales are
  fitted to the measurements so far. Known errors of the predictions are added: that of a library
  default is only a guess, and predictions may exaggerate or understate the differences between
  alternatives.
- Noise: that of samples, and that between starts. Measurements of one alternative in several starts
  show the latter.
- Validation: each measurement is compared with its prediction from the others (leave-one-out, in
  closed form). If these errors are larger than expected, the expected regret grows accordingly.

Worked example: two algorithms have equal predictions at three sizes. If the first takes twice its
prediction at the middle size, the second is chosen at all three.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.predictions.places import Places, measure_doublings
from commodel.predictions.residual_model import (
    MAX_FITTED_POINTS,
    MIN_FREEDOM,
    PRIOR_DEVIATIONS,
    Likeness,
    MeasuredResiduals,
    Scales,
    fit_scales,
)
from commodel.records import LIBRARY, PlacedWorkload
from commodel.stats import MIN_NOISE

# Named like an argument of the library default, since errors of both are alike.
DEFAULT_WITH_RULES = f"{LIBRARY}:with rules"
DEFAULT_ARMS = (LIBRARY, DEFAULT_WITH_RULES)  # no algorithm is named
# of the logarithm: of the guess that a library default is as fast as the best algorithm
DEFAULT_DEVIATION = 0.4
# Predictions may be of another machine: errors that alternatives share are large and change no
# choice, and those of an algorithm are alike only at similar sizes, since protocols change between
# them.
PRIOR_SCALES = Scales(
    everywhere=0.5, operation=0.5, algorithm=0.02, size=0.02, near=0.5, point=0.1, doublings=4.0
)
# Of the factor by which predictions exaggerate differences of alternatives of an operation.
EXAGGERATION_SCALES = Scales(
    everywhere=0, operation=0.3, algorithm=0, size=0, near=0, point=0, doublings=4.0
)


@dataclass(frozen=True)
class Arm:
    """An alternative of a workload, and its predicted seconds; 0 without a prediction, as for the
    library default."""

    workload: PlacedWorkload
    algorithm: str
    prediction: float = 0.0


@dataclass(frozen=True, eq=False)
class Arms:
    """All alternatives of some workloads, those of one workload in sequence."""

    arms: Sequence[Arm]

    @classmethod
    def of(cls, arms: Iterable[Arm]) -> "Arms":
        return cls(sorted(arms, key=lambda arm: (arm.workload, arm.algorithm)))

    @cached_property
    def workloads(self) -> list[PlacedWorkload]:
        return list(dict.fromkeys(arm.workload for arm in self.arms))

    @cached_property
    def workload(self) -> np.ndarray:
        """The number of each arm's workload."""
        numbers = {workload: number for number, workload in enumerate(self.workloads)}
        return np.array([numbers[arm.workload] for arm in self.arms])

    @cached_property
    def first(self) -> np.ndarray:
        """The first arm of each workload."""
        return np.searchsorted(self.workload, np.arange(len(self.workloads)))

    @cached_property
    def prior_mean(self) -> np.ndarray:
        """Logarithms of predictions; without a prediction, the mean of the other arms of the
        workload."""
        logs = np.array(
            [np.log(arm.prediction) if arm.prediction > 0 else np.nan for arm in self.arms]
        )
        middle = [
            _compute_mean(logs[self.workload == number]) for number in range(len(self.workloads))
        ]
        return np.where(np.isnan(logs), np.array(middle)[self.workload], logs)

    @cached_property
    def places(self) -> Places:
        """The places of the arms. Ranks count as nodes of their own."""
        operations = np.array([arm.workload.operation for arm in self.arms], dtype=str)
        algorithms = np.array([arm.algorithm for arm in self.arms], dtype=str)
        size, ranks = np.array(
            [(arm.workload.bytes, arm.workload.ranks) for arm in self.arms], dtype=float
        ).T
        unknown = np.full(len(self.arms), "")
        doublings = measure_doublings(size, ranks, ranks)
        return Places(
            operation=operations,
            alternative=algorithms,
            workload=self.workload.astype(str),
            levels_crossed=unknown,
            setting=unknown,
            doublings=doublings,
        )

    @cached_property
    def _guess_variances(self) -> np.ndarray:
        """The variances of the logarithms of predictions that are guesses."""
        return np.where(
            [arm.algorithm in DEFAULT_ARMS for arm in self.arms], DEFAULT_DEVIATION**2, 0.0
        )

    @cached_property
    def _likeness(self) -> Likeness:
        return Likeness.of(self.places, self.places)

    @cached_property
    def base_covariance(self) -> np.ndarray:
        """The covariances of the errors that predictions have as guesses or as exaggerations."""
        of_operation = self.places.operation[:, None] == self.places.operation
        similar = self._likeness.covariance(EXAGGERATION_SCALES) * of_operation
        contrasts = np.outer(self._relative_predictions, self._relative_predictions)
        return contrasts * similar + np.diag(self._guess_variances)

    def prior(self, scales: Scales) -> np.ndarray:
        """Return the prior covariances of the logarithms of the times."""
        of_points = np.diag(np.full(len(self.arms), scales.point**2))
        return self._likeness.covariance(scales) + self.base_covariance + of_points

    @cached_property
    def _relative_predictions(self) -> np.ndarray:
        """The logarithm of each arm's prediction over the mean of its workload."""
        middle = np.bincount(self.workload, self.prior_mean) / np.bincount(self.workload)
        return self.prior_mean - middle[self.workload]

    @cached_property
    def is_library_default(self) -> np.ndarray:
        """Which arms are the library default without any rules."""
        return np.array([arm.algorithm == LIBRARY for arm in self.arms])

    @cached_property
    def _is_default_with_rules(self) -> np.ndarray:
        return np.array([arm.algorithm == DEFAULT_WITH_RULES for arm in self.arms])

    @cached_property
    def groups(self) -> np.ndarray:
        """The first of the workloads that are decided together; most workloads are decided
        separately."""
        joint_operations = {
            self.arms[arm].workload.operation
            for arm in np.flatnonzero(self._is_default_with_rules).tolist()
        }
        previous_operations = ["", *(workload.operation for workload in self.workloads)]
        starts_group = [
            workload.operation not in joint_operations or workload.operation != previous
            for previous, workload in zip(previous_operations, self.workloads, strict=False)
        ]
        return np.flatnonzero(starts_group)

    def minimum_times(self, logs: np.ndarray) -> np.ndarray:
        """Return the smallest sum of logarithms of seconds for each group and column: without
        rules, or with the fastest alternative of each workload."""
        if len(self.groups) == len(self.workloads):
            return np.minimum.reduceat(logs, self.first, axis=0)
        return np.minimum(
            *(
                np.add.reduceat(totals, self.groups, axis=0)
                for totals in self._sum_without_and_with_rules(logs)
            )
        )

    def _sum_without_and_with_rules(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the time of each workload without rules, and with the best one; infinite without
        such an alternative."""
        without_rules = np.full((len(self.workloads), *logs.shape[1:]), np.inf)
        without_rules[self.workload[self.is_library_default]] = logs[self.is_library_default]
        with_rules = logs.copy()
        with_rules[self.is_library_default] = np.inf
        return without_rules, np.minimum.reduceat(with_rules, self.first, axis=0)

    def choose_fastest(self, logs: np.ndarray) -> np.ndarray:
        """Return the arm to choose for each workload, so that each group takes the shortest time;
        of equal arms the first."""
        sums = [
            np.add.reduceat(totals, self.groups)
            for totals in self._sum_without_and_with_rules(logs)
        ]
        sizes = np.diff([*self.groups, len(self.workloads)])
        allowed = self.is_library_default == np.repeat(sums[0] <= sums[1], sizes)[self.workload]
        seconds = np.where(allowed, logs, np.inf)
        ends = [*self.first[1:], len(self.arms)]
        return np.array(
            [at + int(np.argmin(seconds[at:end])) for at, end in zip(self.first, ends, strict=True)]
        )


def _compute_mean(logs: np.ndarray) -> float:
    finite = logs[~np.isnan(logs)]
    return float(finite.mean()) if len(finite) else 0.0


@dataclass(frozen=True, slots=True)
class MeasuredStart:
    """The time of an alternative in one start."""

    arm: int
    seconds: float
    noise: float = MIN_NOISE  # of the logarithm, from its samples


# Noise between starts: standard deviation of a logarithm, before any measurement, and the weight of
# this value, in repeated measurements.
RESTART_DEVIATION = 0.1
RESTART_WEIGHT = 4.0


def estimate_restart_noise(measured: Sequence[MeasuredStart]) -> float:
    """Return the standard deviation of a logarithm between starts, from alternatives that were
    measured repeatedly."""
    arms = np.array([row.arm for row in measured], dtype=int)
    logs = np.log([row.seconds for row in measured])
    counts = np.bincount(arms)[arms] if len(arms) else arms
    means = np.bincount(arms, logs)[arms] / counts if len(arms) else logs
    freedom = len(arms) - len(np.unique(arms))
    squares = float(((logs - means) ** 2).sum())
    return float(
        np.sqrt((RESTART_WEIGHT * RESTART_DEVIATION**2 + squares) / (RESTART_WEIGHT + freedom))
    )


MAX_SETTLED_NOISE = 0.1  # standard deviation of a logarithm; arms with more may be measured again
# over the outcomes of a measurement
QUADRATURE_NODES, QUADRATURE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
QUADRATURE_WEIGHTS = QUADRATURE_WEIGHTS / QUADRATURE_WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior after some measurements: means and covariances of the logarithms of the times
    of all arms, in seconds."""

    arms: Arms
    mean: np.ndarray
    covariance: np.ndarray
    measured: Sequence[MeasuredStart] = ()
    restart: float = RESTART_DEVIATION  # noise between starts
    widening: np.ndarray | float = 1.0  # of standard deviations, by left-out measurements

    @property
    def measured_arms(self) -> set[int]:
        return {row.arm for row in self.measured}

    def medians(self) -> dict[int, tuple[float, float]]:
        """Return the seconds of each measured arm, and the noise of their logarithm."""
        return collect_medians(self.measured, self.restart)

    @cached_property
    def noise(self) -> np.ndarray:
        """The noise of the logarithm of each arm's next measurement: at least that of the arm's
        earlier ones."""
        noise = np.full(len(self.mean), np.hypot(MIN_NOISE, self.restart))
        for row in self.measured:
            noise[row.arm] = max(noise[row.arm], np.hypot(row.noise, self.restart))
        return noise

    def choices(self) -> np.ndarray:
        """Return the arm to choose for each workload: the one with the smallest expected seconds,
        which favours arms with small variance."""
        return self.arms.choose_fastest(self.mean + np.diag(self.covariance) / 2)

    def worth(self, arms: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the value of measuring each selected arm: the decrease of the time of all
        workloads, in logarithms of seconds, if the choice were made again with the outcome."""
        selected = np.arange(len(self.mean)) if arms is None else np.asarray(arms, dtype=int)
        spread = np.sqrt(np.diag(self.covariance)[selected] + self.noise[selected] ** 2)
        mean_shifts = self.covariance[:, selected] / spread  # by each of these
        present_total = self.arms.minimum_times(self.mean).sum()
        expected_total = sum(
            weight * self.arms.minimum_times(self.mean[:, None] + node * mean_shifts).sum(axis=0)
            for node, weight in zip(QUADRATURE_NODES, QUADRATURE_WEIGHTS, strict=True)
        )
        return np.maximum(present_total - expected_total, 0.0)

    def regret(self, draws: int = 400) -> np.ndarray:
        """Return the expected regret of each workload's choice, as a share; the same for all that
        are decided together."""
        count = len(self.mean)
        values, vectors = np.linalg.eigh(self.covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0)) * np.reshape(self.widening, (-1, 1))
        logs = self.mean + np.random.default_rng(0).standard_normal((draws, count)) @ roots.T
        groups = self.arms.groups
        chosen = np.add.reduceat(logs[:, self.choices()].T, groups, axis=0)
        sizes = np.diff([*groups, len(self.arms.workloads)])
        excess = (chosen - self.arms.minimum_times(logs.T)) / sizes[:, None]
        return np.repeat(np.exp(np.minimum(excess, 5)).mean(axis=1) - 1, sizes)

    def assume_measured(self, arm: int) -> "Belief":
        """Return the belief after an arm is measured at its expected time: means stay, and
        covariances shrink."""
        row = self.covariance[arm]
        covariance = self.covariance - np.outer(row, row) / (row[arm] + self.noise[arm] ** 2)
        return replace(self, covariance=covariance)

    def next_points(
        self,
        count: int,
        costs: np.ndarray | float = 1.0,
        least: float = 0.0,
        first: Sequence[int] = (),
        without: Collection[int] = (),
    ) -> list[int]:
        """Return the arms to measure next, at most one of a workload: the `first`, then those with
        the highest value for their seconds, given those before; none of a value up to `least`. Arms
        with a precise measurement are not measured again, nor arms `without` samples."""
        belief = self
        points = list(first)
        for arm in first:
            belief = belief.assume_measured(arm)
        settled = {arm for arm in self.measured_arms if self.noise[arm] <= MAX_SETTLED_NOISE} | set(
            without
        )
        closed = np.isin(np.arange(len(self.mean)), list(settled)) | np.isin(
            self.arms.workload, self.arms.workload[points]
        )
        while len(points) < count and not closed.all():
            worth = np.zeros(len(closed))
            worth[~closed] = belief.worth(np.flatnonzero(~closed))
            best = int(np.argmax(worth / costs))
            if worth[best] <= least:
                break
            points.append(best)
            closed |= self.arms.workload == self.arms.workload[best]
            belief = belief.assume_measured(best)
        return points


def compute_belief(arms: Arms, measured: Sequence[MeasuredStart] = ()) -> Belief:
    """Return the belief after these measurements."""
    restart = estimate_restart_noise(measured)
    medians = collect_medians(measured, restart)
    numbers = np.array(sorted(medians), dtype=int)
    seconds, noise = np.array([medians[number] for number in numbers.tolist()]).reshape(-1, 2).T
    logs = np.log(seconds) - arms.prior_mean[numbers]
    residuals = MeasuredResiduals.of(arms.places.only(numbers), logs, noise**2)
    scales = _fit_scales(arms, numbers, residuals)
    prior = arms.prior(scales)
    shared = prior[:, numbers]
    inverse = np.linalg.inv(shared[numbers] + np.diag(residuals.variances))
    mean = arms.prior_mean + shared @ (inverse @ logs)
    covariance = prior - shared @ inverse @ shared.T
    left_out_errors = (inverse @ logs) / np.sqrt(np.diag(inverse))
    return Belief(
        arms=arms,
        mean=mean,
        covariance=covariance,
        measured=tuple(measured),
        restart=restart,
        widening=_find_widening(left_out_errors, residuals.places.operation, arms.places.operation),
    )


def _fit_scales(arms: Arms, numbers: np.ndarray, residuals: MeasuredResiduals) -> Scales:
    """Return the scales of the residuals at the arms of these numbers."""
    if not len(numbers):
        return PRIOR_SCALES
    fitted = residuals.places.select_evenly(MAX_FITTED_POINTS)
    base_covariance = arms.base_covariance[np.ix_(numbers[fitted], numbers[fitted])]
    return fit_scales(residuals.only(fitted), PRIOR_SCALES, PRIOR_DEVIATIONS, base_covariance)


def _find_widening(
    errors: np.ndarray, operations: np.ndarray, operation_of_arm: np.ndarray
) -> np.ndarray:
    """Return the factor of the standard deviation of each arm, from the errors of measurements
    predicted from the others, in standard deviations: that of all operations, or that of its own if
    larger. Fitted scales leave fewer degrees of freedom."""
    freedom = max(len(errors) - len(PRIOR_DEVIATIONS), MIN_FREEDOM)
    for_fitted_scales = max(len(errors) / freedom, 1.0)
    variances = np.full(len(operation_of_arm), max((errors**2).sum() / freedom, 1.0))
    for operation in np.unique(operations).tolist():
        of_operation = errors[operations == operation]
        own = (of_operation**2).sum() / max(len(of_operation) - 1, MIN_FREEDOM)
        rows = operation_of_arm == operation
        variances[rows] = np.maximum(variances[rows], own * for_fitted_scales)
    return np.sqrt(variances)


def collect_medians(
    measured: Sequence[MeasuredStart], restart: float
) -> dict[int, tuple[float, float]]:
    """Return the seconds of each measured arm, and the noise of their logarithm."""
    times: dict[int, tuple[float, float]] = {}
    for row in measured:
        new = row.seconds, float(np.hypot(row.noise, restart))
        times[row.arm] = pool_measurements(times[row.arm], new) if row.arm in times else new
    return times


def pool_measurements(
    first: tuple[float, float], second: tuple[float, float]
) -> tuple[float, float]:
    """Return the weighted mean of two measurements of one arm: its seconds and the noise of their
    logarithm."""
    weights = [noise**-2 for _, noise in (first, second)]
    logs = np.average(np.log([first[0], second[0]]), weights=weights)
    return float(np.exp(logs)), float(sum(weights) ** -0.5)


SECONDS_PER_POINT = 0.02  # overhead of a point, in addition to its samples


def estimate_seconds(medians: np.ndarray, samples: float, fewest: int) -> np.ndarray:
    """Return the seconds of points in one start: the fewest samples, or those within the given
    time, at least one; and equally many warm-up runs."""
    return SECONDS_PER_POINT + 2 * np.clip(samples, medians, fewest * medians)


def choose_informative_points(logs: np.ndarray, covariance: np.ndarray, count: int) -> list[int]:
    """Return the alternatives of one workload with the most valuable measurements, each given those
    before. `logs` are the logarithms of their times."""
    arms = Arms([Arm(PlacedWorkload("", 1, "", 0), str(number)) for number in range(len(logs))])
    belief = Belief(arms, logs, covariance)
    points: list[int] = []
    while len(points) < min(count, len(logs)):
        worth = belief.worth()
        worth[points] = -1.0
        points.append(int(worth.argmax()))
        belief = belief.assume_measured(points[-1])
    return points
