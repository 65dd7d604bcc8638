"""How many may send to one rank at once: the bounds of the cluster model's gather, equations 4 to 7 of its paper.

x senders, each a packet every g_s, fill a buffer of B packets that a receiver empties by one every g_r. k packets go
through it in all.
"""

from math import ceil, floor


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


def window(senders: int, packets_each: int, g_s: float, g_r: float, buffer: float) -> int:
    """How many of the senders may send at once: as many as lose nothing, so that those left over at the end are none or
    enough to keep the receiver busy (equation 7). Where the buffer holds everything, all."""
    packets = senders * packets_each
    if buffer > packets:
        return senders
    low, high = fewest(g_s, g_r), most(senders, packets, g_s, g_r, buffer)
    fitting = [x for x in range(low, high + 1) if senders % x == 0 or senders % x >= low]
    return max(fitting, default=max(1, min(high, senders)))
