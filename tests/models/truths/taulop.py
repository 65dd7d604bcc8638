"""A synthetic τ–Lop machine of two nodes, on which concurrent transfers share part of their
channel."""

from commodel.models.probes import Site
from tests.models.synthetic import Truth

O_0, O_1 = 1e-6, 5e-6
P_0, P_1 = 2e-7, 6e-7  # of each end, where a message is there when it is asked for


def memory(size, level):
    return 1e-10 * size * (1 + 0.4 * (level - 1))


def network(size, level):
    return 8e-10 * size * (1 + 0.7 * (level - 1))


def ring(case):
    same = case["pair"].endswith(".same")
    if same:
        return O_0 + 2 * memory(case["bytes"], case["procs"])
    return O_1 + network(case["bytes"], case["procs"])


def half_trip(case):
    same = case["pair"].endswith(".same")
    return O_0 + 2 * memory(case["bytes"], 1) if same else O_1 + network(case["bytes"], 1)


def round_trip(case):
    if case["late"]:
        return 2 * (P_0 if case["pair"].endswith(".same") else P_1)
    return 2 * half_trip(case)


TRUTH = Truth(
    times={
        "ring": ring,
        "prtt": round_trip,
        "pairprtt": round_trip,
        "work": lambda case: 1e-10 * case["bytes"],
    },
    covered={
        "o_0.a": O_0,
        "o_1.a": O_1,
        "p_1": P_1,
        "L_0.65536x2": memory(65536, 2),
        "L_1.65536x1": network(65536, 1),
        "L_1.65536x4": network(65536, 4),
        "gamma.b": 1e-10,
    },
    site=Site(12, 4),
)
