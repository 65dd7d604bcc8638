"""τ–Lop: transfers that go on at the same time share their channel, and pay for it.

    T⁰(m) = o₀(m) + 2·L₀(m, τ) within a node, in and out of a shared buffer                (equation 1 of the paper)
    T¹(m) = o₁(m) + 2·L₀(m, τ) + L₁(m, τ) between nodes, where it is copied at both ends   (equation 2)
    T¹(m) = o₁(m) + L₁(m, τ) with RDMA                                                     (equation 3)

All that is sent in one step goes on at the same time, whoever sends it, and τ counts what is on its channel
(equations 4, 13 and 14); steps add up. o_c(m) is the time until the bytes flow: the whole time of an empty message, and
from the size on where a message asks its receiver first (rendezvous) what the time jumps by as well. It is no
processor's share as in LogP; what grows with the size is in L.

A set may choose other readings:

- `shared: node`: τ counts the transfers into one node, and sends of a rank in one step follow one another. A switch
  keeps pairs of nodes apart: where no link is shared but a node's own, the paper's count makes the 8 messages of a
  broadcast's last round wait for each other that never meet. An independent implementation counts so, too.
- `join: yes`: A1, as in equations 8 to 10 (SUMMA). What a rank sends over one channel in a step is one message, its
  channels one after the other, and stages with the same concurrency are one transmission, which pays one overhead.
  For long messages that only bandwidth orders; the rounds of a broadcast wait for each other.
- `rest: message`: the paper's T(m₂−m₁) to the letter, an overhead and a latency for what is left of a longer message
  when a shorter one is done (A2). By default a message pays one of each, and its rest max(0, L(m₂, τ) − L(m₁, τ)):
  or blocks that differ by an odd byte would cost up to twice what equal ones do.

L₁ is measured by rings over two nodes, where half of the transfers go either way. `rings: both-ways` says so in the
sets fitted here: of n transfers into a node, which `shared: node` counts, it takes what 2·n cost in such a ring.
"""

from collections.abc import Mapping

import numpy as np

from commodel.keys import Pair, key, parse
from commodel.models.families import Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.curves import sampled_curve
from commodel.models.fitting.regression import moved, sampled
from commodel.models.fitting.rings import by_level, overhead_by_size
from commodel.models.pricing.concurrency import (
    Terms,
    across_stages,
    in_turn,
    longest,
    one_a_channel,
    terms,
    total,
)
from commodel.models.pricing.pairs import Pairs, holding
from commodel.models.pricing.supersteps import longest_work
from commodel.patterns.schedule import MEMORY, NETWORK

SETTINGS = {
    "network": ("rdma", "copies"),
    "shared": ("channel", "node"),
    "join": ("no", "yes"),
    "rest": ("transfer", "message"),
    "rings": ("one-way", "both-ways"),
}
PLACES = {MEMORY: "within nodes", NETWORK: "between nodes"}


def fit(observed: Observed) -> Fitted:
    """L_c(m, τ) from rings of τ transfers on a channel; τ = 1 is half a round trip, from which o_c(m) is read as well.
    More transfers at once never take less time (the model's own condition)."""
    rings = observed.cases("ring")
    values, forms, notes, unknown, curves = {}, {}, {}, {}, []
    for name in dict.fromkeys(rings["pair"]):
        pair = Pair.parse(name)
        channel, share = (MEMORY, 2) if pair.within else (NETWORK, 1)
        where = _where(channel, pair)
        times = by_level(observed, rings.pick(rings["pair"] == name), pair)
        sizes = times[min(times)]["bytes"]
        overhead, transfers = (key(f"{letter}_{channel}", where if observed.types else "") for letter in "oL")
        o, form, parts, note = overhead_by_size(overhead, sizes, times[min(times)].seconds)
        values |= parts
        notes |= note
        forms |= {overhead: form, transfers: "table"}
        transfer = 0.0
        for level, cases in times.items():
            transfer = np.maximum(np.maximum(cases.seconds - o, 0) / share, transfer)
            samples = sampled(transfers, sizes, transfer, level)
            values |= samples
            priced = o[0] + share * np.array([draws[0] for draws in samples.values()])
            unknown |= moved(list(samples), cases.seconds[0], priced)
            title = f"{PLACES[channel]} {where}, {level} at once"
            curves.append(sampled_curve(title, sizes, cases.seconds, priced))
    values |= {"gamma.a": np.zeros(len(o)), "gamma.b": local_work(observed)}
    forms["gamma"] = "linear"
    ends = rings["bytes"].min(), rings["bytes"].max()
    settings = {**observed.placement, "rings": "both-ways"}
    return Fitted(values, ends, forms, notes, unknown, tuple(curves), settings)


