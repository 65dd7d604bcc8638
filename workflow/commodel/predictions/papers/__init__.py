"""Figures and tables of papers: printed numbers next to predictions and measurements.

Each paper is one file; an experiment names it (`paper: cluster`), and its report has a section for each figure. Values
are in seconds and bytes; the report scales and draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.predictions.predictions import make_predictor, predict
from commodel.records import PlatformKind, Point
from commodel.registry import discover, lookup

if TYPE_CHECKING:
    import pandas as pd

NO_NUMBER = "none printed"  # source of a table whose figure has no number in the paper's text
STYLES = ("line", "dashed", "dots", "both", "bars")


@dataclass(frozen=True)
class Line:
    """A line or cloud of points of a panel. Lines of one colour belong together; a negative colour is grey."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "line"  # one of STYLES
    colour: int = 0


@dataclass(frozen=True)
class Panel:
    """A chart with the paper's axes, such as `time [s]`; `log` names logarithmic axes."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    log: str = "xy"
    names: tuple[str, ...] = ()  # of the places 0, 1, 2, … along x, where bars stand
    foot: float | None = None  # of the bars


class Row(NamedTuple):
    """A row of numbers. NaN: not printed, not measured, or without a prediction."""

    about: tuple[str | float, ...]
    paper: float
    here: tuple[float, ...]


@dataclass(frozen=True)
class Numbers:
    """A table: the subject of a row, the paper's number, and ours with its ratio to the paper's."""

    title: str
    about: tuple[str, ...]
    here: tuple[str, ...]  # what each of ours is: predicted, simulated, …
    source: str  # of the paper's: printed in table 1, by equation 8 with the values of table 1, read off the figure
    rows: tuple[Row, ...]
    unit: str = "s"  # of all of them; empty where they have none


def tabulate(
    title: str,
    about: Mapping[str, Iterable],
    here: Mapping[str, Iterable[float]],
    source: str = NO_NUMBER,
    paper: Iterable[float] | None = None,
    unit: str = "s",
) -> Numbers:
    """Return the table with these columns: subjects, the paper's numbers if it has any, and ours."""
    keys, ours = (list(zip(*map(_list, columns.values()), strict=True)) for columns in (about, here))
    printed = [nan] * len(keys) if paper is None else _list(paper)
    return Numbers(title, tuple(about), tuple(here), source, tuple(map(Row, keys, printed, ours)), unit)


def _list(column: Iterable) -> list:
    """Return a list without types of numpy, since a report writes integers as such."""
    return [value.item() if isinstance(value, np.generic) else value for value in column]


@dataclass(frozen=True)
class Figure:
    name: str  # as the paper calls it: Figure 4
    title: str  # in our words
    caption: str  # what is drawn and listed
    why: str  # our numbers are not the paper's, in a sentence
    numbers: tuple[Numbers, ...]
    panels: tuple[Panel, ...] = ()
    measured: tuple[str, ...] = ()  # the platforms whose measurements are in it


