"""Shares: what a message costs by how far it goes, and by what it shares on its way. This project's own; unpublished.

    T(m) = o_s + L_d(m) + m·max(G_d(m), n·c) + o_r      for n messages at a time over the narrowest of what they share

d is the distance class of the two nodes (see `hierarchy`): `node`, the levels of the network, `beyond`. L_d and G_d
change where the protocol does; where no lines hold, G_d is a table. A message shares the port of its nodes either way,
the way out of and into every group that it leaves and enters, what joins the two largest of these groups, and what all
groups there share; a line carries a byte in c seconds, or in c(m) where that was seen to change with the size, as where
caches are; what was not seen to be shared has no c. All on one line get equal shares of it, and a message is as late as
its latest line makes it; what one line keeps back another does not give away again, as max-min shares do. What is on a
line at the same time is told by the clock, message by message, whichever steps they belong to: where a rank sends many
parts in a row, all of them share its line, and the first is through not long before the last. Of more than 8 such parts
each goes as fast as the slowest of its lines lets it, moment by moment. Where the probe `order` saw that a rank's
messages to another go one after the other (setting `order`), they do. Where the probe `against` saw that what comes
back for a message, as acknowledgements do, is held up among messages that go there, all on a line and on the one that
leads the other way are as fast as the fuller of the two lets them, and `back` of a share comes on top. Of rounds that
repeat only those ranks are looked at that all others are like, as far as who sits near whom tells: in leaves of 16 the
first 16. Above S bytes a message leaves when its receiver is ready, and its sender waits until it is through. Shorter
ones leave at once; where the probe `start` saw that those above E bytes, too, wait for their receivers, they do, but
their senders do not. Between nodes, overheads of what leaves at once grow with it, by O_s(m) and O_r(m): it is copied.

Where nothing was probed, switch data say the same: c_out of a leaf with p ports down and u up is G/u.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from commodel.hierarchy import NODE
from commodel.models.evaluation.link_sharing import IN_TURN, SHARED, copies, describe_doubt, levels_of, predict
from commodel.models.evaluation.values import TABLE
from commodel.models.families import Array, Family, Fitted, Observed, Parameter, Schedule, Values
from commodel.models.fitting.channels import local_times
from commodel.models.fitting.link_capacities import (
    distinguish_ways,
    fit_capacities,
    fit_entering,
    fit_returning,
    is_slower,
    largest_eager,
    links_by_destination,
    longest_sent,
)
from commodel.models.fitting.regression import curve
from commodel.models.fitting.round_trips import NEVER, HalfTrip, growing_overheads, round_trips
from commodel.models.keys import key, parse
from commodel.parameters import Curve
from commodel.patterns.repeated import Long
from commodel.units import format_bytes

SETTINGS = {"order": (SHARED, IN_TURN)}
PIECES = 8  # of half a round trip, at most
SHORTEST = 0.01  # of half a round trip, at least, is no copy
SUDDEN = 0.3  # of overheads: a change by as much from one size to the next is another protocol


@dataclass(frozen=True, eq=False)
class Known:
    """What is known so far: with it further cases are predicted, to tell what they tell."""

    values: dict[str, Array]
    forms: dict[str, str]
    settings: dict[str, object]

    def add(self, values: Mapping[str, Array], forms: Mapping[str, str] | None = None) -> None:
        """Values of functions in the place of any that these had; where no form is said, samples are of a table."""
        tables = {parse(name).function: TABLE for name in values if parse(name).sample}
        formed = tables if forms is None else forms
        for name in [name for name in self.values if parse(name).function in formed]:
            del self.values[name]
        self.values.update(values)
        self.forms.update(formed)

    def estimate(self, **numbers: float) -> Values:
        own = {name: draws[:1, None] for name, draws in self.values.items()}
        return Values(own | {name: np.array([[number]]) for name, number in numbers.items()}, self.forms, self.settings)

    @property
    def draws(self) -> Values:
        return Values({name: draws[:, None] for name, draws in self.values.items()}, self.forms)


def fit(observed: Observed) -> Fitted:
    """Half round trips give L and G of every class; what they take more, together, the capacities."""
    trips = round_trips(observed)
    o_s, o_r = trips.short_overheads
    halves = {name: _half(observed, name) for name in dict.fromkeys(observed.cases("distance")["apart"].tolist())}
    apart = {name: HalfTrip.of(size, half, PIECES) for name, (size, half) in halves.items()}
    shared, half_duplex = fit_capacities(observed, apart, o_s)
    known = Known({"o_s": o_s, "o_r": o_r}, {}, {**observed.placement, "half_duplex": sorted(half_duplex)})
    for name, trip in apart.items():
        known.add(*trip.named(name, o_s + o_r))
    known.add(shared)
    known.add(*local_times(observed))
    notes, missing = {}, {}
    S = largest_eager(observed, apart)
    S = protocol_change(trips.size, trips.overheads[0]) if S is None else S
    if S == NEVER:
        missing["S"] = f"not seen up to the largest probed size, {format_bytes(int(trips.size[-1]))}"
    starts = {limit: known.estimate(S=S, E=limit) for limit in (NEVER, 0.0)}
    E = min(longest_sent(distinguish_ways(observed, "start", starts, predict)), S)
    for name, limit in {"S": S, "E": E if E < S else NEVER}.items():
        if limit < NEVER:
            known.values[name] = np.full(len(o_s), limit)
            notes[name] = "found in the data; the change lies between this size and the next one probed"
    sent = known.estimate()
    orders = {way: replace(sent, settings={**known.settings, "order": way}) for way in SETTINGS["order"]}
    if ways := distinguish_ways(observed, "order", orders, predict):
        known.settings["order"] = ways[0][1]
    if links := links_by_destination(observed, sent, _links(apart, shared), predict):
        known.settings["links"] = links
    if copying := growing_overheads(trips, E):
        known.add(copying)
        for name, (size, half) in halves.items():
            if name != NODE:  # between nodes a message's ends are busy with its bytes: the rest is on its way
                on_its_way = np.maximum(half - sum(copies(size, known.draws)), SHORTEST * half)
                known.add(*HalfTrip.of(size, on_its_way, PIECES, half[0]).named(name, o_s + o_r))
    if is_slower(observed, "in", known.estimate(), predict):
        known.add(fit_entering(observed, apart, lambda size: copies(size, known.draws)[1]))
    if (back := fit_returning(observed)) is not None:
        ways = {True: known.estimate(back=back[0]), False: known.estimate()}
        if [held for _, held in distinguish_ways(observed, "against", ways, predict)] == [True]:
            known.values["back"] = back
    missing |= _no_capacity(known.values)
    ends = min(size.min() for size, _ in halves.values()), max(size.max() for size, _ in halves.values())
    return Fitted(known.values, ends, known.forms, notes, {}, tuple(_curves(halves, apart)), known.settings, missing)


def _no_capacity(values: Collection[str]) -> dict[str, str]:
    """Of the parameters that nothing showed, why."""
    seen = {parse(name).parameter for name in values}
    kinds = [f"c_{kind}" for kind in ("out", "pair", "all", "inside")]
    unseen = {name: "no probe was slowed down by it" for name in kinds if name not in seen}
    return unseen | ({} if "c_in" in seen else {"c_in": "as c_out"})


def _curves(halves: Mapping[str, tuple[Array, Array]], apart: Mapping[str, HalfTrip]) -> Iterator[Curve]:
    for name, (size, half) in halves.items():
        title = f"half a round trip, {'one node' if name == NODE else name}"
        yield curve(title, size, half[0], apart[name].at(size)[0], "o_s + L + m·G + o_r", apart[name].terms)


def _links(apart: Mapping[str, HalfTrip], shared: Mapping[str, Array]) -> dict[str, int]:
    """Return how many links leave a group of each level, if each holds one message as fast as it is alone."""
    links = {}
    for level, beyond in pairwise(apart):
        samples = {
            size: draws[0]
            for name, draws in shared.items()
            if parse(name).function == key("c_out", level)
            for size, _ in [parse(name).sample]
        }
        if samples and level != NODE:
            size = max(samples)
            alone = apart[beyond].parts(np.array([float(size)]))[1][0, 0] / size
            if 2 * alone > 3 * samples[size] > 0:
                links[level] = round(alone / samples[size])
    return links


def _half(observed: Observed, apart: str) -> tuple[Array, Array]:
    """Sizes and half round trips of a class."""
    cases = observed.cases("distance", apart=apart)
    return cases["bytes"].astype(float), cases.seconds / 2


def protocol_change(size: Array, overheads: Array) -> float:
    """Return the last size before overheads change at once to others: up, since a receiver that is late keeps the
    message waiting, or down, since nobody copies it."""
    steps = np.diff(overheads) / np.maximum(overheads[:-1], overheads[1:])
    sudden = np.abs(steps) > SUDDEN
    return float(size[:-1][sudden][0]) if sudden.any() else NEVER


def doubts(schedule: Schedule, values: Values) -> str:
    """Return where a class of messages has no values of its own, or a set says what E says now."""
    if values.settings.get("short") == "taken":
        return "fitted before E was: fit anew"
    if isinstance(schedule, Long):
        return describe_doubt(schedule, values)
    if "L" in values.functions:
        return ""
    levels = levels_of(values)
    lacking = [
        levels.crossed(distance)
        for distance in levels.apart(schedule.node, schedule.src, schedule.dst)
        if key("L", levels.names[distance]) not in values.functions
    ]
    return f"not probed: ranks in {', '.join(lacking)}" if lacking else ""


FAMILY = Family(
    name="shares",
    title="Shares",
    citation="this project's own, not published; fair shares as in D. Bertsekas, R. Gallager, Data Networks, 1992",
    equation="T(m) = o_s + L_d(m) + m·max(G_d(m), n·c) + o_r for n messages at a time over the narrowest line",
    parameters=(
        Parameter("o_s", "s", "time the sender's processor is busy with a message"),
        Parameter("o_r", "s", "time the receiver's processor is busy with a message"),
        Parameter("L", "s", "latency between nodes of a distance class", "m", of="class"),
        Parameter("G", "s/B", "time per byte of a message alone, by distance class", "m", of="class"),
        Parameter("O_s", "s", "what o_s is more for a message of m bytes, copied", "m", optional=True),
        Parameter("O_r", "s", "what o_r is more for a message of m bytes, copied", "m", optional=True),
        Parameter("S", "B", "largest message whose sender does not wait for its receiver", optional=True),
        Parameter("E", "B", "largest message that leaves before its receiver is ready; 0: none does", optional=True),
        Parameter(
            "c_out",
            "s/B",
            "time per byte of all that leaves, or enters, a group of a level",
            "m",
            of="level",
            optional=True,
        ),
        Parameter(
            "c_in", "s/B", "time per byte of all that enters a node; none: c_out", "m", of="level", optional=True
        ),
        Parameter(
            "c_pair", "s/B", "time per byte of all from one group of a level to another", "m", of="level", optional=True
        ),
        Parameter("c_all", "s/B", "time per byte of all between groups of a level", "m", of="level", optional=True),
        Parameter(
            "c_inside", "s/B", "time per byte of all messages of m bytes in a node", "m", of="level", optional=True
        ),
        Parameter(
            "back",
            "1",
            "part of a message that comes back and is held up where it meets others; none: nothing is",
            optional=True,
            paced=False,
        ),
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0, paced=False),
        Parameter("copy", "s", "local copy of m bytes; none: as long as a reduction", "m", optional=True, paced=False),
        Parameter(
            "anew",
            "s",
            "copy of m bytes into a buffer allocated for it; in no prediction",
            "m",
            optional=True,
            paced=False,
        ),
    ),
    probes=("prtt", "distance", "capacity", "work", "memcopy"),
    fit=fit,
    predict=predict,
    independent=True,
    by_message=True,
    settings=SETTINGS,
    decides={
        "order": "Whether a rank's messages to another share their lines, or go one after the other",
    },
    doubts=doubts,
    ignores="which of several links between two groups a message takes",
)
