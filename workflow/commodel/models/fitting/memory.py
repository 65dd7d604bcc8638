"""The bandwidth of a node's memory, from probe `memory` (`find_memory_settings`).

A rate counts each copied byte once, as predictions count the bytes of messages. STREAM's copy
counts it twice: once as read, once as written.
"""

from typing import Any

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.fitting.observed import Observed
from commodel.models.probes.memory import MIN_LONG_BYTES, PROBE

COPIES, MEMORY_FROM = "memory_copies", "memory_from"
# A short copy with a rate above this multiple of the memory's is one between caches.
MAX_RATE_RATIO = 1.25
# Rates of simulated ranks that rise in proportion to their number, up to this relative deviation,
# have no common limit.
MAX_DEVIATION = 0.02


def find_memory_settings(observed: Observed) -> dict[str, Any]:
    """Return the settings of a parameter set on the memory of a node.

    It is empty without the probe.

    - `memory_copies`: the rates of all cases, in bytes per second.
    - `memory_bandwidth`: the largest rate of long copies. It is omitted if simulated ranks have no
      common limit.
    - `memory_from`: the shortest message that is copied at the rate of the memory, in bytes.
    """
    if not observed.probes.get(PROBE.name):
        return {}
    rows = _tabulate_rates(observed)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    long_rows = [row for row in rows if row["bytes"] >= MIN_LONG_BYTES]
    if not long_rows or (observed.simulated and _rise_in_proportion(long_rows)):
        return {COPIES: columns}
    bandwidth = max(row["fastest"] for row in long_rows)
    settings = {COPIES: columns, "memory_bandwidth": {NODE: bandwidth}}
    shortest = _find_shortest(rows, bandwidth)
    return settings | ({MEMORY_FROM: shortest} if shortest else {})


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
        }
        rows.append(row | {name: float(f"{rate:.6g}") for name, rate in rates.items()})
    return sorted(rows, key=lambda row: (row["type"], row["procs"], row["bytes"]))


def _rise_in_proportion(rows: list[dict[str, Any]]) -> bool:
    """Return whether the rate of each rank is the same whatever their number, or only one number
    was measured."""
    of_one_rank = [row["fastest"] / row["procs"] for row in rows]
    return min(of_one_rank) > (1 - MAX_DEVIATION) * max(of_one_rank)


def _find_shortest(rows: list[dict[str, Any]], bandwidth: float) -> int:
    """Return the shortest length such that no copy of it, or of a longer one, by all ranks is
    between caches; 0 if only long ones were measured."""
    most_ranks = max(row["procs"] for row in rows)
    of_all_ranks = [row for row in rows if row["procs"] == most_ranks]
    if all(row["bytes"] >= MIN_LONG_BYTES for row in of_all_ranks):
        return 0
    shortest = 0
    for row in sorted(of_all_ranks, key=lambda row: -row["bytes"]):
        if row["fastest"] > MAX_RATE_RATIO * bandwidth:
            break
        shortest = row["bytes"]
    return int(shortest)
