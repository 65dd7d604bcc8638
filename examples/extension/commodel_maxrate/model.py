"""Max-rate: ranks of a node that send at once share the rate of its network port.

    T(m) = α + m · max(1/R_C, k/R_N)

k is the number of ranks of the sender's node that send to other nodes in the same step.
"""

import numpy as np

from commodel.models.evaluation.replay import Costs, replay_round_by_round
from commodel.models.families import GAMMA, Array, Family, Fitted, Observed, Parameter, TableFit, Values, fit_local_work
from commodel.models.fitting.regression import fit_line, make_line_curve
from commodel.patterns.schedule import NETWORK, Schedule

MIN_SLOWDOWN = 1.1  # below it, all processes together do not reach the rate of the port


def fit(observed: Observed) -> Fitted:
    trips = observed.cases("noderate")
    most = int(trips["pairs"].max())
    single, together = trips.where(pairs=1), trips.where(pairs=most)
    size, half, half_together = single["bytes"], single.seconds / 2, together.seconds / 2
    alpha, per_byte = fit_line(size, half, 1 / half[0] ** 2)
    slope = fit_line(together["bytes"], half_together, 1 / half_together[0] ** 2)[1]
    unidentified = {}
    if slope[0] < MIN_SLOWDOWN * per_byte[0]:
        unidentified["per_byte_node"] = f"an upper bound: {most} pairs at once are as fast as one"
    curve = make_line_curve("half a round trip of one pair", size, half, alpha, per_byte, "α + m/R_C")
    values = {"alpha": alpha, "per_byte": per_byte, "per_byte_node": slope / most, "gamma": fit_local_work(observed)}
    return Fitted(values, (size.min(), size.max()), unidentified=unidentified, curves=(curve,))


def count_senders(schedule: Schedule) -> np.ndarray:
    """Return k of each message, 0 within a node."""
    leaves = schedule.channel == NETWORK
    first_rank_of_step = schedule.step[leaves] * schedule.ranks
    sender = np.unique(first_rank_of_step + schedule.src[leaves])
    node_of_sender = sender - sender % schedule.ranks + schedule.node[sender % schedule.ranks]
    places, senders = np.unique(node_of_sender, return_counts=True)
    counts = np.zeros(len(schedule.src), dtype=int)
    counts[leaves] = senders[np.searchsorted(places, first_rank_of_step + schedule.node[schedule.src[leaves]])]
    return counts


def find_costs(schedule: Schedule, values: Values) -> Costs:
    per_byte = np.maximum(values["per_byte"], count_senders(schedule) * values["per_byte_node"])
    message = values["alpha"] + schedule.bytes * per_byte
    return Costs(wire=message, gap_out=message, gap_in=message)


def predict(schedule: Schedule, values: Values) -> Array:
    """Replay all messages of each round, since k depends on the others of its step."""
    return replay_round_by_round(
        schedule, lambda part: find_costs(part, values), lambda part: part.work_seconds(values["gamma"])
    )


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
    predict=predict,
    independent=True,
    by_message=True,
    table_fit=TableFit(initial_values={"alpha": 1e-5, "per_byte": 1e-9, "per_byte_node": 1e-10}),
    ignores="protocols; contention beyond the node's port",
)
