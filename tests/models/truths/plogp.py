"""A synthetic machine that follows parametrised LogP: a round trip is 2·(L + g(m)); g and the
overheads are not linear."""

import numpy as np

from tests.models.synthetic import LOGGP, SIZES, Truth

L = 9e-6


def g(size):
    return 3e-6 + 40e-9 * np.sqrt(size) + 5e-9 * size


def o_s(size):
    return 1e-6 + 20e-9 * np.sqrt(size) + 1e-9 * size


def o_r(size):
    return 1.5e-6 + 30e-9 * np.sqrt(size) + 2e-9 * size


def prtt(case):
    size = case["bytes"]
    if case["late"]:
        return o_s(size) + o_r(size)
    return 2 * (L + g(size)) + (case["n"] - 1) * (o_s(size) if case["delay"] else g(size))


FUNCTIONS = {"g": g, "o_s": o_s, "o_r": o_r}
TRUTH = Truth(
    {"prtt": prtt, "work": lambda case: LOGGP["gamma"] * case["bytes"]},
    {"L": L}
    | {f"{name}.{size}": float(of(size)) for name, of in FUNCTIONS.items() for size in SIZES},
)
