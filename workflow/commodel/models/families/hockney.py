"""Hockney: every message takes α + β·m, and a rank's port handles one message at a time in each direction.

α is half a ping-pong of an empty message, so it holds the overheads of both ends; others quote the whole round trip.
Where the protocol changes with the size, α and β change: the sizes at which they do are found in the data.
"""

from commodel.models.families import GAMMA, Family, Parameter, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.fitting.regression import piecewise
from commodel.models.pricing.functions import evaluate
from commodel.models.pricing.replay import Costs, finish_times


def fit(observed):
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"], pingpong.seconds / 2
    form, line = piecewise("T", size, half, 1 / half[0] ** 2)
    pieces = len(line) // 2 if form == "linear" else (len(line) + 1) // 3
    values, notes = {}, {}
    for number in range(pieces):
        tail = str(number) if number else ""
        values |= {f"alpha.a{tail}": line[f"T.a{tail}"], f"beta.a{tail}": line[f"T.b{tail}"]}
        if number:
            values |= {f"alpha.x{number}": line[f"T.x{number}"], f"beta.x{number}": line[f"T.x{number}"]}
            notes[f"alpha.x{number}"] = "found in the data; the change lies between this size and the next one probed"
    forms = dict.fromkeys(("alpha", "beta"), "piecewise" if pieces > 1 else "constant")
    fitted = evaluate(*_row((form, line)), size)[0]

    def refit(keep):
        return evaluate(*_row(piecewise("T", size[keep], half[:1, keep], 1 / half[0, keep] ** 2)), size)[0]

    title = "α + β·m" + (f", {pieces} pieces" if pieces > 1 else "")
    evidence = curve(
        "half a round trip", ("message / B", "time / s"), size, half[0], fitted, title, 3 * pieces - 1, refit
    )
    values["gamma"] = local_work(observed)
    return Fitted(values, (size.min(), size.max()), forms=forms, notes=notes, curves=(evidence,))


def _row(found):
    form, line = found
    return form, "T", {name: draws[:, None] for name, draws in line.items()}


def price(schedule, values):
    message = values.at("alpha", schedule.bytes) + values.at("beta", schedule.bytes) * schedule.bytes
    costs = Costs(send=0.0, receive=0.0, wire=message, gap_out=message, gap_in=message)
    return finish_times(schedule, costs, schedule.work_seconds(values["gamma"]))


FAMILY = Family(
    name="hockney",
    title="Hockney",
    citation="R. W. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, "
    "Parallel Computing 20, 1994",
    equation="T(m) = α + β·m, with other α and β where the protocol changes",
    parameters=(
        Parameter("alpha", "s", "half the round trip of an empty message, overheads included", argument="m"),
        Parameter("beta", "s/B", "time per byte, the inverse of the bandwidth", argument="m"),
        GAMMA,
    ),
    probes=("pingpong", "work"),
    fit=fit,
    price=price,
    independent=True,
    from_points={"alpha.a": 1e-5, "beta.a": 1e-9},
    ignores="that latency overlaps with the next message: a port is busy for all of α + β·m; contention in the network",
)
