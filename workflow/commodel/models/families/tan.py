"""TAN: the time of a wave through a tree, with an overhead that grows with the number of messages
of a node.

    T_i = L + o(x+1) + g + max(T_child) for a node with x children, T_leaf = C      (equation 1 of the paper)
    T = L + max_i o(x_i+1) + g between two waves of a long stream                   (equation 2)

On a schedule, a rank's combine phase is the longest run of receives between two of its sends, and x
the messages in it. L is the **average** of half the round trip, overheads of both ends included;
LogP's is an upper bound without them.

If the tree runs on a lower layer, as MRNet on TCP, the constant of o is what the tree adds to that
layer's L at each level. If trees and ping-pongs are of one layer, as here, a chain consists of
ping-pongs, so o(2) is near 0 and the constant of o below it. Only L + o is a time.

A set fitted here has two versions of o. One is from chain and N-to-1 together. The other is from
the paper's own recipe (`recipe: paper`): it forces the N-to-1 curve through the origin, halves
round trips, and reads o(x+1) off a curve over x. If times grow exactly linearly with N, it may find
a parabola.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from commodel.errors import UserError
from commodel.models.evaluation.repeated_rounds import RoundStack, State, place_rounds
from commodel.models.evaluation.replay import find_largest_phase, iterate_phases
from commodel.models.evaluation.values import FORMS, evaluate, format_form
from commodel.models.families import (
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    Setting,
    TableFit,
    Values,
)
from commodel.models.fitting.functions_of_count import SHAPES, fit_trees
from commodel.models.fitting.regression import (
    choose_form,
    fit_line,
    fit_mean,
    fit_shape_coefficients,
    make_curve,
    make_line_curve,
)
from commodel.models.fitting.round_trips import describe_shared_nodes
from commodel.models.keys import make_key
from commodel.parameters import Curve
from commodel.patterns.repeated import Rounds

SECONDS_AXIS = "time / s"
LEAVES_AXES = ("N, leaves", SECONDS_AXIS)
CHAIN, FAN = "chain", "N-to-1"  # titles of curves
PAPER_CHAIN, PAPER_FAN = "chain, the paper's recipe", "N-to-1, the paper's recipe"


@dataclass(frozen=True, eq=False)
class Chain:
    """The chain experiment: L from the ping-pong, C and the overhead of a level from heights, all
    in seconds."""

    packet: int
    L: Array
    C: Array
    a: Array
    unidentified: dict[str, str]  # of C and a
    evidence: Curve


def fit_chain(observed: Observed) -> Chain:
    """Return the paper's chain experiment (section IV).

    Half the round trip, less the latencies, is halved again (a send and a receive a level) and
    drawn against the height. The slope is the constant of o, an intercept above 0 is C. Medians
    replace the paper's means, since a mean on a shared machine includes its other users.
    """
    chain = observed.cases("chain")
    packet = int(chain["bytes"][0])
    L = measure_latency(observed, packet)
    height, wave = chain["height"].astype(float), chain.seconds / 2
    overhead = (wave - L[:, None] * height) / 2
    # rounding errors of exact simulations
    overhead = np.where(np.abs(overhead) < 1e-12 * wave, 0.0, overhead)
    unidentified = {}
    if len(chain) > 1:
        C, a = fit_line(height, overhead, 1 / wave[0] ** 2)
    else:
        C, a = np.zeros_like(L), np.maximum(overhead[:, 0], 0)
        unidentified["C"] = "not distinguishable from o: chains of one height only were measured"
    for name, draws in (("C", C), ("a", a)):
        if draws[0] == 0:
            unidentified.setdefault(
                name, "not distinguishable from 0: the round trip explains the whole chain"
            )
    evidence = make_line_curve(
        "chain", height, overhead, C, a, "C + a·height", ("height", SECONDS_AXIS)
    )
    return Chain(packet, L, C, a, unidentified, evidence)


def fit(observed: Observed) -> Fitted:
    """Fit o and C to chain and N-to-1 together (see `functions_of_count`); the constant of o is a
    level's time beyond L.

    If the paper's N-to-1 experiment was measured, the paper's own recipe is fitted as well.
    """
    chain = observed.cases("chain")
    packet = int(chain["bytes"][0])
    L = measure_latency(observed, packet)
    fan = observed.cases("fan", direction="in", bytes=packet)
    height, leaves, wave = chain["height"].astype(float), fan["n"].astype(float), chain.seconds / 2
    trees = fit_trees(height, wave, leaves, fan.seconds)
    letters = FORMS[trees.form].coefficients
    values = {
        "L": L,
        "o.a": trees.level - L - trees.shape_at_two,
        "g": np.zeros_like(L),
        "C": trees.C,
    }
    values |= {
        make_key("o", letter): draws for letter, draws in zip(letters, trees.shape.T, strict=True)
    }
    notes, unidentified = {"g": "left at 0: part of o, as in the paper"}, {}
    if values["o.a"][0] < 0:
        notes["o.a"] = "below 0: L contains a cost of each phase, so only L + o is a cost"
    if trees.form == "constant":
        unidentified["o"] = f"growth with fan-in not observable from {len(fan)} fan-in(s)"
    if trees.C[0] == 0:
        unidentified["C"] = "not distinguishable from 0: the levels explain the whole wave"
    if len(set(chain["height"].tolist())) == 1:
        unidentified["C"] = "not distinguishable from o: chains of one height only were measured"
    shared = describe_shared_nodes(fan)
    if shared:  # every hop of a chain is between nodes
        notes |= {
            name: "; ".join(filter(None, (notes.get(name), shared))) for name in ("o", "o.a", "C")
        }
    forms, count = {"o": trees.form}, len(letters) + 2
    curves = [
        make_curve(
            CHAIN, height, wave[0], trees.chain, "C + h·(L + o(2))", count, ("height", SECONDS_AXIS)
        ),
        make_curve(
            FAN,
            leaves,
            fan.seconds[0],
            trees.fan,
            f"C + L + {format_form(trees.form)}, x = N + 1",
            count,
            LEAVES_AXES,
        ),
    ]
    if observed.probes.get("wave"):
        by_recipe = fit_by_paper_recipe(observed, packet)
        values |= by_recipe.values
        forms |= by_recipe.forms
        unidentified |= by_recipe.unidentified
        curves += by_recipe.curves
    missing = (
        {}
        if "o_paper.a" in values
        else {"o_paper": "no round trip of N-to-1 was measured (probe wave)"}
    )
    settings = {"fan_in": int(fan["n"].max())}
    return Fitted(
        values, (packet, packet), forms, notes, unidentified, tuple(curves), settings, missing
    )


def measure_latency(observed: Observed, packet: int) -> Array:
    """Return L: half of the mean round trip in seconds."""
    return observed.cases("pingpong", statistic="mean", bytes=packet).seconds[:, 0] / 2


def fit_by_paper_recipe(observed: Observed, packet: int) -> Fitted:
    """Return o and C by section IV of the paper.

    The root requests a wave, and half of the round trip counts. Less one latency and one overhead
    of a level, it is drawn against N. The best shape through the origin by AICc is taken for o(x)
    of x = N, although equation 1 has o(x+1).
    """
    chain = fit_chain(observed)
    rounds = observed.cases("wave", bytes=packet)
    leaves, half = rounds["n"].astype(float), rounds.seconds / 2
    contention, weights = half - (chain.L + chain.a)[:, None], 1 / half[0] ** 2
    form, scores = choose_form(SHAPES, leaves, contention, weights)
    a = chain.a
    if not scores:
        form, a = "constant", a + np.maximum(fit_mean(contention), 0)
    coefficients = fit_shape_coefficients(form, leaves, contention, weights)
    letters = FORMS[form].coefficients
    growth = {
        make_key("o_paper", letter): draws
        for letter, draws in zip(letters, coefficients.T, strict=True)
    }
    values = {"C_paper": chain.C, "o_paper.a": a, **growth}
    estimates = {name: np.asarray(draws[0]) for name, draws in growth.items()}
    grown = evaluate(form, "o_paper", {"o_paper.a": np.zeros(()), **estimates}, leaves)
    title = f"{format_form(form)} through the origin, x = N"
    n_to_1 = make_curve(PAPER_FAN, leaves, contention[0], grown, title, len(letters), LEAVES_AXES)
    unidentified = {
        "o_paper.a" if name == "a" else "C_paper": reason
        for name, reason in chain.unidentified.items()
    }
    curves = replace(chain.evidence, title=PAPER_CHAIN), n_to_1
    return Fitted(
        values, (packet, packet), {"o_paper": form}, unidentified=unidentified, curves=curves
    )


def _name_functions(values: Values) -> tuple[str, str]:
    """Return the names of o and C for the recipe that the set chooses."""
    if values.settings.get("recipe", "joint") == "joint":
        return "o", "C"
    if "o_paper" not in values.functions:
        raise UserError(
            "model tan, recipe paper: no o_paper in this set, wanted o_paper.a and so on"
        )
    return "o_paper", "C_paper" if "C_paper" in values else "C"


def predict(schedule: Schedule, values: Values) -> Array:
    """Return when each rank is ready: its phases close when it sends, and at the end."""
    o, C = _name_functions(values)
    state = np.empty((*values.draw_shape, 2, schedule.ranks))
    # T of the last closed phase, and the latest arrival since
    state[..., 0, :], state[..., 1, :] = values[C], -np.inf
    all_phases, most = _list_phases(schedule)
    phases = iter(all_phases)
    # Of a phase by its number of messages, without what it waits for.
    seconds = values["L"] + values.at(o, np.arange(most + 1) + 1.0) + values["g"]

    def close_phases(state: State, ranks: np.ndarray, count: np.ndarray) -> State:
        if not len(count):
            return state
        ready, latest = state[..., 0, :], state[..., 1, :]
        waited = np.maximum(latest[..., ranks], ready[..., ranks])
        ready[..., ranks] = seconds[..., count] + waited
        latest[..., ranks] = -np.inf
        return state

    def play_rounds(state: State, batch: RoundStack) -> State:
        """Return the state after repeated rounds, in which every rank receives one message a
        phase."""
        for one_round in batch.rounds:
            ready = values["L"] + values.at(o, np.full(1, 2.0)) + values["g"] + state.max(axis=-2)
            state = np.stack([ready, ready[..., one_round.source]], axis=-2)
        return state

    for part in schedule.parts:
        first = part.round(0, schedule.node) if isinstance(part, Rounds) else part
        state = _advance_state(first, state, phases, close_phases)
        if isinstance(part, Rounds) and part.count > 1:
            next(phases)
            state = np.array(place_rounds(schedule)[part].run(state, play_rounds, first=1))
    return close_phases(state, *next(phases))[..., 0, :]


def _list_phases(schedule: Schedule) -> tuple[list[tuple[np.ndarray, np.ndarray]], int]:
    """Return the ranks whose phases close before each step, and at the end, with their numbers of
    messages; and the largest of these numbers. They are found once a schedule, for all values."""
    if "phases" not in schedule.cache:
        phases = [(ranks, count.astype(int)) for ranks, count in iterate_phases(schedule)]
        schedule.cache["phases"] = phases, max(int(count.max(initial=0)) for _, count in phases)
    return schedule.cache["phases"]


def _advance_state(
    schedule: Schedule,
    state: State,
    phases: Iterator[tuple[np.ndarray, np.ndarray]],
    close_phases: Callable[..., State],
) -> State:
    """Return the state after a part without repeated rounds."""
    ready, latest = state[..., 0, :], state[..., 1, :]
    sent = np.empty((*ready.shape[:-1], len(schedule.src)))  # time of each message
    for step in schedule.steps:
        close_phases(state, *next(phases))
        sent[..., step.posted_sends] = ready[..., step.src]
        groups, awaited = step.receives, sent[..., step.awaited_receives]
        latest[..., groups.ranks] = np.maximum(latest[..., groups.ranks], groups.latest(awaited))
    return state


def predict_period(schedule: Schedule, values: Values) -> Array:
    """Return the time between two waves: that of the largest combine phase, whatever the height of
    the tree (equation 2)."""
    o, _ = _name_functions(values)
    return (
        values["L"] + values.at(o, np.array([find_largest_phase(schedule) + 1.0])) + values["g"]
    )[..., 0]


def describe_free_messages(schedule: Schedule) -> str:
    """Explain which messages of a pattern are free.

    The paper's equation describes a wave up to the root: o is of the messages that a node receives,
    and sending has no cost. Of messages that a rank sends in a row, as in a multicast, all but the
    first are free.
    """
    sent_in_row, longest = np.zeros(schedule.ranks), 0
    for step in schedule.steps:
        sends = step.sends
        sent_in_row[sends.ranks] += 1 if sends.order is None else sends.last - sends.first + 1
        longest = max(longest, int(sent_in_row.max()))
        sent_in_row[step.receives.ranks] = 0
    return (
        f"no reduction: a rank sends {longest} messages in a row, of which one is predicted"
        if longest > 1
        else ""
    )


def describe_limits(schedule: Schedule, values: Values) -> str:
    """Return why a prediction has limited validity: a multicast, or larger combine phases than were
    probed."""
    uncovered = describe_free_messages(schedule)
    if uncovered:
        return uncovered
    probed = values.settings.get("fan_in")
    if probed and (largest := find_largest_phase(schedule)) > int(probed):
        return f"extrapolated: {largest} messages in a combine phase, probed up to {probed}"
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
        Parameter("o_paper", "s", "o(x) by the paper's own recipe", argument="x", optional=True),
        Parameter("C_paper", "s", "C by the paper's own recipe", optional=True),
    ),
    probes=("pingpong", "chain", "fan", "wave"),
    fit=fit,
    predict=predict,
    pipelined=predict_period,
    limits=describe_limits,
    settings={
        "recipe": Setting(
            ("joint", "paper"),
            "o and C from chain and N-to-1 together, or by the paper's own recipe (section IV)",
        )
    },
    table_fit=TableFit(initial_values={"L": 1e-5, "o.a": 1e-6, "o.b": 1e-7}),
    overlaps_work=False,
    ignores="the size of a message; that a sender with many receivers is busy (it was made for reductions)",
    uses_bytes=False,
)
