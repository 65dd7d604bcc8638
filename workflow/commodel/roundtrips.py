"""What the parametrised round trips (probe prtt) say size by size: overheads, spacing of a burst, one-way time.

PRTT(n, d) is the round trip of n messages with a delay d after each but the last, the delays themselves taken off.
PRTT(1,0) = 2·(L + o_s + o_r + (m-1)·G) · PRTT(n,0) - PRTT(1,0) = (n-1)·max(g + (m-1)·G, o) ·
PRTT(n,d) - PRTT(1,0) = (n-1)·o_s for a d above the gap · a receive that starts late costs o_s + o_r in all.
(Hoefler, Lichei, Rehm: Low-overhead LogGP parameter assessment, 2007.)
"""

from dataclasses import dataclass

import numpy as np

from commodel.fitting import Observed

BURST = 16


@dataclass(frozen=True, eq=False)
class RoundTrips:
    """Columns over sizes; (1 + draws, sizes) where measured."""

    size: np.ndarray
    one_way: np.ndarray  # half a round trip, overheads included
    overheads: np.ndarray  # of both ends together
    o_s: np.ndarray
    o_r: np.ndarray
    spacing: np.ndarray  # between the messages of a burst


def round_trips(observed: Observed) -> RoundTrips:
    """Reads the four kinds of round trip; sizes are those measured in all of them."""
    kinds = {
        "single": observed.cases("prtt", n=1, delay=0, late=0),
        "burst": observed.cases("prtt", n=BURST, delay=0, late=0),
        "spread": observed.cases("prtt", n=BURST, delay=1, late=0),
        "late": observed.cases("prtt", n=1, delay=0, late=1),
    }
    size = sorted(set.intersection(*({int(value) for value in cases["bytes"]} for cases in kinds.values())))
    kinds = {name: cases.pick([list(cases["bytes"]).index(value) for value in size]) for name, cases in kinds.items()}
    single = kinds["single"].seconds
    o_s = np.maximum((kinds["spread"].seconds - single) / (BURST - 1), 0)
    return RoundTrips(
        size=np.array(size, dtype=float),
        one_way=single / 2,
        overheads=kinds["late"].seconds,
        o_s=o_s,
        o_r=np.maximum(kinds["late"].seconds - o_s, 0),
        spacing=np.maximum((kinds["burst"].seconds - single) / (BURST - 1), 1e-12),
    )
