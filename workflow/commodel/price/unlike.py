"""Whether messages go between nodes of a distance class whose pairs are not as far from each other."""

from collections.abc import Sequence

from commodel.hierarchy import Hierarchy
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
