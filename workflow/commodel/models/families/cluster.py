"""The cluster model: a rank's processor sends and receives in turn, and all pairs share the
network's throughput.

    T(m) = O_s(m) + L(m, p) + O_r(m) + U_r for a packet of m bytes, section 3 of the paper
    L(m, p) = L_0 + L_p·p + L_m·m·max(1, p·m/(capacity·g_s(m)))

A packet leaves its sender after O_s(m). The sender is busy for g_s(m), until its next packet. The
latency is L(m, p) if p ranks exchange messages at once. The receiver is busy for O_r(m) to receive
a packet and U_r to deliver it; packets arrive at least g_r(m) apart. Receiving keeps a rank from
sending (equation 2). A long message is a train of packets. L is half a round trip minus all
overheads.

A receiver's buffer holds B_L packets. A packet that arrives at a full buffer is sent again
(equations 3 and 4). The setting `recovery` selects when. In the paper this is one timeout later,
without a number for the timeout. A fit to a network that loses packets has `tcp`: the pattern is
simulated packet by packet, with fast retransmissions and timeouts of TCP (`evaluation/tcp.py`). The
prediction is then the median of repeats, and the interval is their 95 % range. If streams to one
rank are longer than the buffer, g_r is fitted to the fastest ones, which lost none.
"""

from dataclasses import dataclass, replace

import numpy as np

from commodel.errors import UserError
from commodel.models.evaluation.buffer_overflow import (
    Overflow,
    count_ranks_in_flight,
    find_departures,
    find_overflow,
    find_overflow_candidates,
)
from commodel.models.evaluation.replay import Costs, finish_times, replay
from commodel.models.evaluation.tcp import Port, Repeats, simulate
from commodel.models.families import (
    GAMMA,
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    Setting,
    Values,
    fit_local_work,
)
from commodel.models.fitting.link_capacities import fit_shared_latency
from commodel.models.fitting.observed import select_common
from commodel.models.fitting.packets import (
    describe_overflow,
    fit_background_cost,
    fit_buffer,
    fit_gap,
    fit_receive_cost,
    fit_timeout,
)
from commodel.models.fitting.regression import fit_piecewise, make_curve, make_line_curve
from commodel.models.fitting.round_trips import collect_round_trips
from commodel.models.keys import make_key
from commodel.parameters import Curve
from commodel.patterns.repeated import CompactSchedule
from commodel.patterns.schedule import KINDS
from commodel.units import format_seconds

PACKET_BYTES = 1500.0
RTO_SECONDS = 0.2  # TCP_RTO_MIN of Linux; RFC 6298 has 1 s
COPY_OF_PARAMETER = {"M_ctc": "ctc", "M_ctm": "ctm", "M_mtm": "mtm"}
LATENCY_PARAMETERS = ("L_0", "L_p", "L_m")
RECOVERY = Setting(
    ("timeout", "tcp"),
    "Whether a lost packet is sent again a timeout later, as in the paper, or as TCP does, "
    "simulated",
)
MEDIAN_CHANCE = 0.5  # value of the parameter `chance` for the estimate: the median of repeats
MEDIAN_RUNS, RUN_REPEATS = 31, 3  # simulations whose median is predicted, and repeats of each
MIN_RUNS = 20  # minimum of simulations for an interval
# limit of packets in a simulation, and in all of them if they are more than the minimum
MAX_PACKETS = 2_000_000
SEED_RANGE = 1 << 20
EAGER_BYTES, HEADER_BYTES = 65536.0, 64  # B: of Open MPI over TCP


