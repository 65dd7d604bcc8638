"""A synthetic machine of two node types that follows LogGP for each pair of nodes."""

from commodel.models.probes import Site
from tests.models.synthetic import LOGGP, Truth, loggp_times

OVERHEADS = {"fat": (1.5e-6, 2e-6), "thin": (3e-6, 5e-6)}
L = {"fat.same": 1e-6, "fat.fat": 1e-5, "fat.thin": 2e-5, "thin.thin": 3e-5, "thin.same": 2e-6}
G = {"fat.same": 1e-10, "fat.fat": 8e-9, "fat.thin": 1e-8, "thin.thin": 1.2e-8, "thin.same": 2e-10}
GAP = {"fat.same": 3e-6, "thin.same": 6e-6, "fat.fat": 8e-6, "fat.thin": 9e-6, "thin.thin": 1e-5}


def prtt(case):
    pair = case["pair"]
    sender, receiver = pair.split(".")
    o_s, o_r = OVERHEADS[sender][0], OVERHEADS[sender if receiver == "same" else receiver][1]
    return loggp_times(L=L[pair], o_s=o_s, o_r=o_r, g=GAP[pair], G=G[pair])["prtt"](case)


TRUTH = Truth(
    times={"prtt": prtt, "pairprtt": prtt, "work": lambda case: LOGGP["gamma"] * case["bytes"]},
    covered={
        "o_s.fat": OVERHEADS["fat"][0],
        "o_r.thin": OVERHEADS["thin"][1],
        "L.fat.fat": L["fat.fat"],
        "L.fat.thin": L["fat.thin"],
        "G.thin.thin": G["thin.thin"],
        "g.fat.thin": GAP["fat.thin"],
    },
    site=Site(18, 2, {"fat": 12, "thin": 6}),
)