@dataclass(frozen=True, eq=False)
class Evidence:
    """The results of an experiment."""

    comparison: pd.DataFrame  # a row a point and family, seconds
    summary: pd.DataFrame  # a row a case of a probe, and a point
    sets: tuple[ParameterSet, ...]  # fitted
    kinds: Mapping[str, PlatformKind]  # of each platform, in the order of the plan
    distributions: pd.DataFrame | None = None  # histograms of half the round trips

    @property
    def platform(self) -> str:
        """The first one: most papers have a single machine."""
        return next(iter(self.kinds))

    @property
    def is_simulated(self) -> bool:
        """Whether the first platform is."""
        return self.kinds[self.platform] is PlatformKind.SIMULATED

    def choose(self, simulated: str, namespaces: str, real: str = "") -> str:
        """Return the text for the kind of the first platform. A real one without a text has that of namespaces."""
        texts = {PlatformKind.SIMULATED: simulated, PlatformKind.NAMESPACES: namespaces, PlatformKind.REAL: real}
        return texts[self.kinds[self.platform]] or namespaces

    def word(self, platform: str = "") -> str:
        """Return what a platform's measurements are called."""
        return "simulated" if self.kinds[platform or self.platform] is PlatformKind.SIMULATED else "measured"

    def fitted(self, family: str, platform: str = "") -> ParameterSet | None:
        """Return none where the family is not in the experiment, or could not be fitted."""
        wanted = (family, platform or self.platform)
        return next((own for own in self.sets if (own.family, own.platform) == wanted and own.values), None)

    def points(self, platform: str = "", **where: object) -> pd.DataFrame:
        """Return the points that were measured there: one row each, by ranks and bytes, with all columns equal to
        `where`."""
        rows = self.comparison
        wanted = rows["measured"].notna() & (rows["platform"] == (platform or self.platform))
        for name, value in where.items():
            wanted &= rows[name] == value
        return rows[wanted].drop_duplicates("point").sort_values(["ranks", "bytes"], kind="stable")

    def predicted(self, family: str, platform: str = "", **where: object) -> pd.DataFrame:
        """Return the same of those that a family has a prediction for, in `predicted`."""
        points = self.points(platform, **where, family=family)
        return points[points["predicted"].notna()]

    def times(self, sizes: Iterable[int], platform: str = "", **where: object) -> list[float]:
        """Medians of points that differ in their bytes alone; NaN where none was measured."""
        points = self.points(platform, **where)
        known = dict(zip(points["bytes"], points["measured"], strict=True))
        return [float(known.get(size, nan)) for size in sizes]

    def deviation(self, bytes: int, platform: str = "") -> float:
        """Return the standard deviation of half the round trips of a size, from their histogram; NaN without one."""
        if self.distributions is None:
            return nan
        bins = self.distributions
        bins = bins[(bins["platform"] == (platform or self.platform)) & (bins["bytes"] == bytes)]
        count, middle = bins["count"].to_numpy(float), (bins["low"] + bins["high"]).to_numpy(float) / 2
        if count.sum() < 2:
            return nan
        mean = np.average(middle, weights=count)
        return float(np.sqrt(np.average((middle - mean) ** 2, weights=count)))

    def cases(self, probe: str, platform: str = "", **settings: object) -> list[dict[str, Any]]:
        """Return a probe's cases there with these settings: the row of each in the summary, and its settings as
        texts."""
        rows = self.summary
        rows = rows[
            (rows["kind"] == "probe") & (rows["name"] == probe) & (rows["platform"] == (platform or self.platform))
        ]
        cases = [row | dict(pair.split("=", 1) for pair in row["settings"].split()) for row in rows.to_dict("records")]
        return [case for case in cases if all(case.get(name) == str(value) for name, value in settings.items())]


@dataclass(frozen=True)
class Paper:
    name: str
    citation: str
    figures: Callable[[Evidence], tuple[Figure, ...]]
    absent: str  # which figures are not rebuilt, and why
    published: tuple[str, ...] = ()  # sets of values printed there that its figures are predicted with


def paper(name: str) -> Paper:
    return lookup("predictions.papers", "PAPER", name)


def paper_names() -> list[str]:
    return list(discover("predictions.papers", "PAPER"))


def exact(family: str, values: Mapping[str, float]) -> ParameterSet:
    """Return values by their full names (`O_s.a`), in seconds and bytes."""
    return ParameterSet(family, "", "", {name: Estimate(value, "", value, value) for name, value in values.items()})


def predict_patterns(
    parameters: ParameterSet | None, operation: str, choice: str | Sequence[str], ranks: int, sizes: Sequence[int]
) -> list[float]:
    """Return predictions of an algorithm with one rank per node, or of one for each size; NaN without a prediction or
    values."""
    choices = [choice] * len(sizes) if isinstance(choice, str) else choice
    pairs = zip(choices, sizes, strict=True)
    points = [Point("", operation, choice, "", "block:1", ranks, int(size)) for choice, size in pairs]
    if parameters is None:
        return [nan] * len(points)
    return [prediction.seconds for prediction in predict(parameters, points, strict=False)]


def predict_pattern(parameters: ParameterSet, pattern: Schedule, waves: float = 1, **settings: str) -> float:
    """Return the prediction of a schedule, or the time between waves of it, with some settings of the model
    replaced."""
    parameters = replace(parameters, settings={**parameters.settings, **settings})
    return float(make_predictor(parameters, strict=False, draws=0)(stack_schedules([pattern]), waves).seconds[0])


def error_factor(predicted: float, measured: float) -> float:
    """Return by which factor a prediction is off, at least 1; infinity for a prediction of 0."""
    return max(predicted / measured, measured / predicted) if predicted else inf
