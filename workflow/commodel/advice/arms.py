"""Ways to do some jobs, each with its price, which of them go together, and how alike what their prices are off by is
believed to be.

What a library does without any rules is one way, LIBRARY. In some libraries a rule for one size of an operation changes
what it does by itself at all others: that is another way, REST, and all jobs of the operation are left alone, or none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import sqrt

import numpy as np

from commodel.errors import UserError
from commodel.patterns.algorithms import algorithm
from commodel.patterns.segments import PIPELINED, segment_size
from commodel.records import LIBRARY
from commodel.records import Call as Job

REST = "library beside rules"
UNKNOWN = 3.0  # standard deviations of logarithms: of an operation whose cost nobody knows
OPERATION, SIZE, OWN_CHOICE = 0.5, 0.3, 0.4  # of an operation, of it at a size, of what the library does by itself
SLOPE = 0.3  # of an operation at a size: how many times as far apart its prices are as its times
SAME_CHOICE = 0.5  # of what the library does beside rules: what it does without them, too
BYTES_REACH, RANKS_REACH = 4.0, 3.0  # doublings over which errors are alike


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

    def prior(self, algorithm: float, peculiar: float, arms: np.ndarray | None = None) -> np.ndarray:
        """Covariances between some arms, or all."""
        arms = np.arange(len(self.arms)) if arms is None else arms
        shared, choosing = (part[np.ix_(arms, arms)] for part in self._alike)
        return shared + algorithm**2 * choosing + peculiar**2 * (arms[:, None] == arms)

    @cached_property
    def _alike(self) -> tuple[np.ndarray, np.ndarray]:
        """Covariances between all arms: of what several ways to do a job share, and, to a scale, of one algorithm's."""
        same = {name: column[:, None] == column for name, column in self._words.items()}
        sizes = _alike(self._bytes[:, None] - self._bytes, BYTES_REACH)
        near = sizes * _alike(self._ranks[:, None] - self._ranks, RANKS_REACH)
        priced = self._priced[:, None] & self._priced
        known = np.where(priced, OPERATION, UNKNOWN) ** 2 * np.where(priced, 1, sizes)
        steepness = SLOPE**2 * np.outer(self._above, self._above)
        shared = same["operation"] * (known + near * (SIZE**2 + steepness)) + SIZE**2 * same["job"]
        library = (self.alone | self._rest)[:, None] & (self.alone | self._rest) & same["job"]
        chosen = np.where(np.eye(len(self.arms), dtype=bool), 1.0, SAME_CHOICE) * library
        segments = _alike(self._segment[:, None] - self._segment, BYTES_REACH)
        choosing = near * segments * (same["name"] + same["algorithm"]) / 2
        return shared + OWN_CHOICE**2 * chosen, choosing

    @cached_property
    def _above(self) -> np.ndarray:
        """How far each arm's price is above the middle of its job's, in logarithms."""
        middle = np.bincount(self.job, self.prior_mean) / np.bincount(self.job)
        return self.prior_mean - middle[self.job]

    @cached_property
    def _segment(self) -> np.ndarray:
        """Doublings of bytes that a message is cut into."""
        return np.log2([size for size, _ in self._cuts])

    @cached_property
    def _cuts(self) -> list[tuple[int, str]]:
        return [_cut(arm) for arm in self.arms]

    @cached_property
    def _words(self) -> dict[str, np.ndarray]:
        """What arms may share: an operation, a job, an algorithm by name, and with its argument; not what it cuts
        messages into, which is a matter of degree."""
        operations = [arm.job[0] for arm in self.arms]
        names = [f"{arm.job[0]} {name}" for arm, (_, name) in zip(self.arms, self._cuts, strict=True)]
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
        priced = np.array([arm.price > 0 for arm in self.arms])
        return np.array([priced[self.job == number].any() for number in range(len(self.jobs))])[self.job]

    @cached_property
    def alone(self) -> np.ndarray:
        """Which arms need that there are no rules."""
        return np.array([arm.algorithm == LIBRARY for arm in self.arms])

    @cached_property
    def _rest(self) -> np.ndarray:
        return np.array([arm.algorithm == REST for arm in self.arms])

    @cached_property
    def groups(self) -> np.ndarray:
        """The first of the jobs that are left alone together; as a rule each is decided by itself."""
        bound = {self.arms[arm].job[0] for arm in np.flatnonzero(self._rest)}
        new = [job[0] not in bound or job[0] != before[0] for before, job in pairwise([("",), *self.jobs])]
        return np.flatnonzero(new)

    def least(self, logs: np.ndarray) -> np.ndarray:
        """Of each group, and each column of logarithms of seconds, the least sum: without rules, or with the best of
        them for each job."""
        if len(self.groups) == len(self.jobs):
            return np.minimum.reduceat(logs, self.first, axis=0)
        return np.minimum(*(np.add.reduceat(ways, self.groups, axis=0) for ways in self._both(logs)))

    def _both(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each job what it takes without rules, and with the best one; infinite where there is no such way."""
        bare = np.full((len(self.jobs), *logs.shape[1:]), np.inf)
        bare[self.job[self.alone]] = logs[self.alone]
        ruled = logs.copy()
        ruled[self.alone] = np.inf
        return bare, np.minimum.reduceat(ruled, self.first, axis=0)

    def cheapest(self, logs: np.ndarray) -> np.ndarray:
        """Of each job the arm to take, so that each group takes least; the first of several."""
        sums = [np.add.reduceat(ways, self.groups) for ways in self._both(logs)]
        sizes = np.diff([*self.groups, len(self.jobs)])
        kept = self.alone == np.repeat(sums[0] <= sums[1], sizes)[self.job]
        seconds = np.where(kept, logs, np.inf)
        ends = [*self.first[1:], len(self.arms)]
        return np.array([at + int(np.argmin(seconds[at:end])) for at, end in zip(self.first, ends, strict=True)])


def _cut(arm: Arm) -> tuple[int, str]:
    """The most bytes of a message that an algorithm sends at once, and what it is called besides."""
    operation, whole = arm.job[0], max(arm.job[3], 1)
    try:
        entry, argument = algorithm(operation, arm.algorithm)
    except UserError:  # what the library does is none of ours
        return whole, arm.algorithm
    if "BYTES" not in entry.argument:
        return whole, arm.algorithm
    uncut = not argument and entry.argument != PIPELINED
    return whole if uncut else min(segment_size(argument), whole), entry.choice


def _alike(distances: np.ndarray, reach: float) -> np.ndarray:
    """Matérn's correlation of order 3/2: a smoother one would be too sure of what lies between two measurements."""
    far = sqrt(3) * np.abs(distances) / reach
    return (1 + far) * np.exp(-far)


def _middle(logs: np.ndarray) -> float:
    known = logs[~np.isnan(logs)]
    return float(known.mean()) if len(known) else 0.0
