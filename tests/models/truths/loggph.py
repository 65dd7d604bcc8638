"""A synthetic machine of equal nodes with LogGP parameters within a node and between nodes."""

from commodel.models.probes import Site
from tests.models.synthetic import LOGGP, Truth, loggp_times

WITHIN = {"L": 1e-6, "o_s": 5e-7, "o_r": 6e-7, "g": 1e-6, "G": 2e-10}
BETWEEN = {key: LOGGP[key] for key in WITHIN}


def prtt(case):
    return loggp_times(**(WITHIN if case["pair"].endswith(".same") else BETWEEN))["prtt"](case)


TRUTH = Truth(
    times={"prtt": prtt, "pairprtt": prtt, "work": lambda case: LOGGP["gamma"] * case["bytes"]},
    covered={f"{key}.between": BETWEEN[key] for key in ("L", "o_s", "G", "g")}
    | {f"{key}.within": WITHIN[key] for key in ("L", "o_r", "G")},
    site=Site(12, 2),
)
