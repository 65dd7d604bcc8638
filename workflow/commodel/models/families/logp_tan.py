"""LogP as drawn in the TAN paper: every level of a tree takes one latency and one overhead,
whatever the number of children.

    T_i = L + o + max(T_child), T_leaf = C

In LogP itself, a node receives its children's messages one after another: model `logp`. Here L is
the mean of half a round trip with overheads, and o the slope of the chain experiment: TAN without
growth with the fan-in.
"""

from dataclasses import replace

import numpy as np

from commodel.models.families import (
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    Values,
    tan,
)


def fit(observed: Observed) -> Fitted:
    chain = tan.fit_chain(observed)
    values = {"L": chain.L, "o": chain.a, "C": chain.C}
    unidentified = {name.replace("a", "o"): reason for name, reason in chain.unidentified.items()}
    return Fitted(
        values, (chain.packet, chain.packet), unidentified=unidentified, curves=(chain.evidence,)
    )


def predict(schedule: Schedule, values: Values) -> Array:
    """Return TAN's recursion with an overhead that does not depend on the number of children."""
    numbers = {"L": values["L"], "o.a": values["o"], "g": np.zeros((1, 1)), "C": values["C"]}
    return tan.predict(schedule, replace(values, numbers=numbers, forms={"o": "constant"}))


FAMILY = Family(
    name="logp-tan",
    title="LogP as drawn in the TAN paper",
    citation="LogP for tree aggregation networks (TAN model), section V: the line called LogP in its figures 7 and 8",
    equation="T_i = L + o + max(T_child); T_leaf = C",
    parameters=(
        Parameter("L", "s", "mean of half a round trip of one packet, overheads included"),
        Parameter("o", "s", "overhead of a level, from the chain experiment"),
        Parameter("C", "s", "one-time cost of a wave", default=0.0),
    ),
    probes=("pingpong", "chain"),
    fit=fit,
    predict=predict,
    limits=lambda schedule, values: tan.describe_free_messages(schedule),
    overlaps_work=False,
    ignores="the size of a message; how many children a node has; that a sender with many receivers is busy",
    uses_bytes=False,
)
