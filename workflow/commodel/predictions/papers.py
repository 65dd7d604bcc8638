"""Figures and tables of papers: printed numbers next to predictions and measurements
(`find_paper`).

Extensions bring papers, each a module. An experiment names it (`paper: cluster`), and its report
has a section for each figure. Values are in seconds and bytes; the report scales and draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.predictions.predictions import make_predictor, predict
from commodel.records import PlatformKind, Point
from commodel.registry import discover_in_extensions

if TYPE_CHECKING:
    import pandas as pd

NO_NUMBER = "none printed"  # source of a table whose figure has no number in the paper's text
STYLES = ("line", "dashed", "dots", "both", "bars")


@dataclass(frozen=True)
class Line:
    """A line or points of a panel. Related lines have one colour; a negative colour is grey."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
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
    names: tuple[str, ...] = ()  # of the bars at 0, 1, 2, … along x
    base: float | None = None  # value at which bars begin


class PaperRow(NamedTuple):
    """A row of numbers. NaN: not printed, not measured, or without a prediction."""

    subject: tuple[Any, ...]  # texts and numbers
    paper: float
    ours: tuple[float, ...]


@dataclass(frozen=True)
class Numbers:
    """A table: the subject of each row, the paper's number, and ours with their ratios to the
    paper's."""

    title: str
    subjects: tuple[str, ...]  # heads of the columns with the subject
    columns: tuple[str, ...]  # heads of ours: predicted, simulated, …
    # of the paper's: printed in table 1, by equation 8 with the values of table 1, read off the
    # figure
    source: str
    rows: tuple[PaperRow, ...]
    unit: str = "s"  # of all numbers; empty without one


def tabulate(
    title: str,
    subjects: Mapping[str, Iterable[Any]],
    columns: Mapping[str, Iterable[Any]],
    source: str = NO_NUMBER,
    paper: Iterable[float] | None = None,
    unit: str = "s",
) -> Numbers:
    """Return the table with these columns: subjects, the paper's numbers if it has any, and
    ours."""
    keys, ours = (
        list(zip(*map(_make_plain_list, part.values()), strict=True))
        for part in (subjects, columns)
    )
    printed = [nan] * len(keys) if paper is None else _make_plain_list(paper)
    return Numbers(
        title=title,
        subjects=tuple(subjects),
        columns=tuple(columns),
        source=source,
        rows=tuple(map(PaperRow, keys, printed, ours)),
        unit=unit,
    )


def _make_plain_list(column: Iterable[Any]) -> list[Any]:
    """Return a list without types of numpy, since a report writes integers as such."""
    return [value.item() if isinstance(value, np.generic) else value for value in column]


@dataclass(frozen=True)
class Figure:
    name: str  # in the paper: Figure 4
    title: str
    caption: str  # describes the charts and tables
    reason: str  # why our numbers differ from the paper's, in a sentence
    numbers: tuple[Numbers, ...]
    panels: tuple[Panel, ...] = ()
    measured: tuple[str, ...] = ()  # platforms with measurements in the figure


