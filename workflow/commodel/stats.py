"""Statistics of a few raw samples: the median and its confidence interval
(`compute_median_interval`), its noise, and bootstrap resamples (`resample_statistic`)."""

from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import Any

import numpy as np

from commodel.records import STOP_REASONS

# Standard deviations of the logarithm of a median.
MIN_NOISE = 0.05  # even if its samples agree, since medians differ between starts
SINGLE_SAMPLE_NOISE = 0.5  # of a median of one sample
NORMAL_QUANTILE = 1.96  # standard deviations from the middle to the end of a 95 % interval
# standard deviation of a normal distribution over its median absolute deviation
MAD_TO_SIGMA = 1.4826
MEDIAN_TO_MEAN_NOISE = 1.25  # standard error of a median over that of a mean
NEGLIGIBLE_DIFFERENCE = 0.01  # relative; smaller differences are no reason to prefer an alternative


def find_worst_stop(stops: Iterable[str]) -> str:
    """Return the worst reason to stop among the passes of a case: `precision` only if all passes
    have it."""
    return max(stops, key=STOP_REASONS.index)


def compute_median_interval(
    samples: np.ndarray, passes: np.ndarray | None = None
) -> tuple[float, float, float]:
    """Return the median and its two-sided confidence interval by order statistics, without assuming
    a distribution.

    Below six samples no order statistic reaches 95 %, and the extremes are returned. Samples of one
    pass are taken within milliseconds. If passes differ, the interval is widened to include the
    medians of all of them.
    """
    median, low, high = _select_ordered_interval(samples)
    if passes is not None and len(samples):
        medians = [np.median(samples[passes == number]) for number in np.unique(passes)]
        low, high = min(low, *medians, median), max(high, *medians, median)
    return median, float(low), float(high)


def _select_ordered_interval(samples: np.ndarray) -> tuple[float, float, float]:
    ordered = np.sort(samples)
    count = len(ordered)
    if not count:
        return np.nan, np.nan, np.nan
    below = count_omitted(count)
    return float(np.median(ordered)), float(ordered[below]), float(ordered[count - 1 - below])


def estimate_noise(samples: Sequence[float]) -> float:
    """Return the standard deviation of the logarithm of the samples' median; it is large if the
    samples differ much."""
    if len(samples) < 2:
        return SINGLE_SAMPLE_NOISE
    return max(
        MIN_NOISE,
        MEDIAN_TO_MEAN_NOISE * float(np.std(np.log(samples), ddof=1)) / len(samples) ** 0.5,
    )


def find_noise_of_interval(low: np.ndarray | float, high: np.ndarray | float) -> np.ndarray:
    """Return the standard deviation of a logarithm from its 95 % interval; 0 without one."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    is_interval = (low > 0) & (low < high)
    ratio = np.divide(high, low, out=np.ones(np.shape(low)), where=is_interval)
    return np.log(ratio) / 2 / NORMAL_QUANTILE


def select_evenly(count: int, max_count: int) -> list[int]:
    """Return at most `max_count` of `count` indices, including the first and the last, at about
    equal distances."""
    return np.linspace(0, count - 1, min(max_count, count)).round().astype(int).tolist()


def count_omitted(count: int) -> int:
    """Return how many of `count` ordered samples may be omitted at each end, so that the rest
    covers the median with a probability of at least 95 %.

    The median lies below the rest if at most that many samples lie below the median.
    """
    above = np.arange(1, count // 2 + 1)
    # binomial, of 1/2
    shares = np.exp(np.cumsum(np.log(np.r_[1.0, (count + 1 - above) / above])) - count * log(2))
    outside = np.cumsum(shares)
    return max(int(np.searchsorted(outside, 0.025, side="right")) - 1, 0)


def resample_statistic(
    samples: np.ndarray, passes: np.ndarray, statistic: str, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the statistic of the samples, then that of `draws` bootstrap resamples: 1 + draws
    numbers.

    A resample draws passes first, then samples of these passes, since differences between passes
    are noise too.
    """
    functions: dict[str, Callable[..., Any]] = {"median": np.median, "mean": np.mean, "min": np.min}
    reduce = functions[statistic]
    groups = [np.flatnonzero(passes == number) for number in np.unique(passes)]
    if len(groups) == 1:
        resample = samples[rng.integers(0, len(samples), (draws, len(samples)))]
        return np.concatenate([[reduce(samples)], reduce(resample, axis=1)])
    # by length: those of one length are reduced together
    resamples: dict[int, list[tuple[int, np.ndarray]]] = {}
    for number in range(1, 1 + draws):
        drawn = [groups[index] for index in rng.integers(0, len(groups), len(groups))]
        resample = np.concatenate(
            [group[rng.integers(0, len(group), len(group))] for group in drawn]
        )
        resamples.setdefault(len(resample), []).append((number, resample))
    values = np.full(1 + draws, reduce(samples))
    for blocks in resamples.values():
        numbers, resample = zip(*blocks, strict=True)
        values[list(numbers)] = reduce(samples[np.array(resample)], axis=1)
    return values


def compute_r_squared(measured: np.ndarray, fitted: np.ndarray) -> float:
    spread = np.sum((measured - measured.mean()) ** 2)
    if spread <= 1e-18 * np.sum(measured**2):  # all the same, but for rounding
        return 1.0 if np.allclose(measured, fitted, atol=0) else 0.0
    return float(1 - np.sum((measured - fitted) ** 2) / spread)
