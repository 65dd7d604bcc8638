"""τ–Lop: concurrent transfers share their channel.

    T⁰(m) = o₀(m) + 2·L₀(m, τ) within a node, in and out of a shared buffer                (equation 1 of the paper)
    T¹(m) = o₁(m) + 2·L₀(m, τ) + L₁(m, τ) between nodes, where it is copied at both ends   (equation 2)
    T¹(m) = o₁(m) + L₁(m, τ) with RDMA                                                     (equation 3)

A1 to A3 are the axioms of the paper, which `evaluation/taulop_algebra.py` states.

All messages of one step are concurrent, from all senders, and τ counts those on their channel
(equations 4, 13 and 14); steps add up. o_c(m) is the time until the bytes flow: the whole time of
an empty message, plus the jump of the time at the size where rendezvous begins. It is not a
processor's share as in LogP; what grows with the size is in L.

The default, `shared: channel`, counts as the paper's examples do. A set may select other readings:

- `shared: port`, as in sets fitted here: a channel is what messages share behind a switch, the
  memory of a node and either direction of its port. The rings measured this. Messages without a
  wait so far are concurrent with later ones (equations 13 and 14): on each channel transfers add
  up, step by step by A2, and by A3 the channel that ends last counts. SUMMA's block row does not
  wait for its block column, as it does in equation 10. An overhead belongs to a processor; of n
  messages that a rank sends or receives at once, n count, which A1 drops. Each after the first
  counts in part, p_c, as o_c(m) includes the network's latency. A rank that posts and receives
  several messages is busy with all, and does not wait for the latency of the first. Processors and
  channels are concurrent.
- `shared: node`: τ counts the transfers into one node, and the sends of a rank in one step follow
  one another, as in the authors' own library.
- `join: yes`: A1, as in equations 8 to 10 (SUMMA). The messages of a rank over one channel in a
  step are one message, its channels follow one another, and stages with the same concurrency are
  one transmission with one overhead. This suits long messages ordered by bandwidth only; the rounds
  of a broadcast wait for each other.
- `join: overheads`: A1 for the transfer, but all transmissions keep their overheads, which the
  paper requires for short messages. Those of one sender add up, those of several senders are
  concurrent (a processor is not shared).
- `rest: message`: the paper's T(m₂−m₁) literally, with an overhead and a latency for the rest of a
  longer message when a shorter one ends (A2). By default a message has one of each, and its rest is
  max(0, L(m₂, τ) − L(m₁, τ)). Otherwise, blocks that differ by a byte would take up to twice as
  long as equal ones.

L₁ is measured by rings over two nodes, in which half of the transfers go in either direction.
`rings: both-ways` says so in sets fitted here: n transfers in one direction, which `node` and
`port` count, take the time of 2·n in such a ring.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from commodel.hierarchy import BEYOND, NODE
from commodel.models.evaluation.repeated_rounds import condense_rounds
from commodel.models.evaluation.replay import sum_longest_work
from commodel.models.evaluation.taulop_algebra import (
    SETTINGS,
    ProcessorLoads,
    Terms,
    compute_term_seconds,
    convert_concurrency,
    get_setting,
    join_stages,
    list_message_rows,
    list_stages,
    make_stage_terms,
    sum_sent_overheads,
    sum_terms,
)
from commodel.models.evaluation.values import Pairs
from commodel.models.families import (
    LOCAL_WORK_PRIOR,
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Prior,
    Schedule,
    Setting,
    TableFit,
    Values,
    fit_local_work,
)
from commodel.models.fitting.channels import (
    fit_overhead_by_size,
    fit_processors,
    group_by_concurrency,
)
from commodel.models.fitting.regression import (
    describe_changed_samples,
    make_sample_values,
    make_sampled_curve,
)
from commodel.models.keys import Pair, make_key, make_sample_key, parse_key
from commodel.models.probes import BETWEEN
from commodel.patterns.schedule import MEMORY, NETWORK

# cached expressions; removed with their schedules
_PREPARED: WeakKeyDictionary[Schedule, dict[Any, Any]] = WeakKeyDictionary()
CHANNEL_NAMES = {MEMORY: "within nodes", NETWORK: "between nodes"}


def fit(observed: Observed) -> Fitted:
    """Fit L_c(m, τ) to rings of τ transfers on a channel; τ = 1 is half a round trip, which also
    gives o_c(m).

    More concurrent transfers never take less time (the model's own condition).
    """
    rings = observed.cases("ring")
    values: dict[str, Array] = {}
    forms: dict[str, str] = {}
    notes: dict[str, str] = {}
    unidentified: dict[str, str] = {}
    curves = []
    for name in dict.fromkeys(rings["pair"]):
        pair = Pair.parse(name)
        channel, share = (MEMORY, 2) if pair.within else (NETWORK, 1)
        times = group_by_concurrency(observed, rings.where(pair=name), pair)
        sizes = times[min(times)]["bytes"]
        overhead, transfers = (
            make_key(f"{letter}_{channel}", pair.type_or_pair if observed.types else "")
            for letter in "oL"
        )
        o, form, parts, note = fit_overhead_by_size(overhead, sizes, times[min(times)].seconds)
        values |= parts
        notes |= note
        forms |= {overhead: form, transfers: "table"}
        transfer: Array = np.zeros(())
        for level, cases in times.items():
            transfer = np.maximum(np.maximum(cases.seconds - o, 0) / share, transfer)
            samples = make_sample_values(transfers, sizes, transfer, level)
            values |= samples
            predicted = o[0] + share * np.array([draws[0] for draws in samples.values()])
            unidentified |= describe_changed_samples(
                list(samples), cases.seconds[0], predicted, "size or concurrency"
            )
            title = f"{CHANNEL_NAMES[channel]} {pair.type_or_pair}, {level} at once"
            curves.append(make_sampled_curve(title, sizes, cases.seconds, predicted))
    values |= {"gamma.a": np.zeros(len(o)), "gamma.b": fit_local_work(observed)}
    forms["gamma"] = "linear"
    ends = rings["bytes"].min(), rings["bytes"].max()
    values |= fit_processors(observed, values)
    settings = {**observed.placement, "rings": "both-ways", "shared": "port"}
    return Fitted(values, ends, forms, notes, unidentified, tuple(curves), settings)


def predict(schedule: Schedule, values: Values) -> Array:
    types = values.settings.get("types")
    schedule, step_counts = condense_rounds(schedule, types, values.levels)
    prepared = _prepare_terms(schedule, values)
    counts = [int(step_counts[first]) for first in prepared.first]
    sizes = schedule.bytes[:, 0] if schedule.bytes.ndim > 1 else [schedule.bytes]
    costs = [
        _predict_transmissions(schedule, counts, size, stages, prepared, values)
        for size, stages in zip(sizes, prepared.terms_by_size, strict=True)
    ]
    transmission = np.stack(costs) if schedule.bytes.ndim > 1 else costs[0]
    if schedule.overlapped_seconds is not None:
        return _overlap_work(schedule, sizes, transmission, step_counts, prepared.pairs, values)
    cost = transmission + _predict_work(schedule, step_counts, values)
    return np.broadcast_to(cost[..., None], (*cost.shape, schedule.ranks))


def _overlap_work(
    schedule: Schedule,
    sizes: Iterable[np.ndarray],
    transmission: Array,
    step_counts: np.ndarray,
    pairs: Pairs,
    values: Values,
) -> Array:
    """Return the finish times if ranks compute between posting and waiting.

    Transmissions are concurrent with the computation. A rank's own overheads come first, and its
    copies are made before anything is sent.
    """
    without_computation = replace(schedule.work, seconds=np.zeros_like(schedule.work.seconds))
    computed = schedule.overlapped_seconds
    assert computed is not None
    by_size = [sum_sent_overheads(schedule, size, pairs, values) for size in sizes]
    overheads = np.minimum(
        np.stack(by_size) if schedule.bytes.ndim > 1 else by_size[0], transmission[..., None]
    )
    finish = np.maximum(transmission[..., None], computed + overheads)
    idle = ~np.isin(np.arange(schedule.ranks), [schedule.src, schedule.dst])
    finish[..., idle] = computed[idle]
    return (
        finish
        + _predict_work(replace(schedule, work=without_computation), step_counts, values)[..., None]
        * ~idle
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is computed once per schedule for all draws, however few draws are predicted at a
    time."""

    pairs: Pairs
    first: list[int]  # step of every stage
    terms_by_size: list[list[Terms]]  # of every size, the terms of every stage
    loads: list[ProcessorLoads]  # of every stage, with `shared: port`


def _prepare_terms(schedule: Schedule, values: Values) -> Prepared:
    prepared, settings = _PREPARED.setdefault(schedule, {}), values.settings
    types = settings.get("types")
    readings = (get_setting(settings, name) for name in SETTINGS)
    key = (*readings, *(types.items() if types else ()), values.classes, values.levels.stamp)
    if key not in prepared:
        pairs, stages, loads = Pairs(schedule, types, values), list_stages(schedule, settings), []
        sizes = schedule.bytes[:, 0] if schedule.bytes.ndim > 1 else [schedule.bytes]
        terms_by_size = [make_stage_terms(schedule, size, settings, pairs) for size in sizes]
        if get_setting(settings, "shared") == "port":
            loads = [
                ProcessorLoads.of(schedule, list_message_rows(schedule, stage), pairs)
                for stage in stages
            ]
        prepared[key] = Prepared(pairs, [stage[0] for stage in stages], terms_by_size, loads)
    return prepared[key]


def _predict_transmissions(
    schedule: Schedule,
    times: list[int],
    bytes: np.ndarray,
    stages: list[Terms],
    prepared: Prepared,
    values: Values,
) -> Array:
    pairs = prepared.pairs.pairs
    seconds = [compute_term_seconds(stage, pairs, values) for stage in stages]
    if stages and get_setting(values.settings, "join") != "no":
        return join_stages(schedule, bytes, stages, seconds, times, prepared.pairs, values)
    cost = np.zeros(values.draw_shape)
    for number, (stage, term_times, count) in enumerate(zip(stages, seconds, times, strict=True)):
        longest = sum_terms(stage, term_times)
        if prepared.loads:
            longest = np.maximum(longest, prepared.loads[number].predict_busiest(values, pairs))
        cost = cost + count * longest
    return cost


def _predict_work(schedule: Schedule, times: np.ndarray, values: Values) -> Array:
    bytes = schedule.work.bytes
    return sum_longest_work(
        schedule, schedule.work.seconds + np.where(bytes > 0, values.at("gamma", bytes), 0.0), times
    )


def describe_limits(schedule: Schedule, values: Values) -> str:
    """Return a text if more transfers are concurrent than were measured; they are extrapolated in
    proportion."""
    types, by_node = (
        values.settings.get("types"),
        get_setting(values.settings, "shared") != "channel",
    )
    schedule, _ = condense_rounds(schedule, types, values.levels)
    pairs = Pairs(schedule, types)
    stages = make_stage_terms(
        schedule, np.zeros(len(schedule.src), dtype=int), values.settings, pairs
    )
    for channel in CHANNEL_NAMES:
        count = max(
            (int(terms.count[terms.channel == channel].max(initial=0)) for terms in stages),
            default=0,
        )
        needed = convert_concurrency(values, channel, count)
        measured = max(
            (level for _, level in _list_samples(values, f"L_{channel}")), default=needed
        )
        if needed > measured:
            hint = "" if by_node else "; `shared: port` counts messages that share a port"
            return (
                f"extrapolated: {needed} transfers at once {CHANNEL_NAMES[channel]}, measured up "
                f"to {measured}{hint}"
            )
    return ""


def _list_samples(values: Values, parameter: str) -> list[tuple[int, int]]:
    """Return the sizes and levels of a surface's samples."""
    cache = values.cache
    if parameter not in cache:
        parsed = [
            surface
            for name in values.numbers
            if (surface := parse_key(name)).parameter == parameter
        ]
        sampled = [surface.sample for surface in parsed if surface.sample]
        cache[parameter] = [(size, level) for size, level in sampled if level is not None]
    return cache[parameter]


LONG_BYTES = 1 << 20  # of the samples to which L is linear from 0 B on, in a fit to a table
# Seconds of a long transfer alone, and of each of many at once, for their share: of the memory, and
# of a port.
ALONE_SECONDS, SHARE_SECONDS = (1e-4, 1.3e-4), (1e-5, 5e-5)


def list_priors(ranks_per_node: int) -> dict[str, Prior]:
    """Return the priors of a fit to a table: T_c(m) = o_c + m·(G_c + (τ − 1)·s_c) up to τ =
    `ranks_per_node`, and in proportion to τ beyond. For clusters of the last twenty years, as in
    `shares`."""
    priors = {
        "o_0.a": Prior(5e-7, 4, NODE),
        "p_0": Prior(3e-7, 4, NODE),
        "o_1.a": Prior(2e-6, 4, BEYOND),
        "p_1": Prior(3e-7, 4, BEYOND),
        "gamma.b": LOCAL_WORK_PRIOR,
    }
    for channel, need in ((MEMORY, NODE), (NETWORK, BEYOND)):
        for level in (1, max(ranks_per_node, 2)):
            typical = ALONE_SECONDS[channel] + (level - 1) * SHARE_SECONDS[channel]
            priors[make_sample_key(f"L_{channel}", LONG_BYTES, level)] = Prior(typical, 6, need)
    return priors


# What each setting of `taulop_algebra` decides.
MEANINGS = {
    "network": "Between nodes a message goes directly to its receiver (equation 3) or is copied at both ends (2)",
    "shared": "τ counts all transfers on a channel (equation 4), those into one node, or those that share a node's "
    "memory or one way of its port",
    "join": "A1 joins successive messages on a channel, in a rank and from stage to stage (equations 8 to 10); "
    "overheads: with A1, but each transmission keeps its own overhead, as short messages require",
    "rest": "The rest of a longer message continues, or is a message of its own (A2 literally)",
    "rings": "Directions of the transfers in the rings to which L_1 was fitted",
}
FAMILY = Family(
    name="taulop",
    title="τ–Lop",
    citation="J.-A. Rico-Gallego, A. Lastovetsky, J.-C. Díaz-Martín, Model-based estimation of the communication cost "
    "of hybrid data-parallel applications on heterogeneous clusters, IEEE TPDS 28, 2017",
    equation="T⁰(m) = o₀(m) + 2·L₀(m, τ); T¹(m) = o₁(m) + L₁(m, τ); n‖L(m, τ) = L(m, n·τ)",
    parameters=(
        Parameter(
            "o_0",
            "s",
            "time until the bytes of a message within a node flow",
            "m",
            per="type",
            optional=True,
        ),
        Parameter(
            "L_0",
            "s",
            "time of a transfer within a node, τ at once",
            "m",
            per="type",
            optional=True,
        ),
        Parameter(
            "o_1",
            "s",
            "time until the bytes of a message between nodes flow",
            "m",
            per="pair",
            optional=True,
        ),
        Parameter(
            "L_1",
            "s",
            "time of a transfer between nodes, τ at once",
            "m",
            per="pair",
            optional=True,
        ),
        Parameter(
            "p_0",
            "s",
            "of each further message within a node, for its processor",
            per="type",
            default=0.0,
        ),
        Parameter(
            "p_1",
            "s",
            "of each further message between nodes, for its processor",
            per="pair",
            default=0.0,
        ),
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0, recalibrated=False),
    ),
    probes=("ring", "prtt", "pairprtt", "work"),
    fit=fit,
    predict=predict,
    same_for_all_ranks=True,
    settings={name: Setting(SETTINGS[name], meaning) for name, meaning in MEANINGS.items()},
    limits=describe_limits,
    by_class=BETWEEN,
    table_fit=TableFit(priors=list_priors, settings={"shared": "port"}),
    ignores="that ranks reach a step at different times; the cost of many messages at a receiver beyond the channel",
)
