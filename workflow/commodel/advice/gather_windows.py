"""The window of a gather by the parameters of the cluster model: `gather_bounds`."""

import numpy as np

from commodel.models.evaluation.buffer_overflow import (
    fewest_senders,
    most_senders,
    time_to_fill,
    transfer_ratio,
    window,
)
from commodel.parameters import ParameterSet
from commodel.predictions.model import Model


def gather_bounds(parameters: ParameterSet, ranks: int, bytes: int) -> dict[str, object]:
    """Return how many ranks may send to one at once (equations 5 to 7 of the paper), the algorithm that obeys this, and
    the rule; and when the buffer is full, with the share of packets that arrive if all send at once (equations 3 and
    4). If the network's buffer is unknown, no loss is predicted, and all may send."""
    values = Model.of_set(parameters).values
    packet, senders = float(values["packet"][0, 0]), ranks - 1
    size, packets = min(float(bytes), packet), max(int(np.ceil(bytes / packet)), 1)
    g_s, g_r = (float(values.at(name, np.array([size]))[0, 0]) for name in ("g_s", "g_r"))
    low = min(fewest_senders(g_s, g_r), senders)
    if "B_L" not in values:
        high, best, rule, fill, share = senders, senders, "no B_L: nothing is known to be lost", None, None
    else:
        buffer = float(values["B_L"][0, 0])
        high = most_senders(senders, packets * senders, g_s, g_r, buffer)
        best, rule = window(senders, packets, g_s, g_r, buffer)
        share = transfer_ratio(senders, packets * senders, g_s, g_r, buffer)
        fill = time_to_fill(senders, g_s, g_r, buffer) if share < 1 else None
    bounds = {"packets": packets, "fewest": low, "most": high, "window": best, "algorithm": f"windowed:{best}"}
    return bounds | {"rule": rule, "full_after": fill, "through": share}
