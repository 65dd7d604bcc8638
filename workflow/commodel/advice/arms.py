"""Ways to do some jobs, each with its price, and how alike what their prices are off by is believed to be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from commodel.records import LIBRARY
from commodel.records import Call as Job

UNKNOWN = 3.0  # standard deviations of logarithms: of an operation whose cost nobody knows
OPERATION, SIZE, OWN_CHOICE = 0.5, 0.3, 0.4  # of an operation, of it at a size, of what the library does by itself
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
