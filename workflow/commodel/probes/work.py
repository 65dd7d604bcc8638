"""Local reduction of a vector: no message at all. Simulated platforms take no time for it, and say 0."""

from commodel.probes import PACKET, Probe

PROBE = Probe(
    name="work",
    title="local reduction",
    columns=("bytes",),
    settings=lambda ranks, sizes: [{"bytes": size} for size in sorted({*(s for s in sizes if s >= 64), PACKET})],
)
