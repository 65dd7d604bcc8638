"""mlognP: a message is a sum of transfers from buffer to buffer: between nodes a copy into the network's buffer, the
network, and a copy out of it; within a node a copy into shared memory and a copy out.

    T(m) = 2·o_mem(m) + o_net(m) + l_net between nodes, 2·o_mem(m) within one

It has grown from lognP (Cameron, Sun 2003; Cameron, Ge, Sun 2007), whose o(m) is the cost of a contiguous transfer and
l(m) what strided data add; a schedule's buffers are contiguous, so there is no l(m) here. Both copies cost the same:
the one probed goes from cache to memory, as a sender has just written its message, and the network's buffers are many
in turn. Where copies take no time, as on simulated platforms, messages within a node do all the same: half a round trip
there is two copies by definition. Where none was measured either, the network's transfer holds everything, and messages
within a node have no prediction.
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.evaluation.repeated_rounds import condense
from commodel.models.evaluation.replay import Costs, replay_by_class
from commodel.models.families import GAMMA, Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.observed import Cases
from commodel.models.fitting.regression import line, line_curve
from commodel.models.keys import Pair, parse
from commodel.models.probes import BETWEEN
from commodel.patterns.schedule import MEMORY

COPY = "ctm"
WITHIN_TITLE = "a quarter of a round trip within a node"


def fit(observed: Observed) -> Fitted:
    """Return where the ping-pong stays within a node, its half is two copies by definition, with all that the library
    adds to them; of a network it says nothing. So are round trips within nodes where copies took no time."""
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"].astype(float), pingpong.seconds / 2
    notes, unknown, missing = {"l_net": "left at 0: part of o_net"}, {}, {}
    copies = observed.cases("memcopy", path=COPY)
    copied, copy, title = copies["bytes"].astype(float), copies.seconds, "copy from cache to memory"
    within = Pair.parse(str(pingpong["pair"][0])).within
    if within:
        copied, copy, title = size, half / 2, WITHIN_TITLE
        unknown["o_net"] = "taken as 0: no ping-pong between nodes was measured"
    elif not copy[0].any():
        inside = _round_trips_within(observed)
        if inside is None:
            missing["o_mem"] = "copies took no time here, and no message within a node was measured"
        else:
            copied, copy, title = inside["bytes"].astype(float), inside.seconds / 4, WITHIN_TITLE
            notes["o_mem"] = "copies took no time here: a quarter of a round trip within a node"
    a, b = line(copied, copy, 1 / np.maximum(copy[0], 1e-15) ** 2)
    curves = (line_curve(title, copied, copy, a, b, "o_mem(m)"),)
    c = d = np.zeros_like(a)
    if not within:
        c, d = line(size, np.maximum(half - 2 * (a[:, None] + b[:, None] * size), 0), 1 / half[0] ** 2)
        curves += (line_curve("half a round trip", size, half, c + 2 * a, d + 2 * b, "2·o_mem(m) + o_net(m)"),)
    values = {"o_net.a": c, "o_net.b": d, "l_net": np.zeros_like(c), "gamma": local_work(observed)}
    forms = {"o_net": "linear"}
    if missing:
        notes["o_net"] = "with both copies, whose time is not known"
    else:
        values |= {"o_mem.a": a, "o_mem.b": b}
        forms["o_mem"] = "linear"
    return Fitted(values, (size.min(), size.max()), forms, notes, unknown, curves, missing=missing)


def _round_trips_within(observed: Observed) -> Cases | None:
    """Of nodes of all types, where two ranks have room on one."""
    if not observed.probes.get("pairprtt"):
        return None
    trips = observed.cases("pairprtt", n=1, delay=0, late=0)
    inside = np.array([Pair.parse(str(pair)).within for pair in trips["pair"]])
    return trips.pick(inside) if inside.any() else None


def predict(schedule: Schedule, values: Values) -> Array:
    """Return the transfers of a message follow one another, and so do the messages of a rank."""

    def costs(part: Schedule, values: Values) -> Costs:
        apart = part.channel != MEMORY
        copied = "o_mem" in values.functions
        if not copied and not apart.all():
            raise UserError("of messages within a node no time is known (o_mem)")
        network = values.at("o_net", part.bytes) + values["l_net"]
        message = (2 * values.at("o_mem", part.bytes) if copied else 0.0) + np.where(apart, network, 0)
        return Costs(wire=message, gap_out=message, gap_in=message)

    return replay_by_class(schedule, values, costs)


def doubts(schedule: Schedule, values: Values) -> str:
    within = np.any(condense(schedule)[0].channel == MEMORY)
    copies = [draws for name, draws in values.numbers.items() if parse(name).parameter == "o_mem"]
    free = bool(copies) and not np.any(copies)
    return "messages within a node are free: no time of a copy is known" if within and free else ""


FAMILY = Family(
    name="mlognp",
    title="mlognP",
    citation="B. Tu, J. Fan, J. Zhan, X. Zhao, Performance analysis and optimization of MPI collective operations on "
    "multi-core clusters, Journal of Supercomputing 60, 2012",
    equation="T(m) = 2·o_mem(m) + o_net(m) + l_net; 2·o_mem(m) within a node",
    parameters=(
        Parameter("o_mem", "s", "copy of a message between two buffers of a node", argument="m", optional=True),
        Parameter("o_net", "s", "transfer between the network's buffers of two nodes", argument="m"),
        Parameter("l_net", "s", "latency of the network, where it is known apart from o_net", default=0.0),
        GAMMA,
    ),
    probes=("memcopy", "pingpong", "pairprtt", "work"),
    fit=fit,
    predict=predict,
    independent=True,
    by_class=BETWEEN,
    doubts=doubts,
    ignores="that the transfers of a message overlap; contention for memory and network; data that are not contiguous",
)
