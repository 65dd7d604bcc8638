"""Whether messages go between nodes whose pairs were seen not to be alike, and are priced alike: in a distance class,
or of several types."""

from collections.abc import Sequence

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.families import Family
from commodel.models.keys import Pair
from commodel.parameters import ParameterSet
from commodel.price.status import PriceStatus


def unlike(parameters: ParameterSet, levels: Hierarchy, apart: Sequence[int]) -> str:
    """`apart` are the classes that messages are of; values are of one pair of nodes, or of the middle of a few."""
    known = parameters.settings.get("unlike", {})
    for distance in reversed(apart):
        if times := known.get(levels.names[distance]):
            pairs = f"pairs of {levels.crossed(distance)} are up to {float(times):.1f} times as far from each other"
            return PriceStatus.UNPLACED.because(f"{pairs} as others, and priced alike")
    return ""


def unlike_types(entry: Family, parameters: ParameterSet, node: np.ndarray) -> str:
    """Of ranks on these nodes. Values by distance class are of the first nodes; others may be of any."""
    known, types = (parameters.settings.get(name, {}) for name in ("unlike_types", "types"))
    if entry.by_type or not (known and types) or len(nodes := np.unique(node)) < 2:
        return ""
    of = np.searchsorted(np.cumsum(list(types.values())), nodes, side="right")
    names = [*types, list(types)[-1]]  # of more nodes than there are
    present = [names[number] for number in np.minimum(of, len(types)).tolist()]
    pairs = {str(Pair(one, two)) for place, one in enumerate(present) for two in present[place + 1 :]}
    times = max((known.get(pair, 1.0) for pair in pairs), default=1.0) if entry.by_class else max(known.values())
    if times == 1:
        return ""
    differ = f"though their round trips differ by a factor of up to {float(times):.1f}"
    return PriceStatus.UNPLACED.because(f"nodes of several types are priced alike, {differ}")
