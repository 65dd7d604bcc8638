"""A packet of 1 KiB down a row of ranks and back up: full round trip, heights up to 32 as in the TAN paper."""

from commodel.probes import PACKET, Probe, up_to

PROBE = Probe(
    name="chain",
    title="round trip down a row of ranks",
    columns=("height", "bytes"),
    settings=lambda ranks, sizes: [{"height": height, "bytes": PACKET} for height in up_to(ranks - 1)],
    max_ranks=33,
)
