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


def pair_probes(observed: Observed) -> dict[str, str]:
    """The pairs of node types whose round trips were measured, and by which probe."""
    observed.cases("prtt")  # a fit that needs pairs needs at least these
    probes = [name for name in ("prtt", "pairprtt") if observed.has(name)]
    return {str(case.settings["pair"]): name for name in reversed(probes) for case in observed.probes[name]}


def half_trips(observed: Observed) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For every pair the sizes and half of their round trips."""
    found = {}
    for pair, probe in pair_probes(observed).items():
        cases = observed.cases(probe, pair=pair, n=1, delay=0, late=0)
        order = np.argsort(cases["bytes"])
        found[pair] = cases["bytes"][order].astype(float), cases.seconds[:, order] / 2
    return found


def round_trips(observed: Observed, pair: str = "") -> RoundTrips:
    """Reads the four kinds of round trip, of one pair of node types if asked; sizes are those that all have."""
    probe, where = (pair_probes(observed)[pair], {"pair": pair}) if pair else ("prtt", {})
    kinds = {
        "single": observed.cases(probe, **where, n=1, delay=0, late=0),
        "burst": observed.cases(probe, **where, n=BURST, delay=0, late=0),
        "spread": observed.cases(probe, **where, n=BURST, delay=1, late=0),
        "late": observed.cases(probe, **where, n=1, delay=0, late=1),
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
