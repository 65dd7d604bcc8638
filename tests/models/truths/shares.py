"""A synthetic machine of six leaf switches that follows model `shares`."""

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family
from commodel.models.probes import Site
from commodel.models.probes.capacity import COMPUTE_SECONDS
from commodel.predictions.model import Model
from tests.models.synthetic import Truth, loggp_times

LEVELS = Hierarchy.written({"leaf": 4}, 24)

O_S, O_R = 1e-6, 1.5e-6
L = {"node": 5e-7, "leaf": 5e-6, "beyond": 2e-5}
G = {"node": 1e-10, "leaf": 1e-9, "beyond": 1.2e-9}
C_PORT, C_OUT, C_PAIR, C_ALL, C_LEAF = 1e-9, 6e-10, 8e-10, 4e-10, 4e-10
CACHED = 16384  # bytes: longer messages do not stay in a cache


def inside(size):
    return 6e-11 if size <= CACHED else 8e-11


def one_way(apart, size, per_byte=0.0):
    return O_S + L[apart] + size * max(G[apart], per_byte) + O_R


def capacity(case):
    flows = case["flows"]
    if case["how"] == "eager":  # nobody waits
        return O_S
    # one after the other; by the time all are sent the answer to the first is there
    if case["how"] == "order":
        return max(flows * O_S, one_way("leaf", case["bytes"]) + one_way("leaf", 0) - O_R) + O_R
    if case["how"] == "start":  # it has come meanwhile
        return COMPUTE_SECONDS + O_R
    if case["how"] == "against":  # nothing comes back
        return one_way("leaf", case["bytes"])
    if case["level"] == "node" and case["how"] == "all":
        return one_way("leaf", case["bytes"], flows * C_LEAF)
    if case["level"] == "node":
        if case["how"] == "inside":
            return one_way("node", case["bytes"], flows * inside(case["bytes"]))
        if case["how"] == "in":  # their receiver takes one after the other
            return one_way("beyond", case["bytes"], flows * C_PORT) + (flows - 1) * O_R
        if case["how"] == "far":
            return max(
                one_way("beyond", case["bytes"], flows * C_PORT),
                one_way("beyond", 0) + (flows - 1) * O_S,
            )
        if case["how"] == "unequal":  # equal shares
            return one_way("leaf", case["bytes"], 2 * C_PORT)
        return max(
            one_way("leaf", case["bytes"], flows * C_PORT),
            one_way("leaf", case["bytes"]) + (flows - 1) * O_S,
        )
    loads = {"pair": flows * C_PAIR, "out": max(flows * C_OUT, C_PAIR)}
    loads["stride"] = loads["each"] = loads["out"]
    loads["all"] = max(flows * C_ALL, case["step"] * C_PAIR)
    return one_way("beyond", case["bytes"], loads[case["how"]])


TRUTH = Truth(
    times={
        "prtt": loggp_times(L=L["leaf"], o_s=O_S, o_r=O_R, g=0.0, G=G["leaf"])["prtt"],
        "distance": lambda case: 2 * one_way(case["apart"], case["bytes"]),
        "capacity": capacity,
        "work": lambda case: 1e-10 * case["bytes"],
        "memcopy": lambda case: (6e-11 if case["path"] == "ctc" else 2e-10) * case["bytes"],
    },
    covered={
        "o_s": O_S,
        "L.leaf.a": L["leaf"],
        "L.beyond.a": L["beyond"],
        "c_inside.node.4096": inside(4096),
        "c_inside.node.65536": inside(65536),
        "c_out.node.65536": C_PORT,
        "c_out.leaf.65536": C_OUT,
        "c_pair.leaf.65536": C_PAIR,
        "c_all.leaf.65536": C_ALL,
        "c_all.node.65536": C_LEAF,
        "gamma.65536": 1e-10 * 65536,
        "copy.65536": 6e-11 * 65536,
    },
    site=Site(24, 2, levels=LEVELS),
)


def model(**numbers):
    values = {"o_s": O_S, "o_r": O_R, "gamma.64": 0.0, "c_out.node.a": G["leaf"]} | numbers
    values |= {
        f"{name}.{apart}.a": number
        for name, column in (("L", L), ("G", G))
        for apart, number in column.items()
    }
    stacked = {name: np.array([[number]]) for name, number in values.items()}
    return Model.of(
        find_family("shares"), Values(stacked, {"gamma": "table"}, {"levels": LEVELS.group_lists})
    )


def fluid(start, last):
    """Return the time at which each message has passed a link that all of them share, event by
    event."""
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
