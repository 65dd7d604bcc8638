"""Full round trip of one message between two ranks on different nodes. Not halved here: families halve it."""

from commodel.models.probes import PACKET, Probe, round_trip, spread


def plan(site, sizes):
    return [(spread(site, 2), {"bytes": size}) for size in sorted({*sizes, PACKET})]


def pattern(case):
    return round_trip(case["bytes"], case["bytes"])


PROBE = Probe("pingpong", "round trip of one message", ("bytes",), plan, pattern=pattern)
