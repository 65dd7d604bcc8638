"""Whether messages meet as those of probe `mixture` did, of which the family's prices were off."""

import numpy as np

from commodel.models.probes.mixture import ROUNDS
from commodel.parameters import ParameterSet
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import Schedule
from commodel.price.alone import as_long
from commodel.price.status import PriceStatus
from commodel.units import format_bytes


def _several_at_a_time(pattern: Schedule, least: float) -> list[bool]:
    """At each size whether messages at least so long leave several nodes at a time, and enter several."""
    if isinstance(pattern, Long):
        return ((len(np.unique(pattern.node)) > 2) & (pattern.extremes()[1] >= least)).tolist()
    nodes = pattern.node[pattern.src], pattern.node[pattern.dst]
    large = (nodes[0] != nodes[1]) & (np.atleast_2d(pattern.bytes).reshape(pattern.sizes, -1) >= least)
    return [all(_differ(pattern.step[size], of[size]) for of in nodes) for size in large]


def _passed_on(pattern: Schedule, least: float) -> list[bool]:
    """At each size whether a rank sends one of another node as many messages, at least so long, as the probe does."""
    if isinstance(pattern, Long):
        rounds = [part for part in pattern.parts if isinstance(part, Rounds) and part.repeats]
        around = any(part.count >= ROUNDS * part.turn for part in rounds)
        return (around & (len(np.unique(pattern.node)) > 1) & (pattern.extremes()[1] >= least)).tolist()
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    return _as_many(pattern, between, least)


def _one_after_another(pattern: Schedule, least: float) -> list[bool]:
    """At each size whether a rank sends one of another node as many messages, at least so long, before it gets any."""
    if isinstance(pattern, Long):  # in rounds that repeat all ranks get messages
        parts = [part for part in pattern.parts if not isinstance(part, Rounds) and part.messages]
        return [any(any(_one_after_another(part, least)) for part in parts)]
    between = pattern.node[pattern.src] != pattern.node[pattern.dst]
    first = np.full(pattern.ranks, pattern.last_step + 1)
    np.minimum.at(first, pattern.dst, pattern.dst_wait)
    return _as_many(pattern, between & (pattern.step < first[pattern.src]), least)


def _as_many(pattern: Schedule, chosen: np.ndarray, least: float) -> list[bool]:
    """At each size whether of the chosen messages, at least so long, as many as the probe has are of one pair."""
    pair, counts = pattern.src * pattern.ranks + pattern.dst, []
    for bytes in np.atleast_2d(pattern.bytes).reshape(pattern.sizes, -1):
        counts.append(np.unique(pair[chosen & (bytes >= least)], return_counts=True)[1].max(initial=0))
    return [count >= ROUNDS for count in counts]


def _differ(step: np.ndarray, node: np.ndarray) -> bool:
    """Whether messages of some step are of different nodes."""
    of_step = np.unique(np.stack([step, node]), axis=1)[0]
    return len(of_step) > len(np.unique(of_step))


KINDS = {  # what the probe had meet: in words, and which patterns have the like; what is said first stands first
    "rounds": ("passed on around all nodes", _passed_on),
    "chain": ("passed along a chain of nodes", _one_after_another),
    "ranks": ("of all ranks at once", _several_at_a_time),
    "nodes": ("of all nodes at once", _several_at_a_time),
}


def meeting(parameters: ParameterSet, pattern: Schedule) -> list[str]:
    """At each size of a stack whether several nodes send at a time to several, in messages of a size of which those of
    all at once were not priced well; where several ranks share a node, those of all ranks, too; and where ranks send
    each other one message after the other, those that were passed on."""
    texts, off = [""] * pattern.sizes, parameters.settings.get("crowded")
    if not off or not pattern.messages:
        return texts
    shared = np.bincount(pattern.node).max() > 1
    for kind, (words, meets) in KINDS.items():
        if kind in off and (shared or kind != "ranks"):
            times, least = float(off[kind]["times"]), float(off[kind]["from"])
            size = f", from {format_bytes(int(least))} on," if least else ""
            why = PriceStatus.CROWDED.because(f"messages {words}{size} took up to {as_long(times)}")
            texts = [text or (why if met else "") for text, met in zip(texts, meets(pattern, least), strict=True)]
    return texts
