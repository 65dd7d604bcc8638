"""LoP: in a round a rank sends one short message to each of n partners, and what a message costs depends on n.

A step is a round. A rank that sends n messages has them all delivered o(n) + n·L(n) after it entered the step; posted
as a list, n·o(n) + n·L(n) (section 4.4 of the paper: the network interface starts on the first message while the
processor posts the rest, with a list only when all are posted). One that receives n takes n·L(n) as well, so a message
from s to d is there max(n_s·L(n_s), n_d·L(n_d)) after the overhead of s. The processor is busy n·o(n) with posting.
Receives are posted in advance, as in the paper, so that o_r costs nothing.

L(n) = (rtt(n) − o(1) − o(n))/2, never below 0; section 4.4 forgets the 2. For a list the paper takes n·o(n) off there,
which counts n² overheads in n messages; here it is o(n). rtt(n) is what the round trip out to n partners and back takes
per message. The paper's is T/n; but by the formulas above T = n·rtt(n) − (n−1)·(o(1) + o(n)), for a list
n·rtt(n) − (n−1)·o(1), so the fit puts the overheads that overlap on again: the price of a round trip then is the one
measured, and without overheads both are the same. Medians and minima are fitted apart; a bootstrap of a minimum knows
nothing of what is below it, so intervals of rtt_min are too narrow.
"""

import numpy as np

from commodel.errors import UserError
from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.pipelines import fit_pipeline

FUNCTIONS = {"isend": ("rtt", "o_s"), "list": ("rtt_list", "o_list"), "put": ("rtt_put", "o_put")}
SHORT = (0, 1)  # bytes: probed with one; a signal without any costs the same


def fit(observed):
    posts = {how: _posting(observed, o, how) for how, (_, o) in FUNCTIONS.items() if _measured(observed, how)}
    functions = list(posts.values())
    for how, (post, _, _) in posts.items():
        functions.append(_round_trips(observed, FUNCTIONS[how][0], how, post))
    functions.append(_round_trips(observed, "rtt_min", "isend", posts["isend"][0], "min"))
    if "irecv" in _ways(observed, "post"):
        functions.append(_posting(observed, "o_r", "irecv"))

    values, notes, unknown, curves = {"gamma": local_work(observed)}, {}, {}, []
    for function, n, each in functions:
        values |= function.values
        notes |= function.notes
        unknown |= function.unknown
        title = f"{function.name}: " + ("round trip per message" if function.name.startswith("rtt") else "overhead")
        terms = {"constant": 1, "pipeline": 3, "saturating": 5}[function.form]
        curves.append(curve(title, ("partners", "time / s"), n, each[0], function.at(n)[0], function.form, terms))
    forms = {function.name: function.form for function, _, _ in functions}
    settings = {"posting": "isend", "partners": max(int(n.max()) for _, n, _ in functions)}
    return Fitted(values, SHORT, forms, notes, unknown, tuple(curves), settings)


def _ways(observed, probe) -> set[str]:
    return {str(case.settings["how"]) for case in observed.probes.get(probe, ())}


def _measured(observed, how) -> bool:
    """Not every MPI can put; without isend there is no LoP, so that what is missing of it is said when it is read."""
    return how == "isend" or all(how in _ways(observed, probe) for probe in ("round", "post"))


def _posting(observed, name, how):
    """A function fitted to the time of posting, with what it was fitted to."""
    posted = observed.cases("post", how=how)
    n, each = posted["n"], posted.seconds / posted["n"]
    return fit_pipeline(name, n, each, 1 / np.maximum(each[0], 1e-15) ** 2, "pipeline"), n, each


def _round_trips(observed, name, how, post, statistic="median"):
    trips = observed.cases("round", statistic=statistic, how=how)
    n = trips["n"]
    overlapped = post.at([1]) + (0.0 if how == "list" else post.at(n))
    each = (trips.seconds + (n - 1) * overlapped) / n
    return fit_pipeline(name, n, each, 1 / each[0] ** 2), n, each


