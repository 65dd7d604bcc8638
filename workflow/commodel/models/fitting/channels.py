"""Channels of shared memory and rings (probe `ring`): transfer times under concurrency and the overhead in them, for
τ–Lop. And local work by its size: a reduction, a copy, and a copy into a new buffer (probes `work` and `memcopy`).
"""

from collections.abc import Mapping

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import PIECEWISE, TABLE
from commodel.models.fitting.observed import Cases, Observed, at_common
from commodel.models.fitting.regression import sample_values
from commodel.models.fitting.round_trips import SHORT, half_trip, jump, last_before_jump, pair_probes
from commodel.models.keys import Pair, key
from commodel.models.probes.plans import AGAIN, ANEW
from commodel.patterns.schedule import MEMORY, NETWORK
from commodel.units import format_seconds


def group_by_level(observed: Observed, rings: Cases, pair: Pair) -> dict[int, Cases]:
    """Cases by τ, at the sizes that all levels have. All ranks of a ring send at once, on one node or over two."""
    levels = {procs: rings.pick(rings["procs"] == procs) for procs in set(rings["procs"].tolist())}
    if alone := _single_transfer(observed, pair):
        levels[1] = alone
    levels = dict(sorted(levels.items()))
    return dict(zip(levels, at_common("bytes", *levels.values()), strict=True))


def _single_transfer(observed: Observed, pair: Pair) -> Cases | None:
    """Half of the round trips: τ = 1. An empty one takes as long as the shortest where none was sent."""
    if pair not in pair_probes(observed):
        return None
    sizes, half = half_trip(observed, pair)
    if sizes[0] > 0:
        sizes, half = np.concatenate([[0], sizes]), np.concatenate([half[:, :1], half], axis=1)
    return Cases({"bytes": sizes}, half)


def fit_processors(observed: Observed, values: Mapping[str, Array]) -> dict[str, Array]:
    """p_c: half of what both ends are busy with a short message that is there when its receiver asks for it, and at
    most half of what an empty one takes."""
    parts = {}
    for pair, probe in pair_probes(observed).items():
        channel, place = (MEMORY, pair.one) if pair.within else (NETWORK, pair)
        where = place if observed.types else ""
        late = observed.cases(probe, pair=str(pair), n=1, delay=0, late=1)
        busy = late.seconds[:, late["bytes"] <= max(SHORT, late["bytes"].min())].mean(axis=1) / 2
        empty = values.get(key(f"o_{channel}", where, "a"), np.inf)  # none where no ring was measured
        parts[key(f"p_{channel}", where)] = np.minimum(busy, empty / 2)
    return parts


def overhead_by_size(name: str, sizes: Array, alone: Array) -> tuple[Array, str, dict[str, Array], dict[str, str]]:
    """o_c(m) at every size, its form, values and a note: the time of an empty message, and above the size where a
    message of its own asks its receiver first, what the time jumps by there."""
    empty = alone[:, :1]
    last = last_before_jump(sizes, alone, empty[0, 0])
    if not np.isfinite(last):
        return empty, "constant", {key(name, "a"): empty[:, 0]}, {}
    asking = jump(sizes, alone, last)
    higher = empty[:, 0] + asking
    parts = {key(name, "a"): empty[:, 0], key(name, "x1"): np.full(len(empty), last), key(name, "a1"): higher}
    notes = {key(name, "a1"): f"what a message takes that asks first: {format_seconds(asking[0])} more"}
    notes[key(name, "x1")] = "found in the data; the change lies between this size and the next one probed"
    return np.where(sizes > last, higher[:, None], empty), PIECEWISE, parts, notes


def local_times(observed: Observed) -> tuple[dict[str, Array], dict[str, str]]:
    """Tables, and their forms. What is copied again and again lies in the same two buffers, as a rank's do."""
    measured = {"gamma": observed.cases("work")}
    for name, path in (("copy", AGAIN), ("anew", ANEW)):
        if any(case.settings["path"] == path for case in observed.probes.get("memcopy", ())):
            measured[name] = observed.cases("memcopy", path=path)
    values = {text: draws for name, cases in measured.items() for text, draws in _by_size(name, cases).items()}
    return values, dict.fromkeys(measured, TABLE)


def _by_size(name: str, cases: Cases) -> dict[str, Array]:
    """Return a time for every size that was measured."""
    order = np.argsort(cases["bytes"])
    return sample_values(name, cases["bytes"][order], cases.seconds[:, order])


def longest_vectors(observed: Observed, copies: bool) -> dict[str, int]:
    """Bytes of the longest vectors that were combined, and copied, where that took time."""
    probes = {"reduce": ("work", None), **({"copy": ("memcopy", AGAIN)} if copies else {})}
    measured = {
        kind: [case for case in observed.probes.get(name, ()) if path in (None, case.settings.get("path"))]
        for kind, (name, path) in probes.items()
    }
    return {
        kind: max(int(case.settings["bytes"]) for case in cases)
        for kind, cases in measured.items()
        if any(np.any(case.seconds > 0) for case in cases)
    }
