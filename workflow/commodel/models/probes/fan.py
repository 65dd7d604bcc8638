"""One rank with n partners: all send to it (in), or it sends to all (out). Packets of 1 KiB, as in the TAN paper, and
one rank a node where there are some."""

import numpy as np

from commodel.models.probes import PACKET, OnOverlay, Plan, Probe, Schedule, Settings, Site, apart, up_to

COLUMNS = ("direction", "how", "n", "bytes", "answer")
MOST_RANKS = 129  # ranks


def plan(site: Site, sizes: list[int]) -> Plan:
    place = apart(site, MOST_RANKS)
    about = {"how": "isend", "bytes": PACKET, "answer": 0}
    return [
        (place, {"direction": direction, "n": n, **about})
        for direction in ("in", "out")
        for n in up_to(place.ranks - 1)
    ]


def pattern(case: Settings) -> Schedule | None:
    """Lists and puts are no messages of a schedule."""
    n, others = case["n"], np.arange(1, case["n"] + 1)
    if case["how"] != "isend":
        return None
    if case["direction"] == "in":
        return Schedule.of(n + 1, 0, others, 0, case["bytes"], root=0)
    if case["direction"] == "out":
        return Schedule.of(n + 1, 0, 0, others, case["bytes"])
    there, back = np.zeros(n, dtype=int), np.ones(n, dtype=int)
    step, sizes = np.concatenate([there, back]), np.repeat([case["bytes"], case["answer"]], n)
    return Schedule.of(n + 1, step, np.concatenate([there, others]), np.concatenate([others, there]), sizes, root=0)


def on_overlay(case: Settings) -> OnOverlay | None:
    """As its points are measured, and as in the TAN paper: half of the round trip that the root asks for. Its multicast
    is one packet by reference, which is another thing than as many messages."""
    return OnOverlay(f"flat:{case['n']}", mode="waves") if case["direction"] == "in" else None


PROBE = Probe("fan", "N-to-1 and 1-to-N", COLUMNS, plan, pattern=pattern, on_overlay=on_overlay)
