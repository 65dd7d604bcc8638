"""Whether all nodes are as far from each other: where a platform's file names no levels by the probe `evenness`, and in
each distance class by `nodepairs`."""

from collections import defaultdict

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.keys import Pair
from commodel.models.pricing.pairs import rank_types
from commodel.models.probes.evenness import OF_TYPES
from commodel.price.alone import OFF
from commodel.stats import median_interval

MOST = 0.8  # of the pairs of a class; a tenth at each end may be of slow nodes, or of noise
CLEARLY = 1.15  # times as long; less is a class by no model that we know


def unevenness(evidence: Observed) -> float:
    """How many times as long a round trip takes between nodes that are far from each other as between near ones: of the
    most distant nodes and the message size where that is most. 1: all are alike as far as can be told.

    A slow node is no distance: all pairs of a step have to be slower.
    """
    steps: dict[int, dict[int, list[tuple[float, float, float]]]] = defaultdict(lambda: defaultdict(list))
    for case in evidence.probes.get("evenness", ()):
        if len(case.seconds) and int(case.settings["step"]) != OF_TYPES:
            interval = median_interval(case.seconds, case.passes)
            steps[int(case.settings["bytes"])][int(case.settings["step"])].append(interval)
    most = 1.0
    for pairs_of in steps.values():
        near = min((pair for pairs in pairs_of.values() for pair in pairs), key=lambda pair: pair[0])
        for pairs in pairs_of.values():
            if min(low for _, low, _ in pairs) > CLEARLY * near[2]:
                most = max(most, float(np.median([median for median, *_ in pairs]) / near[0]))
    return most


def unlike_types(evidence: Observed) -> dict[str, float]:
    """Of the pairs of types of which a round trip takes clearly longer or shorter than between the first two nodes, by
    which factor it differs."""
    times: dict[int, dict[str, tuple[float, float, float]]] = defaultdict(dict)
    for case in evidence.probes.get("evenness", ()):
        if len(case.seconds) and int(case.settings["step"]) == OF_TYPES:
            pair = _types(evidence, int(case.settings["one"]), int(case.settings["two"]))
            times[int(case.settings["bytes"])][pair] = median_interval(case.seconds, case.passes)
    worst: dict[str, float] = {}
    for by_pair in times.values():
        usual = by_pair.get(_types(evidence, 0, 1))
        for pair, (median, low, high) in by_pair.items() if usual else ():
            if low > CLEARLY * usual[2] or CLEARLY * high < usual[1]:
                factor = max(median / usual[0], usual[0] / median)
                worst[pair] = max(worst.get(pair, 1.0), round(factor, 3))
    return worst


def _types(evidence: Observed, one: int, two: int) -> str:
    return str(Pair(*(list(evidence.types)[number] for number in rank_types(np.array([one, two]), evidence.types))))


def unlike(entry: Family, evidence: Observed) -> dict[str, float]:
    """Of the distance classes in which prices by one value for all pairs are off by more than we can live with, how
    many times as long a round trip takes between far nodes as between near ones. Of families with values for each pair
    of types, or of pairs of the first type, only pairs of the same types are held against each other."""
    levels, by_type = Hierarchy.of(evidence.levels), evidence.types and (entry.by_type or entry.by_class)
    seconds: dict[tuple[str, int, tuple[int, ...]], list[float]] = defaultdict(list)
    for case in evidence.probes.get("nodepairs", ()):
        if len(case.seconds):
            ends = np.array([int(case.settings["one"]), int(case.settings["two"])])
            types = tuple(sorted(rank_types(ends, evidence.types).tolist())) if by_type else ()
            key = levels.names[int(levels.distance(*ends))], int(case.settings["bytes"]), types
            seconds[key].append(float(np.median(case.seconds)))
    worst: dict[str, float] = {}
    for (name, *_), times in seconds.items():
        near, far = np.quantile(times, [(1 - MOST) / 2, (1 + MOST) / 2])
        if far > OFF * near:
            worst[name] = max(worst.get(name, 1.0), round(float(far / near), 3))
    return worst
