"""Whether a family knows what messages of all nodes at once share, by probe `mixture`, to which nothing is fitted."""

from collections import defaultdict

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
    """From which size on messages of all nodes at once mostly take longer, or shorter, than they are priced, and how
    many times as long where it is most; empty where they do not."""
    if not parameters.values:
        return {}
    model, times = Model.of(entry, Values.of(parameters)), defaultdict(list)
    for case in evidence.probes.get(NAME, ()):
        if not len(case.seconds):
            continue
        try:
            price = float(model.cost(played(NAME, case.settings, evidence.types))[0])
        except UserError:  # of some distance nothing was measured
            return {}
        times[int(case.settings["bytes"])].append(float(np.median(case.seconds)) / price)
    usual = {size: float(np.median(several)) for size, several in times.items()}
    off = {size: how for size, how in usual.items() if max(how, 1 / how) > OFF}
    return (
        {"from": float(min(off)), "times": round(max(off.values(), key=lambda how: abs(np.log(how))), 3)} if off else {}
    )
