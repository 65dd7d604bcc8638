"""Packet parameters of the cluster model: gaps at both ends (`fit_gap`), time of a receive
(`fit_background_cost`, `fit_receive_cost`), buffer of the network (`fit_buffer`), and timeout
(`fit_timeout`).
"""

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.fitting.observed import (
    MEAN_COUNT,
    MEDIAN_COUNT,
    Cases,
    Observed,
    select_common,
)
from commodel.models.fitting.regression import fit_least_squares, fit_mean
from commodel.patterns.layouts import place_ranks
from commodel.stats import resample_statistic
from commodel.units import format_bytes

# share of the longest receive, up to which a receive had completed in the background
COMPLETED_SHARE = 0.01
# multiple of the median, and seconds: later streams waited for a timeout
MIN_LATE_RATIO, MIN_LATE_SECONDS = 5, 5e-3
MAX_EQUAL_WAITS_RATIO = 1.2  # ratio of the longest to the shortest wait that count as equal
MIN_EQUAL_WAITS = 3  # equal waits that determine the timeout
# Lost shares of the packets sent: of a lossy flood, and of one whose arrivals show the buffer.
LOSSY_SHARE, OVERFULL_SHARE = 0.001, 0.25
# share of the packets sent, above which packets dropped by the socket are reported
REPORTED_SHARE = 0.01


def fit_gap(
    observed: Observed, probe: str, partners_column: str, title: str, statistic: str = "median"
) -> tuple[np.ndarray, Array, str, Array]:
    """Return sizes, the seconds that each further packet adds, the title, and the scale of the
    error.

    The gap is the difference of two lengths of a stream between one rank and several; column
    `partners_column` has their number. The difference may be near 0, so the error is in proportion
    to the time per packet of the whole stream.
    """
    streams = observed.cases(probe, statistic)
    lengths = np.unique(streams["each"])
    if len(lengths) < 2:
        raise UserError(f"no measurements of probe '{probe}' of two lengths")
    first, last = select_common(
        "bytes", *(streams.where(each=length) for length in (lengths[0], lengths[-1]))
    )
    packets = first[partners_column] * (lengths[-1] - lengths[0])
    return (
        first["bytes"],
        np.maximum(last.seconds - first.seconds, 0) / packets,
        title,
        last.seconds[0] / packets,
    )


def fit_background_cost(observed: Observed, title: str) -> tuple[np.ndarray, Array, str, Array]:
    """Return sizes, the seconds by which each message slows a computation down, the title, and the
    scale of the error."""
    control = observed.cases("overlap", what="control")
    both = (control.pick(chosen) for chosen in (control["messages"] == 0, control["messages"] > 0))
    undisturbed, busy = select_common("bytes", *both)
    slowed = np.maximum(busy.seconds - undisturbed.seconds, 0)
    return busy["bytes"], slowed / busy["messages"], title, busy.seconds[0] / busy["messages"]


def fit_receive_cost(observed: Observed) -> Array:
    """Return the seconds that a process needs to take a message that has arrived.

    Sizes whose receives complete in the background are excluded.
    """
    user = observed.cases("overlap", what="user")
    per_message = user.seconds / user["messages"]
    pending = per_message[0] > COMPLETED_SHARE * per_message[0].max()
    return (
        np.maximum(fit_mean(per_message[:, pending]), 0)
        if pending.any()
        else np.zeros(len(per_message))
    )


