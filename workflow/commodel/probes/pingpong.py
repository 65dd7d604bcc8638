"""Full round trip of one message between two ranks on different nodes. Not halved here: families halve it."""

from commodel.probes import PACKET, Probe

PROBE = Probe(
    name="pingpong",
    title="round trip of one message",
    columns=("bytes",),
    settings=lambda ranks, sizes: [{"bytes": size} for size in sorted({*sizes, PACKET})],
)
