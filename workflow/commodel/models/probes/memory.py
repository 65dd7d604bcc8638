"""Probe `memory`: k ranks of a node copy at once, k = 1, 2, 4, … all cores. Its largest rate is the
bandwidth of the node's memory.

Buffers are longer than caches, except in some cases with all ranks, which show from which length on
a copy needs the memory. In a simulation, where copying takes no time, each rank sends a message to
the next one instead.
"""

from commodel.models.keys import SAME_NODE, Pair
from commodel.models.probes import CasePlacement, Probe, ProbePlan, Site

MIN_LONG_BYTES = 32 << 20  # bytes: shortest buffer of a rank that is longer than its caches
MIN_TOTAL_BYTES = 128 << 20  # bytes: shortest buffers of all ranks together
SHORT_BYTES = tuple(1 << power for power in range(16, 25, 2))  # 64 KiB to 16 MiB
MIN_SIMULATED_RANKS = 2  # with one, no message is sent
MIN_CORES = 2  # of a node whose ranks share its memory
# Of a simulated node: rates of two numbers of ranks show whether they have a common limit.
MIN_SIMULATED_CORES = 3


def plan(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield long copies by 1, 2, 4, … all ranks of a node, and short ones by all; on a node of each
    type."""
    fewest = MIN_SIMULATED_RANKS if site.simulated else 1
    min_cores = MIN_SIMULATED_CORES if site.simulated else MIN_CORES
    for name, nodes in site.members().items():
        cores = site.count_cores(name)
        if cores < min_cores:
            continue
        pair = str(Pair(name, SAME_NODE))
        placement = CasePlacement(cores, f"block:{cores}", (nodes[0],), pair)
        for procs in list_rank_counts(fewest, cores):
            long_bytes = max(MIN_LONG_BYTES, MIN_TOTAL_BYTES // procs)
            yield placement, {"procs": procs, "bytes": long_bytes}
        for short_bytes in () if site.simulated else SHORT_BYTES:
            yield placement, {"procs": cores, "bytes": short_bytes}


def list_rank_counts(fewest: int, most: int) -> list[int]:
    """Return `fewest`, twice and four times that, and so on, and `most`.

    >>> list_rank_counts(1, 6)
    [1, 2, 4, 6]
    """
    counts = []
    count = fewest
    while count < most:
        counts.append(count)
        count *= 2
    return [*counts, most]


PROBE = Probe(
    "memory",
    "copies by all ranks of a node at once",
    ("procs", "bytes"),
    plan,
    optional=True,
    samples=5,
)
