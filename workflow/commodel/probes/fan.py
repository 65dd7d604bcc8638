"""One rank with n partners: all send to it (in), or it sends to all (out). Packets of 1 KiB, as in the TAN paper."""

from commodel.probes import PACKET, Probe, up_to


def settings(ranks, sizes):
    return [{"direction": way, "n": n, "bytes": PACKET} for way in ("in", "out") for n in up_to(ranks - 1)]


PROBE = Probe(
    name="fan",
    title="N-to-1 and 1-to-N",
    columns=("direction", "n", "bytes"),
    settings=settings,
    max_ranks=129,
)
