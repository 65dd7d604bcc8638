"""How far off prices and measurements are: learned from what was measured itself, the likeliest of a few, near to what
is usual.

Two measurements of one way in different starts tell how noisy starts are, those of one start together how much a start
is off as a whole: no noise of samples says either.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from commodel.advice.arms import Arms
from commodel.stats import NOISE

STRENGTH = 1.0  # of what is usual, against what was measured
SWEEPS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """A way as it was timed in one start."""

    arm: int
    seconds: float
    noise: float = NOISE  # of the logarithm, as its samples have it
    start: int = -1  # below 0: of none, and known but for that noise


@dataclass(frozen=True, slots=True)
class Scales:
    """Standard deviations of logarithms."""

    algorithm: float = 0.6  # of prices of an algorithm, against those of others
    peculiar: float = 0.1  # of one price
    again: float = 0.1  # of one measurement in another start, beside the noise of its samples
    start: float = 0.05  # of all measurements of a start

    def errors(self, measured: Sequence[Measured]) -> np.ndarray:
        """Covariances of what measurements are off by."""
        noise = np.array([row.noise for row in measured])
        starts = np.array([row.start for row in measured])
        timed = starts >= 0
        together = (starts[:, None] == starts) & timed
        return np.diag(noise**2 + self.again**2 * timed) + self.start**2 * together

    def noise(self, samples: float = NOISE) -> float:
        """Of a measurement in a start of which nothing is known yet."""
        return float(np.sqrt(samples**2 + self.again**2 + self.start**2))


USUAL = Scales()
PRICES = {"algorithm": (0.15, 0.4, 1.0, 2.0), "peculiar": (0.03, 0.1, 0.3)}
STARTS = {"again": (0.02, 0.05, 0.1, 0.2), "start": (0.02, 0.05, 0.1, 0.2)}


def offs(arms: Arms, measured: Sequence[Measured]) -> tuple[np.ndarray, np.ndarray]:
    """Which arms were measured, and by what logarithm their times are off from what was expected."""
    seen = np.array([row.arm for row in measured])
    return seen, np.log([row.seconds for row in measured]) - arms.prior_mean[seen]


def likeliest(arms: Arms, measured: Sequence[Measured]) -> Scales:
    """Those of prices, then those of starts, the others as they are."""
    seen, off = offs(arms, measured)
    scales, likelihoods = USUAL, {}

    def likelihood(scales: Scales) -> float:
        if scales not in likelihoods:
            covariance = arms.prior(scales.algorithm, scales.peculiar, seen) + scales.errors(measured)
            likelihoods[scales] = _likelihood(covariance, off) - _unusual(scales)
        return likelihoods[scales]

    for _ in range(SWEEPS):
        for tried in (PRICES, STARTS) if any(row.start >= 0 for row in measured) else (PRICES,):
            values = (dict(zip(tried, choice, strict=True)) for choice in product(*tried.values()))
            scales = max((replace(scales, **choice) for choice in values), key=likelihood)
    return scales


def _likelihood(covariance: np.ndarray, off: np.ndarray) -> float:
    factor, lower = cho_factor(covariance)
    return -0.5 * off @ cho_solve((factor, lower), off) - np.log(np.diag(factor)).sum()


def _unusual(scales: Scales) -> float:
    """Scales that are not usual count less."""
    return STRENGTH * sum(np.log(getattr(scales, name) / getattr(USUAL, name)) ** 2 for name in (*PRICES, *STARTS))
