"""Parametrised LogP: overheads and gap are functions of the size, given by samples, and the latency
is one number.

    T(m) = L + g(m), the next message of a port g(m) later, with o_s(m), o_r(m) ≤ g(m)

A message reaches its receiver L + g(m) after its start, including the receiver's overhead; L is
half the smallest round trip minus g. L + g(m) is therefore the one-way time at every size; the fit
reports its error there. LogP and LogGP subtract overheads from L, and a single message does not
include their g. A measured overhead larger than g includes waiting, and counts as g. In given
samples, the larger counts.
"""

import numpy as np

from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.families import (
    GAMMA,
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    Values,
    fit_local_work,
)
from commodel.models.fitting.regression import (
    describe_changed_samples,
    make_curve,
    make_sample_values,
    make_sampled_curve,
)
from commodel.models.fitting.round_trips import collect_round_trips
from commodel.models.keys import make_sample_key
from commodel.models.probes import EVERYWHERE
from commodel.stats import NEGLIGIBLE_DIFFERENCE
from commodel.units import format_seconds


def fit(observed: Observed) -> Fitted:
    trips = collect_round_trips(observed)
    values: dict[str, Array] = {}
    notes: dict[str, str] = {}
    unidentified: dict[str, str] = {}
    limited_samples: dict[str, Array] = {}
    measured = {"o_s": trips.o_s, "o_r": trips.o_r, "g": trips.spacing}
    for name, draws in measured.items():
        # A rank that receives a message every g is busy for at most g each; the rest is waiting.
        capped = np.minimum(draws, trips.spacing)
        samples = make_sample_values(name, trips.size, capped)
        values |= samples
        limited_samples[name] = np.stack(list(samples.values()), axis=-1)
        unidentified |= describe_changed_samples(list(samples), capped[0], limited_samples[name][0])
        waits = draws[0] > (1 + NEGLIGIBLE_DIFFERENCE) * capped[0]
        for size, seconds in zip(trips.size[waits], draws[0, waits], strict=True):
            notes[make_sample_key(name, size)] = (
                f"measured {format_seconds(seconds)}: the part beyond the gap is waiting"
            )
    gap = _limit_gap(**limited_samples)
    L = np.maximum(trips.one_way[:, 0] - gap[:, 0], 0)

    one_way = L[0] + gap[0]
    error_text = trips.describe_error(one_way)
    if error_text:
        notes["L"] = f"one number for all sizes: with L + g(m) {error_text}"
    curves = (
        make_curve("half a round trip", trips.size, trips.one_way[0], one_way, "L + g(m)"),
        make_sampled_curve("spacing of a burst", trips.size, trips.spacing, gap[0]),
        make_sampled_curve("send overhead", trips.size, trips.o_s, limited_samples["o_s"][0]),
        make_sampled_curve("receive overhead", trips.size, trips.o_r, limited_samples["o_r"][0]),
    )
    values |= {"L": L, "gamma": fit_local_work(observed)}
    sizes = trips.size[0], trips.size[-1]
    return Fitted(values, sizes, dict.fromkeys(measured, "table"), notes, unidentified, curves)


def _limit_gap(o_s: Array, o_r: Array, g: Array) -> Array:
    """Return the gap, which is at least either overhead by definition."""
    return np.maximum(g, np.maximum(o_s, o_r))


def find_costs(schedule: Schedule, values: Values) -> Costs:
    o_s, o_r, g = (values.at(name, schedule.bytes) for name in ("o_s", "o_r", "g"))
    gap = _limit_gap(o_s, o_r, g)
    # below 0 if the first bytes are received while the last still leave
    wire = values["L"] + gap - o_s - o_r
    return Costs(send=o_s, receive=o_r, wire=wire, gap_out=gap, gap_in=gap)


FAMILY = Family(
    name="plogp",
    title="Parametrised LogP",
    citation="T. Kielmann, H. Bal, K. Verstoep, Fast measurement of LogP parameters for message passing platforms, "
    "IPDPS Workshops 2000",
    equation="T(m) = L + g(m); next message g(m) later; o_s(m), o_r(m) ≤ g(m)",
    parameters=(
        Parameter("L", "s", "half the smallest round trip, minus the gap"),
        Parameter(
            "o_s",
            "s",
            "time the sender's processor is busy with a message",
            argument="m",
            form="table",
        ),
        Parameter(
            "o_r",
            "s",
            "time the receiver's processor is busy with a message",
            argument="m",
            form="table",
        ),
        Parameter(
            "g",
            "s",
            "least time between the starts of two messages of one port",
            argument="m",
            form="table",
        ),
        GAMMA,
    ),
    probes=("prtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    by_class=EVERYWHERE,
    ignores="that the latency may change with the size; contention in the network",
)
