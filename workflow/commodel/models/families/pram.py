"""PRAM: communication is free, and only local work takes time: the baseline that any other model has to beat.

A PRAM has no messages at all; here they keep their order, so that a rank's work waits for the work it depends on. What
is left of a pattern is its critical path of local work, with no step in common (a PRAM's processors keep in step).
"""

from commodel.models.families import GAMMA, Family, local_work
from commodel.models.fitting.curves import curve
from commodel.models.fitting.observed import Fitted
from commodel.models.pricing.replay import Costs, finish_times

FREE = Costs(send=0.0, receive=0.0, wire=0.0, gap_out=0.0, gap_in=0.0)


def fit(observed):
    work = observed.cases("work")
    size, gamma = work["bytes"], local_work(observed)
    evidence = curve("local work", ("bytes / B", "time / s"), size, work.seconds[0], gamma[0] * size, "γ·m")
    return Fitted({"gamma": gamma}, (0, size.max()), curves=(evidence,))


def price(schedule, values):
    return finish_times(schedule, FREE, schedule.work_seconds(values["gamma"]))


FAMILY = Family(
    name="pram",
    title="PRAM",
    citation="S. Fortune, J. Wyllie, Parallelism in random access machines, STOC 1978",
    equation="T = γ·m for local work; a message takes no time",
    parameters=(GAMMA,),
    probes=("work",),
    fit=fit,
    price=price,
    ignores="communication",
    uses_bytes=False,
)
