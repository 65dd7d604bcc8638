"""BSP: supersteps of local work, of an h-relation, in which no rank sends or receives more than h
messages, and of a barrier. Every step with receives or work is a superstep, and all ranks leave it
together.

    T = Σ (w + h·g + l(p)) over the supersteps

The sum is that of BSPlib; Valiant charges a whole number of periods l. g is per message of a
packet; BSPlib's is per word. l depends on the number of ranks, and is the time at h = 0.
"""

import numpy as np

from commodel.models.evaluation.repeated_rounds import condense_rounds
from commodel.models.evaluation.replay import count_most_messages, sum_longest_work
from commodel.models.evaluation.values import evaluate, format_form
from commodel.models.families import (
    GAMMA,
    Array,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    TableFit,
    Values,
    fit_local_work,
)
from commodel.models.fitting.regression import (
    choose_form,
    fit_least_squares,
    fit_line,
    fit_mean,
    make_curve,
)
from commodel.models.fitting.round_trips import describe_shared_nodes

# Of l, as a line over a transformed number of ranks.
SHAPES = {"constant": None, "logarithmic": np.log, "linear": np.asarray}


def fit(observed: Observed) -> Fitted:
    """Fit g to all supersteps with a free waiting time for every number of ranks, then l to the
    rest.

    The free waiting times make g independent of the form of l.
    """
    steps = observed.cases("hrelation")
    packet = int(steps["bytes"][0])
    h, ranks, time = steps["h"].astype(float), steps["procs"].astype(float), steps.seconds
    weights = 1 / time[0] ** 2
    counts = np.unique(ranks)
    notes = {"l": f"probed with {counts[0]:.0f} to {counts[-1]:.0f} ranks"}
    unidentified = (
        {"l": f"how it grows is not observable from {len(counts)} number(s) of ranks"}
        if len(counts) < 3
        else {}
    )
    shared = describe_shared_nodes(steps)
    if shared:
        notes |= {"g": shared, "l": f"{notes['l']}; {shared}"}
    coefficients = fit_least_squares([h, *(ranks == count for count in counts)], time, weights)
    g, waiting_times = np.maximum(coefficients[:, 0], 0), coefficients[:, 1:]

    waiting = time - g[:, None] * h
    form, _ = choose_form(tuple(SHAPES), ranks, waiting, weights, constant=True)
    if form == "constant":
        values = {"g": g, "l.a": np.maximum(fit_mean(waiting, weights), 0)}
    else:
        shape = SHAPES[form]
        assert shape is not None
        a, b = fit_line(shape(ranks), waiting, weights)
        values = {"g": g, "l.a": a, "l.b": b}
    l_at = evaluate(form, "l", {name: draws[0] for name, draws in values.items()}, counts)
    fitted = g[0] * h + l_at[np.searchsorted(counts, ranks)]
    l = f"l = {format_form(form).replace('x', 'p')}"
    curves = (
        make_curve(
            "supersteps",
            h,
            time[0],
            fitted,
            f"h·g + l, {l}",
            len(values),
            ("messages a rank", "time / s"),
        ),
        make_curve("waiting for all", counts, waiting_times[0], l_at, l, 2, ("ranks", "time / s")),
    )
    values["gamma"] = fit_local_work(observed)
    return Fitted(
        values,
        (packet, packet),
        {"l": form},
        notes,
        unidentified,
        curves,
        {"ranks": int(counts[-1])},
    )


def predict(schedule: Schedule, values: Values) -> Array:
    wait = values.at("l", np.array([float(schedule.ranks)]))
    schedule, times = condense_rounds(schedule)
    ends = [bool(len(step.dst) or step.work.stop > step.work.start) for step in schedule.steps]
    h = times @ [
        max(count_most_messages(step.senders), count_most_messages(step.receives))
        for step in schedule.steps
    ]
    w = sum_longest_work(schedule, schedule.work_seconds(values["gamma"]), times)
    total = h * values["g"] + (times @ ends) * wait + w[..., None]
    return np.broadcast_to(total, (*total.shape[:-1], schedule.ranks))


FAMILY = Family(
    name="bsp",
    title="BSP",
    citation="L. G. Valiant, A bridging model for parallel computation, Communications of the ACM 33(8), 1990",
    equation="T = Σ (w + h·g + l(p)) over the supersteps",
    parameters=(
        Parameter(
            "g", "s", "time per message of a superstep, of the rank that has the most of them"
        ),
        Parameter("l", "s", "time for all p ranks to wait for each other", argument="p"),
        GAMMA,
    ),
    probes=("hrelation", "work"),
    fit=fit,
    predict=predict,
    table_fit=TableFit(initial_values={"g": 1e-6, "l.a": 1e-5}),
    ignores="the size of a message; that ranks need not wait for each other; which rank sends to which",
    uses_bytes=False,
    overlaps_work=False,
    same_for_all_ranks=True,
)
