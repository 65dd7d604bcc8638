"""Which way to do each job is fastest, found out from few measurements: the next one is that whose outcome most changes
the choice.

A belief is one Gaussian over the logarithms of all times. Its mean are prices, where any are known. What prices are off
by is shared by neighbours: by all ways to do a job, by one operation at like sizes, by one algorithm at like sizes,
numbers of ranks and segments. Prices may also tell the ways of an operation further apart than they are, or less far:
else a search that measures what is cheap would take what it finds wrong with that for true of all else. What is shared
by all ways to do a job changes no choice, and what an algorithm is off by at one size it mostly is at the next. How far
off prices and measurements are is learned (`scales.py`). How sure all that is was measured, too: each measurement is
compared with what the others of its operation say of it (left out, in closed form), and where these miss by more than
they should, every doubt about the operation grows by as much. Worked example: of two algorithms at three sizes, priced
alike, one measurement of the first at the middle size that is twice its price makes the second the choice at all three.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from commodel.advice.arms import Arms
from commodel.advice.scales import USUAL, Measured, Scales, likeliest, offs

REPEATED_NOISE = 0.1  # of one that may be worth measuring again
SOUND = 8.0  # measurements that a belief may miss by what it should before it is doubted
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # over the outcomes of a measurement
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed of all arms after some were measured: means and covariances of logarithms of seconds."""

    arms: Arms
    mean: np.ndarray
    covariance: np.ndarray
    measured: Sequence[Measured] = ()
    scales: Scales = USUAL

    @property
    def seen(self) -> set[int]:
        """Arms that were measured."""
        return {row.arm for row in self.measured}

    def medians(self) -> dict[int, tuple[float, float]]:
        """Of each arm that was measured its seconds, and the noise of their logarithm."""
        times: dict[int, tuple[float, float]] = {}
        for row in self.measured:
            new = row.seconds, self.scales.noise(row.noise)
            times[row.arm] = pooled(times[row.arm], new) if row.arm in times else new
        return times

    @cached_property
    def noise(self) -> np.ndarray:
        """Of each arm, of the logarithm of its next measurement; that is as far apart as what was measured of it."""
        noise = np.full(len(self.mean), self.scales.noise())
        for row in self.measured:
            noise[row.arm] = max(noise[row.arm], self.scales.noise(row.noise))
        return noise

    def choices(self) -> np.ndarray:
        """Of each job the arm to take: that of the least expected seconds, so that of two the better known is taken."""
        return self.arms.cheapest(self.mean + np.diag(self.covariance) / 2)

    def worth(self, wanted: Sequence[int] | None = None) -> np.ndarray:
        """Of measuring each arm that is wanted: how much less all jobs would take, in logarithms of seconds, if the
        choice were made anew knowing the outcome."""
        wanted = np.arange(len(self.mean)) if wanted is None else np.asarray(wanted, dtype=int)
        spread = np.sqrt(np.diag(self.covariance)[wanted] + self.noise[wanted] ** 2)
        moves = self.covariance[:, wanted] / spread  # by each of these
        now = self.arms.least(self.mean).sum()
        then = sum(
            weight * self.arms.least(self.mean[:, None] + node * moves).sum(axis=0)
            for node, weight in zip(NODES, WEIGHTS, strict=True)
        )
        return np.maximum(now - then, 0.0)

    def regret(self, draws: int = 400, seed: int = 0) -> np.ndarray:
        """Of each job, what the choice is expected to take over the fastest, as a share; the same of all that are
        decided together."""
        count = len(self.mean)
        values, vectors = np.linalg.eigh(self.covariance)
        roots = vectors * np.sqrt(np.maximum(values, 0))
        logs = self.mean + np.random.default_rng(seed).standard_normal((draws, count)) @ roots.T
        groups = self.arms.groups
        chosen = np.add.reduceat(logs[:, self.choices()].T, groups, axis=0)
        sizes = np.diff([*groups, len(self.arms.jobs)])
        over = (chosen - self.arms.least(logs.T)) / sizes[:, None]
        return np.repeat(np.exp(np.minimum(over, 5)).mean(axis=1) - 1, sizes)

    def supposing(self, arm: int) -> "Belief":
        """As if an arm had been measured and were what is believed of it: nothing but doubt is less."""
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
        """The arms to measure next, at most one of a job: the `first`, then those that are worth most for their cost
        given those before; none that is worth no more than `least`. What was measured well is not measured again, nor
        arms `without` samples."""
        belief, points = self, list(first)
        for arm in first:
            belief = belief.supposing(arm)
        known = {arm for arm in self.seen if self.noise[arm] <= REPEATED_NOISE} | set(without)
        closed = np.isin(np.arange(len(self.mean)), list(known)) | np.isin(self.arms.job, self.arms.job[points])
        while len(points) < count and not closed.all():
            worth = np.zeros(len(closed))
            worth[~closed] = belief.worth(np.flatnonzero(~closed))
            best = int(np.argmax(worth / costs))
            if worth[best] <= least:
                break
            points.append(best)
            closed |= self.arms.job == self.arms.job[best]
            belief = belief.supposing(best)
        return points


def believe(arms: Arms, measured: Sequence[Measured] = ()) -> Belief:
    """What to believe given what was measured."""
    if not measured:
        return Belief(arms, arms.prior_mean, arms.prior(USUAL.algorithm, USUAL.peculiar))
    seen, off = offs(arms, measured)
    scales = likeliest(arms, measured)
    prior = arms.prior(scales.algorithm, scales.peculiar)
    across = prior[:, seen]
    inverse = np.linalg.inv(across[seen] + scales.errors(measured))
    mean = arms.prior_mean + across @ inverse @ off
    covariance = prior - across @ inverse @ across.T
    missed = (inverse @ off) / np.sqrt(np.diag(inverse))
    doubts = np.sqrt(_doubts(missed, arms.operation[seen], arms.operation))
    return Belief(arms, mean, covariance * np.outer(doubts, doubts), tuple(measured), scales)


def _doubts(missed: np.ndarray, operations: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """By how much the variances of operations have to grow, by how far each measurement is from what others say of it,
    in standard deviations of that. Never less than 1; with few measurements near to what it is of all operations."""
    usual = max((SOUND + (missed**2).sum()) / (SOUND + len(missed)), 1.0)
    count = wanted.max() + 1
    squares = np.bincount(operations, missed**2, count)
    return np.maximum((SOUND * usual + squares) / (SOUND + np.bincount(operations, minlength=count)), 1.0)[wanted]


def pooled(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Of two measurements of one arm, each its seconds and the noise of their logarithm, what both say together."""
    weights = [noise**-2 for _, noise in (first, second)]
    logs = np.average(np.log([first[0], second[0]]), weights=weights)
    return float(np.exp(logs)), float(sum(weights) ** -0.5)