def _where(channel: int, pair: Pair) -> str | Pair:
    """What a channel's values are named after: within a node its type."""
    return pair.one if channel == MEMORY else pair


def price(schedule: Schedule, values: Values) -> Array:
    pairs = Pairs(schedule, values.settings.get("types"))
    sizes = schedule.bytes[:, 0] if schedule.bytes.ndim > 1 else [schedule.bytes]
    cost = np.stack([_transmitted(schedule, size, pairs, values) for size in sizes])
    cost = (cost if schedule.bytes.ndim > 1 else cost[0]) + _work(schedule, values)
    return np.broadcast_to(cost[..., None], (*cost.shape, schedule.ranks))


def _transmitted(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> Array:
    steps = expression(schedule, bytes, values.settings, pairs)
    seconds = [_seconds(step_terms, pairs.pairs, values) for step_terms in steps]
    if steps and _chosen(values.settings, "join") == "yes":
        return _joined(steps, seconds, pairs, values)
    cost = np.zeros(values.lead)
    for step_terms, lasting in zip(steps, seconds, strict=True):
        cost = cost + total(step_terms, lasting)
    return cost


def _joined(steps: list[Terms], seconds: list[Array], pairs: Pairs, values: Values) -> Array:
    """A1 from stage to stage, among what counts in each (A3), which is not the same for every draw."""
    ends = np.cumsum([len(step_terms.stage) for step_terms in steps])[:-1]
    counts = np.concatenate([longest(*each) for each in zip(steps, seconds, strict=True)], axis=-1)
    choices, which = np.unique(counts, axis=0, return_inverse=True)
    cost = np.zeros(values.lead)
    for number, choice in enumerate(choices):
        together = across_stages(steps, np.split(choice, ends), _chosen(values.settings, "rest") == "message")
        cost = np.where(which.ravel() == number, total(together, _seconds(together, pairs.pairs, values)), cost)
    return cost


def _chosen(settings: Mapping[str, object], name: str) -> object:
    return settings.get(name, SETTINGS[name][0])


def expression(schedule: Schedule, bytes: np.ndarray, settings: Mapping[str, object], pairs: Pairs) -> list[Terms]:
    """The terms of every step."""
    chosen = {name: _chosen(settings, name) for name in SETTINGS}
    by_node, anew = chosen["shared"] == "node", chosen["rest"] == "message"
    channel = schedule.channel
    target = schedule.node[schedule.dst] if by_node else np.zeros(len(schedule.dst), dtype=int)
    steps = []
    for step in schedule.steps:
        rows = np.arange(step.sent.start, step.sent.stop)
        if not len(rows):
            continue
        size = bytes[rows]
        if chosen["join"] == "yes":
            position, size, first = one_a_channel(step.src, channel[rows], size)
            rows = rows[first]
        else:
            position = in_turn(step.src) if by_node else np.zeros(len(rows), dtype=int)
        steps.append(terms(position, channel[rows], target[rows], size, pairs.of[rows], anew))
    return steps


def _seconds(step_terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """How long each term lasts: few differ, so each is worked out once. Of several pairs the slowest counts."""
    columns = [step_terms.count, step_terms.channel, step_terms.bytes, step_terms.done, step_terms.message]
    kinds, which = np.unique(np.stack([*columns, step_terms.label]), axis=1, return_inverse=True)
    seconds = np.empty((*values.lead, kinds.shape[1]))
    for number, (count, channel, size, done, message, label) in enumerate(kinds.T):
        going_on = (pairs[pair] for pair in step_terms.labels[label])
        several = [_lasts(values, channel, pair, size, done, count, message) for pair in going_on]
        seconds[..., number] = np.max(several, axis=0)
    return seconds[..., which.ravel()]


def _lasts(values: Values, channel: int, pair: Pair, size: int, done: int, count: int, message: int) -> Array:
    """A term between nodes of one pair of types: its messages' first bytes with an overhead, or the rest of them, which
    lasts for what it adds to the transfer, L(m₂, τ) − L(m₁, τ)."""
    if message >= 0:
        transferred = _transfers(values, channel, pair, size, count)
        return transferred + _function(values, f"o_{channel}", _where(channel, pair), message)
    begun = _transfers(values, channel, pair, done, count)
    return np.maximum(_transfers(values, channel, pair, done + size, count) - begun, 0.0)


def _transfers(values: Values, channel: int, pair: Pair, size: int, count: int) -> Array:
    if channel == MEMORY:
        return 2 * _function(values, f"L_{MEMORY}", pair.one, size, count)
    seconds = _function(values, f"L_{NETWORK}", pair, size, _as_measured(values, channel, count))
    if _chosen(values.settings, "network") == "copies":
        seconds = seconds + sum(_function(values, f"L_{MEMORY}", kind, size, count) for kind in pair.types)
    return seconds


def _as_measured(values: Values, channel: int, count: int) -> int:
    """How many went on at once in the rings, where this many do by the count of the set."""
    both_ways = (_chosen(values.settings, "shared"), _chosen(values.settings, "rings")) == ("node", "both-ways")
    return 2 * count if channel == NETWORK and both_ways else count


def _function(values: Values, name: str, where: str | Pair, size: int, count: int | None = None) -> Array:
    function = holding(values.functions.__contains__, name, where)
    return np.broadcast_to(values.at(function, np.array([size]), count), (*values.lead, 1))[..., 0]


def _work(schedule: Schedule, values: Values) -> Array:
    bytes = schedule.work.bytes
    return longest_work(schedule, schedule.work.seconds + np.where(bytes > 0, values.at("gamma", bytes), 0.0))


def doubts(schedule: Schedule, values: Values) -> str:
    """More transfers at once than were measured: each of them is priced as if it took its share of the channel."""
    pairs, by_node = Pairs(schedule, values.settings.get("types")), _chosen(values.settings, "shared") == "node"
    most: dict[int, int] = {}
    for step_terms in expression(schedule, np.zeros(len(schedule.src), dtype=int), values.settings, pairs):
        for channel in set(step_terms.channel.tolist()):
            count = int(step_terms.count[step_terms.channel == channel].max())
            most[channel] = max(most.get(channel, 0), count)
    for channel, count in sorted(most.items()):
        needed = _as_measured(values, channel, count)
        known = max((level for _, level in _samples(values, f"L_{channel}")), default=needed)
        if needed > known:
            hint = "" if by_node else "; `shared: node` counts those into one node"
            return f"extrapolated: {needed} transfers at once {PLACES[channel]}, measured up to {known}{hint}"
    return ""


def _samples(values: Values, parameter: str) -> list[tuple[int, int]]:
    """Sizes and levels of the samples of a surface."""
    parsed = (parse(name) for name in values.numbers if parse(name).parameter == parameter)
    return [(each.sample[0], each.sample[1]) for each in parsed if each.sample and each.sample[1] is not None]


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
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0),
    ),
    probes=("ring", "prtt", "pairprtt", "work"),
    fit=fit,
    price=price,
    settings=SETTINGS,
    decides={
        "network": "Between nodes a message goes straight to its receiver (equation 3) or is copied at both ends (2)",
        "shared": "τ counts all transfers on a channel (equation 4), or those into one node",
        "join": "Whether A1 joins what follows on a channel, in a rank and from stage to stage (equations 8 to 10)",
        "rest": "What is left of a longer message goes on as it is, or is a message of its own (A2 to the letter)",
        "rings": "Which way the transfers of the rings went that L_1 was measured with",
    },
    doubts=doubts,
    ignores="that ranks reach a step at different times; what many messages cost their receiver beyond the channel",
)
