"""Hockney: every message takes α + β·m, and a rank's port handles one message at a time in each direction.

α is half a ping-pong of an empty message, so it holds the overheads of both ends; others quote the whole round trip.
"""

from commodel.families import GAMMA, Family, Parameter
from commodel.fitting import Fitted, curve, line, per_byte
from commodel.replay import Costs, finish_times


def fit(observed):
    pingpong = observed.cases("pingpong")
    size, half = pingpong["bytes"], pingpong.seconds / 2
    alpha, beta = line(size, half, 1 / half[0] ** 2)
    labels = ("message / B", "time / s")
    evidence = curve("half a round trip", labels, size, half[0], alpha[0] + beta[0] * size, "α + β·m")
    values = {"alpha": alpha, "beta": beta, "gamma": per_byte(observed.cases("work"))}
    return Fitted(values, (size.min(), size.max()), curves=(evidence,))


def price(schedule, values, forms):
    message = values["alpha"] + values["beta"] * schedule.bytes
    costs = Costs(send=0.0, receive=0.0, wire=message, gap_out=message, gap_in=message)
    return finish_times(schedule, costs, schedule.work_seconds(values["gamma"]))


FAMILY = Family(
    name="hockney",
    title="Hockney",
    citation="R. W. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, "
    "Parallel Computing 20, 1994",
    equation="T(m) = α + β·m",
    parameters=(
        Parameter("alpha", "s", "half the round trip of an empty message, overheads included"),
        Parameter("beta", "s/B", "time per byte, the inverse of the bandwidth"),
        GAMMA,
    ),
    probes=("pingpong", "work"),
    fit=fit,
    price=price,
    ignores="that latency overlaps with the next message: a port is busy for all of α + β·m; contention in the network",
)
