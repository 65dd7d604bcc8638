"""A synthetic mlognP machine: a message takes two copies and the network. A copy from memory to
memory takes twice as long."""

from tests.models.synthetic import LOGGP, Truth

MLOGNP = {"o_mem.a": 0.3e-6, "o_mem.b": 1e-9, "o_net.a": 12e-6, "o_net.b": 8e-9}


def memcopy(case):
    return (MLOGNP["o_mem.a"] + MLOGNP["o_mem.b"] * case["bytes"]) * {
        "ctc": 0.5,
        "ctm": 1,
        "mtm": 2,
    }[case["path"]]


def pingpong(case):
    return 2 * (
        2 * memcopy({**case, "path": "ctm"}) + MLOGNP["o_net.a"] + MLOGNP["o_net.b"] * case["bytes"]
    )


def within(case):
    """Return the round trip within a node: one copy into and one out of a buffer in each
    direction."""
    assert case["pair"] == "node.same"
    return 4 * memcopy({**case, "path": "ctm"})


TIMES = {"memcopy": memcopy, "pingpong": pingpong, "pairprtt": within}
TRUTH = Truth(TIMES | {"work": lambda case: LOGGP["gamma"] * case["bytes"]}, MLOGNP)
