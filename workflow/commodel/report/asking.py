"""What a report cannot answer, since it was not measured: questions, and the commands that answer them."""

import re
from collections.abc import Sequence

from commodel.compare.table import STREAM
from commodel.parameters import ParameterSet
from commodel.report.front import Front
from commodel.report.shape import MICRO, Report
from commodel.report.values import plain
from commodel.units import format_bytes

LONGEST = 60  # letters of a name in a command
UNMEASURED = 3072  # bytes: hardly any matrix has them
DOUBLES = "What if L doubles?"


def commands(report: Report, front: Front) -> list[tuple[str, str]]:
    name = report.experiment if len(report.experiment) <= LONGEST else "EXPERIMENT"
    asked = [("Is it better than last month?", f"commodel diff results/EARLIER results/{name} --out changes.xlsx")]
    jobs = _jobs(front)
    for _, job in jobs[-1:]:
        where = f"--experiment {name} --platform {front.platform}"
        asked.append(("Any other job, by all families:", f"commodel advise {where} {job}"))
    here = [parameters for parameters in report.sets if plain(parameters.platform) == front.platform]
    if doubled := _doubled(here, front):
        family, settings = doubled
        for job in [job for over, job in jobs if over == "ranks"][-1:]:
            file = f"results/{name}/judged/{front.platform}/{family}.yaml"
            asked.append((DOUBLES, f"commodel predict --params {file} {settings} {job}"))
    return asked


def _jobs(front: Front) -> list[tuple[str, str]]:
    """Of what families price: over what, and the words of a command. Of a stream of waves `advise` always says more."""
    jobs = []
    for row, (operation, label) in enumerate(front.use.rows):
        if operation in front.trust.columns:
            over, number = _over(label)
            sizes = [
                int(text) for cell in front.use.cells if cell.row == row for name, text in cell.picks if name == "bytes"
            ]
            job = f"--operation {operation.removeprefix(STREAM)} --{over} {number} --bytes {_size(sizes)}"
            jobs.append((over, job))
    return jobs


def _size(measured: Sequence[int]) -> str:
    """Among those, as families are blind to others, or one of them."""
    return "3KiB" if min(measured) < UNMEASURED < max(measured) else format_bytes(max(measured)).replace(" ", "")


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
