"""What a message alone took at each size and distance, by the probes' round trips, beside the family's price of it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from commodel.errors import UserError
from commodel.fit.classes import ROUND_TRIPS
from commodel.fit.crowding import MIXTURE
from commodel.fit.leftout import played
from commodel.hierarchy import NODE, Hierarchy
from commodel.models import Array
from commodel.models.families import Family
from commodel.models.fitting.observed import CaseSamples, Observed
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
    model = Model.of(entry, Values.of(parameters))
    widest = next((name for name in ROUND_TRIPS if evidence.probes.get(name)), "")
    times = _times(model, widest, evidence.probes.get(widest, ()), evidence)
    if NODE not in times:
        within = [case for case in evidence.probes.get(MIXTURE, ()) if int(case.settings["turn"]) == WITHIN]
        times |= _times(model, MIXTURE, within, evidence)
    return {name: _columns(by_size) for name, by_size in times.items()}


def _times(
    model: Model, probe: str, cases: Sequence[CaseSamples], evidence: Observed
) -> dict[str, dict[int, list[Array]]]:
    """The logarithms of what a round trip took and is priced at, of each case, by distance class and size."""
    times, levels = defaultdict(lambda: defaultdict(list)), Hierarchy.of(evidence.levels)
    for case in cases:
        pattern = played(probe, case.settings, evidence.types)
        if pattern is None or not len(case.seconds) or (not model.entry.by_type and _other_type(pattern, evidence)):
            continue
        try:
            trip = np.array([np.median(case.seconds), np.ravel(model.cost(pattern))[0]]) / (pattern.messages / 2)
        except UserError:  # of some distance nothing was measured
            continue
        if trip.min() > 0:
            (distance,) = levels.apart(pattern.node, pattern.src, pattern.dst)
            times[levels.names[distance]][int(case.settings["bytes"])].append(np.log(trip))
    return dict(times)


def _other_type(pattern: Schedule, evidence: Observed) -> bool:
    """Whether it went to nodes that a family without types prices as those of the first."""
    return bool(rank_types(pattern.node, evidence.types).any())


def _columns(by_size: Mapping[int, list[Array]]) -> dict[str, list[float]]:
    sizes = sorted(by_size)
    took, priced = np.exp([np.mean(by_size[size], axis=0) for size in sizes]).T
    rounded = {"took": took, "priced": priced}
    return {"bytes": sizes, **{name: [float(f"{time:.6g}") for time in column] for name, column in rounded.items()}}
