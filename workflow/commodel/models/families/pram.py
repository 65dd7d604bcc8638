"""PRAM: communication is free, and only local work takes time. It is the baseline that every other
model has to beat.

A PRAM has no messages; here they keep their order, so a rank's work waits for the work on which it
depends. The prediction is the critical path of local work, without common steps (a PRAM's
processors are synchronous).
"""

from commodel.models.evaluation.replay import Costs, replay
from commodel.models.families import (
    GAMMA,
    Array,
    Family,
    Fitted,
    Observed,
    Schedule,
    Values,
    fit_local_work,
)
from commodel.models.fitting.regression import make_curve


def fit(observed: Observed) -> Fitted:
    work = observed.cases("work")
    size, gamma = work["bytes"], fit_local_work(observed)
    labels = ("bytes / B", "time / s")
    evidence = make_curve(
        "local work", size, work.seconds[0], gamma[0] * size, "γ·m", labels=labels
    )
    return Fitted({"gamma": gamma}, (0, size.max()), curves=(evidence,))


def predict(schedule: Schedule, values: Values) -> Array:
    return replay(schedule, lambda part: Costs(), lambda part: part.work_seconds(values["gamma"]))


FAMILY = Family(
    name="pram",
    title="PRAM",
    citation="S. Fortune, J. Wyllie, Parallelism in random access machines, STOC 1978",
    equation="T = γ·m for local work; a message takes no time",
    parameters=(GAMMA,),
    probes=("work",),
    fit=fit,
    predict=predict,
    ignores="communication",
    uses_bytes=False,
    same_for_all_ranks=True,
)
