"""What the cluster model's probes say of packets: the gaps at both ends, what receiving costs a processor, and how many
a network holds for one receiver."""

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.fitting.observed import COUNTED, Cases, Observed, at_common
from commodel.models.fitting.regression import least_squares, mean
from commodel.patterns.layouts import place
from commodel.stats import resampled
from commodel.units import format_bytes

SEEN = 0.01  # of the longest: receives that take less had completed by themselves
LATE_TIMES, LATE_SECONDS = 5, 5e-3  # times the usual time, and seconds: a stream later than that has waited
ALIKE = 1.2  # the longest of waits that are the same, over the shortest
FEWEST_LATE = 3  # of them
LOST = 0.001  # of what was sent
TOLD = 0.01  # of what was sent: what a socket throws away beside that is told


def fit_gap(
    observed: Observed, probe: str, ends: str, title: str, statistic: str = "median"
) -> tuple[np.ndarray, Array, str, Array]:
    """Sizes, and the time that each further packet adds: from two lengths of a stream between one rank and several, the
    number of which is in the column `ends`. And the title; and the time of a packet of the whole stream, to which the
    error is in proportion: the difference may be next to nothing."""
    streams = observed.cases(probe, statistic)
    lengths = np.unique(streams["each"])
    if len(lengths) < 2:
        raise UserError(f"no measurements of probe '{probe}' of two lengths")
    first, last = at_common("bytes", *(streams.pick(streams["each"] == length) for length in (lengths[0], lengths[-1])))
    packets = first[ends] * (lengths[-1] - lengths[0])
    return first["bytes"], np.maximum(last.seconds - first.seconds, 0) / packets, title, last.seconds[0] / packets


def fit_background(observed: Observed, title: str) -> tuple[np.ndarray, Array, str, Array]:
    """Sizes, and how much each message slows a computation down; the title, and what the error is in proportion to."""
    control = observed.cases("overlap", what="control")
    both = (control.pick(chosen) for chosen in (control["messages"] == 0, control["messages"] > 0))
    alone, busy = at_common("bytes", *both)
    slowed = np.maximum(busy.seconds - alone.seconds, 0)
    return busy["bytes"], slowed / busy["messages"], title, busy.seconds[0] / busy["messages"]


def fit_taking(observed: Observed) -> Array:
    """Return what taking a message that has come costs a process. Sizes at which receives complete by themselves, so
    that nothing is left to be taken, say nothing about that."""
    user = observed.cases("overlap", what="user")
    a_message = user.seconds / user["messages"]
    left = a_message[0] > SEEN * a_message[0].max()
    return np.maximum(mean(a_message[:, left]), 0) if left.any() else np.zeros(len(a_message))


def fit_buffer(observed: Observed) -> tuple[Array, str, str]:
    """Return how many packets the network holds for one receiver: through it come B + k·D/A of k (equation 4 times k).
    None where that is not seen, with the reason; and what is to be said of a value that is."""
    flood = observed.cases("flood", COUNTED)
    arrived, through, room = (flood.pick(flood["what"] == what) for what in ("arrived", "through", "room"))
    held = f" of {format_bytes(int(room.seconds[0, 0]))}" if len(room) and room.seconds[0, 0] > 0 else ""
    if len(set(place(str(flood["layout"][0]), int(flood["ranks"][0])))) == 1:
        return _unseen(f"all ranks are on one host; what is lost there its socket's buffer{held} has not held")
    counted = len(through) and (through.seconds[0] >= 0).all()
    passed, note = (through, "") if counted else (arrived, UNCOUNTED)
    if not len(passed):
        return _unseen("nothing was counted")
    sent = passed["packets"] * passed["senders"]
    lossy = passed.seconds[0] < (1 - LOST) * sent
    dropped = _dropped(arrived, passed)
    if dropped > TOLD:
        note = (
            f"the receiver's socket{held} threw away up to {100 * dropped:.0f} % more, which came through the network"
        )
    if np.count_nonzero(lossy) < 2:
        some = "too little was" if lossy.any() else "nothing was"
        return _unseen(f"{some} lost of {int(sent.max())} datagrams at once" + (f"; {note}" if note else ""))
    features = [np.ones(np.count_nonzero(lossy)), sent[lossy]]
    held_at_once = least_squares(features, passed.seconds[:, lossy], 1 / sent[lossy] ** 2)[:, 0]
    if held_at_once[0] <= 0:
        return _unseen("losses do not look like those of a buffer that is full")
    return np.maximum(held_at_once, 0), "", note


def describe_overflow(observed: Observed, held: Array) -> str:
    """Return what is to be said of gaps where streams to one rank are longer than what the network holds for it."""
    streams = observed.cases("stream")
    return FASTEST if held[0] < (streams["each"] * streams["senders"]).max() else ""


def fit_timeout(observed: Observed, rows: int) -> Array | None:
    """Return how long a sender waits until it sends again what was lost: by so much longer than usual takes a stream to
    one rank that has lost packets. None unless several were late, and by the same."""
    late = []
    for case in observed.probes.get("stream", ()):
        usual = np.median(case.seconds)
        more = case.seconds - usual
        late += more[more > max(LATE_TIMES * usual, LATE_SECONDS)].tolist()
    late = np.sort(late)
    alike = [late[(late >= first) & (late <= ALIKE * first)] for first in late]
    waits = max(alike, key=len, default=late)
    if len(waits) < FEWEST_LATE:
        return None
    return resampled(waits, np.ones(len(waits), dtype=int), "median", rows - 1, np.random.default_rng(observed.seed))


FASTEST = "of the fastest streams: the network holds fewer packets than they have, and what is sent again takes longer"
UNCOUNTED = "the network's or the receiver's: this system does not count what a socket throws away"


def _unseen(why: str) -> tuple[Array, str, str]:
    return np.empty(0), f"not observable: {why}", ""


def _dropped(arrived: Cases, passed: Cases) -> float:
    """Return the share of a flood that came through and did not arrive, where it is largest."""
    taken = dict(zip(arrived["packets"].tolist(), arrived.seconds[0], strict=True))
    pairs = zip(passed["packets"].tolist(), passed["senders"], passed.seconds[0], strict=True)
    lost = [(came - taken[packets]) / (packets * senders) for packets, senders, came in pairs if packets in taken]
    return float(max(lost, default=0))
