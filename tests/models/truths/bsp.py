"""A synthetic BSP machine whose barrier time grows with the logarithm of the ranks."""

import numpy as np

from tests.models.synthetic import LOGGP, Truth

BSP = {"g": 4e-6, "l.a": 5e-6, "l.b": 6e-6}


def superstep(case):
    return BSP["g"] * case["h"] + BSP["l.a"] + BSP["l.b"] * np.log(case["procs"])


TRUTH = Truth(
    {"hrelation": superstep, "work": lambda case: LOGGP["gamma"] * case["bytes"]},
    BSP | {"gamma": LOGGP["gamma"]},
)
