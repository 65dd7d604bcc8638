"""What ranks do alone, by its size: seconds of a reduction, of a copy, and of a copy into a new buffer, as the probes
`work` and `memcopy` saw them."""

import numpy as np

from commodel.models import Array
from commodel.models.fitting.observed import Cases, Observed
from commodel.models.fitting.regression import sampled
from commodel.models.pricing.functions import TABLE
from commodel.models.probes.memcopy import AGAIN, ANEW


def local_times(observed: Observed) -> tuple[dict[str, Array], dict[str, str]]:
    """Tables, and their forms. What is copied again and again lies in the same two buffers, as a rank's do."""
    measured = {"gamma": observed.cases("work")}
    for name, path in (("copy", AGAIN), ("anew", ANEW)):
        if any(case.settings["path"] == path for case in observed.probes.get("memcopy", ())):
            measured[name] = observed.cases("memcopy", path=path)
    values = {text: draws for name, cases in measured.items() for text, draws in _by_size(name, cases).items()}
    return values, dict.fromkeys(measured, TABLE)


def _by_size(name: str, cases: Cases) -> dict[str, Array]:
    """A time for every size that was measured."""
    order = np.argsort(cases["bytes"])
    return sampled(name, cases["bytes"][order], cases.seconds[:, order])


def longest(observed: Observed, copies: bool) -> dict[str, int]:
    """Bytes of the longest vectors that were combined, and copied, where that took time."""
    probes = {"reduce": ("work", None), **({"copy": ("memcopy", AGAIN)} if copies else {})}
    measured = {
        kind: [case for case in observed.probes.get(name, ()) if path in (None, case.settings.get("path"))]
        for kind, (name, path) in probes.items()
    }
    return {
        kind: max(int(case.settings["bytes"]) for case in cases)
        for kind, cases in measured.items()
        if any(np.any(case.seconds > 0) for case in cases)
    }
