"""How well a family predicts a probe case that its fit has not seen: each case left out in turn, the rest refitted, and
the case priced as the pattern that its probe plays.

Cases that are no pattern, such as a delay within a round trip, are not asked for.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from commodel.errors import UserError
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.keys import Pair
from commodel.models.probes import Site, probe
from commodel.patterns.layouts import nodes_read, place
from commodel.patterns.schedule import Schedule
from commodel.price.model import Model

MOST_LEFT_OUT = 12  # cases of a probe, spread over all it has
ROWS = 21  # of the draws: only the estimate is asked for, but noise decides weights


def left_out(entry: Family, observed: Observed) -> dict[str, float]:
    """Root mean square relative error over the cases left out, and how many there were."""
    errors = [price / measured - 1 for price, measured in _predicted(entry, observed) if measured > 0]
    if not errors:
        return {}
    return {"error": float(np.sqrt(np.mean(np.square(errors)))), "cases": len(errors)}


def _predicted(entry: Family, observed: Observed) -> Iterator[tuple[float, float]]:
    there = any(observed.probes.get(name) for name in entry.probes)
    for name in entry.asks(overlay=not there):
        cases = observed.probes.get(name, ())
        patterns = [(number, played(name, case.settings, observed.types)) for number, case in enumerate(cases)]
        played_cases = [(number, pattern) for number, pattern in patterns if pattern is not None]
        spread = np.linspace(0, len(played_cases) - 1, min(MOST_LEFT_OUT, len(played_cases))).astype(int)
        for index in np.unique(spread):
            number, pattern = played_cases[index]
            try:
                cost = Model.of_fit(entry, entry.fit(observed.without(name, number, ROWS))).cost(pattern)
            except UserError:
                continue  # without this case there is nothing to fit to
            yield float(cost[0]), float(np.median(cases[number].seconds))


def nodes_of(layout: str, ranks: int, where: str) -> np.ndarray:
    """The platform's node of every rank of a case; `where` as observations have it."""
    nodes = place(layout, ranks)
    return nodes_read(where)[nodes] if where else nodes


def played(name: str, settings: Mapping[str, object], types: Mapping[str, int]) -> Schedule | None:
    """What a case plays, on nodes of the types that it was measured on."""
    entry = probe(name)
    pattern = entry.pattern(settings) if entry.pattern else None
    if pattern is None:
        return None
    where = str(settings.get("where") or "")
    nodes = nodes_of(str(settings["layout"]), int(settings["ranks"]), where)[: pattern.ranks]
    pair = Pair.parse(str(settings["pair"]))
    if types and pair.one and not where:
        members = Site(sum(types.values()), 1, types).members()
        first, second = pair.types
        other = members[second][:2][-1] if first == second else members[second][-1]  # the next node, as it was measured
        nodes = np.array([members[first][0], other])[nodes % 2]
    return pattern.placed(nodes)
