"""What can be said about a handful of raw samples: the median, its interval, and resamples of it."""

import numpy as np
from scipy.special import bdtr


def median_interval(samples: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Median and its two-sided interval by order statistics, free of any assumption on the distribution. Below six
    samples no order statistic reaches 95 %: then the extremes are returned."""
    ordered = np.sort(samples)
    count = len(ordered)
    if not count:
        return np.nan, np.nan, np.nan
    below = left_out(count, level)
    return float(np.median(ordered)), float(ordered[below]), float(ordered[count - 1 - below])


def left_out(count: int, level: float = 0.95) -> int:
    """How many of `count` ordered samples may be left out at each end so that the rest still holds the median with at
    least the given probability. The median lies below the rest when at most that many samples lie below the median."""
    outside = bdtr(np.arange(count // 2 + 1), count, 0.5)
    return max(int(np.searchsorted(outside, (1 - level) / 2, side="right")) - 1, 0)


def resampled(samples: np.ndarray, statistic: str, draws: int, rng: np.random.Generator) -> np.ndarray:
    """The statistic of the samples, then that of `draws` bootstrap resamples of them: 1 + draws numbers."""
    reduce = {"median": np.median, "mean": np.mean, "min": np.min}[statistic]
    picks = samples[rng.integers(0, len(samples), (draws, len(samples)))]
    return np.concatenate([[reduce(samples)], reduce(picks, axis=1)])


def r_squared(measured: np.ndarray, fitted: np.ndarray) -> float:
    spread = np.sum((measured - measured.mean()) ** 2)
    if spread == 0:
        return 1.0 if np.allclose(measured, fitted) else 0.0
    return float(1 - np.sum((measured - fitted) ** 2) / spread)
