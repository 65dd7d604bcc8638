"""What a family does not know of messages of all nodes at once, in a row, or of a fan, by probe `mixture`, to which
nothing is fitted."""

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
from commodel.patterns.schedule import stack
from commodel.price.alone import alone, misfits
from commodel.price.model import Model

MIXTURE = "mixture"
BY_TYPES = ("row", "fan")  # are probed for every two types of nodes
OF_TURN = {AROUND: "rounds", IN_A_ROW: "row", FAN: "fan"}


def crowding(entry: Family, parameters: ParameterSet, evidence: Observed) -> dict[str, dict[str, float]]:
    """Of one rank on each node (`nodes`), of all (`ranks`), of what is passed on around all nodes (`rounds`), of
    messages in a `row`, and of a `fan` from one to others and back: from which size on they mostly take longer, or
    shorter, than they are priced, and how many times as long where it is most; empty where they do not, or not for
    being many, as each alone takes as long. `row.A.B` and `fan.A.B` are from a node of type A to those of type B."""
    if not parameters.values:
        return {}
    model, times = Model.of(entry, Values.of(parameters)), defaultdict(lambda: defaultdict(list))
    low, high = parameters.bytes_range or (0.0, inf)
    high = max(high, SMALLEST_SIZE)
    for case in evidence.probes.get(MIXTURE, ()):
        seen = entry.uses_bytes or low <= int(case.settings["bytes"]) <= high  # of other sizes that is said anyway
        if seen and len(case.seconds) and int(case.settings["turn"]) != WITHIN:
            try:
                pattern = played(MIXTURE, case.settings, evidence.types)
                price = float(model.cost(pattern)[0])
            except UserError:  # of some distance nothing was measured
                continue
            if not price:  # of a family for which messages take no time
                continue
            kind = "nodes" if int(case.settings["each"]) == 1 else "ranks"
            kind = OF_TURN.get(int(case.settings["turn"]), kind)
            if str(case.settings.get("where") or "") and kind in BY_TYPES:
                kind = f"{kind}.{case.settings['pair']}"
            together, each_alone = float(np.median(case.seconds)) / price, float(alone(parameters, stack([pattern]))[0])
            times[kind][int(case.settings["bytes"])].append((together, each_alone))
    return {kind: worst for kind, by_size in times.items() if (worst := _worst(by_size))}


def _worst(by_size: dict[int, list[tuple[float, float]]]) -> dict[str, float]:
    usual = {size: np.median(factors, axis=0).tolist() for size, factors in by_size.items()}
    off = {size: together for size, (together, alone) in usual.items() if _as_many(together, alone)}
    if not off:
        return {}
    least = min(off)
    return {
        "from": float(least) if least > min(usual) else 0.0,
        "times": round(max(off.values(), key=lambda times: abs(np.log(times))), 3),
    }


def _as_many(together: float, alone: float) -> bool:
    """Whether messages of all at once are priced wrong, and not just as wrong as each alone is."""
    return misfits(together) and not (misfits(alone) and not misfits(together / alone))
