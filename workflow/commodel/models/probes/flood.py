"""Datagrams sent to one rank as fast as they can be, counted where they arrive: what is lost tells the network's
buffer. What the receiver's own socket throws away has come through the network, and is counted for that."""

from commodel.models.probes import Plan, Probe, Site, spread

FRAME_BYTES = 1472  # with its headers one Ethernet frame
PACKETS = (64, 256, 1024, 4096)


def plan(site: Site, sizes: list[int]) -> Plan:
    place = spread(site, min(site.ranks, 9))
    floods = [("through", packets) for packets in PACKETS]
    floods += [("arrived", packets) for packets in PACKETS] + [("room", 1)]
    if site.simulated:  # a simulated network loses nothing, however much is sent
        floods = floods[:1]
    shape = {"senders": place.ranks - 1, "bytes": FRAME_BYTES}
    return [(place, {"what": what, "packets": packets, **shape}) for what, packets in floods]


PROBE = Probe("flood", "datagrams at full speed to one rank, counted", ("what", "senders", "packets", "bytes"), plan)