def price(schedule, values):
    posting = values.settings.get("posting", "isend")
    rtt, o = FUNCTIONS[posting]
    rtt += "_min" if values.settings.get("statistic") == "min" else ""
    if not values.has(rtt) or not np.any(values.at(rtt, np.array([1.0]))):
        raise UserError(f"family lop, posting {posting}: no {rtt} in this set, wanted {rtt}.a and so on")
    steps = [(step, _each(step.sends, len(step.src)), _each(step.receives, len(step.dst))) for step in schedule.steps]
    sizes = np.unique(np.concatenate([[1], *(column for _, *columns in steps for column in columns)]))
    o_1, o_n = values.at(o, np.array([1.0])), values.at(o, sizes)
    wire = sizes * np.maximum(values.at(rtt, sizes) - o_1 - o_n, 0.0) / 2  # n·L(n)
    busy = sizes * o_n
    first = busy if posting == "list" else o_n
    work = schedule.work_seconds(values["gamma"])
    lead = np.broadcast_shapes(values.lead, np.shape(work)[:-1], np.shape(wire)[:-1])
    work = np.broadcast_to(work, (*lead, len(schedule.work.step)))
    done = np.zeros((*lead, schedule.ranks))
    for step, out, back in steps:
        if len(step.src):
            out, back = np.searchsorted(sizes, out), np.searchsorted(sizes, back)
            arrival = done[..., step.src] + first[..., out] + np.maximum(wire[..., out], wire[..., back])
            senders, own = step.sends.ranks, _one_a_rank(step.sends, out)
            done[..., senders] += busy[..., own]
            groups = step.receives
            if groups.order is not None:
                arrival = np.maximum.reduceat(arrival[..., groups.order], groups.first, axis=-1)
            done[..., groups.ranks] = np.maximum(done[..., groups.ranks], arrival)
        if step.work.stop > step.work.start:
            np.add.at(done, (..., schedule.work.rank[step.work]), work[..., step.work])
    return done


def _each(groups, rows: int) -> np.ndarray:
    """For every row of a step, how many rows its rank has."""
    counts = np.ones(rows, dtype=int)
    if groups.order is not None:
        many = groups.last - groups.first + 1
        counts[groups.order] = np.repeat(many, many)
    return counts


def _one_a_rank(groups, column: np.ndarray) -> np.ndarray:
    return column if groups.order is None else column[groups.order][groups.first]


def doubts(schedule, values):
    """More partners than were probed; two messages to one partner, which the paper excludes (section 4.3)."""
    known = values.settings.get("partners")
    for step in schedule.steps:
        if not len(step.src):
            continue
        most = max(int(np.bincount(step.src).max()), int(np.bincount(step.dst).max()))
        if known and most > int(known):
            return f"extrapolated: a rank with {most} messages in a step, probed up to {known}"
        pair = step.src * schedule.ranks + step.dst
        if most > 1 and len(np.unique(pair)) < len(pair):
            return "several messages to one partner in a step: LoP knows one"
    return ""


def _rtt(name: str, meaning: str) -> Parameter:
    return Parameter(name, "s", meaning, argument="p", default=0.0, form="saturating")


def _overhead(name: str, meaning: str) -> Parameter:
    return Parameter(name, "s", meaning, argument="p", default=0.0, form="pipeline")


FAMILY = Family(
    name="lop",
    title="LoP",
    citation="T. Hoefler, T. Mehlan, F. Mietke, W. Rehm, A communication model for small messages with InfiniBand, "
    "PARS 2005",
    equation="T_1:n = o(n) + n·L(n), L(n) = (rtt(n) − o(1) − o(n))/2",
    parameters=(
        _rtt("rtt", "round trip to p partners and back, per message"),
        _overhead("o_s", "time to post one of p sends"),
        _overhead("o_r", "time to post one of p receives; they are posted in advance, so that it costs nothing"),
        _rtt("rtt_list", "round trip per message, sends posted as a list"),
        _overhead("o_list", "time to post one of a list of p sends"),
        _rtt("rtt_put", "round trip per message, put into the partner's memory"),
        _overhead("o_put", "time to post one of p puts"),
        _rtt("rtt_min", "smallest round trip per message"),
        GAMMA,
    ),
    probes=("round", "post", "work"),
    fit=fit,
    price=price,
    ignores="the size of a message; contention between ranks that share nothing; more than one message to a partner",
    uses_bytes=False,
    settings={"posting": tuple(FUNCTIONS), "statistic": ("median", "min")},
    doubts=doubts,
)
