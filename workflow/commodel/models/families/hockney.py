"""Hockney: every message takes α + β·m, and a rank's port handles one message at a time in each
direction.

    T(m) = α + β·m

α is half a ping-pong of an empty message, so it includes the overheads of both ends; others quote
the whole round trip. α and β change where the protocol changes; the fit finds these sizes.

Hockney's paper times one message and does not define when the next may begin. The linear-cost model
of collectives has a port that carries one message at a time in each direction: n segments along p −
1 hops take (p − 2 + n)·(α + β·m/n). This is used here. Part of α is network latency, during which a
real port is free. The model therefore overestimates streams of messages, increasingly with
distance. With values by distance class, in which α grows with switches, a prediction has the
validity `overlap not modelled` if waiting ports take 10 % of it or more.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.evaluation.values import PIECEWISE, evaluate
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
from commodel.models.fitting.regression import CHANGE_NOTE, fit_piecewise, make_curve
from commodel.models.keys import parse_key
from commodel.models.probes import EVERYWHERE

# share of a predicted time in which ports wait, from which it is reported
MIN_REPORTED_WAITING = 0.1
MIN_DIVISOR = 1e-300  # avoids division by 0


def fit(observed: Observed) -> Fitted:
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"], pingpong.seconds / 2
    form, line = fit_piecewise("T", size, half, 1 / half[0] ** 2)
    values: dict[str, Array] = {}
    notes: dict[str, str] = {}
    edges = [parse_key(name).part[1:] for name in line if parse_key(name).part.startswith("x")]
    for number in ("", *edges):
        values |= {
            f"alpha.a{number}": line[f"T.a{number}"],
            f"beta.a{number}": line[f"T.b{number}"],
        }
        if number:
            values[f"alpha.x{number}"] = values[f"beta.x{number}"] = line[f"T.x{number}"]
            notes[f"alpha.x{number}"] = CHANGE_NOTE
    pieces = 1 + len(edges)
    forms = dict.fromkeys(("alpha", "beta"), PIECEWISE if pieces > 1 else "constant")

    def estimated(form: str, line: Mapping[str, Array]) -> Array:
        return evaluate(form, "T", {name: draws[0] for name, draws in line.items()}, size)

    def refit(keep: np.ndarray) -> Array:
        return estimated(*fit_piecewise("T", size[keep], half[:1, keep], 1 / half[0, keep] ** 2))

    title = "α + β·m" + (f", {pieces} pieces" if pieces > 1 else "")
    evidence = make_curve(
        "half a round trip",
        size,
        half[0],
        estimated(form, line),
        title,
        3 * pieces - 1,
        refit=refit,
    )
    values["gamma"] = fit_local_work(observed)
    return Fitted(values, (size.min(), size.max()), forms=forms, notes=notes, curves=(evidence,))


def find_costs(schedule: Schedule, values: Values) -> Costs:
    message = (
        values.at("alpha", schedule.bytes) + values.at("beta", schedule.bytes) * schedule.bytes
    )
    return Costs(wire=message, gap_out=message, gap_in=message)


def find_costs_with_free_ports(schedule: Schedule, values: Values) -> Costs:
    """Return the costs if a port is busy for the bytes only, not for α."""
    bytes = values.at("beta", schedule.bytes) * schedule.bytes
    return replace(find_costs(schedule, values), gap_out=bytes, gap_in=bytes)


def describe_limits(schedule: Schedule, values: Values) -> str | list[str]:
    """Return a text for each size: empty unless ports wait for latency in a large share of the
    prediction. Without values by distance class, there is one empty text."""
    if not values.classes:
        return ""
    with_held_ports, with_free_ports = (
        np.ravel(schedule.cost(predict_by_replay(costs)(schedule, values)))
        for costs in (find_costs, find_costs_with_free_ports)
    )
    waiting = (1 - with_free_ports / np.maximum(with_held_ports, MIN_DIVISOR)).tolist()
    return [
        f"overlap not modelled: ports wait for α in up to {share:.0%} of it"
        if share >= MIN_REPORTED_WAITING
        else ""
        for share in waiting
    ]


FAMILY = Family(
    name="hockney",
    title="Hockney",
    citation="R. W. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, "
    "Parallel Computing 20, 1994",
    equation="T(m) = α + β·m, with other α and β where the protocol changes",
    parameters=(
        Parameter(
            "alpha",
            "s",
            "half the round trip of an empty message, overheads included",
            argument="m",
        ),
        Parameter("beta", "s/B", "time per byte, the inverse of the bandwidth", argument="m"),
        GAMMA,
    ),
    probes=("pingpong", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    by_class=EVERYWHERE,
    table_fit=TableFit(initial_values={"alpha.a": 1e-5, "beta.a": 1e-9}, by_size=("alpha", "beta")),
    limits=describe_limits,
    ignores="that latency overlaps with the next message: a port is busy for all of α + β·m; contention in the network",
)