@dataclass(frozen=True, eq=False)
class PaperEvidence:
    """The results of an experiment."""

    comparison: pd.DataFrame  # a row for each point and model, in seconds
    summary: pd.DataFrame  # a row for each case of a probe and each point
    sets: tuple[ParameterSet, ...]  # fitted
    kinds: Mapping[str, PlatformKind]  # of each platform, in the order of the plan
    distributions: pd.DataFrame | None = None  # histograms of half the round trips

    @property
    def platform(self) -> str:
        """The first platform; most papers have a single machine."""
        return next(iter(self.kinds))

    @property
    def is_simulated(self) -> bool:
        """Whether the first platform is simulated."""
        return self.kinds[self.platform] is PlatformKind.SIMULATED

    def choose(self, simulated: str, namespaces: str, real: str = "") -> str:
        """Return the text for the kind of the first platform; for a real one by default that of
        namespaces."""
        texts = {
            PlatformKind.SIMULATED: simulated,
            PlatformKind.NAMESPACES: namespaces,
            PlatformKind.REAL: real,
        }
        return texts[self.kinds[self.platform]] or namespaces

    def word(self, platform: str = "") -> str:
        """Return the word for a platform's measurements."""
        return (
            "simulated"
            if self.kinds[platform or self.platform] is PlatformKind.SIMULATED
            else "measured"
        )

    def fitted(self, model: str, platform: str = "") -> ParameterSet | None:
        """Return the fitted set; None if the model is not in the experiment, or could not be
        fitted."""
        key = (model, platform or self.platform)
        return next(
            (
                fitted
                for fitted in self.sets
                if (fitted.model, fitted.platform) == key and fitted.values
            ),
            None,
        )

    def points(self, platform: str = "", **where: Any) -> pd.DataFrame:
        """Return the points measured on a platform with the column values `where` (None: any), one
        row each, sorted by ranks and bytes."""
        rows = self.comparison
        selected = rows["measured"].notna() & (rows["platform"] == (platform or self.platform))
        for name, value in where.items():
            selected &= value is None or rows[name] == value
        return (
            rows[selected].drop_duplicates("point").sort_values(["ranks", "bytes"], kind="stable")
        )

    def predicted(self, model: str, platform: str = "", **where: Any) -> pd.DataFrame:
        """Return such points for which a model has a prediction, with the column `seconds`."""
        points = self.points(platform, **where, model=model)
        return points[points["seconds"].notna()]

    def median(self, **where: Any) -> float:
        """Return the median of the first such point; NaN if none was measured."""
        return next(map(float, self.points(**where)["measured"]), nan)

    def prediction(self, model: str, **where: Any) -> float:
        """Return a model's prediction of the first such point; NaN without one."""
        return next(map(float, self.predicted(model, **where)["seconds"]), nan)

    def find_oversubscription(self) -> tuple[int, int] | None:
        """Return the most processes on a host, and the fewest processors of a host with more
        processes than processors; None if each process had one."""
        if not {"processes", "processors"} <= set(self.comparison):
            return None
        rows = self.comparison[self.comparison["processes"] > self.comparison["processors"]]
        return (int(rows["processes"].max()), int(rows["processors"].min())) if len(rows) else None

    def times(self, sizes: Iterable[int], **where: Any) -> list[float]:
        """Return the medians of points that differ in their bytes only; NaN for sizes that were not
        measured."""
        points = self.points(**where)
        medians = dict(zip(points["bytes"], points["measured"], strict=True))
        return [float(medians.get(size, nan)) for size in sizes]

    def deviation(self, bytes: int, platform: str = "") -> float:
        """Return the standard deviation of half the round trips of a size, from their histogram;
        NaN without one."""
        if self.distributions is None:
            return nan
        bins = self.distributions
        bins = bins[(bins["platform"] == (platform or self.platform)) & (bins["bytes"] == bytes)]
        count = bins["count"].to_numpy(float)
        middle = (bins["low"] + bins["high"]).to_numpy(float) / 2
        if count.sum() < 2:
            return nan
        mean = np.average(middle, weights=count)
        return float(np.sqrt(np.average((middle - mean) ** 2, weights=count)))

    def cases(self, probe: str, platform: str = "", **settings: object) -> list[dict[str, Any]]:
        """Return a probe's cases with these settings: rows of the summary, with settings as
        texts."""
        rows = self.summary
        rows = rows[
            (rows["kind"] == "probe")
            & (rows["name"] == probe)
            & (rows["platform"] == (platform or self.platform))
        ]
        wanted = {name: str(value) for name, value in settings.items()}
        cases = []
        for row in rows.to_dict("records"):
            case = row | dict(pair.split("=", 1) for pair in row["settings"].split())
            if all(case.get(name) == text for name, text in wanted.items()):
                cases.append(case)
        return cases


@dataclass(frozen=True)
class Paper:
    name: str
    citation: str
    figures: Callable[[PaperEvidence], tuple[Figure, ...]]
    absent: str  # which figures are not reproduced, and why
    # parameter sets from the paper with which its figures are predicted
    published: tuple[str, ...] = ()


def find_paper(name: str) -> Paper:
    papers = discover_in_extensions("PAPER")
    if name not in papers:
        advice = suggest_name(name, papers) if papers else "install the extension that brings it"
        raise UserError(f"unknown paper '{name}'; {advice}")
    return papers[name]


def list_papers() -> list[str]:
    return sorted(discover_in_extensions("PAPER"))


def make_exact_set(model: str, values: Mapping[str, float]) -> ParameterSet:
    """Return the set of values by their full names (`O_s.a`), in seconds and bytes."""
    return ParameterSet(
        model=model,
        platform="",
        source="",
        values={name: Estimate.exact(value, "") for name, value in values.items()},
    )


def predict_patterns(
    parameters: ParameterSet | None,
    operation: str,
    choice: str | Sequence[str],
    ranks: int,
    sizes: Sequence[int],
) -> list[float]:
    """Return predictions of an algorithm, or of one for each size, with one rank per node; NaN
    without a prediction."""
    choices = [choice] * len(sizes) if isinstance(choice, str) else choice
    pairs = zip(choices, sizes, strict=True)
    points = [
        Point(
            platform="",
            operation=operation,
            algorithm=choice,
            topology="",
            layout="block:1",
            ranks=ranks,
            bytes=int(size),
        )
        for choice, size in pairs
    ]
    if parameters is None:
        return [nan] * len(points)
    return [prediction.seconds for prediction in predict(parameters, points, strict=False)]


def predict_pattern(
    parameters: ParameterSet, pattern: Schedule, waves: float = 1, **settings: str
) -> float:
    """Return the prediction of a schedule, or the time between waves of it, with some settings of
    the model replaced."""
    predict_stack = make_predictor(parameters.with_settings(**settings), strict=False, draws=0)
    return float(predict_stack(stack_schedules([pattern]), waves).seconds[0])


def compute_error_factor(predicted: float, measured: float) -> float:
    """Return the ratio of a prediction to the measurement or its inverse, at least 1; infinity for
    the prediction 0."""
    return max(predicted / measured, measured / predicted) if predicted else inf
