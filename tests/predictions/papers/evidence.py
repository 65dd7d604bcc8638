"""What an experiment would have found on a machine that is known: a paper's figures must give it back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from commodel.models.probes import find_probe
from commodel.parameters import ParameterSet
from commodel.predictions.papers import Evidence, Figure, Numbers
from commodel.records import PlatformKind
from tests.models.synthetic import Truth, fit_machine

PLATFORM = "somewhere"
POINT = [
    "operation",
    "algorithm",
    "topology",
    "layout",
    "alternative",
    "ranks",
    "bytes",
    "waves",
    "family",
    "measured",
    "predicted",
]
CASE = ["kind", "platform", "name", "settings", "min", "median", "mean", "max"]


def fitted(machine: Truth, name: str) -> ParameterSet:
    return replace(fit_machine(name, machine), platform=PLATFORM)


def cases(machine: Truth, names: Iterable[str]) -> list[dict]:
    """Rows of a summary."""
    rows = []
    for name in names:
        for case in find_probe(name).cases(PLATFORM, machine.site, list(machine.sizes)):
            seconds = machine.times[name](case.settings)
            text = " ".join(f"{key}={value}" for key, value in case.settings.items())
            times = dict.fromkeys(("min", "median", "mean", "max"), seconds)
            rows.append({"kind": "probe", "platform": PLATFORM, "name": name, "settings": text, **times})
    return rows


def evidence(
    points: Sequence[Mapping] = (), probed: Iterable[Mapping] = (), sets: Iterable[ParameterSet] = ()
) -> Evidence:
    """Points are rows of a comparison, in which what is not said is blank."""
    said = pd.DataFrame(points, columns=POINT)
    said["point"] = ["/".join(map(str, row[:-3])) for row in said.itertuples(index=False)]  # all but family and times
    summary = pd.DataFrame(list(probed), columns=CASE)
    return Evidence(said.assign(platform=PLATFORM), summary, tuple(sets), {PLATFORM: PlatformKind.SIMULATED})


def figure(figures: Iterable[Figure], name: str) -> Figure:
    return next(drawn for drawn in figures if drawn.name == name)


def table(figure: Figure, title: str) -> Numbers:
    return next(numbers for numbers in figure.numbers if numbers.title == title)


def rows(figure: Figure, title: str) -> dict:
    """The rows of a table by what they are about."""
    return {row.subject: row for row in table(figure, title).rows}


def column(numbers: Numbers, name: str = "") -> dict:
    """By what a row is about, the paper's numbers, or ours of that name."""
    place = numbers.columns.index(name) if name else None
    keys = (row.subject[0] if len(row.subject) == 1 else row.subject for row in numbers.rows)
    return {key: row.paper if place is None else row.ours[place] for key, row in zip(keys, numbers.rows, strict=True)}


def micro(values: Mapping[object, float]) -> dict[object, float]:
    """Seconds in microseconds, as papers print them."""
    return {key: value * 1e6 for key, value in values.items()}
