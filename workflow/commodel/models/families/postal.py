"""Postal: LogP with the gap as unit of time and no overhead: a message arrives λ units after its
start.

    T = λ·g, the next message of a port g later

λ is at least 1. In the paper, a rank is busy for the unit in which it sends or receives; here a
rank is busy for the overhead, which is 0, and its port for the unit. g is the spacing of bursts, so
it is the overhead if that is larger. Valid for messages that take up to 10 % longer than the
shortest.
"""

import numpy as np

from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.families import (
    GAMMA,
    Family,
    Fitted,
    Observed,
    Parameter,
    Schedule,
    TableFit,
    Values,
    fit_local_work,
)
from commodel.models.fitting.regression import make_curve
from commodel.models.fitting.round_trips import collect_round_trips
from commodel.models.probes import EVERYWHERE


def fit(observed: Observed) -> Fitted:
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"], pingpong.seconds / 2
    g, shortest = collect_round_trips(observed).spacing[:, 0], half[:, size.argmin()]
    lam = np.maximum(shortest / g, 1)
    largest_valid = size[half[0] <= 1.1 * shortest[0]].max()
    evidence = make_curve(
        "half a round trip", size, half[0], np.full(len(size), lam[0] * g[0]), "λ·g"
    )
    values = {"lam": lam, "g": g, "gamma": fit_local_work(observed)}
    notes = (
        {}
        if lam[0] > 1
        else {"lam": "1 is the minimum: messages of a burst are as far apart as a message takes"}
    )
    return Fitted(values, (0, largest_valid), notes=notes, curves=(evidence,))


def find_costs(schedule: Schedule, values: Values) -> Costs:
    g = values["g"]
    return Costs(wire=np.maximum(values["lam"], 1) * g, gap_out=g, gap_in=g)


def describe_limits(schedule: Schedule, values: Values) -> str:
    return "λ below 1 counts as 1" if np.any(values["lam"] < 1) else ""


FAMILY = Family(
    name="postal",
    title="Postal",
    citation="A. Bar-Noy, S. Kipnis, Designing broadcasting algorithms in the postal model "
    "for message-passing systems, SPAA 1992",
    equation="T = λ·g; next message g later",
    parameters=(
        Parameter(
            "lam",
            "1",
            "λ: how many messages start in the time that one takes, from its start to its end",
        ),
        Parameter("g", "s", "unit of time: between the starts of two messages of one port"),
        GAMMA,
    ),
    probes=("pingpong", "prtt", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    by_class=EVERYWHERE,
    limits=describe_limits,
    table_fit=TableFit(initial_values={"lam": 10.0, "g": 1e-6}),
    ignores="the size of a message; that messages keep processors busy; contention in the network",
    uses_bytes=False,
)
