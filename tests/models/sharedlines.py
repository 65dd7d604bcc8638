"""A machine whose messages share lines, and a slow fluid simulation of such a line."""

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.families import family
from commodel.models.pricing.values import Values
from commodel.predictions.model import Model
from tests.models.truths.shares import O_R, O_S, G, L

LEVELS = Hierarchy.written({"leaf": 4}, 24)


def model(**numbers):
    values = {"o_s": O_S, "o_r": O_R, "gamma.64": 0.0, "c_out.node.a": G["leaf"]} | numbers
    values |= {f"{name}.{apart}.a": number for name, column in (("L", L), ("G", G)) for apart, number in column.items()}
    stacked = {name: np.array([[number]]) for name, number in values.items()}
    return Model.of(family("shares"), Values(stacked, {"gamma": "table"}, {"levels": LEVELS.settings}))


def fluid(start, last):
    """When each is through a line that all on it share, event by event."""
    left, end, time = dict(enumerate(last)), np.zeros(len(start)), min(start)
    while left:
        here = [number for number in left if start[number] <= time]
        coming = min((start[number] for number in left if start[number] > time), default=np.inf)
        if not here:
            time = coming
            continue
        stop = min(coming, time + min(left[number] for number in here) * len(here))
        for number in here:
            left[number] -= (stop - time) / len(here)
            if left[number] < 1e-9:
                end[number] = stop
                del left[number]
        time = stop
    return end
