"""What receiving costs a processor: a fixed computation slowed down by messages that come in meanwhile (control), and
the calls that take messages which have come (user)."""

from commodel.models.probes import Plan, Probe, Site, spread
from commodel.models.probes.pairs import packets

MESSAGES = 16


def plan(site: Site, sizes: list[int]) -> Plan:
    place = spread(site, 2)
    for size in packets(sizes):
        yield from ((place, {"what": "control", "messages": count, "bytes": size}) for count in (0, MESSAGES))
        yield place, {"what": "user", "messages": MESSAGES, "bytes": size}


PROBE = Probe("overlap", "what receiving costs a processor", ("what", "messages", "bytes"), plan)