def fit(observed: Observed) -> Fitted:
    """Fit all parameters: overheads and gaps to trains of packets, L to concurrent pairs of
    ranks."""
    trips = collect_round_trips(observed)
    short = trips.size <= PACKET_BYTES
    values: dict[str, Array] = {}
    forms: dict[str, str] = {}
    curves = []
    missing = {"T_s": "not observable: the paper does not define it"}

    def line(
        name: str, size: Array, seconds: Array, title: str, scale: Array | None = None
    ) -> None:
        """Fit a line of up to two pieces over sizes. `scale`: the scale of a case's error, if not
        the value itself."""
        if not len(size):
            raise UserError(f"no measurements of short messages for {name}")
        scale = seconds[0] if scale is None else scale
        forms[name], pieces = fit_piecewise(
            name, size, seconds, 1 / np.maximum(scale, 1e-9) ** 2, max_pieces=2
        )
        values.update(pieces)
        if forms[name] == "linear":
            curves.append(
                make_line_curve(
                    title,
                    size,
                    seconds,
                    pieces[make_key(name, "a")],
                    pieces[make_key(name, "b")],
                    "a + b·m",
                )
            )

    line("O_s", trips.size[short], trips.o_s[:, short], "send overhead")
    line("g_s", *fit_gap(observed, "deal", "n", "gap between sends"))
    buffer, reason, buffer_note = fit_buffer(observed)
    loss_note = "" if reason else describe_overflow(observed, buffer)
    line(
        "g_r",
        *fit_gap(
            observed,
            "stream",
            "senders",
            "gap between receptions",
            "min" if loss_note else "median",
        ),
    )
    line("O_r", *fit_background_cost(observed, "a reception in the background"))
    values["U_r"] = fit_receive_cost(observed)
    overheads = Values({name: draws[:, None] for name, draws in values.items()}, forms)
    latency, evidence = _fit_latency(observed, overheads)
    values |= latency
    curves.append(evidence)
    unidentified = {
        name: "not distinguishable from 0: the best value is below it"
        for name in LATENCY_PARAMETERS
        if not values[name][0]
    }
    if "capacity" not in values:
        missing["capacity"] = "not observable: no pair slowed another down"
    if reason:
        missing["B_L"] = reason
    else:
        values["B_L"] = buffer
        values["chance"] = np.append(MEDIAN_CHANCE, _spread_chances(len(buffer) - 1, observed.seed))
    timeouts = None if reason else fit_timeout(observed, len(values["U_r"]))
    common = select_common(
        "bytes", *(observed.cases("memcopy", path=path) for path in COPY_OF_PARAMETER.values())
    )
    for (name, path), copies in zip(COPY_OF_PARAMETER.items(), common, strict=True):
        if copies.seconds[0].max() > 0:
            line(name, copies["bytes"], copies.seconds, f"memory copy {path}")
        else:
            missing[name] = "not observable: a copy takes no time on this platform"
    values["gamma"] = fit_local_work(observed)
    values["packet"] = np.full(len(values["U_r"]), PACKET_BYTES)
    values["timeout"] = np.full(len(values["U_r"]), RTO_SECONDS) if timeouts is None else timeouts
    late = "from streams to one rank that were sometimes late"
    notes = {"timeout": "the value of Linux, not measured" if timeouts is None else late}
    notes |= {"packet": "the value of Ethernet, not measured"}
    notes |= {name: note for name, note in (("B_L", buffer_note), ("g_r", loss_note)) if note}
    notes |= (
        {"g_s": "measured with one receiver, which may limit it"}
        if observed.cases("deal")["n"].max() == 1
        else {}
    )
    sizes = (trips.size[0], trips.size[-1])
    settings: dict[str, int | str] = {"ranks": 2 * int(observed.cases("pairs")["pairs"].max())}
    settings |= {} if reason else {"recovery": "tcp"}
    return Fitted(values, sizes, forms, notes, unidentified, tuple(curves), settings, missing)


def _fit_latency(observed: Observed, values: Values) -> tuple[dict[str, Array], Curve]:
    """Return the parameters of L(m, p), fitted to round trips of several pairs at once minus
    overheads, and the curve."""
    pairs = observed.cases("pairs")
    size, ranks = pairs["bytes"].astype(float), 2.0 * pairs["pairs"]
    network = pairs.seconds / 2 - (values.at("O_s", size) + values.at("O_r", size) + values["U_r"])
    throughput = ranks * size / np.maximum(values.at("g_s", size)[0], 1e-12)
    capacity, L, fitted = fit_shared_latency(
        ranks, size, throughput, network, 1 / pairs.seconds[0] ** 2
    )
    evidence = make_curve(
        "latency, pairs at once", size, network[0], fitted, "L_0 + L_p·p + L_m·m·max(1, …)", 3
    )
    shared = {"capacity": capacity} if np.isfinite(capacity[0]) else {}
    return shared | dict(zip(LATENCY_PARAMETERS, L.T, strict=True)), evidence


