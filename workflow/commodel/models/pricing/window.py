"""How many may send to one rank at once: the bounds of the cluster model's gather, equations 4 to 7 of its paper.

x senders, each a packet every g_s, fill a buffer of B packets that a receiver empties by one every g_r. k packets go
through it in all.
"""

from math import ceil, floor, inf


def time_to_fill(senders: int, g_s: float, g_r: float, buffer: float) -> float:
    """How long until a buffer is full: B/(A − D) (equation 3); for ever where no more comes than goes."""
    surplus = senders / g_s - 1 / g_r
    return buffer / surplus if surplus > 0 else inf


def transfer_ratio(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> float:
    """The share of the packets that gets through: min(1, D/A + B/k) (equation 4)."""
    return min(1.0, g_s / (senders * g_r) + buffer / packets)


def fewest(g_s: float, g_r: float) -> int:
    """Senders that keep the receiver busy all the time: ⌈g_s/g_r⌉ (equation 5)."""
    return ceil(g_s / g_r)


def most(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> int:
    """Senders at which nothing is lost yet: ⌊g_s·k / (g_r·(k − B))⌋, never more than there are (equation 6)."""
    if packets <= buffer:
        return senders
    return min(senders, floor(g_s * packets / (g_r * (packets - buffer))))


def fits(senders: int, packets: int, g_s: float, g_r: float, buffer: float) -> list[int]:
    """The windows of equation 7 as it is printed: they lose nothing, keep the receiver busy, and leave over enough
    senders at the end to keep it busy as well."""
    low, high = fewest(g_s, g_r), most(senders, packets, g_s, g_r, buffer)
    return [x for x in range(low, high + 1) if senders % x >= low]


def window(senders: int, packets_each: int, g_s: float, g_r: float, buffer: float) -> tuple[int, str]:
    """How many of the senders may send at once, and by which rule: the most by equation 7, where it counts as well that
    no sender is left over at the end (which as printed, rem ≥ G_al, it forbids). Where the buffer holds everything,
    all; where nothing fits, as many as lose nothing."""
    packets = senders * packets_each
    if buffer > packets:
        return senders, "the buffer holds all (algorithm 1)"
    low, high = fewest(g_s, g_r), most(senders, packets, g_s, g_r, buffer)
    printed = max(fits(senders, packets, g_s, g_r, buffer), default=0)
    even = max((x for x in range(low, high + 1) if senders % x == 0), default=0)
    if not max(printed, even):
        return max(1, min(high, senders)), f"nothing fits equation 7 (G_al {low}): as many as lose nothing"
    if printed >= even:
        return printed, "equation 7"
    return even, f"equation 7, nothing left over (as printed: {printed or 'none'})"
