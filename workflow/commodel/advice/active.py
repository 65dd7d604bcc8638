"""Which way to do each job is fastest, found out from few measurements: the next one is that whose outcome most changes
the choice.

A belief is one Gaussian over the logarithms of all times. Its mean are prices, where any are known. What prices are off
by is shared by neighbours: by all ways to do a job, by one operation at like sizes, by one algorithm at like sizes and
numbers of ranks; what is shared by all ways to do a job changes no choice, and what an algorithm is off by at one size
it mostly is at the next. How far off prices of algorithms are is learned from what was measured (the likeliest of a
few, near to what is usual). How sure all that is was measured, too: each measurement is compared with what the others
of its operation say of it (left out, in closed form), and where these miss by more than they should, every doubt
about the operation grows by as much. Worked example: of two algorithms at three sizes, priced alike, one measurement
of the first at the middle size that is twice its price makes the second the choice at all three.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import sqrt

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from commodel.records import LIBRARY
from commodel.records import Call as Job
from commodel.stats import NOISE

UNKNOWN = 3.0  # standard deviations of logarithms: of an operation whose cost nobody knows
OPERATION, SIZE, OWN_CHOICE = 0.5, 0.3, 0.4  # of an operation, of it at a size, of what the library does by itself
ALGORITHM, USUAL = (0.15, 0.4, 1.0, 2.0), 0.6  # of an algorithm against others: those tried, and what is usual
PECULIAR, PLAIN = (0.03, 0.1, 0.3), 0.1  # of one point
STRENGTH = 1.0  # of what is usual, against what was measured
AGAIN = 0.1  # of one that may be worth measuring again
BYTES_REACH, RANKS_REACH = 4.0, 3.0  # doublings over which errors are alike
SOUND = 8.0  # measurements that a belief may miss by what it should before it is doubted
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # over the outcomes of a measurement
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Arm:
    """A way to do a job, and the seconds it is priced at, 0 where nobody knows. Of the library's own choice nobody
    does."""

    job: Job
    algorithm: str
    price: float = 0.0


@dataclass(frozen=True, eq=False)
class Arms:
    """All ways to do some jobs, those of a job together, with a choice for each."""

    arms: Sequence[Arm]

    @classmethod
    def of(cls, arms: Iterable[Arm]) -> "Arms":
        return cls(sorted(arms, key=lambda arm: (arm.job, arm.algorithm)))

    @cached_property
    def jobs(self) -> list[Job]:
        return list(dict.fromkeys(arm.job for arm in self.arms))

    @cached_property
    def job(self) -> np.ndarray:
        """The number of each arm's job."""
        numbers = {job: number for number, job in enumerate(self.jobs)}
        return np.array([numbers[arm.job] for arm in self.arms])

    @cached_property
    def first(self) -> np.ndarray:
        """Of each job the first arm."""
        return np.searchsorted(self.job, np.arange(len(self.jobs)))

    @cached_property
    def prior_mean(self) -> np.ndarray:
        """Logarithms of prices. What nobody prices is in the middle of the others of its job."""
        logs = np.array([np.log(arm.price) if arm.price > 0 else np.nan for arm in self.arms])
        middle = [_middle(logs[self.job == number]) for number in range(len(self.jobs))]
        return np.where(np.isnan(logs), np.array(middle)[self.job], logs)

    def prior(self, algorithm: float, peculiar: float, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Covariances between some arms and others."""
        words = self._words
        same = {name: column[rows][:, None] == column[columns] for name, column in words.items()}
        alike = _alike(self._bytes[rows][:, None] - self._bytes[columns], BYTES_REACH)
        ranks = _alike(self._ranks[rows][:, None] - self._ranks[columns], RANKS_REACH)
        priced = self._priced[rows][:, None] & self._priced[columns]
        known = np.where(priced, OPERATION, UNKNOWN) ** 2 * same["operation"] * np.where(priced, 1, alike)
        shared = known + SIZE**2 * same["operation"] * alike * ranks + SIZE**2 * same["job"]
        own = algorithm**2 * alike * ranks * (same["name"] + same["algorithm"]) / 2
        identical = rows[:, None] == columns
        library = self._library[rows][:, None] & identical
        return shared + own + peculiar**2 * identical + OWN_CHOICE**2 * library

    @cached_property
    def _words(self) -> dict[str, np.ndarray]:
        """What arms may share: an operation, a job, an algorithm by name, and with its argument."""
        operations = [arm.job[0] for arm in self.arms]
        names = [f"{arm.job[0]} {arm.algorithm}" for arm in self.arms]
        columns = {"operation": operations, "name": [name.partition(":")[0] for name in names], "algorithm": names}
        return {name: np.unique(column, return_inverse=True)[1] for name, column in columns.items()} | {"job": self.job}

    @property
    def operation(self) -> np.ndarray:
        """The number of each arm's operation."""
        return self._words["operation"]

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.log2([max(arm.job[3], 1) for arm in self.arms])

    @cached_property
    def _ranks(self) -> np.ndarray:
        return np.log2([arm.job[1] for arm in self.arms])

    @cached_property
    def _priced(self) -> np.ndarray:
        """Whether anything is known of what the job costs."""
        known = np.array([arm.price > 0 for arm in self.arms])
        return np.array([known[self.job == number].any() for number in range(len(self.jobs))])[self.job]

    @cached_property
    def _library(self) -> np.ndarray:
        return np.array([arm.algorithm == LIBRARY for arm in self.arms])

    def cheapest(self, seconds: np.ndarray) -> np.ndarray:
        """Of each job the arm that takes least, the first of several."""
        ends = [*self.first[1:], len(self.arms)]
        return np.array([at + int(np.argmin(seconds[at:end])) for at, end in zip(self.first, ends, strict=True)])


def _alike(distances: np.ndarray, reach: float) -> np.ndarray:
    """Matérn's correlation of order 3/2: a smoother one would be too sure of what lies between two measurements."""
    far = sqrt(3) * np.abs(distances) / reach
    return (1 + far) * np.exp(-far)


def _middle(logs: np.ndarray) -> float:
    known = logs[~np.isnan(logs)]
    return float(known.mean()) if len(known) else 0.0


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed of all arms after some were measured: means and covariances of logarithms of seconds."""

    arms: Arms
    mean: np.ndarray
    covariance: np.ndarray
    measured: Mapping[int, float] = field(default_factory=dict)  # seconds, by arm
    noise: Mapping[int, float] = field(default_factory=dict)  # of their logarithms, where that is not NOISE

    def choices(self) -> np.ndarray:
        """Of each job the arm to take: that of the least expected seconds, so that of two the better known is taken."""
        return self.arms.cheapest(self.mean + np.diag(self.covariance) / 2)

    def worth(self) -> np.ndarray:
        """Of measuring each arm: how much less all jobs would take, in logarithms of seconds, if the choice were made
        anew knowing the outcome."""
        noise = _errors(self.noise, range(len(self.mean)))
        moves = self.covariance / np.sqrt(np.diag(self.covariance) + noise**2)  # of all arms, by what is measured
        now = np.minimum.reduceat(self.mean, self.arms.first).sum()
        then = sum(
            weight * np.minimum.reduceat(self.mean[:, None] + node * moves, self.arms.first).sum(axis=0)
            for node, weight in zip(NODES, WEIGHTS, strict=True)
        )
        return np.maximum(now - then, 0.0)

    def regret(self, draws: int = 400, seed: int = 0) -> np.ndarray:
        """Of each job, what the choice is expected to take over the fastest, as a share."""
        count = len(self.mean)
        values, vectors = np.linalg.eigh(self.covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0))
        logs = self.mean + np.random.default_rng(seed).standard_normal((draws, count)) @ roots.T
        fastest = np.minimum.reduceat(logs, self.arms.first, axis=1)
        return np.exp(np.minimum(logs[:, self.choices()] - fastest, 5)).mean(axis=0) - 1

    def supposing(self, arm: int) -> "Belief":
        """As if an arm had been measured and were what is believed of it: nothing but doubt is less."""
        row = self.covariance[arm]
        covariance = self.covariance - np.outer(row, row) / (row[arm] + self.noise.get(arm, NOISE) ** 2)
        return Belief(self.arms, self.mean, covariance, self.measured, self.noise)

    def next_points(
        self, count: int, costs: np.ndarray | float = 1.0, least: float = 0.0, without: Collection[int] = ()
    ) -> list[int]:
        """The arms to measure next, at most one of a job, each worth the most for its cost given those before; none
        that is worth no more than `least`. What was measured well is not measured again, nor arms `without` samples."""
        belief, points = self, []
        known = {arm for arm in self.measured if self.noise.get(arm, NOISE) <= AGAIN} | set(without)
        jobs: set[int] = set()
        while len(points) < count:
            worth = belief.worth()
            worth[[arm for arm in range(len(worth)) if self.arms.job[arm] in jobs or arm in known]] = 0
            best = int(np.argmax(worth / costs))
            if worth[best] <= least:
                break
            points.append(best)
            jobs.add(int(self.arms.job[best]))
            belief = belief.supposing(best)
        return points


def believe(arms: Arms, measured: Mapping[int, float], noise: Mapping[int, float] | None = None) -> Belief:
    """What to believe given the seconds of the arms that were measured, and how sure each of them is."""
    noise = noise or {}
    everything = np.arange(len(arms.arms))
    seen = np.array(sorted(measured), dtype=int)
    if not len(seen):
        return Belief(arms, arms.prior_mean, arms.prior(USUAL, PLAIN, everything, everything))
    off = np.log([measured[arm] for arm in seen]) - arms.prior_mean[seen]
    errors = np.diag(_errors(noise, seen) ** 2)
    algorithm, peculiar = max(
        product(ALGORITHM, PECULIAR),
        key=lambda scales: _likelihood(arms.prior(*scales, seen, seen) + errors, off, *scales),
    )
    inverse = np.linalg.inv(arms.prior(algorithm, peculiar, seen, seen) + errors)
    across = arms.prior(algorithm, peculiar, everything, seen)
    mean = arms.prior_mean + across @ inverse @ off
    covariance = arms.prior(algorithm, peculiar, everything, everything) - across @ inverse @ across.T
    missed = (inverse @ off) / np.sqrt(np.diag(inverse))
    doubts = np.sqrt(_doubts(missed, arms.operation[seen], arms.operation))
    return Belief(arms, mean, covariance * np.outer(doubts, doubts), dict(measured), dict(noise))


def _doubts(missed: np.ndarray, operations: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """By how much the variances of operations have to grow, by how far each measurement is from what others say of it,
    in standard deviations of that. Never less than 1; with few measurements near to what it is of all operations."""
    usual = max((SOUND + (missed**2).sum()) / (SOUND + len(missed)), 1.0)
    count = wanted.max() + 1
    squares = np.bincount(operations, missed**2, count)
    return np.maximum((SOUND * usual + squares) / (SOUND + np.bincount(operations, minlength=count)), 1.0)[wanted]


def _errors(noise: Mapping[int, float], arms: Iterable[int]) -> np.ndarray:
    return np.array([noise.get(int(arm), NOISE) for arm in arms])


def pooled(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Of two measurements of one arm, each its seconds and the noise of their logarithm, what both say together."""
    weights = [noise**-2 for _, noise in (first, second)]
    logs = np.average(np.log([first[0], second[0]]), weights=weights)
    return float(np.exp(logs)), float(sum(weights) ** -0.5)


def _likelihood(covariance: np.ndarray, off: np.ndarray, algorithm: float, peculiar: float) -> float:
    """Of what prices were off by; scales that are not usual count less."""
    factor, lower = cho_factor(covariance)
    fit = -0.5 * off @ cho_solve((factor, lower), off) - np.log(np.diag(factor)).sum()
    return fit - STRENGTH * (np.log(algorithm / USUAL) ** 2 + np.log(peculiar / PLAIN) ** 2)