def _spread_chances(count: int, seed: int) -> Array:
    """Return numbers evenly between 0 and 1, none of them MEDIAN_CHANCE, in a random order."""
    return (np.random.default_rng([seed, count]).permutation(count) + 0.5) / (count + count % 2)


def predict(schedule: Schedule, values: Values) -> Array:
    """Return the finish times of all ranks (last axis), with the loss of packets."""
    if isinstance(schedule, CompactSchedule):
        if "B_L" not in values:
            return replay(
                schedule,
                lambda part: _compute_costs(part, values),
                lambda part: _compute_work(part, values),
            )
        schedule = schedule.whole  # the contents of a buffer depend on all messages
    costs, work = _compute_costs(schedule, values), _compute_work(schedule, values)
    overflow = _find_overflow(schedule, values, costs, work)
    if overflow is None:
        return finish_times(schedule, costs, work)
    rows, losses = overflow
    wire = np.array(
        np.broadcast_to(costs.wire, (*losses.retransmitted.shape[:-1], len(schedule.src)))
    )
    wire[..., rows] += np.where(losses.retransmitted, values["timeout"], 0)
    finish = finish_times(schedule, replace(costs, wire=wire), work)
    if not _recovers_as_tcp(values):
        return finish
    return _predict_over_tcp(schedule, values, finish, finish_times(schedule, costs, work), losses)


def _recovers_as_tcp(values: Values) -> bool:
    """Return whether lost packets are sent again as TCP does."""
    return values.settings.get("recovery", RECOVERY.default) == "tcp"


