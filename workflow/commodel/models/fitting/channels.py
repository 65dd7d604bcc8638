"""Fits of τ–Lop's channels from rings (probe `ring`): transfer times under concurrency
(`group_by_concurrency`), the overhead in them (`fit_overhead_by_size`), and the time of processors
(`fit_processors`). Also local work by size (`fit_local_work`): reductions, copies, and copies into
new buffers (probes `work` and `memcopy`).
"""

from collections.abc import Mapping

import numpy as np

from commodel.models import Array
from commodel.models.evaluation.values import PIECEWISE, TABLE
from commodel.models.fitting.observed import Cases, Observed, select_common
from commodel.models.fitting.regression import CHANGE_NOTE, make_sample_values
from commodel.models.fitting.round_trips import (
    MAX_SHORT_BYTES,
    find_last_before_jump,
    list_pair_probes,
    measure_half_trip,
    measure_jump,
)
from commodel.models.keys import Pair, make_key
from commodel.models.probes.plans import NEW_BUFFER, REUSED_BUFFER
from commodel.patterns.schedule import MEMORY, NETWORK
from commodel.units import format_seconds


def group_by_concurrency(observed: Observed, rings: Cases, pair: Pair) -> dict[int, Cases]:
    """Return the cases by τ, the number of concurrent transfers, at the sizes that were measured at
    all τ. All ranks of a ring send at once, on one node or on two nodes."""
    levels = {procs: rings.where(procs=procs) for procs in set(rings["procs"].tolist())}
    single = _select_single_transfers(observed, pair)
    if single:
        levels[1] = single
    levels = dict(sorted(levels.items()))
    return dict(zip(levels, select_common("bytes", *levels.values()), strict=True))


def _select_single_transfers(observed: Observed, pair: Pair) -> Cases | None:
    """Return half of the round trips, which are the cases with τ = 1. If no empty message was
    measured, the shortest one replaces it."""
    if pair not in list_pair_probes(observed):
        return None
    sizes, half = measure_half_trip(observed, pair)
    if sizes[0] > 0:
        sizes, half = np.concatenate([[0], sizes]), np.concatenate([half[:, :1], half], axis=1)
    return Cases({"bytes": sizes}, half)


def fit_processors(observed: Observed, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return p_c: half of the time that a rank is busy to send a short message and to receive one
    that has arrived.

    It is at most half of the time of an empty message.
    """
    parts = {}
    for pair, probe in list_pair_probes(observed).items():
        channel, type_or_pair = (
            MEMORY if pair.within else NETWORK,
            pair.type_or_pair if observed.types else "",
        )
        late = observed.cases(probe, pair=str(pair), n=1, delay=0, late=1)
        short = late["bytes"] <= max(MAX_SHORT_BYTES, late["bytes"].min())
        busy = late.seconds[:, short].mean(axis=1) / 2
        empty = values.get(make_key(f"o_{channel}", type_or_pair, "a"), np.inf)  # ∞ without rings
        parts[make_key(f"p_{channel}", type_or_pair)] = np.minimum(busy, empty / 2)
    return parts


def fit_overhead_by_size(
    name: str, sizes: Array, single: Array
) -> tuple[Array, str, dict[str, Array], dict[str, str]]:
    """Return o_c(m) at every size, its form, values and a note.

    It is the time of an empty message, plus the jump of the time at the size where rendezvous
    begins.
    """
    empty = single[:, :1]
    last = find_last_before_jump(sizes, single, empty[0, 0])
    if not np.isfinite(last):
        return empty, "constant", {make_key(name, "a"): empty[:, 0]}, {}
    rendezvous = measure_jump(sizes, single, last)
    higher = empty[:, 0] + rendezvous
    a, x1, a1 = (make_key(name, part) for part in ("a", "x1", "a1"))
    parts = {a: empty[:, 0], x1: np.full(len(empty), last), a1: higher}
    notes = {
        a1: f"time of a rendezvous message: {format_seconds(rendezvous[0])} more",
        x1: CHANGE_NOTE,
    }
    return np.where(sizes > last, higher[:, None], empty), PIECEWISE, parts, notes


def fit_local_work(observed: Observed) -> tuple[dict[str, Array], dict[str, str]]:
    """Return tables of local times by size, and their forms. Repeated copies use the same two
    buffers, like the copies of a rank."""
    measured = {"gamma": observed.cases("work")}
    for name, path in (("copy", REUSED_BUFFER), ("anew", NEW_BUFFER)):
        if any(case.settings["path"] == path for case in observed.probes.get("memcopy", ())):
            measured[name] = observed.cases("memcopy", path=path)
    values = {
        text: draws
        for name, cases in measured.items()
        for text, draws in _make_table(name, cases).items()
    }
    return values, dict.fromkeys(measured, TABLE)


def _make_table(name: str, cases: Cases) -> dict[str, Array]:
    """Return a table of the time at each measured size."""
    order = np.argsort(cases["bytes"])
    return make_sample_values(name, cases["bytes"][order], cases.seconds[:, order])


def find_longest_vectors(observed: Observed, copies: bool) -> dict[str, int]:
    """Return the bytes of the longest vectors that the probes reduced and copied. Work that took no
    time is omitted."""
    probes = {"reduce": ("work", None), **({"copy": ("memcopy", REUSED_BUFFER)} if copies else {})}
    measured = {
        kind: [
            case
            for case in observed.probes.get(name, ())
            if path in (None, case.settings.get("path"))
        ]
        for kind, (name, path) in probes.items()
    }
    return {
        kind: max(int(case.settings["bytes"]) for case in cases)
        for kind, cases in measured.items()
        if any(np.any(case.seconds > 0) for case in cases)
    }
