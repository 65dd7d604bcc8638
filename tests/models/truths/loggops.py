"""A synthetic LogGOPS machine without rendezvous up to the largest probed size."""

from tests.models.synthetic import LOGGP, Truth

LOGGOPS = {"L": 10e-6, "o": 1.5e-6, "g": 4e-6, "G": 8e-9, "O": 2e-9}


def loggops_times(L, o, g, G, O, S=float("inf"), gamma=0.0):
    """Return round trips by the closed forms. A rendezvous takes 2·L + 2·o more; in a burst only
    the first grant is waited for."""

    def prtt(case):
        size, body = case["bytes"], max(case["bytes"] - 1, 0)
        busy, gap = o + O * body, g + G * body
        if case["late"]:
            return 2 * busy
        trip = 2 * (2 * busy + L + G * body + (2 * L + 2 * o if size > S else 0))
        return trip + (case["n"] - 1) * (busy if case["delay"] else max(gap, busy))

    return {"prtt": prtt, "work": lambda case: gamma * case["bytes"]}


TRUTH = Truth(loggops_times(**LOGGOPS, gamma=LOGGP["gamma"]), LOGGOPS)
