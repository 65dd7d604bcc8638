"""How long τ–Lop's terms last by the values of a set, whose settings choose among the readings of the model."""

from collections.abc import Mapping

import numpy as np

from commodel.models import Array
from commodel.models.keys import Pair
from commodel.models.pricing.concurrency import Terms
from commodel.models.pricing.joining import own_overheads as own_of
from commodel.models.pricing.pairs import Pairs, holding, placed, value_of
from commodel.models.pricing.ports import Busy
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule

SETTINGS = {
    "network": ("rdma", "copies"),
    "shared": ("channel", "node", "port"),
    "join": ("no", "yes", "overheads"),
    "rest": ("transfer", "message"),
    "rings": ("one-way", "both-ways"),
}


MOST_KEPT = 4_000_000  # numbers of functions that are not looked up anew: 32 MB


def chosen(settings: Mapping[str, object], name: str) -> object:
    return settings.get(name, SETTINGS[name][0])


def named_after(channel: int, pair: Pair) -> str | Pair:
    """What a channel's values are named after: within a node its type."""
    return pair.one if channel == MEMORY else pair


def lasting(step_terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """How long each term lasts: few differ, so each is worked out once. Of several pairs the slowest counts."""
    columns = [step_terms.count, step_terms.channel, step_terms.bytes, step_terms.done, step_terms.message]
    kinds, which = np.unique(np.stack([*columns, step_terms.label]), axis=1, return_inverse=True)
    seconds = np.empty((*values.lead, kinds.shape[1]))
    for number, (count, channel, size, done, message, label) in enumerate(kinds.T):
        going_on = (pairs[pair] for pair in step_terms.labels[label])
        by_pair = [_lasts(values, channel, pair, size, done, count, message) for pair in going_on]
        seconds[..., number] = np.max(by_pair, axis=0)
    return seconds[..., which.ravel()]


def overheads(step_terms: Terms, pairs: list[Pair], values: Values) -> Array:
    """What of each term is overhead: none of one that only goes on."""
    columns = zip(step_terms.channel, step_terms.message, step_terms.label, strict=True)
    of_terms = [
        np.max([_overhead(values, channel, pairs[pair], size) for pair in step_terms.labels[label]], axis=0)
        if size >= 0
        else np.zeros(values.lead)
        for channel, size, label in columns
    ]
    return np.stack(of_terms, axis=-1)


def own_overheads(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> list[Array]:
    by_node = chosen(values.settings, "shared") == "node"
    return own_of(schedule, _of_messages(schedule, bytes, pairs, values), by_node)


def sent_overheads(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> Array:
    """Of every rank the overheads of all that it sends."""
    seconds = np.zeros((*values.lead, schedule.ranks))
    if len(schedule.src):
        np.add.at(seconds, (..., schedule.src), _of_messages(schedule, bytes, pairs, values))
    return seconds


def _of_messages(schedule: Schedule, bytes: np.ndarray, pairs: Pairs, values: Values) -> Array:
    """The overhead of each."""
    columns, of = np.unique(np.stack([schedule.channel, pairs.of, bytes]), axis=1, return_inverse=True)
    seconds = [_overhead(values, channel, pairs.pairs[pair], size) for channel, pair, size in columns.T]
    return np.stack(seconds, axis=-1)[..., of.ravel()]


def busiest(values: Values, pairs: list[Pair], busy: Busy) -> Array:
    """How long a stage's busiest processor takes, whose messages go on beside each other: an empty one's time, and its
    part of each further one that it sends or takes."""
    channels = [MEMORY if pair.within else NETWORK for pair in pairs]
    alone = [_overhead(values, channel, pair, 0) for channel, pair in zip(channels, pairs, strict=True)]
    further = [
        value_of(placed(values, pair), f"p_{channel}", named_after(channel, pair))
        for channel, pair in zip(channels, pairs, strict=True)
    ]
    columns = [np.broadcast_to(column, (*values.lead, 1)) for column in further]
    return busy.seconds(np.stack(alone, axis=-1), np.concatenate(columns, axis=-1))


def _overhead(values: Values, channel: int, pair: Pair, size: int) -> Array:
    return _function(values, f"o_{channel}", named_after(channel, pair), size)


def _lasts(values: Values, channel: int, pair: Pair, size: int, done: int, count: int, message: int) -> Array:
    """A term between nodes of one pair of types: its messages' first bytes with an overhead, or the rest of them, which
    lasts for what it adds to the transfer, L(m₂, τ) − L(m₁, τ)."""
    if message >= 0:
        transferred = _transfers(values, channel, pair, size, count)
        return transferred + _overhead(values, channel, pair, message)
    begun = _transfers(values, channel, pair, done, count)
    return np.maximum(_transfers(values, channel, pair, done + size, count) - begun, 0.0)


def _transfers(values: Values, channel: int, pair: Pair, size: int, count: int) -> Array:
    if channel == MEMORY:
        return 2 * _function(values, f"L_{MEMORY}", pair.one, size, count)
    seconds = _function(values, f"L_{NETWORK}", pair, size, as_measured(values, channel, count))
    if chosen(values.settings, "network") == "copies":
        seconds = seconds + sum(_function(values, f"L_{MEMORY}", kind, size, count) for kind in pair.types)
    return seconds


def as_measured(values: Values, channel: int, count: int) -> int:
    """How many went on at once in the rings, where this many do by the count of the set."""
    one_way = chosen(values.settings, "shared") != "channel"
    both_ways = one_way and chosen(values.settings, "rings") == "both-ways"
    return 2 * count if channel == NETWORK and both_ways else count


def _function(values: Values, name: str, where: str | Pair, size: int, count: int | None = None) -> Array:
    known, asked = values.worked_out, (name, where, int(size), count)
    if asked not in known:
        if len(known) * values.lead[0] > MOST_KEPT:
            known.clear()
        here = placed(values, where)
        function = holding(here.functions.__contains__, name, where)
        known[asked] = np.broadcast_to(here.at(function, np.array([size]), count), (*values.lead, 1))[..., 0]
    return known[asked]
