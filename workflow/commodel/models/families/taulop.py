"""τ–Lop: transfers that go on at the same time share their channel, and pay for it.

A message within a node takes o₀(m) + 2·L₀(m, τ), in and out of a shared buffer; between nodes o₁(m) + L₁(m, τ) with
RDMA, or o₁(m) + 2·L₀(m, τ) + L₁(m, τ) where it is copied at both ends. τ counts the transfers of one step on the same
channel into the same node (or, by a setting, on the same channel anywhere, as in the paper's SUMMA example). Sends of a
rank in one step follow one another; steps add up. o_c is the whole time of the shortest message, not a processor's
share of it as in LogP; what grows with the size is in L. Where messages of different length go on together (A2), the
paper's T(m₂−m₁) reads as if the rest of the longer one paid an overhead and a latency of its own; here a message pays
one of each, and its rest max(0, L(m₂, τ) − L(m₁, τ)).
An exchange between two nodes counts 1 into each, because that is what τ = 1 was measured at: a ring of 2·τ processes
dealt over two nodes has τ transfers into each, with as many coming back at the same time. So one that has the network
to itself in one direction only may be cheaper than its price. The paper's SUMMA counts both directions together
(`shared: channel`): tables for that have to be measured by that count.
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.families import Family, Parameter, local_work
from commodel.models.fitting.curves import sampled_curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.regression import moved, sampled
from commodel.models.pricing.concurrency import MEMORY, NETWORK, Terms, terms, total, transmissions
from commodel.models.pricing.pairs import SAME, Pairs, function
from commodel.patterns.schedule import Groups

LABELS = ("message / B", "time / s")


def fit(observed):
    """L_c(m, τ) from rings of τ transfers on a channel; within a node, where a ring has at least two, τ = 1 is half a
    round trip. More transfers at once never take less time (the model's own condition)."""
    ring = observed.cases("ring")
    values, forms, unknown, curves = {}, {}, {}, []
    for pair in dict.fromkeys(ring["pair"]):
        mine = ring.pick(ring["pair"] == pair)
        kind, name = (MEMORY, pair.removesuffix(f".{SAME}")) if pair.endswith(f".{SAME}") else (NETWORK, pair)
        times = _by_level(mine, 1 if kind == MEMORY else 2)
        if kind == MEMORY:
            times |= _alone(observed, pair)
        sizes, times = _aligned(times)
        o = times[min(times)][:, 0]
        tail = f".{name}" if observed.types else ""
        values |= {f"o_{kind}{tail}.a": o}
        forms[f"o_{kind}{tail}"] = "constant"
        transfer, share = 0.0, 2 if kind == MEMORY else 1
        for level, seconds in times.items():
            transfer = np.maximum(np.maximum(seconds - o[:, None], 0) / share, transfer)
            knots = sampled(f"L_{kind}{tail}", sizes, transfer)
            knots = {f"{key}x{level}": draws for key, draws in knots.items()}
            values |= knots
            priced = o[0] + share * np.array([draws[0] for draws in knots.values()])
            unknown |= moved(list(knots), seconds[0], priced)
            title = f"{'within' if kind == MEMORY else 'between'} nodes {name}, {level} at once"
            curves.append(sampled_curve(title, LABELS, sizes, seconds, priced))
        forms[f"L_{kind}{tail}"] = "table"
    values |= {"gamma.a": np.zeros(len(o)), "gamma.b": local_work(observed)}
    forms["gamma"] = "linear"
    sizes = ring["bytes"]
    ends = sizes.min(), sizes.max()
    return Fitted(values, ends, forms=forms, unknown=unknown, curves=tuple(curves), settings=observed.placement)


def _by_level(ring, share):
    """{τ: (sizes, seconds)}; in a ring over two nodes half of the ranks send into each."""
    counts = sorted({int(count) for count in ring["procs"]})
    rings = [ring.pick(ring["procs"] == procs) for procs in counts]
    return {procs // share: (mine["bytes"], mine.seconds) for procs, mine in zip(counts, rings, strict=True)}


def _aligned(times):
    """At the sizes that all levels have: a case may be missing, because none of its samples was valid."""
    shared = sorted(set.intersection(*(set(sizes.tolist()) for sizes, _ in times.values())))
    if not shared:
        raise UserError("no measurements of probe 'ring' at sizes that all numbers of ranks have")
    picks = {level: [sizes.tolist().index(size) for size in shared] for level, (sizes, _) in times.items()}
    return np.array(shared), {level: seconds[:, picks[level]] for level, (_, seconds) in sorted(times.items())}


def _alone(observed, pair):
    """Half of the round trips within a node, at the sizes of the rings: τ = 1. An empty one takes as long as the
    shortest where none was sent."""
    probe = next((name for name in ("prtt", "pairprtt") if observed.has(name) and _has(observed, name, pair)), None)
    if probe is None:
        return {}
    trip = observed.cases(probe, pair=pair, n=1, delay=0, late=0)
    sizes, half, least = trip["bytes"], trip.seconds / 2, trip["bytes"].argmin()
    if sizes[least] > 0:
        sizes, half = np.concatenate([[0], sizes]), np.concatenate([half[:, [least]], half], axis=1)
    return {1: (sizes, half)}


def _has(observed, probe, pair):
    return any(case.settings["pair"] == pair for case in observed.probes[probe])


def price(schedule, values):
    sizes = schedule.bytes if schedule.bytes.ndim > 1 else schedule.bytes[None, None]
    costs = [_price_one(schedule, size[0], values) for size in sizes]
    cost = np.stack(costs) if schedule.bytes.ndim > 1 else costs[0]
    cost = cost + _work(schedule, values)
    return np.broadcast_to(cost[..., None], (*cost.shape, schedule.ranks))


def _price_one(schedule, bytes, values):
    pairs = Pairs(schedule, values.settings.get("types"))
    cost = np.zeros(values.lead)
    for found in expression(schedule, bytes, values.settings, pairs):
        cost = cost + total(found, _seconds(found, pairs.labels, values))
    return cost


def expression(schedule, bytes, settings, pairs) -> list[Terms]:
    """The terms of every step."""
    everywhere, join = settings.get("shared", "node") == "channel", settings.get("join", "no") == "yes"
    channel = np.where(pairs.same, MEMORY, NETWORK)
    target = np.zeros(len(schedule.dst), dtype=int) if everywhere else schedule.node[schedule.dst]
    found = []
    for step in schedule.steps:
        rows = step.rows
        if rows.stop > rows.start:
            position, over, size, label, row = transmissions(step.src, channel[rows], bytes[rows], pairs.of[rows], join)
            found.append(terms(position, over, target[rows][row], size, label))
    return found


def _seconds(found, labels, values):
    """How long each term lasts: few differ, so each is worked out once. Of several pairs of types the slowest counts.
    The overhead is in a group's first term, that of its longest message: the rest of a message is not sent anew, so
    that it lasts for what it adds to the transfer, L(m₂, τ) − L(m₁, τ)."""
    whole = np.full(len(found.bytes), -1)
    whole[found.group] = np.add.reduceat(found.bytes, found.group)
    columns = np.stack([found.count, found.channel, found.bytes, found.done, found.label, whole])
    kinds, which = np.unique(columns, axis=1, return_inverse=True)
    seconds = np.empty((*values.lead, kinds.shape[1]))
    for number, (count, channel, size, done, label, message) in enumerate(kinds.T):
        several = [_lasts(values, channel, labels[one], size, done, count, message) for one in found.labels[label]]
        seconds[..., number] = np.max(several, axis=0)
    return seconds[..., which.ravel()]


def _lasts(values, channel, label, size, done, count, message):
    """A term between nodes of one pair of types: its messages' first bytes with an overhead, or the rest of them."""
    if done < 0:
        return _transfers(values, channel, label, size, count) + _overhead(values, channel, label, message)
    begun = _transfers(values, channel, label, done, count)
    return np.maximum(_transfers(values, channel, label, done + size, count) - begun, 0.0)


def _overhead(values, channel, label, size):
    where = label.removesuffix(f".{SAME}") if channel == MEMORY else label
    found = values.at(function(values, f"o_{channel}", where), np.array([size]))
    return np.broadcast_to(found, (*values.lead, 1))[..., 0]


def _transfers(values, channel, label, size, count):
    def transfer(kind, where):
        return values.at(function(values, f"L_{kind}", where), np.array([size]), count)

    if channel == MEMORY:
        found = 2 * transfer(MEMORY, label.removesuffix(f".{SAME}"))
    else:
        found = transfer(NETWORK, label)
        if values.settings.get("network", "rdma") == "copies":
            one, _, two = label.partition(".")
            found = found + transfer(MEMORY, one) + transfer(MEMORY, two)
    return np.broadcast_to(found, (*values.lead, 1))[..., 0]


def _work(schedule, values):
    """The longest local work of a rank, step by step."""
    work, cost = schedule.work, np.zeros(values.lead)
    for step in schedule.steps:
        rows = step.work
        if rows.stop == rows.start:
            continue
        bytes = work.bytes[..., rows]
        seconds = work.seconds[rows] + np.where(bytes > 0, values.at("gamma", bytes), 0.0)
        groups = Groups(work.rank[rows])
        if groups.order is not None:
            seconds = np.add.reduceat(seconds[..., groups.order], groups.first, axis=-1)
        cost = cost + seconds.max(axis=-1)
    return cost


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
