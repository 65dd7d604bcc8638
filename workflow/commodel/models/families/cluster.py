"""The cluster model: a rank's processor sends and receives in turn, a network shares its throughput among pairs.

A packet of m bytes costs its sender O_s(m), the next may follow g_s(m) later, the network takes L(m, p) of p ranks, and
the receiver spends O_r(m) on taking it in and U_r on handing it over; packets reach it g_r(m) apart at least. What a
rank receives keeps it from sending (equation 2 of the paper). A long message is a train of packets. L is what is left
of half a round trip when all overheads are taken off. L(m, p) = L_0 + L_p·p + L_m·m·max(1, p·m/(capacity·g_s(m))).
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import curve, line_curve
from commodel.models.fitting.observed import Fitted, at_common
from commodel.models.fitting.regression import ALIKE, least_squares, mean, piecewise
from commodel.models.fitting.roundtrips import round_trips
from commodel.models.pricing.replay import Costs, finish_times
from commodel.models.pricing.values import Values
from commodel.models.pricing.window import transfer_ratio
from commodel.patterns.schedule import KINDS

PACKET = 1500.0
COPIES = {"M_ctc": "ctc", "M_ctm": "ctm", "M_mtm": "mtm"}
LABELS = ("message / B", "time / s")


def fit(observed):
    trips = round_trips(observed)
    short = trips.size <= PACKET
    values, forms, curves, missing = {}, {}, [], {}

    def line(name, size, seconds, title):
        if not len(size):
            raise UserError(f"no measurements of short messages for {name}")
        forms[name], found = piecewise(name, size, seconds, 1 / np.maximum(seconds[0], 1e-9) ** 2, most=2)
        values.update(found)
        if forms[name] == "linear":
            curves.append(line_curve(title, LABELS, size, seconds, found[f"{name}.a"], found[f"{name}.b"], "a + b·m"))

    line("O_s", trips.size[short], trips.o_s[:, short], "send overhead")
    line("g_s", trips.size[short], trips.spacing[:, short], "gap between sends")
    line("g_r", *_receive_gap(observed), "gap between receptions")
    line("O_r", *_background(observed), "a reception in the background")
    user = observed.cases("overlap", what="user")
    values["U_r"] = np.maximum(mean(user.seconds / user["messages"]), 0)
    evidence, unknown = _latency(observed, values, forms, missing)
    curves.append(evidence)
    _buffer(observed, values, missing)
    for name, path in COPIES.items():
        copies = observed.cases("memcopy", path=path)
        if copies.seconds[0].max() > 0:
            line(name, copies["bytes"], copies.seconds, f"memory copy {path}")
        else:
            missing[name] = "not observable: a copy takes no time there"
    values["gamma"] = local_work(observed)
    values["packet"] = np.full(len(values["U_r"]), PACKET)
    notes = {"packet": "taken from Ethernet, not measured"}
    sizes = (trips.size[0], trips.size[-1])
    settings = {"ranks": 2 * int(observed.cases("pairs")["pairs"].max())}
    return Fitted(values, sizes, forms, notes, unknown, tuple(curves), settings, missing)


def _receive_gap(observed):
    """From two lengths of the same streams: what each further packet adds."""
    streams = observed.cases("stream")
    lengths = np.unique(streams["each"])
    if len(lengths) < 2:
        raise UserError("no measurements of probe 'stream' of two lengths")
    first, last = at_common("bytes", *(streams.pick(streams["each"] == length) for length in (lengths[0], lengths[-1])))
    packets = first["senders"] * (lengths[-1] - lengths[0])
    return first["bytes"], np.maximum(last.seconds - first.seconds, 0) / packets


def _background(observed):
    """How much each message slows a computation down."""
    control = observed.cases("overlap", what="control")
    both = (control.pick(chosen) for chosen in (control["messages"] == 0, control["messages"] > 0))
    alone, busy = at_common("bytes", *both)
    return busy["bytes"], np.maximum(busy.seconds - alone.seconds, 0) / busy["messages"]


def _latency(observed, values, forms, missing):
    """Round trips of several pairs at once, overheads taken off, against ranks and size. The capacity is searched for:
    where sharing explains nothing, it was not reached."""
    pairs = observed.cases("pairs")
    size, ranks = pairs["bytes"].astype(float), 2.0 * pairs["pairs"]
    given = Values({name: draws[:, None] for name, draws in values.items()}, forms)
    overheads = given.at("O_s", size) + given.at("O_r", size) + given["U_r"]
    left = pairs.seconds / 2 - overheads
    weights = 1 / pairs.seconds[0] ** 2
    throughput = ranks * size / np.maximum(given.at("g_s", size)[0], 1e-12)

    def terms(capacity):
        return [np.ones(len(size)), ranks, size * np.maximum(1, throughput / capacity)]

    capacity, gain = _capacity(terms, left, weights, throughput)
    if gain:
        values["capacity"] = capacity
    else:
        missing["capacity"] = "not observable: no pair slowed another down"
    L = np.empty((len(left), 3))
    for each in np.unique(capacity):
        # Row 0 goes along: what a line misses is put on its draws again.
        chosen = np.concatenate([[0], np.flatnonzero(capacity == each)])
        L[chosen[1:]] = least_squares(terms(each), left[chosen], weights)[1:]
    L[0] = least_squares(terms(capacity[0]), left[:1], weights)
    names = ("L_0", "L_p", "L_m")
    values |= {name: np.maximum(L[:, number], 0) for number, name in enumerate(names)}
    unknown = {name: "not told apart from 0: the best value is below it" for name in names if not values[name][0]}
    fitted = sum(values[name][0] * term for name, term in zip(names, terms(capacity[0]), strict=True))
    return curve("latency, pairs at once", LABELS, size, left[0], fitted, "L_0 + L_p·p + L_m·m·max(1, …)", 3), unknown


def _capacity(terms, left, weights, throughput):
    """The capacity with the smallest misfit, for every draw, and whether it explains more than none does."""
    from scipy.optimize import minimize_scalar  # here, because it takes longer to load than most verbs to run

    root = np.sqrt(weights / weights.max())

    def misfits(candidates, rows):
        found = []
        for capacity in candidates:
            columns = np.stack(terms(capacity), axis=-1) * root[:, None]
            scale = np.abs(columns).max(axis=0)
            solver = np.linalg.pinv(columns / scale, rcond=ALIKE)
            rest = left[rows] * root - left[rows] * root @ solver.T @ (columns / scale).T
            found.append(np.sum(rest**2, axis=-1))
        return np.array(found)

    coarse = np.geomspace(throughput[throughput > 0].min(), throughput.max(), 40)
    without = misfits([np.inf], slice(1))[0, 0]
    scores = misfits(coarse, slice(1))[:, 0]
    best = int(np.argmin(scores))
    if scores[best] > 0.7 * without - 1e-12 * np.sum((left[0] * root) ** 2):
        return np.full(len(left), np.inf), False
    ends = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
    fine = np.geomspace(*ends, 60)
    exact = minimize_scalar(
        lambda log: misfits([np.exp(log)], slice(1))[0, 0],
        bounds=np.log(ends),
        method="bounded",
        options={"xatol": 1e-9},
    ).x
    chosen = fine[np.argmin(misfits(fine, slice(None)), axis=0)]
    chosen[0] = np.exp(exact)
    return chosen, True


def _buffer(observed, values, missing):
    """Arrivals against packets sent, where some were lost: B + k·D/A (equation 4 times k)."""
    flood = observed.counts("flood")
    sent = flood["packets"] * flood["senders"]
    lossy = flood.seconds[0] < 0.999 * sent
    if np.count_nonzero(lossy) < 2:
        some = "nothing was" if not lossy.any() else "too little was"
        missing["B_L"] = f"not observable: {some} lost of {int(sent.max())} datagrams at once"
        return
    found = least_squares(
        [np.ones(np.count_nonzero(lossy)), sent[lossy]], flood.seconds[:, lossy], 1 / sent[lossy] ** 2
    )
    if found[0, 0] <= 0:
        missing["B_L"] = "not observable: losses do not look like those of a buffer that is full"
        return
    values["B_L"] = np.maximum(found[:, 0], 0)


def price(schedule, values):
    packet = values["packet"]
    size = np.maximum(schedule.bytes, 0)
    full = np.maximum(np.ceil(size / packet) - 1, 0)  # packets before the last
    rest = size - full * packet

    def both(name):
        return values.at(name, rest), values.at(name, packet)

    (O_s, O_s_full), (g_s, g_s_full), (g_r, g_r_full), (O_r, O_r_full) = map(both, ("O_s", "g_s", "g_r", "O_r"))
    U_r = values["U_r"]
    busy = full * g_s_full + g_s
    taken = O_r_full + U_r
    last = full * g_s_full + O_s + latency(values, rest, schedule.ranks, g_s)
    before = O_s_full + latency(values, packet, schedule.ranks, g_s_full) + taken
    before = before + (full - 1) * np.maximum(g_s_full, taken)
    there = np.where(full > 0, np.maximum(last, before), last)
    costs = Costs(
        send=busy,
        receive=O_r + U_r,
        wire=there - busy,
        gap_out=busy,
        gap_in=full * np.maximum(g_r_full, taken) + g_r,
    )
    return finish_times(schedule, costs, _work(schedule, values))


def latency(values, size, ranks, g_s):
    """L(m, p)."""
    share = ranks * size / (values["capacity"] * np.maximum(g_s, 1e-12)) if "capacity" in values else 0.0
    return values["L_0"] + values["L_p"] * ranks + values["L_m"] * size * np.maximum(1, share)


def _work(schedule, values):
    """Copies are from memory to memory."""
    work = schedule.work
    reduced = schedule.work_seconds(values["gamma"])
    if not values.has("M_mtm"):
        return reduced
    copied = values.at("M_mtm", work.bytes)
    return np.where(work.kind == KINDS.index("copy"), work.seconds + copied, reduced)


def doubts(schedule, values):
    """Where a receiver's buffer cannot hold what comes in, packets are lost, and the price says nothing about that."""
    if "B_L" not in values:
        return ""
    if schedule.bytes.ndim > 1:
        return [_losses(schedule, size[0], values) for size in schedule.bytes]
    return _losses(schedule, schedule.bytes, values)


