"""A synthetic machine that follows the cluster model, with a switch that two pairs of nodes
saturate."""

from commodel.models.probes import Site
from tests.models.synthetic import Truth

PER_BYTE = {"O_s": 2e-8, "g_s": 8e-8, "g_r": 9e-8, "O_r": 4e-8}
CONSTANT = {"O_s": 6e-6, "g_s": 1.2e-5, "g_r": 1.5e-5, "O_r": 1e-5}
U_R, L_0, L_P, L_M, CAPACITY, B_L = 9e-6, 6e-5, 4e-6, 8e-8, 6e7, 400.0
RATIO = 0.6  # of departures to arrivals


def at(name, size):
    return CONSTANT[name] + PER_BYTE[name] * size


def latency(size, ranks):
    return L_0 + L_P * ranks + L_M * size * max(1, ranks * size / (CAPACITY * at("g_s", size)))


def one_way(size, ranks=2):
    return at("O_s", size) + latency(size, ranks) + at("O_r", size) + U_R


def prtt(case):
    size = case["bytes"]
    if case["late"]:
        return at("O_s", size) + at("O_r", size) + U_R
    # to one receiver, which cannot keep up
    burst = max(at("g_s", size), at("g_r", size), at("O_r", size) + U_R)
    return 2 * one_way(size) + (case["n"] - 1) * (at("O_s", size) if case["delay"] else burst)


def overlap(case):
    size, messages = case["bytes"], case["messages"]
    if case["what"] == "user":
        # one that size is complete before it is asked for
        return messages * U_R if size < 1500 else 0.0
    return 2e-4 + messages * at("O_r", size)


def counted(case):
    """Return counts of a flood. The receiver's socket drops a tenth of the datagrams that the
    network delivers."""
    sent = case["packets"] * case["senders"]
    through = sent * min(1, RATIO + B_L / sent)
    return {"arrived": 0.9 * through, "through": through, "held": -1, "room": 212992}[case["what"]]


TRUTH = Truth(
    times={
        "prtt": prtt,
        "deal": lambda case: 1e-4 + case["each"] * case["n"] * at("g_s", case["bytes"]),
        "stream": lambda case: 1e-4 + case["each"] * case["senders"] * at("g_r", case["bytes"]),
        "overlap": overlap,
        "pairs": lambda case: 2 * one_way(case["bytes"], 2 * case["pairs"]),
        "flood": lambda case: 1e-3,
        "memcopy": lambda case: 1e-7 + 1e-10 * case["bytes"],
        "work": lambda case: 1e-10 * case["bytes"],
    },
    counts={"flood": counted},
    covered={"O_s.b": PER_BYTE["O_s"], "U_r": U_R, "L_p": L_P}
    | {
        f"{gap}.{part}": part_of[gap]
        for gap in ("g_s", "g_r")
        for part, part_of in (("a", CONSTANT), ("b", PER_BYTE))
    },
    site=Site(12, 1),
    sizes=(1, 64, 256, 512, 1024, 4096, 65536),
)
