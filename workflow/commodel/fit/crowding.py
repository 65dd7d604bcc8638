"""What a family does not know of messages of all nodes at once, in a row, or within a node, by probe `mixture`, to
which nothing is fitted."""

from collections import defaultdict
from math import inf

import numpy as np

from commodel.errors import UserError
from commodel.fit.leftout import played
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.pricing.values import Values
from commodel.models.probes.mixture import AROUND, FAN, IN_A_ROW, SMALLEST_SIZE, WITHIN
from commodel.parameters import ParameterSet
from commodel.price.model import Model

NAME = "mixture"
OF_TURN = {AROUND: "rounds", IN_A_ROW: "row", WITHIN: "within", FAN: "fan"}
OFF = 1.5  # times: a price that is off by less is one that we can live with


def crowding(entry: Family, parameters: ParameterSet, evidence: Observed) -> dict[str, dict[str, float]]:
    """Of one rank on each node (`nodes`), of all (`ranks`), of what is passed on around all nodes (`rounds`), of
    messages in a `row`, of those `within` a node, and of a `fan` from one to others and back: from which size on they
    mostly take longer, or shorter, than they are priced, and how many times as long where it is most; empty where they
    do not."""
    if not parameters.values:
        return {}
    model, times = Model.of(entry, Values.of(parameters)), defaultdict(lambda: defaultdict(list))
    low, high = parameters.bytes_range or (0.0, inf)
    high = max(high, SMALLEST_SIZE)
    for case in evidence.probes.get(NAME, ()):
        seen = entry.uses_bytes or low <= int(case.settings["bytes"]) <= high  # of other sizes that is said anyway
        if seen and len(case.seconds):
            try:
                price = float(model.cost(played(NAME, case.settings, evidence.types))[0])
            except UserError:  # of some distance nothing was measured
                continue
            if not price:  # of a family for which messages take no time
                continue
            kind = "nodes" if int(case.settings["each"]) == 1 else "ranks"
            kind = OF_TURN.get(int(case.settings["turn"]), kind)
            times[kind][int(case.settings["bytes"])].append(float(np.median(case.seconds)) / price)
    return {kind: worst for kind, by_size in times.items() if (worst := _worst(by_size))}


def _worst(by_size: dict[int, list[float]]) -> dict[str, float]:
    usual = {size: float(np.median(factors)) for size, factors in by_size.items()}
    off = {size: times for size, times in usual.items() if max(times, 1 / times) > OFF}
    if not off:
        return {}
    least = min(off)
    return {
        "from": float(least) if least > min(usual) else 0.0,
        "times": round(max(off.values(), key=lambda times: abs(np.log(times))), 3),
    }