def _losses(schedule, bytes, values):
    packet = values["packet"]
    g_s, g_r = (float(values.at(name, packet)[0, 0]) for name in ("g_s", "g_r"))
    worst = 1.0
    for step in schedule.steps:
        if not len(step.dst):
            continue
        packets = np.maximum(np.ceil(bytes[step.rows] / float(packet[0, 0])), 1)
        load = np.bincount(step.dst, weights=packets)
        busiest = int(load.argmax())
        senders = int(np.count_nonzero(step.dst == busiest))
        worst = min(worst, transfer_ratio(senders, int(load[busiest]), g_s, g_r, float(values["B_L"][0, 0])))
    return "" if worst == 1 else f"loses packets: {100 * worst:.0f} % get through where most come together"


FAMILY = Family(
    name="cluster",
    title="Model for commodity clusters",
    citation="A. Tam, C.-L. Wang, Realistic communication model for parallel computing on cluster, IWCC 1999",
    equation="T(m) = O_s(m) + L(m, p) + O_r(m) + U_r; next packet g_s(m) later, next reception g_r(m) later",
    parameters=(
        Parameter("O_s", "s", "time the sender's processor spends on a packet", "m"),
        Parameter("g_s", "s", "least time between two packets that leave a rank", "m"),
        Parameter("g_r", "s", "least time between two packets that reach a rank", "m"),
        Parameter("O_r", "s", "what receiving a packet in the background costs a processor", "m"),
        Parameter("U_r", "s", "what the receiving process spends on a packet that has come"),
        Parameter("L_0", "s", "latency of the network, overheads taken off"),
        Parameter("L_p", "s", "further latency per rank that takes part", default=0.0),
        Parameter("L_m", "s/B", "further latency per byte"),
        Parameter("capacity", "B/s", "throughput of the whole network, shared by all pairs", optional=True),
        Parameter("B_L", "1", "packets that the network can hold for one receiver", optional=True),
        Parameter("packet", "B", "largest packet; longer messages are trains of packets", default=PACKET),
        Parameter("M_ctc", "s", "copy within a cache", "m", optional=True),
        Parameter("M_ctm", "s", "copy from cache to memory", "m", optional=True),
        Parameter("M_mtm", "s", "copy from memory to memory", "m", optional=True),
        GAMMA,
    ),
    probes=("prtt", "stream", "overlap", "pairs", "flood", "memcopy", "work"),
    fit=fit,
    price=price,
    independent=True,
    doubts=doubts,
    ignores="which nodes ranks share; what lost packets cost",
)
