"""What a message alone took at each size and distance, by the probes' round trips, beside the family's price of it."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from commodel.errors import UserError
from commodel.fit.classes import ROUND_TRIPS
from commodel.fit.crowding import MIXTURE
from commodel.fit.leftout import played
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.pricing.pairs import rank_types
from commodel.models.pricing.values import Values
from commodel.models.probes.mixture import WITHIN
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.price.model import Model


def round_trips(entry: Family, parameters: ParameterSet, evidence: Observed) -> dict[str, dict[str, list[float]]]:
    """As parameter sets keep them, by distance class, of the probe that was run on most pairs of nodes; where it was
    not run within a node, there of probe `mixture`. Empty where the family has a price for none."""
    if not parameters.values:
        return {}
    model, levels = Model.of(entry, Values.of(parameters)), Hierarchy.of(evidence.levels)
    times = defaultdict(lambda: defaultdict(list))
    name = next((name for name in ROUND_TRIPS if evidence.probes.get(name)), MIXTURE)
    within = [case for case in evidence.probes.get(MIXTURE, ()) if int(case.settings["turn"]) == WITHIN]
    for probe, cases in ((name, evidence.probes[name] if name != MIXTURE else ()), (MIXTURE, within)):
        known = set(times) if probe == MIXTURE else set()
        for case in cases:
            pattern = played(probe, case.settings, evidence.types)
            if pattern is None or not len(case.seconds) or (not entry.by_type and _other_type(pattern, evidence)):
                continue
            trips = pattern.messages / 2
            try:
                trip = np.median(case.seconds) / trips, np.ravel(model.cost(pattern))[0] / trips
            except UserError:  # of some distance nothing was measured
                continue
            (distance,) = levels.apart(pattern.node, pattern.src, pattern.dst)
            if min(trip) > 0 and levels.names[distance] not in known:
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
