"""Whether a rule pays: the same collective with and without it, in alternation, the interval of what that gains, and
what cases say of it for which nothing is different.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import mean, variance

import numpy as np
from scipy.optimize import brentq
from scipy.special import polygamma
from scipy.stats import t

CONFIDENCE = 0.95  # that an interval holds the true gain
WORST = 0.95  # of a gain: no rule may make anything slower by more
WORTH = 1.05  # a gain: less is nothing to look for
SEVERAL = 5  # cases, to say how much their variances differ
STEADIEST = 1e-8  # a variance: what differs by less than 0.01 % is the same
LEAST_FREEDOM, MOST_FREEDOM = 0.1, 50.0  # degrees of freedom that the other cases may be worth


@dataclass(frozen=True)
class Gain:
    """How many times as fast with rules as without them; 1 is the same."""

    times: float
    low: float
    high: float
    with_rules: float  # seconds, the median over starts
    without: float
    pairs: tuple[float, ...] = ()  # the logarithm in each pair of starts

    @property
    def pays(self) -> bool:
        return self.low > 1

    @property
    def harms(self) -> bool:
        """Slower by more than is allowed as far as we know, and slower in any case."""
        return self.times < WORST and self.high < 1

    def widened(self, by: float) -> "Gain":
        return replace(self, low=self.low * exp(-by), high=self.high * exp(by))


@dataclass(frozen=True)
class Control:
    """What cases showed that were run in the same way with rules and without: a gain there is none of the rules'."""

    cases: int
    differ: int  # whose intervals do not hold 1
    wider: float  # a logarithm: by how much intervals have to be wider on both sides for so many to hold 1 as should


def control(gains: Iterable[Gain]) -> Control:
    """Pairs of starts know what changes from one to the next, not what changes with their turn or between all of them.
    So intervals reach as far further as those of the control have to, but for as many as miss 1 by chance."""
    short = sorted((max(log(gain.low), -log(gain.high), 0.0) for gain in gains), reverse=True)
    by_chance = round((1 - CONFIDENCE) * len(short))
    return Control(len(short), sum(missing > 0 for missing in short), short[by_chance] if short else 0.0)


def gain(with_rules: Sequence[float], without: Sequence[float]) -> Gain:
    """From the medians of pairs of starts that followed each other. Geometric mean and Student's interval: what pairs
    share, such as a busy network, is in neither."""
    logs = tuple(log(bare / ruled) for ruled, bare in zip(with_rules, without, strict=True))
    medians = (sorted(seconds)[len(seconds) // 2] for seconds in (with_rules, without))
    return Gain(*_interval(logs), *medians, logs)


@dataclass(frozen=True)
class Usual:
    """How much pairs of starts of one case differ, as the other cases have it."""

    variance: float = 1.0
    freedom: float = 0.0  # degrees of freedom that this is worth; 0 where nothing is known


NOTHING = Usual()


def steadied(gains: Sequence[Gain]) -> list[Gain]:
    """With intervals that rest on the pairs of all cases: three pairs say little of how much a fourth would differ, but
    twenty cases of three say it together. Variances are taken to be scaled inverse χ², and a case's own is drawn to
    what is usual the more the less they differ among cases (as limma does for genes)."""
    usual = _usual([variance(gain.pairs) for gain in gains], [len(gain.pairs) - 1 for gain in gains])
    intervals = [_interval(gain.pairs, usual) for gain in gains]
    return [replace(gain, low=low, high=high) for gain, (_, low, high) in zip(gains, intervals, strict=True)]


def _usual(variances: Sequence[float], freedoms: Sequence[int]) -> Usual:
    """From the mean and the variance of the logarithms of variances."""
    if len(variances) < SEVERAL:
        return NOTHING
    half = np.array(freedoms) / 2
    logs = np.log(np.maximum(variances, STEADIEST)) - polygamma(0, half) + np.log(half)
    apart = float(np.var(logs, ddof=1) - polygamma(1, half).mean())  # what chance does not explain
    if apart >= polygamma(1, LEAST_FREEDOM / 2):
        return NOTHING
    freedom = 2 * brentq(
        lambda at: polygamma(1, at) - max(apart, polygamma(1, MOST_FREEDOM / 2)), LEAST_FREEDOM / 2, MOST_FREEDOM / 2
    )
    return Usual(float(np.exp(logs.mean() + polygamma(0, freedom / 2) - np.log(freedom / 2))), freedom)


def _interval(logs: Sequence[float], usual: Usual = NOTHING) -> tuple[float, float, float]:
    """The geometric mean, and where it may lie."""
    middle, freedom = mean(logs), len(logs) - 1 + usual.freedom
    half = float("inf")
    if len(logs) > 1:
        spread = ((len(logs) - 1) * variance(logs) + usual.freedom * usual.variance) / freedom
        half = t.ppf((1 + CONFIDENCE) / 2, freedom) * sqrt(spread / len(logs))
    low, high = (exp(min(max(end, -700), 700)) for end in (middle - half, middle + half))
    return exp(middle), low, high


def joined(first: Gain, second: Gain) -> Gain:
    """Of one case, from the pairs of both; its times are those of the second."""
    return replace(second, pairs=(*first.pairs, *second.pairs))


def of_all(gains: Iterable[Gain], wider: float = 0.0) -> tuple[float, float, float]:
    """The geometric mean of several cases, and its interval. Cases are timed in the same starts, and what makes a start
    slow is in all of them: so it rests on the mean of each pair of starts, not on so many cases."""
    by_pair = zip(*(gain.pairs for gain in gains), strict=False)  # a case may lack a pair
    middle, low, high = _interval([mean(logs) for logs in by_pair])
    return middle, low * exp(-wider), high * exp(wider)


def between(sizes: Sequence[int]) -> dict[int, int]:
    """For each size that was measured one that was not, for which its rule holds: half way to the next in doublings,
    and 1.5 times the last; whole doubles where there is room for any. Of no bytes there is but one size."""
    ends = [*sizes[1:], int(2.25 * sizes[-1])]
    return {size: _whole(sqrt(size * end), size, end) if size else 0 for size, end in zip(sizes, ends, strict=True)}


def _whole(middle: float, size: int, end: int) -> int:
    for unit in (512, 64, 8, 1):
        value = unit * round(middle / unit)
        if size < value < end and abs(value - middle) <= 0.2 * middle:
            return value
    return size


def in_turn(pairs: int) -> list[bool]:
    """Whether each start has rules: with, without, without, with, …, so that neither always comes first."""
    return [(pair + place) % 2 == 0 for pair in range(pairs) for place in range(2)]
