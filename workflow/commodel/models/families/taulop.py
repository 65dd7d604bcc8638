"""τ–Lop: transfers that go on at the same time share their channel, and pay for it.

    T⁰(m) = o₀(m) + 2·L₀(m, τ) within a node, in and out of a shared buffer                (equation 1 of the paper)
    T¹(m) = o₁(m) + 2·L₀(m, τ) + L₁(m, τ) between nodes, where it is copied at both ends   (equation 2)
    T¹(m) = o₁(m) + L₁(m, τ) with RDMA                                                     (equation 3)

τ counts the transfers of one step on the same channel into the same node (or, by a setting, on the same channel
anywhere, as in the paper's SUMMA example). Sends of a rank in one step follow one another; steps add up. o_c is the
whole time of the shortest message, not a processor's share of it as in LogP; what grows with the size is in L. Where
messages of different length go on together (A2), the paper's T(m₂−m₁) reads as if the rest of the longer one paid an
overhead and a latency of its own; here a message pays one of each, and its rest max(0, L(m₂, τ) − L(m₁, τ)).

An exchange between two nodes counts 1 into each, because that is what τ = 1 was measured at: a ring of 2·τ processes
dealt over two nodes has τ transfers into each, with as many coming back at the same time. So one that has the network
to itself in one direction only may be cheaper than its price. The paper's SUMMA counts both directions together
(`shared: channel`): tables for that have to be measured by that count.
"""

from collections.abc import Mapping

import numpy as np

from commodel.keys import Pair, key
from commodel.models.families import Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.curves import sampled_curve
from commodel.models.fitting.observed import Cases, at_common
from commodel.models.fitting.regression import moved, sampled
from commodel.models.fitting.roundtrips import half_trip, pair_probes
from commodel.models.pricing.concurrency import Terms, terms, total, transmissions
from commodel.models.pricing.pairs import Pairs, holding
from commodel.models.pricing.supersteps import longest_work
from commodel.patterns.schedule import MEMORY, NETWORK


def fit(observed: Observed) -> Fitted:
    """L_c(m, τ) from rings of τ transfers on a channel; within a node, where a ring has at least two, τ = 1 is half a
    round trip. More transfers at once never take less time (the model's own condition)."""
    rings = observed.cases("ring")
    values, forms, unknown, curves = {}, {}, {}, []
    for name in dict.fromkeys(rings["pair"]):
        pair = Pair.parse(name)
        channel, share = (MEMORY, 2) if pair.within else (NETWORK, 1)
        where = _where(channel, pair)
        times = _by_level(observed, rings.pick(rings["pair"] == name), pair)
        sizes, o = times[min(times)]["bytes"], times[min(times)].seconds[:, 0]
        overhead, transfers = (key(f"{letter}_{channel}", where if observed.types else "") for letter in "oL")
        values[key(overhead, "a")] = o
        forms |= {overhead: "constant", transfers: "table"}
        transfer = 0.0
        for level, cases in times.items():
            transfer = np.maximum(np.maximum(cases.seconds - o[:, None], 0) / share, transfer)
            samples = sampled(transfers, sizes, transfer, level)
            values |= samples
            priced = o[0] + share * np.array([draws[0] for draws in samples.values()])
            unknown |= moved(list(samples), cases.seconds[0], priced)
            title = f"{'within' if pair.within else 'between'} nodes {where}, {level} at once"
            curves.append(sampled_curve(title, sizes, cases.seconds, priced))
    values |= {"gamma.a": np.zeros(len(o)), "gamma.b": local_work(observed)}
    forms["gamma"] = "linear"
    ends = rings["bytes"].min(), rings["bytes"].max()
    return Fitted(values, ends, forms=forms, unknown=unknown, curves=tuple(curves), settings=observed.placement)


def _where(channel: int, pair: Pair) -> str | Pair:
    """What a channel's values are named after: within a node its type."""
    return pair.one if channel == MEMORY else pair


