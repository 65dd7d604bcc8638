"""Whether all nodes are as far from each other, where a platform's file names no levels, by the probe `evenness`."""

from collections import defaultdict

import numpy as np

from commodel.models.fitting.observed import Observed
from commodel.stats import median_interval

CLEARLY = 1.15  # times as long; less is a class by no model that we know


def unevenness(evidence: Observed) -> float:
    """How many times as long a round trip takes between nodes that are far from each other as between near ones: of the
    most distant nodes and the message size where that is most. 1: all are alike as far as can be told.

    A slow node is no distance: all pairs of a step have to be slower.
    """
    steps: dict[int, dict[int, list[tuple[float, float, float]]]] = defaultdict(lambda: defaultdict(list))
    for case in evidence.probes.get("evenness", ()):
        if len(case.seconds):
            interval = median_interval(case.seconds, case.passes)
            steps[int(case.settings["bytes"])][int(case.settings["step"])].append(interval)
    most = 1.0
    for pairs_of in steps.values():
        near = min((pair for pairs in pairs_of.values() for pair in pairs), key=lambda pair: pair[0])
        for pairs in pairs_of.values():
            if min(low for _, low, _ in pairs) > CLEARLY * near[2]:
                most = max(most, float(np.median([median for median, *_ in pairs]) / near[0]))
    return most
