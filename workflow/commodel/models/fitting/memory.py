"""The bandwidth of a node's memory, from probe `memory` (`find_memory_settings`).

A rate counts each copied byte once, as predictions count the bytes of messages. STREAM's copy
counts it twice: once as read, once as written.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.fitting.observed import Observed
from commodel.models.probes.memory import MIN_LONG_BYTES, PROBE
from commodel.parameters import MEMORY_BANDWIDTH, MEMORY_FROM

COPIES = "memory_copies"
ALL_RANKS = "ranks"  # of a node of the type
# A short copy with a rate above this multiple of the memory's is one between caches.
MAX_RATE_RATIO = 1.25
# Rates of simulated ranks that rise in proportion to their number, up to this relative deviation,
# have no common limit.
MAX_DEVIATION = 0.02


def find_memory_settings(observed: Observed) -> dict[str, Any]:
    """Return the settings of a parameter set on the memory of a node.

    It is empty without the probe.

    - `memory_copies`: the rates of all cases, in bytes per second.
    - `memory_bandwidth`: the largest rate of long copies, of the node type where it is largest. It
      is omitted if simulated ranks have no common limit, or if long copies by all ranks of a node
      type were not measured.
    - `memory_from`: the shortest message that is copied at the rate of the memory, in bytes, of the
      node type where it is longest. Simulated nodes have no caches, and no such length.
    """
    if not observed.probes.get(PROBE.name):
        return {}
    rows = _tabulate_rates(observed)
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != ALL_RANKS}
    settings: dict[str, Any] = {COPIES: columns}
    limits = [
        _find_limit(list(of_type), observed.simulated)
        for _, of_type in groupby(rows, key=lambda row: row["type"])
    ]
    known = [limit for limit in limits if limit]
    if len(known) < len(limits):
        return settings
    settings[MEMORY_BANDWIDTH] = {NODE: max(limit.bandwidth for limit in known)}
    if not observed.simulated:
        settings[MEMORY_FROM] = max(limit.shortest for limit in known)
    return settings


@dataclass(frozen=True)
class Limit:
    """The bandwidth of the memory of nodes of a type, in bytes per second, and the shortest message
    to which it applies, in bytes."""

    bandwidth: float
    shortest: int


def _find_limit(rows: list[dict[str, Any]], simulated: bool) -> Limit | None:
    """Return the limit that the rates on nodes of a type show; None if they show none."""
    long_rows = [row for row in rows if row["bytes"] >= MIN_LONG_BYTES]
    # fewer ranks may not reach the rate of the memory
    if not any(row["procs"] == row[ALL_RANKS] for row in long_rows):
        return None
    if simulated and _rise_in_proportion(long_rows):
        return None
    bandwidth = max(row["fastest"] for row in long_rows)
    of_all_ranks = [row for row in rows if row["procs"] == row[ALL_RANKS]]
    return Limit(bandwidth, _find_shortest(of_all_ranks, bandwidth))


def _tabulate_rates(observed: Observed) -> list[dict[str, Any]]:
    """Return a row for each case: its rate by the median time with its interval, and the rate of
    its fastest sample, as STREAM reports it. `sockets` is 0 if they are unknown."""
    cases = observed.cases(PROBE.name)
    rows: list[dict[str, Any]] = []
    for number, samples in enumerate(observed.probes[PROBE.name]):
        copied = int(samples.settings["procs"]) * int(samples.settings["bytes"])
        draws = copied / cases.seconds[:, number]
        low, high = np.percentile(draws[1:], [2.5, 97.5])
        rates = {"rate": draws[0], "low": low, "high": high}
        rates["fastest"] = copied / samples.seconds.min()
        sockets = 0 if samples.counts is None else int(samples.counts.max())
        row = {
            "type": str(samples.settings["pair"]).partition(".")[0],
            "procs": int(samples.settings["procs"]),
            "sockets": sockets,
            "bytes": int(samples.settings["bytes"]),
            ALL_RANKS: int(samples.settings["ranks"]),
        }
        rows.append(row | {name: float(f"{rate:.6g}") for name, rate in rates.items()})
    return sorted(rows, key=lambda row: (row["type"], row["procs"], row["bytes"]))


def _rise_in_proportion(rows: list[dict[str, Any]]) -> bool:
    """Return whether the rate of each rank is the same whatever their number, or only one number
    was measured."""
    of_one_rank = [row["fastest"] / row["procs"] for row in rows]
    return min(of_one_rank) > (1 - MAX_DEVIATION) * max(of_one_rank)


def _find_shortest(of_all_ranks: list[dict[str, Any]], bandwidth: float) -> int:
    """Return the shortest measured length such that no copy of it, or of a longer one, by all ranks
    is between caches."""
    from_long_to_short = sorted(of_all_ranks, key=lambda row: -row["bytes"])
    shortest = from_long_to_short[0]["bytes"]
    for row in from_long_to_short:
        if row["fastest"] > MAX_RATE_RATIO * bandwidth:
            break
        shortest = row["bytes"]
    return int(shortest)
