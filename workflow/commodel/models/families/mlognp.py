"""mlognP: a message is a sum of transfers from buffer to buffer: between nodes a copy into the network's buffer, the
network, and a copy out of it; within a node a copy into shared memory and a copy out.

    T(m) = 2·o_mem(m) + o_net(m) + l_net between nodes, 2·o_mem(m) within one

It has grown from lognP (Cameron, Sun 2003; Cameron, Ge, Sun 2007), whose o(m) is the cost of a contiguous transfer and
l(m) what strided data add; a schedule's buffers are contiguous, so there is no l(m) here. Both copies cost the same:
the one probed goes from cache to memory, as a sender has just written its message, and the network's buffers are many
in turn. Where copies take no time, as on simulated platforms, the network's transfer holds everything.
"""

import numpy as np

from commodel.keys import Pair, parse
from commodel.models.families import GAMMA, Array, Family, Fitted, Observed, Parameter, Schedule, Values, local_work
from commodel.models.fitting.curves import line_curve
from commodel.models.fitting.regression import line
from commodel.models.pricing.repeating import condensed
from commodel.models.pricing.replay import Costs, replayed
from commodel.patterns.schedule import MEMORY

COPY = "ctm"


def fit(observed: Observed) -> Fitted:
    """Where the ping-pong stays within a node, its half is two copies by definition, with all that the library adds to
    them; of a network it says nothing."""
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"].astype(float), pingpong.seconds / 2
    notes, unknown = {"l_net": "left at 0: part of o_net"}, {}
    copies = observed.cases("memcopy", path=COPY)
    copied, copy, title = copies["bytes"].astype(float), copies.seconds, "copy from cache to memory"
    within = Pair.parse(str(pingpong["pair"][0])).within
    if within:
        copied, copy, title = size, half / 2, "a quarter of a round trip within a node"
        unknown["o_net"] = "taken as 0: no ping-pong between nodes was measured"
    a, b = line(copied, copy, 1 / np.maximum(copy[0], 1e-15) ** 2)
    curves = (line_curve(title, copied, copy, a, b, "o_mem(m)"),)
    c = d = np.zeros_like(a)
    if not within:
        if a[0] + b[0] == 0:
            notes["o_mem"] = "copies took no time here: o_net holds everything"
        c, d = line(size, np.maximum(half - 2 * (a[:, None] + b[:, None] * size), 0), 1 / half[0] ** 2)
        curves += (line_curve("half a round trip", size, half, c + 2 * a, d + 2 * b, "2·o_mem(m) + o_net(m)"),)
    values = {"o_mem.a": a, "o_mem.b": b, "o_net.a": c, "o_net.b": d, "l_net": np.zeros_like(c)}
    values["gamma"] = local_work(observed)
    forms = {"o_mem": "linear", "o_net": "linear"}
    return Fitted(values, (size.min(), size.max()), forms, notes, unknown, curves)


def price(schedule: Schedule, values: Values) -> Array:
    """The transfers of a message follow one another, and so do the messages of a rank."""

    def costs(part: Schedule) -> Costs:
        apart = part.channel != MEMORY
        network = values.at("o_net", part.bytes) + values["l_net"]
        message = 2 * values.at("o_mem", part.bytes) + np.where(apart, network, 0)
        return Costs(wire=message, gap_out=message, gap_in=message)

    return replayed(schedule, costs, lambda part: part.work_seconds(values["gamma"]))


def doubts(schedule: Schedule, values: Values) -> str:
    within = np.any(condensed(schedule)[0].channel == MEMORY)
    free = not any(np.any(draws) for name, draws in values.numbers.items() if parse(name).parameter == "o_mem")
    return "messages within a node are free: no time of a copy is known" if within and free else ""


FAMILY = Family(
    name="mlognp",
    title="mlognP",
    citation="B. Tu, J. Fan, J. Zhan, X. Zhao, Performance analysis and optimization of MPI collective operations on "
    "multi-core clusters, Journal of Supercomputing 60, 2012",
    equation="T(m) = 2·o_mem(m) + o_net(m) + l_net; 2·o_mem(m) within a node",
    parameters=(
        Parameter("o_mem", "s", "copy of a message between two buffers of a node", argument="m"),
        Parameter("o_net", "s", "transfer between the network's buffers of two nodes", argument="m"),
        Parameter("l_net", "s", "latency of the network, where it is known apart from o_net", default=0.0),
        GAMMA,
    ),
    probes=("memcopy", "pingpong", "work"),
    fit=fit,
    price=price,
    independent=True,
    doubts=doubts,
    ignores="that the transfers of a message overlap; contention for memory and network; data that are not contiguous",
)
