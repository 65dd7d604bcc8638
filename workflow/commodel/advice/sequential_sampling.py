"""Sequential sampling: which alternative to measure next, and when the expected regret is low enough to stop.

`compute_belief` returns a `Belief`: one Gaussian over the logarithms of the times of all alternatives (`Arms`).
`Belief.next_points` returns the alternatives whose measurement is expected to change the choices most, and
`Belief.regret` the expected regret of the present choices.

- Alternatives: the library default without any rules is the alternative LIBRARY. In some MPI libraries a rule for one
  size of an operation changes the library default at all other sizes. That default is the alternative
  DEFAULT_WITH_RULES, and either all workloads of the operation have rules, or none.
- Mean: the predictions, if there are any.
- Covariance: errors of predictions are correlated over all alternatives of a workload, over one operation at similar
  sizes, and over one algorithm at similar sizes, numbers of ranks and segments. Predictions may also exaggerate or
  understate the differences between alternatives. Without these correlations, a search that measures the fast
  alternatives would assume their errors for all others. An error that all alternatives of a workload share changes no
  choice. The error of an algorithm at one size mostly holds at the next.
- Noise: measurements of one alternative in several starts show the noise between starts. Measurements of one start show
  the error that they share. The noise of samples shows neither.
- Scales: those of the errors of predictions and measurements are fitted: the most likely of a few values near the
  defaults.
- Validation: each measurement is compared with its prediction from the other measurements (leave-one-out, in closed
  form). If these errors are larger than expected, all variances of the operation grow accordingly.

Worked example: two algorithms have equal predictions at three sizes. If the first takes twice its prediction at the
middle size, the second is chosen at all three.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from commodel.errors import UserError
from commodel.patterns.algorithms import find_algorithm
from commodel.patterns.arguments import Kind
from commodel.predictions.residual_model import compute_matern
from commodel.records import LIBRARY, PlacedWorkload
from commodel.stats import MIN_NOISE

DEFAULT_WITH_RULES = "library default with rules"
UNPREDICTED_DEVIATION = 3.0  # standard deviation of a logarithm: of an operation without predictions
OPERATION_DEVIATION, SIZE_DEVIATION, DEFAULT_DEVIATION = (
    0.5,
    0.3,
    0.4,
)  # of errors that an operation, an operation at a size, and a library default share
SLOPE_DEVIATION = (
    0.3  # of the factor by which predictions exaggerate differences of alternatives, of an operation at a size
)
DEFAULTS_CORRELATION = 0.5  # correlation of the library default with rules with that without rules
BYTES_CORRELATION_DOUBLINGS, RANKS_CORRELATION_DOUBLINGS = 4.0, 3.0  # doublings over which errors are correlated


@dataclass(frozen=True)
class Arm:
    """An alternative of a workload, and its predicted seconds; 0 without a prediction, as for the library default."""

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
        """Logarithms of predictions; without a prediction, the mean of the other arms of the workload."""
        logs = np.array([np.log(arm.prediction) if arm.prediction > 0 else np.nan for arm in self.arms])
        middle = [_compute_mean(logs[self.workload == number]) for number in range(len(self.workloads))]
        return np.where(np.isnan(logs), np.array(middle)[self.workload], logs)

    def prior(self, algorithm: float, alternative: float, arms: np.ndarray | None = None) -> np.ndarray:
        """Return the prior covariances of the logarithms of the times of some arms, or of all."""
        arms = np.arange(len(self.arms)) if arms is None else arms
        shared, of_algorithm = (covariance[np.ix_(arms, arms)] for covariance in self._prior_parts)
        return shared + algorithm**2 * of_algorithm + alternative**2 * (arms[:, None] == arms)

    @cached_property
    def _prior_parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The covariances of the errors that arms of a workload or an operation share; and, up to a scale, of those of
        an algorithm."""
        same = {name: column[:, None] == column for name, column in self._labels.items()}
        sizes = compute_matern((self._bytes[:, None] - self._bytes) / BYTES_CORRELATION_DOUBLINGS)
        similar = sizes * compute_matern((self._ranks[:, None] - self._ranks) / RANKS_CORRELATION_DOUBLINGS)
        predicted = self._predicted[:, None] & self._predicted
        operation_variance = np.where(predicted, OPERATION_DEVIATION, UNPREDICTED_DEVIATION) ** 2 * np.where(
            predicted, 1, sizes
        )
        exaggeration = SLOPE_DEVIATION**2 * np.outer(self._relative_predictions, self._relative_predictions)
        shared = (
            same["operation"] * (operation_variance + similar * (SIZE_DEVIATION**2 + exaggeration))
            + SIZE_DEVIATION**2 * same["workload"]
        )
        library = (
            (self.is_library_default | self._is_default_with_rules)[:, None]
            & (self.is_library_default | self._is_default_with_rules)
            & same["workload"]
        )
        of_default = np.where(np.eye(len(self.arms), dtype=bool), 1.0, DEFAULTS_CORRELATION) * library
        segments = compute_matern((self._segment[:, None] - self._segment) / BYTES_CORRELATION_DOUBLINGS)
        of_algorithm = similar * segments * (same["name"] + same["algorithm"]) / 2
        return shared + DEFAULT_DEVIATION**2 * of_default, of_algorithm

    @cached_property
    def _relative_predictions(self) -> np.ndarray:
        """The logarithm of each arm's prediction over the mean of its workload."""
        middle = np.bincount(self.workload, self.prior_mean) / np.bincount(self.workload)
        return self.prior_mean - middle[self.workload]

    @cached_property
    def _segment(self) -> np.ndarray:
        """The logarithm to base 2 of the bytes that an algorithm sends at once."""
        return np.log2([size for size, _ in self._segments])

    @cached_property
    def _segments(self) -> list[tuple[int, str]]:
        return [_find_segment(arm) for arm in self.arms]

    @cached_property
    def _labels(self) -> dict[str, np.ndarray]:
        """Labels by which errors of arms are correlated: operation, workload, name of the algorithm, and algorithm with
        its argument. Segment sizes are excluded, since their effect is gradual."""
        operations = [arm.workload.operation for arm in self.arms]
        names = [f"{arm.workload.operation} {name}" for arm, (_, name) in zip(self.arms, self._segments, strict=True)]
        columns = {"operation": operations, "name": [name.partition(":")[0] for name in names], "algorithm": names}
        return {name: np.unique(column, return_inverse=True)[1] for name, column in columns.items()} | {
            "workload": self.workload
        }

    @property
    def operation(self) -> np.ndarray:
        """The number of each arm's operation."""
        return self._labels["operation"]

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.log2([max(arm.workload.bytes, 1) for arm in self.arms])

    @cached_property
    def _ranks(self) -> np.ndarray:
        return np.log2([arm.workload.ranks for arm in self.arms])

    @cached_property
    def _predicted(self) -> np.ndarray:
        """Whether any alternative of the arm's workload has a prediction."""
        predicted = np.array([arm.prediction > 0 for arm in self.arms])
        return np.array([predicted[self.workload == number].any() for number in range(len(self.workloads))])[
            self.workload
        ]

    @cached_property
    def is_library_default(self) -> np.ndarray:
        """Which arms are the library default without any rules."""
        return np.array([arm.algorithm == LIBRARY for arm in self.arms])

    @cached_property
    def _is_default_with_rules(self) -> np.ndarray:
        return np.array([arm.algorithm == DEFAULT_WITH_RULES for arm in self.arms])

    @cached_property
    def groups(self) -> np.ndarray:
        """The first of the workloads that are decided together; most workloads are decided separately."""
        joint_operations = {
            self.arms[arm].workload.operation for arm in np.flatnonzero(self._is_default_with_rules).tolist()
        }
        previous_operations = ["", *(workload.operation for workload in self.workloads)]
        starts_group = [
            workload.operation not in joint_operations or workload.operation != previous
            for previous, workload in zip(previous_operations, self.workloads, strict=False)
        ]
        return np.flatnonzero(starts_group)

    def minimum_times(self, logs: np.ndarray) -> np.ndarray:
        """Return the smallest sum of logarithms of seconds for each group and column: without rules, or with the
        fastest alternative of each workload."""
        if len(self.groups) == len(self.workloads):
            return np.minimum.reduceat(logs, self.first, axis=0)
        return np.minimum(
            *(np.add.reduceat(totals, self.groups, axis=0) for totals in self._sum_without_and_with_rules(logs))
        )

    def _sum_without_and_with_rules(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the time of each workload without rules, and with the best one; infinite without such an
        alternative."""
        without_rules = np.full((len(self.workloads), *logs.shape[1:]), np.inf)
        without_rules[self.workload[self.is_library_default]] = logs[self.is_library_default]
        with_rules = logs.copy()
        with_rules[self.is_library_default] = np.inf
        return without_rules, np.minimum.reduceat(with_rules, self.first, axis=0)

    def choose_fastest(self, logs: np.ndarray) -> np.ndarray:
        """Return the arm to choose for each workload, so that each group takes the shortest time; of equal arms
        the first."""
        sums = [np.add.reduceat(totals, self.groups) for totals in self._sum_without_and_with_rules(logs)]
        sizes = np.diff([*self.groups, len(self.workloads)])
        allowed = self.is_library_default == np.repeat(sums[0] <= sums[1], sizes)[self.workload]
        seconds = np.where(allowed, logs, np.inf)
        ends = [*self.first[1:], len(self.arms)]
        return np.array([at + int(np.argmin(seconds[at:end])) for at, end in zip(self.first, ends, strict=True)])


def _find_segment(arm: Arm) -> tuple[int, str]:
    """Return the segment size of an algorithm in bytes, and the algorithm's name without it."""
    operation, full_size = arm.workload.operation, max(arm.workload.bytes, 1)
    try:
        entry, text = find_algorithm(operation, arm.algorithm)
    except UserError:  # the library default, which is no algorithm of this project
        return full_size, arm.algorithm
    if entry.argument is None or not entry.argument.is_size:
        return full_size, arm.algorithm
    (size,) = entry.parse_argument(text)
    is_unsegmented = size is None or (entry.argument.kind is Kind.FIRST_PART and not text)
    return full_size if is_unsegmented else min(size, full_size), entry.short_name


def _compute_mean(logs: np.ndarray) -> float:
    finite = logs[~np.isnan(logs)]
    return float(finite.mean()) if len(finite) else 0.0


SCALE_PENALTY = 1.0  # factor of the squared logarithms by which scales differ from the defaults
SEARCH_SWEEPS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """The time of an alternative in one start."""

    arm: int
    seconds: float
    noise: float = MIN_NOISE  # of the logarithm, from its samples
    start: int = -1  # number of the start; -1: unknown, then `noise` is the only error


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of logarithms."""

    algorithm: float = 0.6  # of the error that all predictions of an algorithm share
    alternative: float = 0.1  # of the error of a single prediction
    restart: float = 0.1  # of a measurement repeated in another start, in addition to the noise of its samples
    start: float = 0.05  # of the error that all measurements of a start share

    def errors(self, measured: Sequence[Measured]) -> np.ndarray:
        """Return the covariances of the errors of measurements."""
        noise = np.array([row.noise for row in measured])
        starts = np.array([row.start for row in measured])
        timed = starts >= 0
        same_start = (starts[:, None] == starts) & timed
        return np.diag(noise**2 + self.restart**2 * timed) + self.start**2 * same_start

    def noise(self, samples: float = MIN_NOISE) -> float:
        """Return the noise of the logarithm of a measurement in a new start."""
        return float(np.sqrt(samples**2 + self.restart**2 + self.start**2))


DEFAULT_SCALES = Scales()
PREDICTION_SCALES = {"algorithm": (0.15, 0.4, 1.0, 2.0), "alternative": (0.03, 0.1, 0.3)}
START_SCALES = {"restart": (0.02, 0.05, 0.1, 0.2), "start": (0.02, 0.05, 0.1, 0.2)}


def compute_residuals(arms: Arms, measured: Sequence[Measured]) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the measured arms, and the logarithms of their times over the expected ones."""
    measured_arms = np.array([row.arm for row in measured])
    return measured_arms, np.log([row.seconds for row in measured]) - arms.prior_mean[measured_arms]


def fit_scales(arms: Arms, measured: Sequence[Measured]) -> Scales:
    """Return the most likely scales by coordinate search: first over those of predictions, then over those of
    starts."""
    measured_arms, residuals = compute_residuals(arms, measured)
    scales, likelihoods = DEFAULT_SCALES, {}

    def likelihood(scales: Scales) -> float:
        if scales not in likelihoods:
            covariance = arms.prior(scales.algorithm, scales.alternative, measured_arms) + scales.errors(measured)
            likelihoods[scales] = _compute_likelihood(covariance, residuals) - _penalize_scales(scales)
        return likelihoods[scales]

    for _ in range(SEARCH_SWEEPS):
        for grid in (
            (PREDICTION_SCALES, START_SCALES) if any(row.start >= 0 for row in measured) else (PREDICTION_SCALES,)
        ):
            values = (dict(zip(grid, candidate, strict=True)) for candidate in product(*grid.values()))
            scales = max((replace(scales, **candidate) for candidate in values), key=likelihood)
    return scales


def _compute_likelihood(covariance: np.ndarray, residuals: np.ndarray) -> float:
    from scipy.linalg import cho_factor, cho_solve  # here, because it is slow to load

    factor, lower = cho_factor(covariance)
    return -0.5 * residuals @ cho_solve((factor, lower), residuals) - np.log(np.diag(factor)).sum()


def _penalize_scales(scales: Scales) -> float:
    """Return the penalty of scales that differ from the defaults."""
    return SCALE_PENALTY * sum(
        np.log(getattr(scales, name) / getattr(DEFAULT_SCALES, name)) ** 2
        for name in (*PREDICTION_SCALES, *START_SCALES)
    )


MAX_SETTLED_NOISE = 0.1  # standard deviation of a logarithm; arms with more may be measured again
PRIOR_WEIGHT = 8.0  # prior weight of the expected errors of a belief, in measurements
QUADRATURE_NODES, QUADRATURE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # over the outcomes of a measurement
QUADRATURE_WEIGHTS = QUADRATURE_WEIGHTS / QUADRATURE_WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior after some measurements: means and covariances of the logarithms of the times of all arms, in
    seconds."""

    arms: Arms
    mean: np.ndarray
    covariance: np.ndarray
    measured: Sequence[Measured] = ()
    scales: Scales = DEFAULT_SCALES

    @property
    def measured_arms(self) -> set[int]:
        return {row.arm for row in self.measured}

    def medians(self) -> dict[int, tuple[float, float]]:
        """Return the seconds of each measured arm, and the noise of their logarithm."""
        times: dict[int, tuple[float, float]] = {}
        for row in self.measured:
            new = row.seconds, self.scales.noise(row.noise)
            times[row.arm] = pool_measurements(times[row.arm], new) if row.arm in times else new
        return times

    @cached_property
    def noise(self) -> np.ndarray:
        """The noise of the logarithm of each arm's next measurement: at least that of the arm's earlier ones."""
        noise = np.full(len(self.mean), self.scales.noise())
        for row in self.measured:
            noise[row.arm] = max(noise[row.arm], self.scales.noise(row.noise))
        return noise

    def choices(self) -> np.ndarray:
        """Return the arm to choose for each workload: the one with the smallest expected seconds, which favours arms
        with small variance."""
        return self.arms.choose_fastest(self.mean + np.diag(self.covariance) / 2)

    def worth(self, arms: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
        """Return the value of measuring each selected arm: the decrease of the time of all workloads, in logarithms of
        seconds, if the choice were made again with the outcome."""
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
        """Return the expected regret of each workload's choice, as a share; the same for all that are decided
        together."""
        count = len(self.mean)
        values, vectors = np.linalg.eigh(self.covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0))
        logs = self.mean + np.random.default_rng(0).standard_normal((draws, count)) @ roots.T
        groups = self.arms.groups
        chosen = np.add.reduceat(logs[:, self.choices()].T, groups, axis=0)
        sizes = np.diff([*groups, len(self.arms.workloads)])
        excess = (chosen - self.arms.minimum_times(logs.T)) / sizes[:, None]
        return np.repeat(np.exp(np.minimum(excess, 5)).mean(axis=1) - 1, sizes)

    def assume_measured(self, arm: int) -> "Belief":
        """Return the belief after an arm is measured at its expected time: means stay, and covariances shrink."""
        row = self.covariance[arm]
        covariance = self.covariance - np.outer(row, row) / (row[arm] + self.noise[arm] ** 2)
        return Belief(self.arms, self.mean, covariance, self.measured, self.scales)

    def next_points(
        self,
        count: int,
        costs: np.ndarray | float = 1.0,
        least: float = 0.0,
        first: Sequence[int] = (),
        without: Collection[int] = (),
    ) -> list[int]:
        """Return the arms to measure next, at most one of a workload: the `first`, then those with the highest value
        for their seconds, given those before; none of a value up to `least`. Arms with a precise measurement are not
        measured again, nor arms `without` samples."""
        belief, points = self, list(first)
        for arm in first:
            belief = belief.assume_measured(arm)
        settled = {arm for arm in self.measured_arms if self.noise[arm] <= MAX_SETTLED_NOISE} | set(without)
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


def compute_belief(arms: Arms, measured: Sequence[Measured] = ()) -> Belief:
    """Return the belief after these measurements."""
    if not measured:
        return Belief(arms, arms.prior_mean, arms.prior(DEFAULT_SCALES.algorithm, DEFAULT_SCALES.alternative))
    measured_arms, residuals = compute_residuals(arms, measured)
    scales = fit_scales(arms, measured)
    prior = arms.prior(scales.algorithm, scales.alternative)
    covariance_with_measured = prior[:, measured_arms]
    inverse = np.linalg.inv(covariance_with_measured[measured_arms] + scales.errors(measured))
    mean = arms.prior_mean + covariance_with_measured @ inverse @ residuals
    covariance = prior - covariance_with_measured @ inverse @ covariance_with_measured.T
    standardized_errors = (inverse @ residuals) / np.sqrt(np.diag(inverse))
    inflation = np.sqrt(_compute_variance_factors(standardized_errors, arms.operation[measured_arms], arms.operation))
    return Belief(arms, mean, covariance * np.outer(inflation, inflation), tuple(measured), scales)


def _compute_variance_factors(
    standardized_errors: np.ndarray, operations: np.ndarray, operation_of_arm: np.ndarray
) -> np.ndarray:
    """Return the factors by which the variances of operations grow.

    `standardized_errors` are those of measurements predicted from the others, in standard deviations. A factor is at
    least 1. With few measurements it is near that of all operations."""
    overall = max((PRIOR_WEIGHT + (standardized_errors**2).sum()) / (PRIOR_WEIGHT + len(standardized_errors)), 1.0)
    count = operation_of_arm.max() + 1
    squares = np.bincount(operations, standardized_errors**2, count)
    return np.maximum(
        (PRIOR_WEIGHT * overall + squares) / (PRIOR_WEIGHT + np.bincount(operations, minlength=count)), 1.0
    )[operation_of_arm]


def pool_measurements(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Return the weighted mean of two measurements of one arm: its seconds and the noise of their logarithm."""
    weights = [noise**-2 for _, noise in (first, second)]
    logs = np.average(np.log([first[0], second[0]]), weights=weights)
    return float(np.exp(logs)), float(sum(weights) ** -0.5)


SECONDS_PER_POINT = 0.02  # overhead of a point, in addition to its samples


def estimate_seconds(medians: np.ndarray, samples: float, fewest: int) -> np.ndarray:
    """Return the seconds of points in one start: the fewest samples, or those within the given time, at least one; and
    equally many warm-up runs."""
    return SECONDS_PER_POINT + 2 * np.clip(samples, medians, fewest * medians)


def choose_informative_points(logs: np.ndarray, covariance: np.ndarray, count: int) -> list[int]:
    """Return the alternatives of one workload with the most valuable measurements, each given those before. `logs` are
    the logarithms of their times."""
    arms = Arms([Arm(PlacedWorkload("", 1, "", 0), str(number)) for number in range(len(logs))])
    belief = Belief(arms, logs, covariance)
    points: list[int] = []
    while len(points) < min(count, len(logs)):
        worth = belief.worth()
        worth[points] = -1.0
        points.append(int(worth.argmax()))
        belief = belief.assume_measured(points[-1])
    return points