def _predict_over_tcp(
    schedule: Schedule, values: Values, finish: Array, lossless: Array, losses: Overflow
) -> Array:
    """Return the finish times of all ranks at each size and draw, simulated at the sizes that lose
    packets.

    Sizes with too many packets keep the times in `finish`. `lossless` has the times without losses.
    For draws beyond the limit of simulations, the time without losses is multiplied by the factor
    of another draw.
    """
    sizes, draws = schedule.bytes.shape[:-2], values.draw_shape[0]
    finish, lossless = (
        np.array(np.broadcast_to(times, (*sizes, draws, schedule.ranks)))
        for times in (finish, lossless)
    )
    loses = np.broadcast_to(losses.retransmitted.any(axis=-1), (*sizes, draws)).any(axis=-1)
    chances = np.broadcast_to(values["chance"], (draws, 1))[:, 0].tolist()
    for index in np.argwhere(loses):
        size = tuple(index)
        network = PacketPaths.of(_select_size(schedule, size), values)
        if network.packets > MAX_PACKETS:
            continue
        runs = max(MIN_RUNS, MAX_PACKETS // network.packets)
        simulated: list[int] = []
        for draw, chance in enumerate(chances):
            if chance == MEDIAN_CHANCE and not (
                simulated and chances[simulated[0]] == MEDIAN_CHANCE
            ):
                repeats = network.repeat(draw)
                order = np.argsort(schedule.cost(repeats.finish), kind="stable")
                finish[(*size, draw)] = repeats.finish[order[len(order) // 2]]
            elif chance != MEDIAN_CHANCE and len(simulated) < runs:
                finish[(*size, draw)] = network.run(
                    draw, 1, SEED_RANGE + int(chance * SEED_RANGE)
                ).finish[0]
            else:
                other = (*size, simulated[draw % len(simulated)])
                ratio = schedule.cost(finish[other]) / schedule.cost(lossless[other])
                finish[(*size, draw)] = lossless[(*size, draw)] * ratio
                continue
            simulated.append(draw)
    return finish


def repeat_over_tcp(schedule: Schedule, values: Values) -> Repeats | None:
    """Return repeats of a schedule of one size over TCP; None if its losses are not simulated."""
    if not _recovers_as_tcp(values):
        return None
    network = PacketPaths.of(schedule, values)
    return network.repeat(0) if network.packets <= MAX_PACKETS else None


def _select_size(schedule: Schedule, size: tuple[int, ...]) -> Schedule:
    """Return the schedule at one of its sizes."""
    if not size:
        return schedule
    return schedule.resize(schedule.bytes[(*size, 0)], schedule.work.bytes[(*size, 0)])


@dataclass(frozen=True, eq=False)
class PacketPaths:
    """The packets of a schedule of one size, and the ports that they pass, for each draw."""

    schedule: Schedule
    eager: Array  # packets of each message, without those that its receiver grants
    counts: Array  # all packets of each message
    # s: gap of each last packet at the sending and the receiving port, (draws, messages)
    gaps: tuple[Array, Array]
    numbers: tuple[Array, ...]  # the fields of `Port`, each (draws, 1)
    receive: Array  # s: time of a receiver for its last packet, (draws, 1)

    @classmethod
    def of(cls, schedule: Schedule, values: Values) -> "PacketPaths":
        packet, empty_message = values["packet"], np.zeros((1, 1))
        packet_bytes, limit, size = (
            float(packet[0, 0]),
            float(values["eager"][0, 0]),
            np.maximum(schedule.bytes, 0),
        )
        eager_bytes, granted_bytes = (
            np.minimum(size, limit),
            np.where(size < limit, 0, size - limit + HEADER_BYTES),
        )
        eager, granted = (
            np.maximum(np.ceil(eager_bytes / packet_bytes), 1),
            np.ceil(granted_bytes / packet_bytes),
        )
        last = np.where(
            granted > 0,
            granted_bytes - (granted - 1) * packet_bytes,
            eager_bytes - (eager - 1) * packet_bytes,
        )
        gap_out, receive = values.at("g_s", packet), values.at("O_r", packet) + values["U_r"]
        path_latency = values.at("O_s", packet) + compute_latency(values, packet, 2, gap_out)
        return_latency = values.at("O_s", empty_message) + compute_latency(
            values, empty_message, 2, gap_out
        )
        numbers = (
            gap_out,
            np.maximum(values.at("g_r", packet), receive),
            path_latency,
            return_latency,
            values["B_L"],
            values["timeout"],
        )
        gaps = (
            values.at("g_s", last),
            np.maximum(values.at("g_r", last), values.at("O_r", last) + values["U_r"]),
        )
        return cls(schedule, eager, eager + granted, gaps, numbers, receive)

    @property
    def packets(self) -> int:
        """Packets of a simulation of one repeat, with the repeats that only set the windows."""
        return 4 * int(self.counts.sum())

    def run(self, draw: int, repeats: int, seed: int, extra_packets: float = 0.0) -> Repeats:
        """Return repeats of the schedule over TCP with the values of a draw and a buffer larger by
        `extra_packets`."""

        def row(column: Array) -> Array:
            return column[draw] if len(column) > 1 else column[0]

        port = Port(*(float(row(column)[0]) for column in self.numbers))
        port = replace(port, buffer=max(port.buffer + extra_packets, 0.0))
        gaps = (row(self.gaps[0]), row(self.gaps[1]))
        result = simulate(self.schedule, self.counts, gaps, port, repeats, seed, self.eager)
        return replace(result, finish=result.finish + float(row(self.receive)[0]))

    def repeat(self, draw: int) -> Repeats:
        """Return enough repeats for a median. The buffer's size is known within one packet, so it
        is varied by one packet."""
        buffer_changes = np.linspace(-0.5, 0.5, MEDIAN_RUNS).tolist()
        runs = [
            self.run(draw, RUN_REPEATS, 1 + seed, change)
            for seed, change in enumerate(buffer_changes)
        ]
        columns = (
            np.concatenate([getattr(run, name) for run in runs])
            for name in ("finish", "timeouts", "drops")
        )
        return Repeats(*columns)


def _compute_costs(schedule: Schedule, values: Values) -> Costs:
    """Return the costs of all messages, without losses."""
    packet, (last_packet, full_packets) = values["packet"], _count_packets(schedule, values)

    names, U_r = ("O_s", "g_s", "g_r", "O_r"), values["U_r"]
    O_s, g_s, g_r, O_r = (values.at(name, last_packet) for name in names)
    O_s_full, g_s_full, g_r_full, O_r_full = (values.at(name, packet) for name in names)
    busy = full_packets * g_s_full + g_s
    ranks = count_ranks_in_flight(schedule, compute_latency(values, last_packet, 2, g_s), busy)
    receive_full = O_r_full + U_r
    last = full_packets * g_s_full + O_s + compute_latency(values, last_packet, ranks, g_s)
    full_before = O_s_full + compute_latency(values, packet, ranks, g_s_full) + receive_full
    full_before = full_before + (full_packets - 1) * np.maximum(g_s_full, receive_full)
    arrival = np.where(full_packets > 0, np.maximum(last, full_before), last)
    return Costs(
        send=busy,
        receive=O_r + U_r,
        wire=arrival - busy,
        gap_out=busy,
        gap_in=full_packets * np.maximum(g_r_full, receive_full) + g_r,
    )


def _count_packets(schedule: Schedule, values: Values) -> tuple[Array, Array]:
    """Return for every message the bytes of its last packet, and the number of full packets before
    it."""
    size = np.maximum(schedule.bytes, 0)
    full = np.maximum(np.ceil(size / values["packet"]) - 1, 0)
    return size - full * values["packet"], full


def _find_overflow(
    schedule: Schedule, values: Values, costs: Costs, work: Array
) -> tuple[np.ndarray, Overflow] | None:
    """Return the rows of messages that may lose packets, and their losses; None if there are none
    or the buffer is unknown."""
    if "B_L" not in values or not len(schedule.src):
        return None
    last_packet, full_packets = _count_packets(schedule, values)
    packets = full_packets + 1
    service = (
        full_packets * values.at("g_r", values["packet"]) + values.at("g_r", last_packet)
    ) / packets
    gap_out = np.asarray(costs.gap_out)
    rows = find_overflow_candidates(schedule.dst, gap_out, packets, service, values["B_L"])
    if not len(rows):
        return None
    departures = find_departures(schedule, costs, work, rows)
    gaps, packets, service = (column[..., rows] for column in (gap_out, packets, service))
    return rows, find_overflow(
        schedule.dst[rows], departures, gaps, packets, service, values["B_L"]
    )


def compute_latency(values: Values, size: Array, ranks: Array | int, g_s: Array) -> Array:
    """Return L(m, p) in seconds."""
    share = (
        ranks * size / (values["capacity"] * np.maximum(g_s, 1e-12))
        if "capacity" in values
        else 0.0
    )
    return values["L_0"] + values["L_p"] * ranks + values["L_m"] * size * np.maximum(1, share)


def _compute_work(schedule: Schedule, values: Values) -> Array:
    """Return the seconds of local work; copies are from memory to memory."""
    work = schedule.work
    reduced = schedule.work_seconds(values["gamma"])
    if "M_mtm" not in values.functions:
        return reduced
    copied = values.at("M_mtm", work.bytes)
    return np.where(work.kind == KINDS.index("copy"), work.seconds + copied, reduced)


def compute_delivered_share(schedule: Schedule, values: Values) -> Array | None:
    """Return the smallest share of packets that a receiver gets, for each size of a stack; None if
    the buffer is unknown."""
    if "B_L" not in values:
        return None
    schedule = schedule.whole
    sizes = schedule.bytes.shape[:-2]
    overflow = _find_overflow(
        schedule, values, _compute_costs(schedule, values), _compute_work(schedule, values)
    )
    if overflow is None:
        return np.ones(sizes)
    share = overflow[1].delivered
    return np.broadcast_to(share, (*sizes, share.shape[-1]))[..., 0]


def describe_limits(schedule: Schedule, values: Values) -> str | list[str]:
    """Return why a prediction has limited validity: packets are lost, and when they are sent
    again."""
    shares = compute_delivered_share(schedule, values)
    if shares is None:
        return ""
    schedule, timeout = schedule.whole, format_seconds(float(values["timeout"][0, 0]))
    texts = []
    for size, share in np.ndenumerate(shares):
        text = (
            f"loses packets: {100 * share:.0f} % delivered at the most loaded receiver"
            if share < 1
            else ""
        )
        repeats = repeat_over_tcp(_select_size(schedule, size), values) if text else None
        if repeats:
            low, high = np.percentile(schedule.cost(repeats.finish), [2.5, 97.5])
            text += (
                f"; over TCP 95 % of the repeats take {format_seconds(low)} to "
                f"{format_seconds(high)}, "
            )
            text += (
                f"{100 * np.mean(repeats.timeouts > 0):.0f} % of them with a timeout of {timeout}"
            )
        elif text:
            text += f", the rest a timeout of {timeout} later"
        texts.append(text)
    return texts if len(shares.shape) else texts[0]


FAMILY = Family(
    name="cluster",
    title="Model for commodity clusters",
    citation="A. Tam, C.-L. Wang, Realistic communication model for parallel computing on cluster, IWCC 1999",
    equation="T(m) = O_s(m) + L(m, p) + O_r(m) + U_r; next packet g_s(m) later, next reception g_r(m) later. "
    "A broadcast packet by packet takes the longer of the paper's equations 1 and 2: at 1500 B of its values that is "
    "equation 1, by 17 % on 4 ranks and 8 % on 16",
    parameters=(
        Parameter("O_s", "s", "time the sender's processor spends on a packet", "m"),
        Parameter(
            "T_s",
            "s",
            "printed in table 1 without explanation; not used in predictions",
            "m",
            optional=True,
        ),
        Parameter("g_s", "s", "least time between two packets that leave a rank", "m"),
        Parameter("g_r", "s", "least time between two packets that reach a rank", "m"),
        Parameter("O_r", "s", "time of the processor to receive a packet in the background", "m"),
        Parameter("U_r", "s", "time of the receiving process for a packet that has arrived"),
        Parameter("L_0", "s", "latency of the network, without overheads"),
        Parameter("L_p", "s", "further latency per rank that takes part", default=0.0),
        Parameter("L_m", "s/B", "further latency per byte"),
        Parameter(
            "capacity", "B/s", "throughput of the whole network, shared by all pairs", optional=True
        ),
        Parameter("B_L", "1", "packets that the network can hold for one receiver", optional=True),
        Parameter(
            "timeout",
            "s",
            "time until a lost packet is sent again; Linux's minimum, TCP_RTO_MIN",
            default=RTO_SECONDS,
            recalibrated=False,
        ),
        Parameter(
            "chance",
            "1",
            "of a simulation over TCP: 0.5 for the median of repeats, else one of them",
            default=MEDIAN_CHANCE,
            recalibrated=False,
            random=True,
        ),
        Parameter(
            "eager",
            "B",
            "of a simulation over TCP: messages of this size or more wait for a grant after so much; Open MPI's value",
            default=EAGER_BYTES,
            recalibrated=False,
        ),
        Parameter(
            "packet",
            "B",
            "largest packet; longer messages are trains of packets",
            default=PACKET_BYTES,
        ),
        Parameter("M_ctc", "s", "copy within a cache", "m", optional=True, recalibrated=False),
        Parameter(
            "M_ctm", "s", "copy from cache to memory", "m", optional=True, recalibrated=False
        ),
        Parameter(
            "M_mtm", "s", "copy from memory to memory", "m", optional=True, recalibrated=False
        ),
        GAMMA,
    ),
    probes=("prtt", "deal", "stream", "overlap", "pairs", "flood", "memcopy", "work"),
    fit=fit,
    predict=predict,
    independent=True,
    settings={"recovery": RECOVERY},
    limits=describe_limits,
    delivered=compute_delivered_share,
    ignores="which nodes ranks share; that in a full network packets are further apart (only L has its capacity); "
    "losses other than at a receiver's port",
)
