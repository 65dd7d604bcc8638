"""BSP: supersteps of local work, of a relation in which no rank sends or receives more than h messages, and of waiting
for all. Every step of a schedule is one, and all ranks leave it together, however little a rank has to do in it.

A superstep costs the sum w + h·g + l, as in BSPlib; Valiant's own charge is a whole number of periods l. g is per
message of a packet; BSPlib's is per word. l depends on the number of ranks, and is what h = 0 leaves.
"""

import numpy as np

from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.regression import choose_form, least_squares, line, mean
from commodel.models.pricing.functions import FORMS

SHAPES = {"constant": None, "logarithmic": np.log, "linear": np.asarray}  # of l: what its line is a line in


def fit(observed):
    """g from all supersteps, with a waiting time for every number of ranks, so that it does not hang on the form of l;
    then l from what g leaves."""
    steps = observed.cases("hrelation")
    packet = int(steps["bytes"][0])
    h, ranks, time = steps["h"].astype(float), steps["procs"].astype(float), steps.seconds
    weights = 1 / time[0] ** 2
    counts = np.unique(ranks)
    notes = {"l": f"probed with {counts[0]:.0f} to {counts[-1]:.0f} ranks"}
    unknown = {"l": f"how it grows is not observable from {len(counts)} number(s) of ranks"} if len(counts) < 3 else {}
    found = least_squares([h, *(ranks == count for count in counts)], time, weights)
    g, waits = np.maximum(found[:, 0], 0), found[:, 1:]

    wait = time - g[:, None] * h
    form, _ = choose_form(tuple(SHAPES), ranks, wait, weights, constant=True)
    if form == "constant":
        values = {"g": g, "l.a": np.maximum(mean(wait, weights), 0)}
    else:
        a, b = line(SHAPES[form](ranks), wait, weights)
        values = {"g": g, "l.a": a, "l.b": b}
    coefficients = (values[f"l.{letter}"][0] for letter in FORMS[form].coefficients)
    l_at = dict(zip(counts, values["l.a"][0] + FORMS[form].shape(counts, *coefficients), strict=True))
    fitted = g[0] * h + np.array([l_at[count] for count in ranks])
    text = FORMS[form].text.replace("x", "p")
    curves = (
        curve("supersteps", ("messages a rank", "time / s"), h, time[0], fitted, f"h·g + l, l = {text}", len(values)),
        curve("waiting for all", ("ranks", "time / s"), counts, waits[0], list(l_at.values()), f"l = {text}", 2),
    )
    values["gamma"] = local_work(observed)
    settings = {"ranks": int(counts[-1])}
    return Fitted(values, (packet, packet), {"l": form}, notes, unknown, curves, settings)


def price(schedule, values):
    wait = values.at("l", np.array([float(schedule.ranks)]))
    busiest = sum(max(_most(step.sends), _most(step.receives)) for step in schedule.steps)
    total = busiest * values["g"] + len(schedule.steps) * wait + _work(schedule, values["gamma"])
    return np.broadcast_to(total, (*total.shape[:-1], schedule.ranks))


def _most(groups):
    """Messages of the rank that has the most of them."""
    return groups.longest if groups.order is not None else min(len(groups.ranks), 1)


def _work(schedule, gamma):
    """The largest local work of a rank in each step, summed over the steps; one column."""
    seconds = schedule.work_seconds(gamma)
    total = np.zeros((*seconds.shape[:-1], 1))
    for step in schedule.steps:
        ranks, place = np.unique(schedule.work.rank[step.work], return_inverse=True)
        if len(ranks):
            mine = np.zeros((*seconds.shape[:-1], len(ranks)))
            np.add.at(mine, (..., place), seconds[..., step.work])
            total += mine.max(axis=-1, keepdims=True)
    return total


FAMILY = Family(
    name="bsp",
    title="BSP",
    citation="L. G. Valiant, A bridging model for parallel computation, Communications of the ACM 33(8), 1990",
    equation="T = Σ (w + h·g + l(p)) over the supersteps",
    parameters=(
        Parameter("g", "s", "time per message of a superstep, of the rank that has the most of them"),
        Parameter("l", "s", "time for all p ranks to wait for each other", argument="p"),
        GAMMA,
    ),
    probes=("hrelation", "work"),
    fit=fit,
    price=price,
    from_points={"g": 1e-6, "l.a": 1e-5},
    ignores="the size of a message; that ranks need not wait for each other; which rank sends to which",
    uses_bytes=False,
)
