"""How many ranks may send to one rank at once without overflowing a buffer (`gather_bounds`), by
the cluster model.

The equations are those of Tam and Wang, 1999 (see `models.evaluation.buffer_overflow`).
"""

from typing import Any

import numpy as np

from commodel.models.evaluation.buffer_overflow import (
    choose_window,
    compute_transfer_ratio,
    find_fewest_senders,
    find_most_senders,
    time_to_fill,
)
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model


def gather_bounds(parameters: ParameterSet, ranks: int, bytes: int) -> dict[str, Any]:
    """Return the bounds of a gather of `bytes` from each rank.

    `packets` of each message; the `fewest` senders that keep the receiver busy and the `most`
    without loss (equations 5 and 6); the `window` of equation 7, its `rule`, and the `algorithm`
    that admits this many senders at once. If all send at once: seconds until the buffer is full
    (`full_after`, equation 3; None if none is lost), and the share of packets that arrive
    (`through`, equation 4). If the network's buffer (B_L) is unknown, the window is all senders.
    """
    values = Model.of_set(parameters).values
    packet = float(values["packet"][0, 0])
    senders = ranks - 1
    packet_bytes = min(float(bytes), packet)
    packets = max(int(np.ceil(bytes / packet)), 1)
    g_s, g_r = (float(values.at(name, np.array([packet_bytes]))[0, 0]) for name in ("g_s", "g_r"))
    low = min(find_fewest_senders(g_s, g_r), senders)
    if "B_L" not in values:
        high = window_size = senders
        rule = "no B_L: losses are not predicted"
        full_after = None
        delivered = None
    else:
        buffer = float(values["B_L"][0, 0])
        high = find_most_senders(senders, packets * senders, g_s, g_r, buffer)
        window_size, rule = choose_window(senders, packets, g_s, g_r, buffer)
        delivered = compute_transfer_ratio(senders, packets * senders, g_s, g_r, buffer)
        full_after = time_to_fill(senders, g_s, g_r, buffer) if delivered < 1 else None
    bounds = {
        "packets": packets,
        "fewest": low,
        "most": high,
        "window": window_size,
        "algorithm": f"windowed:{window_size}",
    }
    return bounds | {"rule": rule, "full_after": full_after, "through": delivered}
