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

from commodel.records import LIBRARY
from commodel.records import Call as Job

REST = "library beside rules"
UNKNOWN = 3.0  # standard deviations of logarithms: of an operation whose cost nobody knows
OPERATION, SIZE, OWN_CHOICE = 0.5, 0.3, 0.4  # of an operation, of it at a size, of what the library does by itself
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
        library = (self.alone | self._rest)[rows][:, None] & (self.alone | self._rest)[columns] & same["job"]
        chosen = np.where(identical, 1.0, SAME_CHOICE) * library
        return shared + own + peculiar**2 * identical + OWN_CHOICE**2 * chosen

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


def _alike(distances: np.ndarray, reach: float) -> np.ndarray:
    """Matérn's correlation of order 3/2: a smoother one would be too sure of what lies between two measurements."""
    far = sqrt(3) * np.abs(distances) / reach
    return (1 + far) * np.exp(-far)


def _middle(logs: np.ndarray) -> float:
    known = logs[~np.isnan(logs)]
    return float(known.mean()) if len(known) else 0.0
