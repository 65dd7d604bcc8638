"""Runs of SUMMA and of the wave equation on the layouts of table 1, over clusters that are like the paper's Fermi in
nodes, cores and networks: what each took, and what models say."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean

from commodel.parameters import ParameterSet
from commodel.price.kernelrules import RULED, by_sums
from commodel.price.papers import Evidence
from commodel.price.points import predict
from commodel.price.waves import Cost
from commodel.records import Point

NETWORKS = {"fermi-ib": "InfiniBand", "fermi": "TCP"}  # by platform
SIDES = {"summa": (128, 256), "wave2d": (256, 512)}  # N: blocks of 32 × 32 doubles, and cells
TITLES = {"summa": "SUMMA", "wave2d": "Wave2D"}
FAMILIES = {
    "taulop": "τ–Lop",
    "hloggp": "HLogGP",
    "loggph": "LogGPH",
    "mlognp": "mlognP",
    "loggp": "LogGP",
    "hockney": "Hockney",
}
SUMS = {family: f"{FAMILIES[family]}, sums" for family in RULED}  # by the paper's own rules for kernels
MODELS = ("τ–Lop", *SUMS.values(), *(name for name in FAMILIES.values() if name != "τ–Lop"))
READINGS = {  # of τ–Lop, beside the one that was fitted
    "one channel": {"shared": "channel"},
    "one channel, joined": {"shared": "channel", "join": "yes"},
    "by node": {"shared": "node"},
}
RUN = re.compile(r"(summa|wave2d):partition=.*-([0-9]+)/(M[0-9]+)\.csv(:barrier=no)?")
GRID, COLUMNS = "summa:n=128:grid=8x8", "cyclic:8"  # ranks of a column of the grid share a node
HOMOGENEOUS = "8×8"


@dataclass(frozen=True, eq=False)
class Run:
    """A kernel on one layout: what it took, and what models say."""

    platform: str
    kernel: str
    side: int
    layout: str  # M1 to M16, or the homogeneous grid
    barrier: bool
    measured: float
    prices: Mapping[str, float]  # by model

    def error(self, model: str) -> float:
        """Proportional: 1 where price and time are the same."""
        price = self.prices.get(model, nan)
        return max(price / self.measured, self.measured / price) if price > 0 and self.measured > 0 else nan


def runs(evidence: Evidence, platform: str) -> list[Run]:
    """By layout, which is by processes."""
    rows = evidence.comparison[evidence.comparison["platform"] == platform]
    prices = {point: dict(zip(part["family"], part["predicted"], strict=True)) for point, part in rows.groupby("point")}
    recognised = [(about, row) for row in evidence.points(platform).to_dict("records") if (about := _about(row))]
    columns = ("operation", "algorithm", "topology", "layout", "ranks", "bytes")
    points = [Point("", *(row[column] for column in columns)) for _, row in recognised]
    more = [dict[str, float]() for _ in points]
    for name, seconds in _more(evidence, platform, points):
        for by_family, price in zip(more, seconds, strict=True):
            by_family[name] = price
    kernel_runs = []
    for (about, row), by_family in zip(recognised, more, strict=True):
        by_family |= {FAMILIES[family]: price for family, price in prices[row["point"]].items() if family in FAMILIES}
        kernel_runs.append(Run(platform, *about, float(row["measured"]), by_family))
    return sorted(kernel_runs, key=lambda run: (run.kernel, run.side, len(run.layout), run.layout))


def _more(evidence: Evidence, platform: str, points: list[Point]) -> Iterator[tuple[str, list[float]]]:
    """What the comparison does not have: prices by the paper's rules, and τ–Lop's other readings. Without intervals."""
    for family, name in SUMS.items():
        if fitted := evidence.fitted(family, platform):
            yield name, _seconds(fitted, points, by_sums)
    if fitted := evidence.fitted("taulop", platform):
        for name, settings in READINGS.items():
            yield name, _seconds(replace(fitted, settings={**fitted.settings, **settings}), points)


def _seconds(fitted: ParameterSet, points: list[Point], cost: Cost | None = None) -> list[float]:
    return [prediction.seconds for prediction in predict(fitted, points, strict=False, draws=0, cost=cost)]


def _about(row: Mapping) -> tuple[str, int, str, bool] | None:
    """Kernel, N, layout and whether there is a barrier, of a row that is one of these runs."""
    if (row["operation"], row["layout"]) == (GRID, COLUMNS):
        return "summa", 128, HOMOGENEOUS, True
    match = RUN.fullmatch(row["operation"])
    return (match[1], int(match[2]), match[3], not match[4]) if match else None


def mean(numbers: Iterable[float]) -> float:
    known = [number for number in numbers if not isnan(number)]
    return fmean(known) if known else nan


def of(every: Iterable[Run], platform: str, kernel: str, side: int) -> list[Run]:
    return [run for run in every if (run.platform, run.kernel, run.side) == (platform, kernel, side)]


def measured_on(every: Iterable[Run]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run.platform for run in every))
