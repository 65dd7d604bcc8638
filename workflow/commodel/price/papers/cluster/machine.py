"""The cluster model's paper in its own letters: what its equations say of a broadcast and a gather, by values of the
family."""

from math import ceil

import numpy as np

from commodel.models.families.cluster import latency
from commodel.models.pricing.window import window
from commodel.parameters import ParameterSet
from commodel.price.model import Model

RANKS = (4, 8, 16)  # of figures 2, 4 and 5
PACKET = 1500  # B
JOB = ("ranks", "bytes [B]")
SIZE, TIME = "message size [B]", "time [s]"
TABLE_1 = "with the values of table 1"


class Machine:
    """Values of the cluster family, in the letters of the paper."""

    def __init__(self, parameters: ParameterSet) -> None:
        self.values = Model.of_set(parameters).values

    def __call__(self, name: str, size: float) -> float:
        function = name in self.values.functions
        return float(np.ravel(self.values.at(name, np.array([size])) if function else self.values[name])[0])

    def latency(self, size: float, ranks: int) -> float:
        gap = self.values.at("g_s", np.array([size]))
        return float(np.ravel(latency(self.values, np.array([size]), ranks, gap))[0])

    def trip(self, size: float, ranks: int) -> float:
        """O_s + L + O_r + U_r."""
        return self("O_s", size) + self.latency(size, ranks) + self.taken(size)

    def taken(self, size: float) -> float:
        return self("O_r", size) + self("U_r", size)

    def equation_1(self, ranks: int, packets: int) -> float:
        """The tree once for each packet, by LogP whose L is the whole way of a packet."""
        return (ranks.bit_length() - 1) * ((packets - 1) * self("g_s", PACKET) + self.trip(PACKET, ranks))

    def equation_2(self, ranks: int, packets: int) -> float:
        """The same where node p/2 cannot send while it receives."""
        rounds = ranks.bit_length() - 1
        further = (rounds - 1) * self("g_s", PACKET) + self.taken(PACKET)
        return (packets - 1) * further + rounds * self.trip(PACKET, ranks)

    def equation_8(self, ranks: int, size: int) -> float:
        """D is a packet every g_r; C_1 and C_2, which the paper gives no values, together the whole way of a packet."""
        full = ceil(size / PACKET) - 1
        stream = full * self("g_r", PACKET) + self("g_r", size - full * PACKET)
        return (ranks - 1) * stream + self.trip(min(size, PACKET), ranks)

    def bottleneck(self, ranks: int, size: int) -> tuple[int, int, float, float, float]:
        """Of a gather: senders, packets of each, g_s, g_r and the buffer."""
        gaps = (self(name, min(size, PACKET)) for name in ("g_s", "g_r"))
        return ranks - 1, ceil(size / PACKET), *gaps, self("B_L", 0)

    def coordinated(self, ranks: int, size: int) -> str:
        """What the paper's algorithm 1 comes down to: all at once where the buffer holds all, else a window."""
        senders, packets_each, *gaps, buffer = self.bottleneck(ranks, size)
        allowed = window(senders, packets_each, *gaps, buffer)[0] if min(gaps) > 0 else senders
        return "linear" if allowed == senders else f"windowed:{allowed}"
