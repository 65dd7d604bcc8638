"""A machine that is mlognP: two copies and the network; a copy from memory to memory would take twice as long."""

from tests.models.synthetic import LOGGP, Truth

MLOGNP = {"o_mem.a": 0.3e-6, "o_mem.b": 1e-9, "o_net.a": 12e-6, "o_net.b": 8e-9}


def memcopy(case):
    return (MLOGNP["o_mem.a"] + MLOGNP["o_mem.b"] * case["bytes"]) * {"ctc": 0.5, "ctm": 1, "mtm": 2}[case["path"]]


def pingpong(case):
    return 2 * (2 * memcopy({**case, "path": "ctm"}) + MLOGNP["o_net.a"] + MLOGNP["o_net.b"] * case["bytes"])


def within(case):
    """There and back, each time into a buffer and out of it."""
    assert case["pair"] == "node.same"
    return 4 * memcopy({**case, "path": "ctm"})


TIMES = {"memcopy": memcopy, "pingpong": pingpong, "pairprtt": within}
TRUTH = Truth(TIMES | {"work": lambda case: LOGGP["gamma"] * case["bytes"]}, MLOGNP)
