"""Results of an experiment on a synthetic machine. The figures of a paper must reproduce its
values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from commodel.models.probes import find_probe
from commodel.parameters import ParameterSet
from commodel.predictions.papers import Figure, Numbers, PaperEvidence
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
    "model",
    "measured",
    "seconds",
]
CASE = ["kind", "platform", "name", "settings", "min", "median", "mean", "max"]


def fitted(machine: Truth, name: str) -> ParameterSet:
    return replace(fit_machine(name, machine), platform=PLATFORM)


def cases(machine: Truth, names: Iterable[str]) -> list[dict]:
    """Return the rows of a summary, one for each case of the probes."""
    rows = []
    for name in names:
        for case in find_probe(name).cases(PLATFORM, machine.site, list(machine.sizes)):
            seconds = machine.times[name](case.settings)
            text = " ".join(f"{key}={value}" for key, value in case.settings.items())
            times = dict.fromkeys(("min", "median", "mean", "max"), seconds)
            rows.append(
                {"kind": "probe", "platform": PLATFORM, "name": name, "settings": text, **times}
            )
    return rows


def evidence(
    points: Sequence[Mapping] = (),
    probed: Iterable[Mapping] = (),
    sets: Iterable[ParameterSet] = (),
) -> PaperEvidence:
    """Return the evidence of a paper. `points` are rows of a comparison; omitted columns are
    blank."""
    comparison = pd.DataFrame(points, columns=POINT)
    # without model and times
    comparison["point"] = [
        "/".join(map(str, row[:-3])) for row in comparison.itertuples(index=False)
    ]
    summary = pd.DataFrame(list(probed), columns=CASE)
    return PaperEvidence(
        comparison.assign(platform=PLATFORM),
        summary,
        tuple(sets),
        {PLATFORM: PlatformKind.SIMULATED},
    )


def figure(figures: Iterable[Figure], name: str) -> Figure:
    return next(drawn for drawn in figures if drawn.name == name)


def table(figure: Figure, title: str) -> Numbers:
    return next(numbers for numbers in figure.numbers if numbers.title == title)


def rows(figure: Figure, title: str) -> dict:
    """Return the rows of a table by subject."""
    return {row.subject: row for row in table(figure, title).rows}


def column(numbers: Numbers, name: str = "") -> dict:
    """Return one column of a table by subject: the paper's numbers, or our column of this name."""
    index = numbers.columns.index(name) if name else None
    keys = (row.subject[0] if len(row.subject) == 1 else row.subject for row in numbers.rows)
    return {
        key: row.paper if index is None else row.ours[index]
        for key, row in zip(keys, numbers.rows, strict=True)
    }


def micro(values: Mapping[object, float]) -> dict[object, float]:
    """Convert seconds to microseconds."""
    return {key: value * 1e6 for key, value in values.items()}
