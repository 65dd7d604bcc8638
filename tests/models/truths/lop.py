"""A machine that is LoP, with overlapped overheads and 65 ranks, so that rounds have up to 64
partners.

Of rtt, only the two ends are checked by name: b is separated from c by the fall of rtt after the
first partners. a, d and f are not determined (see `functions_of_count`), c and e only up to the
rest of the function. The function itself is checked in tests/models/test_lop.py.
"""

import numpy as np

from commodel.models.probes import Site
from tests.models.synthetic import Truth

RTT = {
    "isend": (9e-6, 22e-6, 0.5, 4e-6, -0.05, 1.0),
    "list": (7e-6, 20e-6, 0.6, 4e-6, -0.05, 1.0),
    "put": (4e-6, 16e-6, 0.4, 5e-6, -0.06, 1.0),
}
POST = {"isend": (0.5e-6, 0.8e-6, 0.4), "list": (0.2e-6, 1e-6, 0.5), "put": (0.4e-6, 0.6e-6, 0.3)}
POST["irecv"] = (0.3e-6, 0.5e-6, 0.5)


def overhead(how, n):
    a, b, c = POST[how]
    return a + b / (c + n)


def rtt(how, n):
    a, b, c, d, e, f = RTT[how]
    return a + b / (c + n) + d * (1 - np.exp(e * (n - f)))


def round_trip(case):
    """Return the time of messages to n partners and back. The first message leaves after the whole
    list is posted."""
    how, n = case["how"], case["n"]
    o_1, o_n = overhead(how, 1), overhead(how, n)
    wire = n * max(rtt(how, n) - o_1 - o_n, 0) / 2
    return (n * o_n if how == "list" else o_n) + wire + o_1 + wire


TIMES = {
    "round": round_trip,
    "post": lambda case: case["n"] * overhead(case["how"], case["n"]),
    "work": lambda case: 1e-10 * case["bytes"],
}
COVERED = {
    "o_s.a": POST["isend"][0],
    "o_list.a": POST["list"][0],
    "gamma": 1e-10,
    "rtt.b": RTT["isend"][1],
}
TRUTH = Truth(TIMES, COVERED, Site(65, 1))
