"""Max-rate: ranks of a node that send at once share the rate of its network port.

    T(m) = α + m · max(1/R_C, k/R_N)

k is the number of messages that leave the sender's node in the same step.
"""

import numpy as np

from commodel.models.evaluation.replay import Costs, predict_by_replay
from commodel.models.families import GAMMA, Family, Fitted, Observed, Parameter, Schedule, Values, fit_local_work
from commodel.models.fitting.regression import fit_line, make_line_curve
from commodel.patterns.schedule import NETWORK

MIN_SLOWDOWN = 1.1  # below it, all processes together do not reach the rate of the port


def fit(observed: Observed) -> Fitted:
    trips = observed.cases("noderate")
    single = trips.where(pairs=1)
    size, half = single["bytes"], single.seconds / 2
    alpha, per_byte = fit_line(size, half, 1 / half[0] ** 2)
    most = int(trips["pairs"].max())
    together = trips.where(pairs=most)
    half_together = together.seconds / 2
    slope = fit_line(together["bytes"], half_together, 1 / half_together[0] ** 2)[1]
    unidentified = {}
    if slope[0] < MIN_SLOWDOWN * per_byte[0]:
        unidentified["per_byte_node"] = f"an upper bound: {most} pairs at once are as fast as one"
    curve = make_line_curve("half a round trip of one pair", size, half, alpha, per_byte, "α + m/R_C")
    values = {"alpha": alpha, "per_byte": per_byte, "per_byte_node": slope / most, "gamma": fit_local_work(observed)}
    return Fitted(values, (size.min(), size.max()), unidentified=unidentified, curves=(curve,))


def find_costs(schedule: Schedule, values: Values) -> Costs:
    place = schedule.step * (schedule.node.max() + 1) + schedule.node[schedule.src]
    _, group = np.unique(place, return_inverse=True)
    leaves = schedule.channel == NETWORK
    sharing = np.where(leaves, np.bincount(group, weights=leaves)[group], 0)
    per_byte = np.maximum(values["per_byte"], sharing * values["per_byte_node"])
    message = values["alpha"] + schedule.bytes * per_byte
    return Costs(wire=message, gap_out=message, gap_in=message)


FAMILY = Family(
    name="maxrate",
    title="max-rate",
    citation="W. Gropp, L. N. Olson, P. Samfass, Modeling MPI communication performance on SMP nodes, EuroMPI 2016",
    equation="T(m) = α + m·max(1/R_C, k/R_N), with k messages leaving the node at once",
    parameters=(
        Parameter("alpha", "s", "half the round trip of an empty message"),
        Parameter("per_byte", "s/B", "1/R_C: time per byte of one process"),
        Parameter("per_byte_node", "s/B", "1/R_N: time per byte of the node's port"),
        GAMMA,
    ),
    probes=("noderate", "work"),
    fit=fit,
    predict=predict_by_replay(find_costs),
    independent=True,
    initial_values={"alpha": 1e-5, "per_byte": 1e-9, "per_byte_node": 1e-10},
    ignores="protocols; contention beyond the node's port",
)
