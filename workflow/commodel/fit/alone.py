"""What a message alone took at each size and distance, by the probes' round trips, beside the family's price of it."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from commodel.errors import UserError
from commodel.fit.classes import ROUND_TRIPS
from commodel.fit.leftout import played
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.pricing.pairs import rank_types
from commodel.models.pricing.values import Values
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.price.model import Model


def round_trips(entry: Family, parameters: ParameterSet, evidence: Observed) -> dict[str, dict[str, list[float]]]:
    """As parameter sets keep them, by distance class, of the probe that was run on most pairs of nodes; empty where the
    family has a price for none."""
    name = next((name for name in ROUND_TRIPS if evidence.probes.get(name)), None)
    if name is None or not parameters.values:
        return {}
    model, levels = Model.of(entry, Values.of(parameters)), Hierarchy.of(evidence.levels)
    times = defaultdict(lambda: defaultdict(list))
    for case in evidence.probes[name]:
        pattern = played(name, case.settings, evidence.types)
        if pattern is None or not len(case.seconds) or (not entry.by_type and _other_type(pattern, evidence)):
            continue
        try:
            trip = np.median(case.seconds), np.ravel(model.cost(pattern))[0]
        except UserError:  # of some distance nothing was measured
            continue
        if min(trip) > 0:
            (distance,) = levels.apart(pattern.node, pattern.src, pattern.dst)
            times[levels.names[distance]][int(case.settings["bytes"])].append(np.log(trip))
    return {name: _columns(by_size) for name, by_size in times.items()}


def _other_type(pattern: Schedule, evidence: Observed) -> bool:
    """Whether it went to nodes that a family without types prices as those of the first."""
    return bool(rank_types(pattern.node, evidence.types).any())


def _columns(by_size: Mapping[int, list[Array]]) -> dict[str, list[float]]:
    sizes = sorted(by_size)
    took, priced = np.exp([np.mean(by_size[size], axis=0) for size in sizes]).T
    rounded = {"took": took, "priced": priced}
    return {"bytes": sizes, **{name: [float(f"{time:.6g}") for time in column] for name, column in rounded.items()}}
