"""A synthetic machine that follows the performance model normal form: a constant, a term of the
ranks, and one of the size. There are many ranks, so that powers of p differ. For a ping-pong, log p
is 1 to any power."""

from commodel.models.probes import Site
from tests.models.synthetic import Truth

C0, C1, C2 = 20e-6, 3e-6, 10e-9


def time(ranks, size):
    return C0 + C1 * ranks + C2 * size


TIMES = {
    "fan": lambda case: time(case["n"] + 1, case["bytes"]),
    "pingpong": lambda case: 2 * time(2, case["bytes"]),
    "chain": lambda case: 2 * time(case["height"] + 1, case["bytes"]),
}
TRUTH = Truth(TIMES, {"c0": C0, "c1": C1, "c2": C2}, Site(65, 1))
