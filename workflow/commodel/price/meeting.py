"""Whether messages meet on the network, or wait for each other, in ways that a family was seen not to know: by probe
`mixture`, to which nothing is fitted."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from commodel.models.pricing.pairs import rank_types
from commodel.models.probes.mixture import OTHERS, ROUNDS
from commodel.parameters import ParameterSet
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.price.alone import at_worst
from commodel.price.status import PriceStatus
from commodel.units import format_bytes


class Kind(NamedTuple):
    messages: str  # that were not priced well
    meets: Callable[[Schedule, float], list[bool]]  # whether a pattern has such, at least so long, at each of its sizes


def meeting(parameters: ParameterSet, pattern: Schedule, waves: float = 1) -> list[str]:
    """At each size of a stack why its price is shaky; of several waves all messages follow each other in a row."""
    texts, off = [""] * pattern.sizes, parameters.settings.get("crowded")
    if not off or not pattern.messages:
        return texts
    order = list(KINDS)
    for name in sorted(off, key=lambda name: (order.index(name.partition(".")[0]), name)):
        kind, (base, _, ends) = KINDS[name.partition(".")[0]], name.partition(".")
        times, least = float(off[name]["times"]), float(off[name]["from"])
        size = f", from {format_bytes(int(least))} on," if least else ""
        where = " between {} and {} nodes".format(*ends.split(".")) if ends else ""
        why = PriceStatus.CROWDED.because(f"messages {kind.messages}{where}{size} took {at_worst(times)}")
        if ends:
            meets = _of_types(parameters, pattern, least, base, ends.split("."), waves)
        else:
            meets = (_between_nodes if waves != 1 and name == ROW else kind.meets)(pattern, least)
        texts = [text or (why if meet else "") for text, meet in zip(texts, meets, strict=True)]
    return texts


def _of_types(
    parameters: ParameterSet, pattern: Schedule, least: float, kind: str, ends: list[str], waves: float
) -> list[bool]:
    """Return at each size whether a pattern has a row, or a fan, between nodes of these two types: from one node of the
    first to some of the second, or for a fan back. Of several waves all messages are a row."""
    types = parameters.settings.get("types") or {}
    if any(end not in types for end in ends):
        return [False] * pattern.sizes
    of_rank = np.array(list(types))[rank_types(pattern.node, types)]
    first, second = (of_rank == end for end in ends)
    if isinstance(pattern, Long):  # in whose rounds each rank sends one message and gets one
        return [False] * pattern.sizes
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    there = between & first[pattern.src] & second[pattern.dst]
    if kind == ROW and waves != 1:
        return (there & _long(pattern, least)).any(axis=-1).tolist()
    if kind == ROW:
        return _as_many(pattern, there, least)
    back = between & second[pattern.src] & first[pattern.dst]
    return _from_hubs(pattern, least, ((there, pattern.src), (back, pattern.dst)))


def _several_at_a_time(pattern: Schedule, least: float) -> list[bool]:
    """Whether messages leave several nodes at a time, and enter several."""
    if isinstance(pattern, Long):
        return ((len(np.unique(pattern.node)) > 2) & (pattern.extremes()[1] >= least)).tolist()
    nodes = pattern.node[pattern.src], pattern.node[pattern.dst]
    large = (nodes[0] != nodes[1]) & _long(pattern, least)
    return [all(_differ(pattern.step[rows], of[rows]) for of in nodes) for rows in large]


def _of_shared_nodes(pattern: Schedule, least: float) -> list[bool]:
    """The same where several ranks share a node."""
    return _several_at_a_time(pattern, least) if np.bincount(pattern.node).max() > 1 else [False] * pattern.sizes


def _passed_on(pattern: Schedule, least: float) -> list[bool]:
    """Whether a rank sends one of another node as many messages as the probe does."""
    if isinstance(pattern, Long):
        rounds = [part for part in pattern.parts if isinstance(part, Rounds) and part.repeats]
        around = any(part.count >= ROUNDS * part.turn for part in rounds)
        return (around & (len(np.unique(pattern.node)) > 1) & (pattern.extremes()[1] >= least)).tolist()
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return _as_many(pattern, between, least)


def _one_after_another(pattern: Schedule, least: float) -> list[bool]:
    """Whether a rank sends one of another node as many messages as the probe does before it gets any."""
    if isinstance(pattern, Long):  # in rounds that repeat all ranks get messages
        parts = [part for part in pattern.parts if not isinstance(part, Rounds) and part.messages]
        return [any(any(_one_after_another(part, least)) for part in parts)]
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    first = np.full(pattern.ranks, pattern.last_step + 1)
    np.minimum.at(first, pattern.dst, pattern.dst_wait)
    return _as_many(pattern, between & (pattern.step < first[pattern.src]), least)


def _as_many(pattern: Schedule, chosen: np.ndarray, least: float) -> list[bool]:
    """Whether of the chosen messages as many as the probe has are of one pair."""
    pair, counts = pattern.src * pattern.ranks + pattern.dst, []
    for large in _long(pattern, least):
        counts.append(np.unique(pair[chosen & large], return_counts=True)[1].max(initial=0))
    return [count >= ROUNDS for count in counts]


def _fanned(pattern: Schedule, least: float) -> list[bool]:
    """Whether a rank sends to several others at a time, or takes from them, half as many as in the probe."""
    if isinstance(pattern, Long):  # in whose rounds each has one of each
        return [False] * pattern.sizes
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return _from_hubs(pattern, least, ((between, pattern.src), (between, pattern.dst)))


def _from_hubs(pattern: Schedule, least: float, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[bool]:
    """Return at each size whether some step has half as many messages as the probe at one rank; each part is a choice
    of messages and the ends that count."""
    counts = []
    for large in _long(pattern, least):
        ends = (pattern.step[chosen & large] * pattern.ranks + hub[chosen & large] for chosen, hub in parts)
        counts.append(max(np.unique(of_end, return_counts=True)[1].max(initial=0) for of_end in ends))
    return [2 * count >= OTHERS for count in counts]


def _between_nodes(pattern: Schedule, least: float) -> list[bool]:
    """Whether there are any between nodes."""
    if isinstance(pattern, Long):
        return ((len(np.unique(pattern.node)) > 1) & (pattern.extremes()[1] >= least)).tolist()
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return (between & _long(pattern, least)).any(axis=-1).tolist()


def _long(pattern: Schedule, least: float) -> np.ndarray:
    """Of each message at each size of a stack whether it is at least so long."""
    return np.atleast_2d(pattern.bytes).reshape(pattern.sizes, -1) >= least


def _differ(step: np.ndarray, node: np.ndarray) -> bool:
    """Whether messages of some step are of different nodes."""
    of_step = np.unique(np.stack([step, node]), axis=1)[0]
    return len(of_step) > len(np.unique(of_step))


ROW = "row"
KINDS = {  # as `crowded` of a set has them
    "rounds": Kind("passed on around all nodes", _passed_on),
    ROW: Kind("in a row to one receiver", _one_after_another),
    "ranks": Kind("of all ranks at once", _of_shared_nodes),
    "nodes": Kind("of all nodes at once", _several_at_a_time),
    "fan": Kind("between one node and several others", _fanned),
}
