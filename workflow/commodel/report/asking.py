"""What a report cannot answer, since it was not measured: questions, and the commands that answer them."""

import re
from collections.abc import Sequence

from commodel.parameters import ParameterSet
from commodel.report.front import Front
from commodel.report.shape import MICRO, Report
from commodel.report.values import plain

LONGEST = 60  # letters of a name in a command
DOUBLES = "What if L doubles?"


def commands(report: Report, front: Front) -> list[tuple[str, str]]:
    name = report.experiment if len(report.experiment) <= LONGEST else "EXPERIMENT"
    asked = [("Is it better than last month?", f"commodel diff results/EARLIER results/{name} --out changes.xlsx")]
    jobs = [(operation, *_over(label)) for operation, label in front.use.rows]
    for operation, over, number in jobs[-1:]:
        where = f"--experiment {name} --platform {front.platform}"
        job = f"--operation {operation} --{over} {number} --bytes 3KiB"
        asked.append(("Any other job, by all families:", f"commodel advise {where} {job}"))
    here = [parameters for parameters in report.sets if plain(parameters.platform) == front.platform]
    if doubled := _doubled(here, front):
        family, settings = doubled
        for operation, _, number in [job for job in jobs if job[1] == "ranks"][-1:]:
            file = f"results/{name}/judged/{front.platform}/{family}.yaml"
            job = f"--operation {operation} --ranks {number} --bytes 3KiB"
            asked.append((DOUBLES, f"commodel predict --params {file} {settings} {job}"))
    return asked


def _over(label: str) -> tuple[str, str]:
    """Of a row of the map, as `8–32` or `16 leaves`."""
    return "leaves" if "leaves" in label else "ranks", re.match(r"[0-9]*", label)[0]


def _doubled(sets: Sequence[ParameterSet], front: Front) -> tuple[str, str] | None:
    """Of the best family that has one latency, or one for each class of distance: twice each of them."""
    order = [family for _, family in front.trust.rows]
    trusted = (parameters for parameters in sets if parameters.family in order)
    for parameters in sorted(trusted, key=lambda parameters: order.index(parameters.family)):
        latencies = {name: value for name, value in parameters.numbers.items() if re.fullmatch(r"L(\.[a-z]+)?", name)}
        if "L" in latencies and all(value > 0 for value in latencies.values()):
            twice = [f"--set {name}={2 * value * MICRO:.3g}us" for name, value in latencies.items()]
            return parameters.family, " ".join(twice)
    return None
