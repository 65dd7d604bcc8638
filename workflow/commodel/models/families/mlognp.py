"""mlognP: a message is a sum of transfers between buffers. Between nodes it is copied into the
network's buffer, transferred, and copied out; within a node it is copied into shared memory and
out.

    T(m) = 2·o_mem(m) + o_net(m) + l_net between nodes, 2·o_mem(m) within one

It extends lognP (Cameron, Sun 2003; Cameron, Ge, Sun 2007), whose o(m) is the time of a contiguous
transfer and l(m) that of strided data. A schedule's buffers are contiguous, so there is no l(m)
here. Both copies take the same time. The probed copy goes from cache to memory, since a sender has
just written its message, and the network uses many buffers in turn. If copies take no time, as on
simulated platforms, half a round trip within a node counts as two copies. If none was measured, the
transfer of the network includes the copies, and messages within a node have no prediction.
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.evaluation.repeated_rounds import condense_rounds
from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.families import (
    GAMMA,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    Values,
    fit_local_work,
)
from commodel.models.fitting.observed import Cases
from commodel.models.fitting.regression import fit_line, make_line_curve
from commodel.models.keys import Pair, parse_key
from commodel.models.probes import BETWEEN
from commodel.patterns.schedule import MEMORY

PROBED_COPY = "ctm"
WITHIN_TITLE = "a quarter of a round trip within a node"


def fit(observed: Observed) -> Fitted:
    """Fit o_mem to copies and o_net to the rest of the ping-pong.

    If the ping-pong stays within a node, its half is two copies, with all overheads of the library,
    and o_net is unknown. If copies take no time, round trips within nodes replace them.
    """
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"].astype(float), pingpong.seconds / 2
    notes, unidentified, missing = {"l_net": "set to 0: part of o_net"}, {}, {}
    copies = observed.cases("memcopy", path=PROBED_COPY)
    copy_sizes, copy_seconds, title = (
        copies["bytes"].astype(float),
        copies.seconds,
        "copy from cache to memory",
    )
    within = Pair.parse(str(pingpong["pair"][0])).within
    if within:
        copy_sizes, copy_seconds, title = size, half / 2, WITHIN_TITLE
        unidentified["o_net"] = "set to 0: no ping-pong between nodes was measured"
    elif not copy_seconds[0].any():
        round_trips = _round_trips_within(observed)
        if round_trips is None:
            missing["o_mem"] = (
                "copies take no time on this platform, and no message within a node was measured"
            )
        else:
            copy_sizes, copy_seconds, title = (
                round_trips["bytes"].astype(float),
                round_trips.seconds / 4,
                WITHIN_TITLE,
            )
            notes["o_mem"] = (
                "copies take no time on this platform: a quarter of a round trip within a node"
            )
    a, b = fit_line(copy_sizes, copy_seconds, 1 / np.maximum(copy_seconds[0], 1e-15) ** 2)
    curves = [make_line_curve(title, copy_sizes, copy_seconds, a, b, "o_mem(m)")]
    c = d = np.zeros_like(a)
    if not within:
        c, d = fit_line(
            size, np.maximum(half - 2 * (a[:, None] + b[:, None] * size), 0), 1 / half[0] ** 2
        )
        curves.append(
            make_line_curve(
                "half a round trip", size, half, c + 2 * a, d + 2 * b, "2·o_mem(m) + o_net(m)"
            )
        )
    values = {
        "o_net.a": c,
        "o_net.b": d,
        "l_net": np.zeros_like(c),
        "gamma": fit_local_work(observed),
    }
    forms = {"o_net": "linear"}
    if missing:
        notes["o_net"] = "includes both copies, whose time is unknown"
    else:
        values |= {"o_mem.a": a, "o_mem.b": b}
        forms["o_mem"] = "linear"
    return Fitted(
        values, (size.min(), size.max()), forms, notes, unidentified, tuple(curves), missing=missing
    )


def _round_trips_within(observed: Observed) -> Cases | None:
    """Return round trips within nodes of all types, if two ranks fit on one."""
    if not observed.probes.get("pairprtt"):
        return None
    trips = observed.cases("pairprtt", n=1, delay=0, late=0)
    inside = np.array([Pair.parse(str(pair)).within for pair in trips["pair"]])
    return trips.pick(inside) if inside.any() else None


def find_costs(schedule: Schedule, values: Values) -> Costs:
    """Return costs with which the transfers of a message, and the messages of a rank, follow one
    another."""
    between_nodes = schedule.channel != MEMORY
    copied = "o_mem" in values.functions
    if not copied and not between_nodes.all():
        raise UserError("the time of messages within a node is unknown (o_mem)")
    network = values.at("o_net", schedule.bytes) + values["l_net"]
    message = (2 * values.at("o_mem", schedule.bytes) if copied else 0.0) + np.where(
        between_nodes, network, 0
    )
    return Costs(wire=message, gap_out=message, gap_in=message)


def describe_limits(schedule: Schedule, values: Values) -> str:
    within = np.any(condense_rounds(schedule)[0].channel == MEMORY)
    copies = [
        draws for name, draws in values.numbers.items() if parse_key(name).parameter == "o_mem"
    ]
    free = bool(copies) and not np.any(copies)
    return (
        "messages within a node take no time: the time of a copy is unknown"
        if within and free
        else ""
    )


FAMILY = Family(
    name="mlognp",
    title="mlognP",
    citation="B. Tu, J. Fan, J. Zhan, X. Zhao, Performance analysis and optimization of MPI collective operations on "
    "multi-core clusters, Journal of Supercomputing 60, 2012",
    equation="T(m) = 2·o_mem(m) + o_net(m) + l_net; 2·o_mem(m) within a node",
    parameters=(
        Parameter(
            "o_mem",
            "s",
            "copy of a message between two buffers of a node",
            argument="m",
            optional=True,
        ),
        Parameter(
            "o_net", "s", "transfer between the network's buffers of two nodes", argument="m"
        ),
        Parameter(
            "l_net", "s", "latency of the network, if it is separate from o_net", default=0.0
        ),
        GAMMA,
    ),
    probes=("memcopy", "pingpong", "pairprtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    by_class=BETWEEN,
    limits=describe_limits,
    ignores="that the transfers of a message overlap; contention for memory and network; data that are not contiguous",
)
