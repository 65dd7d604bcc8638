"""A machine that is the cluster model, with a switch that two pairs can fill."""

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
    return 2 * one_way(size) + (case["n"] - 1) * (at("O_s", size) if case["delay"] else at("g_s", size))


def overlap(case):
    size, messages = case["bytes"], case["messages"]
    return messages * U_R if case["what"] == "user" else 2e-4 + messages * at("O_r", size)


def arrived(case):
    sent = case["packets"] * case["senders"]
    return sent * min(1, RATIO + B_L / sent)


TRUTH = Truth(
    times={
        "prtt": prtt,
        "stream": lambda case: 1e-4 + case["each"] * case["senders"] * at("g_r", case["bytes"]),
        "overlap": overlap,
        "pairs": lambda case: 2 * one_way(case["bytes"], 2 * case["pairs"]),
        "flood": lambda case: 1e-3,
        "memcopy": lambda case: 1e-7 + 1e-10 * case["bytes"],
        "work": lambda case: 1e-10 * case["bytes"],
    },
    counts={"flood": arrived},
    covered={"O_s.b": PER_BYTE["O_s"], "g_r.a": CONSTANT["g_r"], "g_r.b": PER_BYTE["g_r"], "U_r": U_R, "L_p": L_P},
    site=Site(12, 1),
    sizes=(1, 64, 256, 512, 1024, 4096, 65536),
)
