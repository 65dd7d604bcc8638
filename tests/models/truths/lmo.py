"""A synthetic machine of two node types that follows LMO."""

from commodel.models.probes import Site
from tests.models.synthetic import Truth

C = {"fat": 2e-6, "thin": 5e-6}
T = {"fat": 3e-10, "thin": 8e-10}
L = {"fat.fat": 1e-5, "fat.thin": 2e-5, "thin.thin": 3e-5}
INVBETA = {"fat.fat": 2e-9, "fat.thin": 4e-9, "thin.thin": 6e-9}


def one_way(pair, size):
    sender, receiver = pair.split(".")
    return C[sender] + C[receiver] + L[pair] + size * (T[sender] + T[receiver] + INVBETA[pair])


def triplet(case):
    root = case["pair"].partition(".")[0]
    back = one_way(case["pair"], 0)
    return (
        one_way(case["pair"], case["bytes"])
        + back
        + (case["n"] - 1) * (C[root] + T[root] * case["bytes"])
    )


def trip(case):
    return 2 * one_way(case["pair"], case["bytes"])


TRUTH = Truth(
    times={
        "triplet": triplet,
        "prtt": trip,
        "pairprtt": trip,
        "work": lambda case: 1e-10 * case["bytes"],
    },
    covered={
        "C.fat": C["fat"],
        "C.thin": C["thin"],
        "L.fat.thin": L["fat.thin"],
        "invbeta.thin.thin": INVBETA["thin.thin"],
        "gamma": 1e-10,
    },
    site=Site(18, 1, {"fat": 12, "thin": 6}),
)
