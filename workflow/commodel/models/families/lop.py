"""LoP: in a round, a rank sends one short message to each of n partners, and the time of a message
depends on n.

    T_1:n = o(n) + n·L(n), posted as a list n·o(n) + n·L(n)          (section 4.7 of the paper)
    L(n) = (rtt(n) − o(1) − o(n))/2, never below 0
    rtt(n) = λ₁/(λ₂ + n) + λ₃ + λ₄·(1 − exp(λ₅·(n − λ₆)))            (section 3)
    o(n) = λ₁ + λ₂/(λ₃ + n)

A step is a round. A rank that sends n messages has them all delivered T_1:n after it entered the
step: the network interface starts on the first message while the processor posts the rest. With a
list it starts when all are posted. A rank that receives n messages takes n·L(n) as well. A message
from s to d therefore arrives max(n_s·L(n_s), n_d·L(n_d)) after the overhead of s. The processor
posts for n·o(n). Receives are posted in advance, as in the paper, so o_r is free.

The paper prints L(n) = rtt(n)/2 − o(1) − o(n): half of the round trip, but the overheads of both
directions (sections 4.4 and 4.7: 4.58 is half of 9.1637, and 0.52 + 0.84/(n − 0.12) is not halved).
With this, one message in both directions takes 2·o(1) less than was measured, 2.9 of 22.8 µs with
the printed values. Here both are halved; `latency: printed` selects the paper's formula. For a
list, the paper subtracts n·o(n) in L(n), which counts n² overheads in n messages: with the printed
overheads, L is below 0 from n = 4 on and −31 µs at 64. Here it is o(n); with `latency: printed` it
is n·o(n).

rtt(n) is the time per message of a round trip to n partners, T/n in the paper. By the formulas
above T = n·rtt(n) − (n−1)·(o(1) + o(n)), for a list n·rtt(n) − (n−1)·o(1). The fit therefore adds
the overlapped overheads, so that the prediction of a round trip is the measured one. Medians, means
and minima are fitted separately. A bootstrap of a minimum cannot go below it, so intervals of
rtt_min are too narrow.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from commodel.errors import UserError
from commodel.models.evaluation.repeated_rounds import PlacedRounds, RoundStack, State, place_rounds
from commodel.models.evaluation.replay import count_most_messages
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
from commodel.models.fitting.functions_of_count import CountFunction, fit_pipeline
from commodel.models.fitting.numerics import add_at
from commodel.models.fitting.regression import make_curve
from commodel.models.fitting.round_trips import describe_shared_nodes
from commodel.patterns.repeated import Rounds
from commodel.patterns.schedule import RankGroups

FUNCTIONS_OF_WAY = {
    "isend": ("rtt", "o_s"),
    "list": ("rtt_list", "o_list"),
    "put": ("rtt_put", "o_put"),
}
PROBED_SIZES = (0, 1)  # bytes: probed with 1, and the same for an empty message
COEFFICIENTS_OF_FORM = {"constant": 1, "pipeline": 3, "saturating": 5}  # identifiable coefficients

# a function, and the counts and times that it was fitted to
Fit = tuple[CountFunction, np.ndarray, Array]


def fit(observed: Observed) -> Fitted:
    posts = {
        how: _fit_posting(observed, o, how)
        for how, (_, o) in FUNCTIONS_OF_WAY.items()
        if _is_measured(observed, how)
    }
    fits = list(posts.values())
    fits += [
        _fit_round_trips(observed, FUNCTIONS_OF_WAY[how][0], how, post)
        for how, (post, _, _) in posts.items()
    ]
    for statistic in ("min", "mean"):
        fits.append(
            _fit_round_trips(observed, f"rtt_{statistic}", "isend", posts["isend"][0], statistic)
        )
    if "irecv" in _list_posting_modes(observed, "post"):
        fits.append(_fit_posting(observed, "o_r", "irecv"))

    values = {"gamma": fit_local_work(observed)}
    notes: dict[str, str] = {}
    unidentified: dict[str, str] = {}
    curves = []
    for function, n, times in fits:
        values |= function.values
        notes |= function.notes
        unidentified |= function.unidentified
        title = f"{function.name}: " + (
            "round trip per message" if function.name.startswith("rtt") else "overhead"
        )
        fitted, labels = function.at(n)[0], ("partners", "time / s")
        curves.append(
            make_curve(
                title,
                n,
                times[0],
                fitted,
                function.form,
                COEFFICIENTS_OF_FORM[function.form],
                labels,
            )
        )
    notes |= _describe_lists(fits, notes)
    shared = describe_shared_nodes(observed.cases("round"))
    if shared:
        for name, _ in FUNCTIONS_OF_WAY.values():
            notes[f"{name}.a"] = "; ".join(filter(None, (notes.get(f"{name}.a"), shared)))
    forms = {function.name: function.form for function, _, _ in fits}
    settings = {"posting": "isend", "partners": max(int(n.max()) for _, n, _ in fits)}
    return Fitted(values, PROBED_SIZES, forms, notes, unidentified, tuple(curves), settings)


def _describe_lists(fits: list[Fit], notes: dict[str, str]) -> dict[str, str]:
    """Return a note with the L of a list in this fit, and by section 4.4 of the paper."""
    by_name = {function.name: (function, n) for function, n, _ in fits}
    if "o_list" not in by_name:
        return {}
    (o, counts), (rtt, _) = by_name["o_list"], by_name["rtt_list"]
    largest = int(counts.max())
    o_n, o_1, trip = (
        float(function.at([n])[0, 0]) for function, n in ((o, largest), (o, 1), (rtt, largest))
    )
    halved, printed = max((trip - o_1 - o_n) / 2, 0.0), trip / 2 - o_1 - largest * o_n
    text = (
        f"L({largest}) is {halved * 1e6:.3g} µs; with the paper's n·o(n) for a list it would be "
        f"{printed * 1e6:.3g} µs"
    )
    return {"o_list.a": "; ".join(filter(None, (notes.get("o_list.a"), text)))}


def _list_posting_modes(observed: Observed, probe: str) -> set[str]:
    return {str(case.settings["how"]) for case in observed.probes.get(probe, ())}


def _is_measured(observed: Observed, how: str) -> bool:
    """Return whether a way of posting was measured. Not every MPI has put; `isend` is required."""
    return how == "isend" or all(
        how in _list_posting_modes(observed, probe) for probe in ("round", "post")
    )


def _fit_posting(observed: Observed, name: str, how: str) -> Fit:
    """Return the overhead of posting, fitted to the probe `post`."""
    posted = observed.cases("post", how=how)
    n, times = posted["n"], posted.seconds / posted["n"]
    return fit_pipeline(name, n, times, 1 / np.maximum(times[0], 1e-15) ** 2, "pipeline"), n, times


def _fit_round_trips(
    observed: Observed, name: str, how: str, post: CountFunction, statistic: str = "median"
) -> Fit:
    """Return the round trip per message, fitted to the probe `round`."""
    trips = observed.cases("round", statistic=statistic, how=how)
    n = trips["n"]
    overlapped = post.at([1]) + (0.0 if how == "list" else post.at(n))
    times = (trips.seconds + (n - 1) * overlapped) / n
    return fit_pipeline(name, n, times, 1 / times[0] ** 2), n, times


@dataclass(frozen=True, eq=False)
class RoundTimes:
    """The times of a round in which a rank has n messages, for several n: (draws, n)."""

    first: Array  # until the network starts
    wire: Array  # from then until all are delivered
    busy: Array  # time of the processor


def time_rounds(values: Values, n: np.ndarray) -> RoundTimes:
    """Return the times of rounds with n messages of a rank."""
    posting, printed = (
        values.settings.get("posting", "isend"),
        values.settings.get("latency") == "printed",
    )
    statistic = values.settings.get("statistic", "median")
    rtt, o = FUNCTIONS_OF_WAY[posting]
    rtt += "" if statistic == "median" else f"_{statistic}"
    if rtt not in values.functions or not np.any(values.at(rtt, np.array([1.0]))):
        raise UserError(
            f"model lop, posting {posting}: no {rtt} in this set, wanted {rtt}.a and so on"
        )
    o_1, o_n = values.at(o, np.array([1.0])), values.at(o, n)
    busy = n * o_n
    first = busy if posting == "list" else o_n
    overheads = o_1 + (first if printed else o_n)
    L = values.at(rtt, n) / 2 - (overheads if printed else overheads / 2)
    return RoundTimes(first, n * np.maximum(L, 0.0), busy)


def predict(schedule: Schedule, values: Values) -> Array:
    finish = np.zeros((*values.draw_shape, schedule.ranks))
    for part in schedule.parts:
        if isinstance(part, Rounds):
            finish = _repeat_rounds(place_rounds(schedule)[part], values, finish)
        else:
            finish = _advance_clocks(part, values, finish)
    return finish


def _repeat_rounds(placed: PlacedRounds, values: Values, finish: Array) -> Array:
    """Return the clocks after repeated rounds, in which every rank has one partner."""
    rounds, work = (
        time_rounds(values, np.ones(1, dtype=int)),
        placed.sample.work_seconds(values["gamma"]),
    )

    def play_rounds(state: State, batch: RoundStack) -> State:
        entered = state[..., 0, :]
        for one_round in batch.rounds:
            arrival = (entered + rounds.first)[..., one_round.source] + rounds.wire
            finish = np.maximum(entered + rounds.busy, arrival)
            entered = finish + work[..., one_round.received] if work.shape[-1] else finish
        return entered[..., None, :]

    return placed.run(finish[..., None, :], play_rounds)[..., 0, :]


def _advance_clocks(schedule: Schedule, values: Values, begin: Array) -> Array:
    """Return the clocks after a part without repeated rounds."""
    counts = [(_count_by_rank(step.src), _count_by_rank(step.dst)) for step in schedule.steps]
    n = np.unique(np.concatenate([[1], *(column for both in counts for column in both)]))
    rounds = time_rounds(values, n)
    first, wire, busy = rounds.first, rounds.wire, rounds.busy
    work = schedule.work_seconds(values["gamma"])
    shape = np.broadcast_shapes(values.draw_shape, np.shape(work)[:-1], np.shape(wire)[:-1])
    work = np.broadcast_to(work, (*shape, len(schedule.work.step)))
    finish = np.broadcast_to(begin, (*shape, schedule.ranks)).copy()
    sender_index = np.zeros(len(schedule.src), dtype=int)  # index in n of a message's sender
    departure = np.empty((*shape, len(schedule.src)))
    for step, (sent, received) in zip(schedule.steps, counts, strict=True):
        if len(step.src):
            sender_index[step.posted_sends] = sent = np.searchsorted(n, sent)
            departure[..., step.posted_sends] = finish[..., step.src] + first[..., sent]
            finish[..., step.sends.ranks] += busy[..., _take_first_rows(step.sends, sent)]
        if len(step.dst):
            received = np.searchsorted(n, received)
            arrival = departure[..., step.awaited_receives] + np.maximum(
                wire[..., sender_index[step.awaited_receives]], wire[..., received]
            )
            groups = step.receives
            finish[..., groups.ranks] = np.maximum(
                finish[..., groups.ranks], groups.latest(arrival)
            )
        if step.work.stop > step.work.start:
            add_at(finish, schedule.work.rank[step.work], work[..., step.work])
    return finish


def _count_by_rank(ranks: np.ndarray) -> np.ndarray:
    """Return for every row of a step the number of rows of its rank."""
    _, inverse, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    return counts[inverse]


def _take_first_rows(groups: RankGroups, column: np.ndarray) -> np.ndarray:
    """Return one row for each rank."""
    return column if groups.order is None else column[groups.order][groups.first]


def describe_limits(schedule: Schedule, values: Values) -> str:
    """Return why a prediction has limited validity: more partners than probed, or several messages
    to one partner.

    The paper excludes the latter (section 4.3).
    """
    probed = values.settings.get("partners")
    # in rounds a rank has one partner
    plain = (part for part in schedule.parts if not isinstance(part, Rounds))
    for step in (step for part in plain for step in part.steps):
        largest = max(count_most_messages(step.sends), count_most_messages(step.receives))
        if probed and largest > int(probed):
            return f"extrapolated: a rank with {largest} messages in a step, probed up to {probed}"
        pair = step.src * schedule.ranks + schedule.dst[step.posted_sends]
        if largest > 1 and len(np.unique(pair)) < len(pair):
            return "several messages to one partner in a step: LoP allows one"
    return ""


FUNCTION_OF_P = partial(Parameter, unit="s", argument="p", default=0.0)
RTT_FUNCTION, OVERHEAD_FUNCTION = (
    partial(FUNCTION_OF_P, form="saturating"),
    partial(FUNCTION_OF_P, form="pipeline"),
)

FAMILY = Family(
    name="lop",
    title="LoP",
    citation="T. Hoefler, T. Mehlan, F. Mietke, W. Rehm, A communication model for small messages with InfiniBand, "
    "PARS 2005",
    equation="T_1:n = o(n) + n·L(n), L(n) = (rtt(n) − o(1) − o(n))/2, as printed rtt(n)/2 − o(1) − o(n)",
    parameters=(
        RTT_FUNCTION("rtt", meaning="round trip to p partners and back, per message"),
        OVERHEAD_FUNCTION("o_s", meaning="time to post one of p sends"),
        OVERHEAD_FUNCTION(
            "o_r",
            meaning="time to post one of p receives; they are posted in advance, so that it costs nothing",
        ),
        RTT_FUNCTION("rtt_list", meaning="round trip per message, sends posted as a list"),
        OVERHEAD_FUNCTION("o_list", meaning="time to post one of a list of p sends"),
        RTT_FUNCTION("rtt_put", meaning="round trip per message, put into the partner's memory"),
        OVERHEAD_FUNCTION("o_put", meaning="time to post one of p puts"),
        RTT_FUNCTION("rtt_min", meaning="smallest round trip per message"),
        RTT_FUNCTION("rtt_mean", meaning="average round trip per message"),
        GAMMA,
    ),
    probes=("round", "post", "work"),
    fit=fit,
    predict=predict,
    ignores="the size of a message; contention between ranks that share nothing; more than one message to a partner",
    uses_bytes=False,
    settings={
        "posting": Setting(
            tuple(FUNCTIONS_OF_WAY), "One by one, as a list, or put into the partner's memory"
        ),
        "statistic": Setting(("median", "min", "mean"), "Which of the measured round trips"),
        "latency": Setting(
            ("halved", "printed"),
            "L(n) is half of the round trip without overheads, or half of the round trip minus "
            "whole overheads",
        ),
    },
    limits=describe_limits,
)