def fit_buffer(observed: Observed) -> tuple[Array, str, str]:
    """Return the packets that the network buffers for one receiver, the reason if this is unknown,
    and a note.

    The number follows from the times of arrival (native/probes/arrivals.c). Without these, it
    follows from counts: of k packets, B + k·D/A are delivered (equation 4 times k). This
    overestimates B if senders do not start together.
    """
    flood = observed.cases("flood", MEAN_COUNT)
    arrived, delivered, socket_buffer = (
        flood.where(what=kind) for kind in ("arrived", "through", "room")
    )
    socket_bytes = int(socket_buffer.seconds[0].max(initial=0))
    socket_size = f" of {format_bytes(socket_bytes)}" if socket_bytes > 0 else ""
    if len(set(place_ranks(str(flood["layout"][0]), int(flood["ranks"][0])))) == 1:
        return _mark_unobservable(
            f"all ranks are on one host, where packets are lost at the socket's buffer{socket_size}"
        )
    counted = len(delivered) and (delivered.seconds[0] >= 0).all()
    delivered_counts, note = (delivered, "") if counted else (arrived, UNCOUNTED_NOTE)
    if not len(delivered_counts):
        return _mark_unobservable("nothing was counted")
    sent = delivered_counts["packets"] * delivered_counts["senders"]
    lossy = delivered_counts.seconds[0] < (1 - LOSSY_SHARE) * sent
    dropped = _find_dropped_share(arrived, delivered_counts)
    if dropped > REPORTED_SHARE:
        note = (
            f"the receiver's socket{socket_size} dropped up to {100 * dropped:.0f} % more of what "
            "the network delivered"
        )
    if np.count_nonzero(lossy) < 2:
        amount = "too little was" if lossy.any() else "nothing was"
        return _mark_unobservable(
            f"{amount} lost of {int(sent.max())} datagrams at once" + (f"; {note}" if note else "")
        )
    if len(buffer_by_arrivals := _fit_buffer_by_arrivals(observed, sent, delivered_counts)):
        return buffer_by_arrivals, "", note
    note = "; ".join(filter(None, (COUNTS_NOTE, note)))
    features = [np.ones(np.count_nonzero(lossy)), sent[lossy]]
    buffer = fit_least_squares(features, delivered_counts.seconds[:, lossy], 1 / sent[lossy] ** 2)[
        :, 0
    ]
    if buffer[0] <= 0:
        return _mark_unobservable("losses do not fit a full buffer")
    return np.maximum(buffer, 0), "", note


def _fit_buffer_by_arrivals(observed: Observed, sent: np.ndarray, delivered: Cases) -> Array:
    """Return the datagrams that the network buffers, from the times of their arrival; empty if no
    flood determines it.

    The shortest flood with enough losses is used: in a longer one, senders pause and the buffer is
    not always full. The buffer may hold a part of one more packet, so the draws are spread over one
    packet.
    """
    overfull = delivered["packets"][delivered.seconds[0] < (1 - OVERFULL_SHARE) * sent]
    floods = observed.cases("flood", MEDIAN_COUNT).where(what="held")
    floods = floods.pick(np.isin(floods["packets"], overfull) & (floods.seconds > 0).all(axis=0))
    if not len(floods):
        return np.empty(0)
    shortest = int(np.argmin(floods["packets"]))
    packets = floods.seconds[:, shortest] / floods["bytes"][shortest]
    spread = np.random.default_rng(observed.seed).permutation(len(packets) - 1)
    return packets + np.concatenate([[0.5], (spread + 0.5) / len(spread)])


def describe_overflow(observed: Observed, buffer: Array) -> str:
    """Return a note on gaps if streams to one rank are longer than the network's buffer."""
    streams = observed.cases("stream")
    return FASTEST_NOTE if buffer[0] < (streams["each"] * streams["senders"]).max() else ""


def fit_timeout(observed: Observed, rows: int) -> Array | None:
    """Return the retransmission timeout in seconds: the excess of late streams to one rank over the
    median. None unless several streams were late by the same time."""
    excesses: list[float] = []
    for case in observed.probes.get("stream", ()):
        median = np.median(case.seconds)
        excess = case.seconds - median
        excesses += excess[excess > max(MIN_LATE_RATIO * median, MIN_LATE_SECONDS)].tolist()
    late_times = np.sort(excesses)
    equal_waits = [
        late_times[(late_times >= first) & (late_times <= MAX_EQUAL_WAITS_RATIO * first)]
        for first in late_times
    ]
    waits: np.ndarray = max(equal_waits, key=len, default=late_times)
    if len(waits) < MIN_EQUAL_WAITS:
        return None
    passes, rng = np.ones(len(waits), dtype=int), np.random.default_rng(observed.seed)
    return resample_statistic(waits, passes, "median", rows - 1, rng)


FASTEST_NOTE = (
    "of the fastest streams: longer streams lose packets, and retransmission takes longer"
)
COUNTS_NOTE = (
    "by counts of datagrams, as in the paper: includes packets that leave the buffer before all "
    "ranks send"
)
UNCOUNTED_NOTE = (
    "of the network or of the receiver: this system does not count packets that a socket drops"
)


def _mark_unobservable(why: str) -> tuple[Array, str, str]:
    return np.empty(0), f"not observable: {why}", ""


def _find_dropped_share(arrived: Cases, passed: Cases) -> float:
    """Return the largest share of a flood that was delivered by the network and dropped by the
    socket."""
    arrived_by_packets = dict(zip(arrived["packets"].tolist(), arrived.seconds[0], strict=True))
    floods = zip(passed["packets"].tolist(), passed["senders"], passed.seconds[0], strict=True)
    dropped = [
        (delivered - arrived_by_packets[packets]) / (packets * senders)
        for packets, senders, delivered in floods
        if packets in arrived_by_packets
    ]
    return float(max(dropped, default=0))
