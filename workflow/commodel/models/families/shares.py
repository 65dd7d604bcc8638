"""Shares: what a message costs by how far it goes, and by what it shares on its way. This project's own; unpublished.

    T(m) = o_s + L_d(m) + m·max(G_d(m), n·c) + o_r      for n messages at a time over the narrowest of what they share

d is the distance class of the two nodes (see `hierarchy`): `node`, the levels of the network, `beyond`. L_d and G_d
change where the protocol does, and where no lines hold, G_d is a table. A message shares the port of its nodes either
way, the way out of and into every group that it leaves and enters, what joins the two largest of these groups, and what
all groups there share; a line carries a byte in c seconds, within a node, where caches are, in c_inside(m); what was
not seen to be shared has no c. All on one line get equal shares of it, and a message is as late as its latest line
makes it; what one line keeps back another does not give away again, as max-min shares do. What is on a line at the same
time is told by the clock, message by message, whichever steps they belong to: where a rank sends many parts in a row,
all of them share its line, and the first is through not long before the last. Where the probe `order` saw that a rank's
messages to another go one after the other (setting `order`), they do. Only rounds that repeat more than a million
messages are gone through round by round, which may price them 10 % too dear. Above S bytes a message leaves when its
receiver is ready, and its sender waits until it is through. Shorter ones leave at once; where the probe `start` saw
that they, too, wait for their receivers (setting `short`), they do, but their senders do not.

Where nothing was probed, switch data say the same: c_out of a leaf with p ports down and u up is G/u.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from commodel.errors import UserError
from commodel.hierarchy import NODE, Hierarchy
from commodel.models.families import Array, Family, Fitted, Observed, Parameter, Schedule, Values
from commodel.models.fitting.capacities import capacities, largest_eager
from commodel.models.fitting.curves import curve
from commodel.models.fitting.halftrips import HalfTrip
from commodel.models.fitting.memory import local_times
from commodel.models.fitting.roundtrips import NEVER, round_trips
from commodel.models.keys import key, parse
from commodel.models.pricing.distances import by_distance
from commodel.models.pricing.functions import TABLE
from commodel.models.pricing.intime import Traffic, in_time
from commodel.models.pricing.lines import Lines, Sharing
from commodel.models.pricing.programs import Program
from commodel.models.pricing.replay import Costs
from commodel.models.pricing.stepwise import stepwise
from commodel.models.probes.capacity import pattern
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import KINDS
from commodel.units import format_bytes

WRITTEN = 1 << 20  # messages: of more, rounds that repeat are gone through one by one, until each adds the same
SHARED, IN_TURN, SENT, TAKEN = "shared", "turn", "sent", "taken"
SETTINGS = {"order": (SHARED, IN_TURN), "short": (SENT, TAKEN)}
DIFFERS = 1.2  # times as long, at least, where one order can be told from the other
SUDDEN = 0.3  # of overheads: a change by as much from one size to the next is another protocol


def fit(observed: Observed) -> Fitted:
    """Half round trips give L and G of every class; what they take more, together, the capacities."""
    trips, far = round_trips(observed), observed.cases("distance")
    o_s, o_r = trips.short_overheads
    values, forms, notes, curves = {"o_s": o_s, "o_r": o_r}, {}, {}, []
    apart: dict[str, HalfTrip] = {}
    for name in dict.fromkeys(far["apart"].tolist()):
        cases = observed.cases("distance", apart=name)
        size, half = cases["bytes"].astype(float), cases.seconds / 2
        trip = apart[name] = HalfTrip.of(size, half)
        named, forms_of = trip.named(name, o_s + o_r)
        values |= named
        forms |= forms_of
        title = f"half a round trip, {'one node' if name == NODE else name}"
        curves.append(curve(title, size, half[0], trip.at(size)[0], "o_s + L + m·G + o_r", trip.terms))
    shared, half_duplex = capacities(observed, apart)
    values |= shared
    forms |= {function: TABLE for name in shared if parse(name).sample for function in [parse(name).function]}
    alone, tables = local_times(observed)
    values |= alone
    forms |= tables
    missing = {}
    S = largest_eager(observed, apart)
    S = protocol_change(trips.size, trips.overheads[0]) if S is None else S
    if S < NEVER:
        values["S"] = np.full(len(o_s), S)
        notes["S"] = "found in the data; the change lies between this size and the next one probed"
    else:
        missing["S"] = f"not seen up to the largest probed size, {format_bytes(int(trips.size[-1]))}"
    for kind in ("out", "pair", "all", "inside"):
        if not any(parse(name).parameter == f"c_{kind}" for name in values):
            missing[f"c_{kind}"] = "no probe was slowed down by it"
    settings: dict[str, object] = {**observed.placement, "half": sorted(half_duplex)}
    known = {name: draws[:1, None] for name, draws in values.items()}
    for how, name in (("start", "short"), ("order", "order")):
        if way := _habit(observed, how, name, Values(known, forms, settings)):
            settings[name] = way
    ends = far["bytes"].min(), far["bytes"].max()
    return Fitted(values, ends, forms, notes, {}, tuple(curves), settings, missing)


def _habit(observed: Observed, how: str, name: str, known: Values) -> str:
    """Which of its two ways a setting has, by the probe cases made to tell; empty where they cannot."""
    measured, priced = [], {way: [] for way in SETTINGS[name]}
    for case in observed.probes.get("capacity", ()):
        if case.settings["how"] != how or not len(case.seconds):
            continue
        played = pattern(case.settings).placed(np.array(str(case.settings["where"]).split("+"), dtype=int))
        computes = played.work.seconds.sum()
        measured.append(np.median(case.seconds) - computes)
        for way, prices in priced.items():
            try:
                finish = price(played, replace(known, settings={**known.settings, name: way}))
            except UserError:  # of their distance nothing else was measured
                return ""
            prices.append(played.cost(finish)[0] - computes)
    one, other = (np.array(prices) for prices in priced.values())
    if not measured or not (np.maximum(one, other) > DIFFERS * np.minimum(one, other)).any():
        return ""
    return min(priced, key=lambda way: np.abs(np.subtract(priced[way], measured)).sum())


def protocol_change(size: Array, overheads: Array) -> float:
    """The last size before overheads change at once to others: up, since a receiver that is late keeps the message
    waiting, or down, since nobody copies it."""
    steps = np.diff(overheads) / np.maximum(overheads[:-1], overheads[1:])
    sudden = np.abs(steps) > SUDDEN
    return float(size[:-1][sudden][0]) if sudden.any() else NEVER


def price(schedule: Schedule, values: Values) -> Array:
    """In the order of time; where rounds repeat too often to be written out, round by round."""
    levels = Hierarchy.of(values.settings.get("levels", {}))
    if not isinstance(schedule, Long) or schedule.messages <= WRITTEN:
        return timed(schedule.whole, values, levels)
    if schedule.bytes.ndim > 1:
        return np.stack([price(single, values) for single in singly(schedule)])
    S, lines = values.numbers.get("S", NEVER), Lines(levels, values)

    def asks(part: Schedule) -> np.ndarray:
        return (part.bytes > S).any(axis=tuple(range(max(part.bytes.ndim, np.ndim(S)) - 1)))

    def costs(part: Schedule) -> Costs:
        ask = asks(part)

        def shared(known: Schedule) -> Sharing:
            return lines.shared_by(known, by_distance(known, "G", values, levels) * known.bytes, asks(known))

        return Costs(
            send=values["o_s"],
            receive=values["o_r"],
            wire=by_distance(part, "L", values, levels),
            request=np.where(ask, 0.0, np.nan) if ask.any() else None,
            answer=np.zeros(1) if ask.any() else None,
            shared=shared,
        )

    return stepwise(schedule, costs, lambda part: work_of(part, values))


def timed(schedule: Schedule, values: Values, levels: Hierarchy) -> Array:
    """Size by size and draw by draw, each in its own order of time."""
    if schedule.bytes.ndim > 1:
        return np.stack([timed(single, values, levels) for single in singly(schedule)])

    numbers = values.numbers.get("S", NEVER), values["o_s"], values["o_r"]
    S, o_s, o_r = (np.broadcast_to(number, (*values.lead, 1))[:, 0] for number in numbers)
    wire = by_distance(schedule, "L", values, levels)
    alone = by_distance(schedule, "G", values, levels) * schedule.bytes
    messages, lines, uses = Lines(levels, values).passed_by(schedule)
    work = np.broadcast_to(work_of(schedule, values), (*values.lead, len(schedule.work.step)))
    finish, programs = np.empty((*values.lead, schedule.ranks)), {}
    for draw in range(values.lead[0]):
        waits = schedule.bytes > S[draw]
        if (known := waits.tobytes()) not in programs:
            in_turn = values.settings.get("order") == IN_TURN
            asks = waits | (values.settings.get("short") == TAKEN)
            programs[known] = Program.of(schedule, asks, (messages, lines), in_turn, waits)
        columns = (column[draw] for column in (wire, alone, uses, work))
        finish[draw] = in_time(programs[known], Traffic(o_s[draw], o_r[draw], *columns))
    return finish


def singly(schedule: Schedule) -> Iterator[Schedule]:
    """The schedules of a stack."""
    for number in range(schedule.sizes):
        yield schedule.resized(schedule.bytes[number, 0], schedule.work.bytes[number, 0])


def work_of(schedule: Schedule, values: Values) -> Array:
    """Where copies were not measured they take as long as reductions."""
    work = schedule.work
    takes = values.at("gamma", work.bytes)
    if "copy" in values.functions:
        takes = np.where(work.kind == KINDS.index("copy"), values.at("copy", work.bytes), takes)
    return work.seconds + np.where(work.bytes > 0, takes, 0.0)


def doubts(schedule: Schedule, values: Values) -> str:
    """Where a class of messages has no values of its own."""
    levels = Hierarchy.of(values.settings.get("levels", {}))
    if "L" in values.functions or (isinstance(schedule, Long) and schedule.messages > WRITTEN):
        return ""
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
        Parameter("S", "B", "largest message that leaves before its receiver is ready", optional=True),
        Parameter(
            "c_out", "s/B", "time per byte of all that leaves, or enters, a group of a level", of="level", optional=True
        ),
        Parameter(
            "c_pair", "s/B", "time per byte of all from one group of a level to another", of="level", optional=True
        ),
        Parameter("c_all", "s/B", "time per byte of all between groups of a level", of="level", optional=True),
        Parameter(
            "c_inside", "s/B", "time per byte of all messages of m bytes in a node", "m", of="level", optional=True
        ),
        Parameter("gamma", "s", "local reduction of m bytes", "m", default=0.0, paced=False),
        Parameter("copy", "s", "local copy of m bytes; none: as long as a reduction", "m", optional=True, paced=False),
        Parameter(
            "anew", "s", "copy of m bytes into a buffer allocated for it; in no price", "m", optional=True, paced=False
        ),
    ),
    probes=("prtt", "distance", "capacity", "work", "memcopy"),
    fit=fit,
    price=price,
    independent=True,
    settings=SETTINGS,
    decides={
        "order": "Whether a rank's messages to another share their lines, or go one after the other",
        "short": "Whether messages of up to S bytes leave when they are sent, or when their receiver takes them",
    },
    doubts=doubts,
    ignores="which of several links between two groups a message takes; that overheads grow with the message",
)