def _by_level(observed: Observed, rings: Cases, pair: Pair) -> dict[int, Cases]:
    """Cases by τ, at the sizes that all levels have; in a ring over two nodes half of the ranks send into each."""
    counts = sorted(set(rings["procs"].tolist()))
    levels = {procs if pair.within else procs // 2: rings.pick(rings["procs"] == procs) for procs in counts}
    if pair.within and (alone := _alone(observed, pair)):
        levels[1] = alone
    levels = dict(sorted(levels.items()))
    return dict(zip(levels, at_common("bytes", *levels.values()), strict=True))


def _alone(observed: Observed, pair: Pair) -> Cases | None:
    """Half of the round trips within a node: τ = 1. An empty one takes as long as the shortest where none was sent."""
    if pair not in pair_probes(observed):
        return None
    sizes, half = half_trip(observed, pair)
    if sizes[0] > 0:
        sizes, half = np.concatenate([[0], sizes]), np.concatenate([half[:, :1], half], axis=1)
    return Cases({"bytes": sizes}, half)


def price(schedule: Schedule, values: Values) -> Array:
    pairs = Pairs(schedule, values.settings.get("types"))
    sizes = schedule.bytes[:, 0] if schedule.bytes.ndim > 1 else [schedule.bytes]
    cost = np.stack([_transmitted(schedule, size, pairs, values) for size in sizes])
    cost = (cost if schedule.bytes.ndim > 1 else cost[0]) + _work(schedule, values)
    return np.broadcast_to(cost[..., None], (*cost.shape, schedule.ranks))


def _transmitted(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> Array:
    cost = np.zeros(values.lead)
    for step_terms in expression(schedule, bytes, values.settings, pairs):
        cost = cost + total(step_terms, _seconds(step_terms, pairs.pairs, values))
    return cost


def expression(schedule: Schedule, bytes: np.ndarray, settings: Mapping[str, object], pairs: Pairs) -> list[Terms]:
    """The terms of every step."""
    everywhere, join = settings.get("shared", "node") == "channel", settings.get("join", "no") == "yes"
    channel = schedule.channel
    target = np.zeros(len(schedule.dst), dtype=int) if everywhere else schedule.node[schedule.dst]
    steps = []
    for step in schedule.steps:
        rows = step.sent
        if rows.stop > rows.start:
            position, over, size, label, row = transmissions(step.src, channel[rows], bytes[rows], pairs.of[rows], join)
            steps.append(terms(position, over, target[rows][row], size, label))
    return steps


def _seconds(step_terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """How long each term lasts: few differ, so each is worked out once. Of several pairs of types the slowest counts.
    The overhead is in a group's first term, that of its longest message: the rest of a message is not sent anew, so
    that it lasts for what it adds to the transfer, L(m₂, τ) − L(m₁, τ)."""
    whole = np.full(len(step_terms.bytes), -1)
    whole[step_terms.group] = np.add.reduceat(step_terms.bytes, step_terms.group)
    columns = [step_terms.count, step_terms.channel, step_terms.bytes, step_terms.done, step_terms.label, whole]
    kinds, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
    seconds = np.empty((*values.lead, kinds.shape[1]))
    for number, (count, channel, size, done, label, message) in enumerate(kinds.T):
        going_on = (pairs[pair] for pair in step_terms.labels[label])
        several = [_lasts(values, channel, pair, size, done, count, message) for pair in going_on]
        seconds[..., number] = np.max(several, axis=0)
    return seconds[..., which.ravel()]


def _lasts(values: Values, channel: int, pair: Pair, size: int, done: int, count: int, message: int) -> Array:
    """A term between nodes of one pair of types: its messages' first bytes with an overhead, or the rest of them."""
    if done < 0:
        transferred = _transfers(values, channel, pair, size, count)
        return transferred + _function(values, f"o_{channel}", _where(channel, pair), message)
    begun = _transfers(values, channel, pair, done, count)
    return np.maximum(_transfers(values, channel, pair, done + size, count) - begun, 0.0)


def _transfers(values: Values, channel: int, pair: Pair, size: int, count: int) -> Array:
    if channel == MEMORY:
        return 2 * _function(values, f"L_{MEMORY}", pair.one, size, count)
    seconds = _function(values, f"L_{NETWORK}", pair, size, count)
    if values.settings.get("network", "rdma") == "copies":
        seconds = seconds + sum(_function(values, f"L_{MEMORY}", kind, size, count) for kind in pair.types)
    return seconds


def _function(values: Values, name: str, where: str | Pair, size: int, count: int | None = None) -> Array:
    function = holding(values.functions.__contains__, name, where)
    return np.broadcast_to(values.at(function, np.array([size]), count), (*values.lead, 1))[..., 0]


def _work(schedule: Schedule, values: Values) -> Array:
    bytes = schedule.work.bytes
    return longest_work(schedule, schedule.work.seconds + np.where(bytes > 0, values.at("gamma", bytes), 0.0))


FAMILY = Family(
    name="taulop",
    title="τ–Lop",
    citation="J.-A. Rico-Gallego, A. Lastovetsky, J.-C. Díaz-Martín, Model-based estimation of the communication cost "
    "of hybrid data-parallel applications on heterogeneous clusters, IEEE TPDS 28, 2017",
    equation="T⁰(m) = o₀(m) + 2·L₀(m, τ); T¹(m) = o₁(m) + L₁(m, τ); n‖L(m, τ) = L(m, n·τ)",
    parameters=(
        Parameter("o_0", "s", "whole time of the shortest message within a node", "m", of="type", optional=True),
        Parameter("L_0", "s", "time of a transfer within a node, τ at once", "m", of="type", optional=True),
        Parameter("o_1", "s", "whole time of the shortest message between nodes", "m", of="pair", optional=True),
        Parameter("L_1", "s", "time of a transfer between nodes, τ at once", "m", of="pair", optional=True),
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0),
    ),
    probes=("ring", "prtt", "pairprtt", "work"),
    fit=fit,
    price=price,
    settings={"network": ("rdma", "copies"), "shared": ("node", "channel"), "join": ("no", "yes")},
    ignores="that ranks reach a step at different times; what many messages cost their receiver beyond the channel",
)
