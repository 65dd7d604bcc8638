"""Parametrised round trips: n messages out, one back, with delays between the sends or before the receive."""

from commodel.probes import Probe
from commodel.roundtrips import BURST

KINDS = ((1, 0, 0), (BURST, 0, 0), (BURST, 1, 0), (1, 0, 1))  # n, delay, late


def settings(ranks, sizes):
    return [{"n": n, "delay": delay, "late": late, "bytes": size} for n, delay, late in KINDS for size in sizes]


PROBE = Probe(
    name="prtt",
    title="round trip of a burst, with delays: the LogGP parameters one by one",
    columns=("n", "delay", "late", "bytes"),
    settings=settings,
)
