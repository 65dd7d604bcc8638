"""τ–Lop: transfers that go on at the same time share their channel, and pay for it.

    T⁰(m) = o₀(m) + 2·L₀(m, τ) within a node, in and out of a shared buffer                (equation 1 of the paper)
    T¹(m) = o₁(m) + 2·L₀(m, τ) + L₁(m, τ) between nodes, where it is copied at both ends   (equation 2)
    T¹(m) = o₁(m) + L₁(m, τ) with RDMA                                                     (equation 3)

All that is sent in one step goes on at the same time, whoever sends it, and τ counts what is on its channel
(equations 4, 13 and 14); steps add up. o_c(m) is the time until the bytes flow: the whole time of an empty message, and
from the size on where a message asks its receiver first (rendezvous) what the time jumps by as well. It is no
processor's share as in LogP; what grows with the size is in L.

That is how the paper's examples count, `shared: channel`, and how values by hand are read. A set may choose other
readings:

- `shared: port`, as in the sets fitted here: a channel is what messages do share where nodes hang on a switch, the
  memory of a node and either way of its port. That is what the rings measured. What nobody waits for yet goes on with
  what is posted meanwhile (equations 13 and 14): on each channel transfers add up, step by step by A2, and by A3 the
  channel that is done last counts. SUMMA's block row does not wait for its block column, as it does in equation 10.
  An overhead is its processor's, and of n messages that a rank sends or takes at once n are to be paid, which A1 drops;
  but only in part, as o_c(m) has the network's latency, too: p_c, of each after the first. Who posts and takes several
  is busy with all, while the first are on their way, and does not wait for their latency. Processors go on beside
  channels.
- `shared: node`: τ counts the transfers into one node, and sends of a rank in one step follow one another, as in the
  authors' own library.
- `join: yes`: A1, as in equations 8 to 10 (SUMMA). What a rank sends over one channel in a step is one message, its
  channels one after the other, and stages with the same concurrency are one transmission, which pays one overhead.
  For long messages that only bandwidth orders; the rounds of a broadcast wait for each other.
- `join: overheads`: A1 for what is transferred, but the second and following transmissions pay their overheads too,
  which the paper says A1 must not drop where messages are short: a sender's one after the other, those of several
  senders at the same time (a processor is no shared resource).
- `rest: message`: the paper's T(m₂−m₁) to the letter, an overhead and a latency for what is left of a longer message
  when a shorter one is done (A2). By default a message pays one of each, and its rest max(0, L(m₂, τ) − L(m₁, τ)):
  or blocks that differ by an odd byte would cost up to twice what equal ones do.

L₁ is measured by rings over two nodes, where half of the transfers go either way. `rings: both-ways` says so in the
sets fitted here: of n transfers one way, which `node` and `port` count, it takes what 2·n cost in such a ring.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from commodel.models.evaluation.repeated_rounds import condense
from commodel.models.evaluation.replay import sum_longest_work
from commodel.models.evaluation.taulop_algebra import (
    SETTINGS,
    Busy,
    Terms,
    busiest_processor,
    concurrency_measured,
    expression,
    join_stages,
    overheads,
    own_overheads,
    reading,
    rows_of,
    sent_overheads,
    steps_of_stages,
    term_seconds,
    total,
    value_place,
)
from commodel.models.evaluation.values import Pairs
from commodel.models.families import Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.channels import fit_processors, group_by_level, overhead_by_size
from commodel.models.fitting.regression import describe_levelled, sample_values, sampled_curve
from commodel.models.keys import Pair, key, parse
from commodel.models.probes import BETWEEN
from commodel.patterns.schedule import MEMORY, NETWORK

_PREPARED: WeakKeyDictionary[Schedule, dict] = WeakKeyDictionary()  # expressions, as long as their schedules are there
PLACES = {MEMORY: "within nodes", NETWORK: "between nodes"}


def fit(observed: Observed) -> Fitted:
    """L_c(m, τ) from rings of τ transfers on a channel; τ = 1 is half a round trip, from which o_c(m) is read as well.
    More transfers at once never take less time (the model's own condition)."""
    rings = observed.cases("ring")
    values, forms, notes, unknown, curves = {}, {}, {}, {}, []
    for name in dict.fromkeys(rings["pair"]):
        pair = Pair.parse(name)
        channel, share = (MEMORY, 2) if pair.within else (NETWORK, 1)
        where = value_place(channel, pair)
        times = group_by_level(observed, rings.pick(rings["pair"] == name), pair)
        sizes = times[min(times)]["bytes"]
        overhead, transfers = (key(f"{letter}_{channel}", where if observed.types else "") for letter in "oL")
        o, form, parts, note = overhead_by_size(overhead, sizes, times[min(times)].seconds)
        values |= parts
        notes |= note
        forms |= {overhead: form, transfers: "table"}
        transfer = 0.0
        for level, cases in times.items():
            transfer = np.maximum(np.maximum(cases.seconds - o, 0) / share, transfer)
            samples = sample_values(transfers, sizes, transfer, level)
            values |= samples
            predicted = o[0] + share * np.array([draws[0] for draws in samples.values()])
            unknown |= describe_levelled(list(samples), cases.seconds[0], predicted)
            title = f"{PLACES[channel]} {where}, {level} at once"
            curves.append(sampled_curve(title, sizes, cases.seconds, predicted))
    values |= {"gamma.a": np.zeros(len(o)), "gamma.b": local_work(observed)}
    forms["gamma"] = "linear"
    ends = rings["bytes"].min(), rings["bytes"].max()
    values |= fit_processors(observed, values)
    settings = {**observed.placement, "rings": "both-ways", "shared": "port"}
    return Fitted(values, ends, forms, notes, unknown, tuple(curves), settings)


def predict(schedule: Schedule, values: Values) -> Array:
    types = values.settings.get("types")
    schedule, times = condense(schedule, types, values.levels)
    prepared = _prepared(schedule, values)
    occurs = [int(times[first]) for first in prepared.first]
    sizes = schedule.bytes[:, 0] if schedule.bytes.ndim > 1 else [schedule.bytes]
    costs = [
        _transmitted(schedule, occurs, size, stages, prepared, values)
        for size, stages in zip(sizes, prepared.terms_by_size, strict=True)
    ]
    sent = np.stack(costs) if schedule.bytes.ndim > 1 else costs[0]
    if schedule.overlapped_seconds is not None:
        return _beside(schedule, sizes, sent, times, prepared.pairs, values)
    cost = sent + _work(schedule, times, values)
    return np.broadcast_to(cost[..., None], (*cost.shape, schedule.ranks))


def _beside(
    schedule: Schedule, sizes: Iterable[np.ndarray], sent: Array, times: np.ndarray, pairs: Pairs, values: Values
) -> Array:
    """Return where ranks compute between posting and waiting: transmissions go on meanwhile, but a rank's own overheads
    come first, and its copies are made before anything is sent."""
    copied, computed = replace(schedule.work, seconds=np.zeros_like(schedule.work.seconds)), schedule.overlapped_seconds
    overheads = [sent_overheads(schedule, size, pairs, values) for size in sizes]
    overheads = np.minimum(np.stack(overheads) if schedule.bytes.ndim > 1 else overheads[0], sent[..., None])
    finish = np.maximum(sent[..., None], computed + overheads)
    idle = ~np.isin(np.arange(schedule.ranks), [schedule.src, schedule.dst])
    finish[..., idle] = computed[idle]
    return finish + _work(replace(schedule, work=copied), times, values)[..., None] * ~idle


@dataclass(frozen=True, eq=False)
class Prepared:
    """What of a schedule is worked out once for all draws, however few of them are predicted at a time."""

    pairs: Pairs
    first: list[int]  # step of every stage
    terms_by_size: list[list[Terms]]  # of every size, the terms of every stage
    busy: list[Busy]  # of every stage, where processors count


def _prepared(schedule: Schedule, values: Values) -> Prepared:
    prepared, settings = _PREPARED.setdefault(schedule, {}), values.settings
    types = settings.get("types")
    readings = (reading(settings, name) for name in SETTINGS)
    key = (*readings, *(types.items() if types else ()), values.classes, values.levels.stamp)
    if key not in prepared:
        pairs, stages, busy = Pairs(schedule, types, values), steps_of_stages(schedule, settings), []
        sizes = schedule.bytes[:, 0] if schedule.bytes.ndim > 1 else [schedule.bytes]
        terms_by_size = [expression(schedule, size, settings, pairs) for size in sizes]
        if reading(settings, "shared") == "port":
            busy = [Busy.of(schedule, rows_of(schedule, stage), pairs) for stage in stages]
        prepared[key] = Prepared(pairs, [stage[0] for stage in stages], terms_by_size, busy)
    return prepared[key]


def _transmitted(
    schedule: Schedule, times: list[int], bytes: np.ndarray, stages: list[Terms], prepared: Prepared, values: Values
) -> Array:
    pairs = prepared.pairs.pairs
    seconds = [term_seconds(stage, pairs, values) for stage in stages]
    if stages and (join := reading(values.settings, "join")) != "no":
        anew = reading(values.settings, "rest") == "message"
        own = own_overheads(schedule, bytes, prepared.pairs, values) if join == "overheads" else None
        ask = (lambda part: term_seconds(part, pairs, values)), (lambda part: overheads(part, pairs, values))
        return join_stages(stages, seconds, times, own, *ask, anew)
    cost = np.zeros(values.lead)
    for number, (stage, lasts, occurs) in enumerate(zip(stages, seconds, times, strict=True)):
        longest = total(stage, lasts)
        if prepared.busy:
            longest = np.maximum(longest, busiest_processor(values, pairs, prepared.busy[number]))
        cost = cost + occurs * longest
    return cost


def _work(schedule: Schedule, times: np.ndarray, values: Values) -> Array:
    bytes = schedule.work.bytes
    return sum_longest_work(
        schedule, schedule.work.seconds + np.where(bytes > 0, values.at("gamma", bytes), 0.0), times
    )


def doubts(schedule: Schedule, values: Values) -> str:
    """More transfers at once than were measured: each of them is predicted as if it took its share of the channel."""
    types, apart = values.settings.get("types"), reading(values.settings, "shared") != "channel"
    schedule, _ = condense(schedule, types, values.levels)
    pairs = Pairs(schedule, types)
    most: dict[int, int] = {}
    for step_terms in expression(schedule, np.zeros(len(schedule.src), dtype=int), values.settings, pairs):
        for channel in set(step_terms.channel.tolist()):
            count = int(step_terms.count[step_terms.channel == channel].max())
            most[channel] = max(most.get(channel, 0), count)
    for channel, count in sorted(most.items()):
        needed = concurrency_measured(values, channel, count)
        known = max((level for _, level in _samples(values, f"L_{channel}")), default=needed)
        if needed > known:
            hint = "" if apart else "; `shared: port` counts what shares a port"
            return f"extrapolated: {needed} transfers at once {PLACES[channel]}, measured up to {known}{hint}"
    return ""


def _samples(values: Values, parameter: str) -> list[tuple[int, int]]:
    """Sizes and levels of the samples of a surface."""
    known = values.cache
    if parameter not in known:
        parsed = [surface for name in values.numbers if (surface := parse(name)).parameter == parameter]
        sampled = [surface.sample for surface in parsed if surface.sample]
        known[parameter] = [(size, level) for size, level in sampled if level is not None]
    return known[parameter]


FAMILY = Family(
    name="taulop",
    title="τ–Lop",
    citation="J.-A. Rico-Gallego, A. Lastovetsky, J.-C. Díaz-Martín, Model-based estimation of the communication cost "
    "of hybrid data-parallel applications on heterogeneous clusters, IEEE TPDS 28, 2017",
    equation="T⁰(m) = o₀(m) + 2·L₀(m, τ); T¹(m) = o₁(m) + L₁(m, τ); n‖L(m, τ) = L(m, n·τ)",
    parameters=(
        Parameter("o_0", "s", "time until the bytes of a message within a node flow", "m", of="type", optional=True),
        Parameter("L_0", "s", "time of a transfer within a node, τ at once", "m", of="type", optional=True),
        Parameter("o_1", "s", "time until the bytes of a message between nodes flow", "m", of="pair", optional=True),
        Parameter("L_1", "s", "time of a transfer between nodes, τ at once", "m", of="pair", optional=True),
        Parameter("p_0", "s", "of each further message within a node, for its processor", of="type", default=0.0),
        Parameter("p_1", "s", "of each further message between nodes, for its processor", of="pair", default=0.0),
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0, paced=False),
    ),
    probes=("ring", "prtt", "pairprtt", "work"),
    fit=fit,
    predict=predict,
    settings=SETTINGS,
    decides={
        "network": "Between nodes a message goes straight to its receiver (equation 3) or is copied at both ends (2)",
        "shared": "τ counts all transfers on a channel (equation 4), those into one node, or those that share a node's "
        "memory or one way of its port",
        "join": "Whether A1 joins what follows on a channel, in a rank and from stage to stage (equations 8 to 10); "
        "overheads: it does, but each transmission keeps its own overhead, as short ones should",
        "rest": "What is left of a longer message goes on as it is, or is a message of its own (A2 to the letter)",
        "rings": "Which way the transfers of the rings went that L_1 was measured with",
    },
    doubts=doubts,
    by_class=BETWEEN,
    ignores="that ranks reach a step at different times; what many messages cost their receiver beyond the channel",
)
