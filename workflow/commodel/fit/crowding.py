"""Whether a family knows what messages of all nodes at once share, by probe `mixture`, to which nothing is fitted."""

import numpy as np

from commodel.errors import UserError
from commodel.fit.leftout import played
from commodel.models.families import Family
from commodel.models.fitting.observed import Observed
from commodel.models.pricing.values import Values
from commodel.parameters import ParameterSet
from commodel.price.model import Model

NAME = "mixture"
OFF = 1.5  # times: a price that is off by less is one that we can live with


def crowding(entry: Family, parameters: ParameterSet, evidence: Observed) -> dict[str, float]:
    """From which size on messages of all nodes at once take longer, or shorter, than they are priced, and how many
    times as long where it is most; empty where they do not."""
    if not parameters.values:
        return {}
    model, off = Model.of(entry, Values.of(parameters)), {}
    for case in evidence.probes.get(NAME, ()):
        if not len(case.seconds):
            continue
        try:
            price = float(model.cost(played(NAME, case.settings, evidence.types))[0])
        except UserError:  # of some distance nothing was measured
            return {}
        times = float(np.median(case.seconds)) / price
        if max(times, 1 / times) > OFF:
            off.setdefault(int(case.settings["bytes"]), []).append(times)
    every = [times for several in off.values() for times in several]
    return {"from": float(min(off)), "times": round(max(every, key=lambda times: abs(np.log(times))), 3)} if off else {}
