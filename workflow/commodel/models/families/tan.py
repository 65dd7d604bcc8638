"""TAN: the time of a wave through a tree, with an overhead that grows with the number of messages a node handles.

    T_i = L + o(x+1) + g + max(T_child) for a node with x children, T_leaf = C      (equation 1 of the paper)
    T = L + max_i o(x_i+1) + g between two waves of a long stream                   (equation 2)

On a schedule, a rank's combine phase is the longest run of receives between two of its sends, and x the messages in it.
L is the **average** of half the round trip, overheads of both ends included; LogP's is an upper bound without them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from commodel.keys import key
from commodel.models.families import Array, Family, Fitted, Observed, Parameter, Schedule, Values
from commodel.models.fitting.curves import curve, line_curve
from commodel.models.fitting.regression import choose_form, line, mean, shape_coefficients
from commodel.models.pricing.functions import FORMS, evaluate, text
from commodel.parameters import Curve

SHAPES = ("linear", "logarithmic", "quadratic", "exponential")


@dataclass(frozen=True, eq=False)
class Chain:
    """The chain experiment: L from the ping-pong, C and the overhead of a level from heights."""

    packet: int
    L: Array
    C: Array
    a: Array
    unknown: dict[str, str]  # of C and a
    evidence: Curve


def chain_experiment(observed: Observed) -> Chain:
    """Half the round trip, less the latencies, halved again (a send and a receive a level), against height: the slope
    is the constant of o, an intercept above 0 is C. From medians: a mean of waves on a shared machine measures its
    other users."""
    chain = observed.cases("chain")
    packet = int(chain["bytes"][0])
    L = observed.cases("pingpong", statistic="mean", bytes=packet).seconds[:, 0] / 2
    height, wave = chain["height"].astype(float), chain.seconds / 2
    overhead = (wave - L[:, None] * height) / 2
    overhead = np.where(np.abs(overhead) < 1e-12 * wave, 0.0, overhead)  # rounding, where simulations are exact
    unknown = {}
    if len(chain) > 1:
        C, a = line(height, overhead, 1 / wave[0] ** 2)
    else:
        C, a = np.zeros_like(L), np.maximum(overhead[:, 0], 0)
        unknown["C"] = "not told apart from o: chains of one height only were measured"
    for name, draws in (("C", C), ("a", a)):
        if draws[0] == 0:
            unknown.setdefault(name, "not told apart from 0: the round trip explains the whole chain")
    evidence = line_curve("chain", height, overhead, C, a, "C + a·height", ("height", "time / s"))
    return Chain(packet, L, C, a, unknown, evidence)


def fit(observed: Observed) -> Fitted:
    """The paper's two experiments, section IV. N-to-1: time less one latency and one overhead, against x+1 as
    equation 1 evaluates it; the best shape by AICc."""
    chain = chain_experiment(observed)
    L, a, packet = chain.L, chain.a, chain.packet
    unknown = {name.replace("a", "o.a"): reason for name, reason in chain.unknown.items()}
    fan = observed.cases("fan", direction="in", bytes=packet)
    handled = fan["n"] + 1.0
    contention = fan.seconds - (L + a)[:, None]
    weights = 1 / fan.seconds[0] ** 2
    form, scores = choose_form(SHAPES, handled, contention, weights)
    if not scores:
        form = "constant"
        unknown["o"] = f"growth with fan-in not observable from {len(fan)} fan-in(s)"
        a = a + np.maximum(mean(contention), 0)
    coefficients = shape_coefficients(form, handled, contention, weights)
    letters = FORMS[form].coefficients
    o = {"o.a": a} | {key("o", letter): draws for letter, draws in zip(letters, coefficients.T, strict=True)}

    fitted = L[0] + evaluate(form, "o", {name: draws[0] for name, draws in o.items()}, handled)
    title = f"L + {text(form)}, x = senders + 1"
    n_to_1 = curve("N-to-1", fan["n"], fan.seconds[0], fitted, title, len(letters) + 1, ("senders", "time / s"))
    values = {"L": L, "o.a": a, "g": np.zeros_like(L), "C": chain.C} | o
    notes = {"g": "left at 0: part of o, as in the paper"}
    curves = (chain.evidence, n_to_1)
    return Fitted(values, (packet, packet), {"o": form}, notes, unknown, curves, {"fan_in": int(fan["n"].max())})


def price(schedule: Schedule, values: Values) -> Array:
    """Walks the steps: when each rank is ready, its phases closing when it sends, and at the end."""
    ready = np.broadcast_to(values["C"], (*values.lead, schedule.ranks)).copy()  # T of a rank's last closed phase
    latest = np.full_like(ready, -np.inf)  # of what came in since
    sent = np.empty((*values.lead, len(schedule.src)))  # when each message was
    for step, (ranks, count) in zip((*schedule.steps, None), _phases(schedule), strict=True):
        waited = np.maximum(latest[..., ranks], ready[..., ranks])
        ready[..., ranks] = values["L"] + values.at("o", count + 1) + values["g"] + waited
        latest[..., ranks] = -np.inf
        if step is None:
            break
        sent[..., step.sent] = ready[..., step.src]
        groups, taken = step.receives, sent[..., step.taken]
        if groups.order is not None:
            taken = np.maximum.reduceat(taken[..., groups.order], groups.first, axis=-1)
        latest[..., groups.ranks] = np.maximum(latest[..., groups.ranks], taken)
    return ready


def pipelined(schedule: Schedule, values: Values) -> Array:
    """The node that handles the most messages in a combine phase sets the pace, whatever the height of the tree."""
    return (values["L"] + values.at("o", np.array([_most(schedule) + 1.0])) + values["g"])[..., 0]


def _phases(schedule: Schedule) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every step, and for the end, the ranks whose phase closes before it, and the messages in each phase."""
    count = np.zeros(schedule.ranks)

    def close(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ranks = ranks[count[ranks] > 0]
        closed = ranks, count[ranks]
        count[ranks] = 0
        return closed

    for step in schedule.steps:
        yield close(step.sends.ranks)
        groups = step.receives
        count[groups.ranks] += 1 if groups.order is None else groups.last - groups.first + 1
    yield close(np.arange(schedule.ranks))


def _most(schedule: Schedule) -> int:
    """The most messages of a phase."""
    return max(int(count.max(initial=0)) for _, count in _phases(schedule))


def doubts(schedule: Schedule, values: Values) -> str:
    """More messages in a combine phase than were probed: what o is there was never seen."""
    known = values.settings.get("fan_in")
    if known and (most := _most(schedule)) > int(known):
        return f"extrapolated: {most} messages in a combine phase, probed up to {known}"
    return ""


FAMILY = Family(
    name="tan",
    title="TAN",
    citation="LogP for tree aggregation networks (TAN model), evaluated with MRNet on LLNL Cab",
    equation="T_i = L + o(x+1) + g + max(T_child); T_leaf = C",
    parameters=(
        Parameter("L", "s", "mean of half a round trip of one packet, overheads included"),
        Parameter("o", "s", "time to handle x+1 messages in one combine phase", argument="x"),
        Parameter("g", "s", "gap between messages", default=0.0),
        Parameter("C", "s", "one-time cost of a wave", default=0.0),
    ),
    probes=("pingpong", "chain", "fan"),
    fit=fit,
    price=price,
    pipelined=pipelined,
    doubts=doubts,
    from_points={"L": 1e-5, "o.a": 1e-6, "o.b": 1e-7},
    ignores="the size of a message; that a sender with many receivers is busy (it was made for reductions)",
    uses_bytes=False,
)
