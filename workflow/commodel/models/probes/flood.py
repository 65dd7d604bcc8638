"""Datagrams sent to one rank as fast as they can be, counted where they arrive: what is lost tells the network's
buffer."""

from commodel.models.probes import Plan, Probe, Site, spread

BYTES = 1472  # with its headers one Ethernet frame
PACKETS = (64, 256, 1024, 4096)


def plan(site: Site, sizes: list[int]) -> Plan:
    place = spread(site, min(site.ranks, 9))
    several = PACKETS[:1] if site.simulated else PACKETS  # a simulated network loses nothing, however much is sent
    return [(place, {"senders": place.ranks - 1, "packets": packets, "bytes": BYTES}) for packets in several]


PROBE = Probe("flood", "datagrams at full speed to one rank, counted", ("senders", "packets", "bytes"), plan)
