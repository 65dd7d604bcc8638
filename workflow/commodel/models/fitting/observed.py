"""The input and output of a fit: raw samples of every probe case with bootstrap resamples
(`Observed`), and `Fitted`.

Row 0 of every array is the estimate, the other rows are bootstrap draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.values import TABLE, Values
from commodel.models.keys import parse_key
from commodel.parameters import Curve, Estimate, StoredResiduals
from commodel.stats import resample_statistic

DEFAULT_DRAWS = 200
# statistics: mean and median of a probe's counts
MEAN_COUNT, MEDIAN_COUNT = "counted", "typical count"
STATISTICS_OF_COUNTS = {MEAN_COUNT: ("counts", "mean"), MEDIAN_COUNT: ("counts", "median")}


@dataclass(frozen=True, eq=False)
class CaseSamples:
    """All valid raw samples of one case of a probe."""

    settings: Mapping[str, Any]
    seconds: Array
    passes: np.ndarray  # number of the pass of each sample
    # of a probe that counts: messages that arrived, or bytes of a buffer
    counts: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases of one probe: their settings as columns, their times as (1 + draws, cases)."""

    columns: Mapping[str, np.ndarray]
    seconds: Array

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return self.seconds.shape[1]

    def pick(self, chosen: np.ndarray | list[int]) -> "Cases":
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Cases(columns, self.seconds[:, chosen])

    def where(self, **settings: object) -> "Cases":
        """Return the cases with these settings."""
        chosen = np.ones(len(self), dtype=bool)
        for name, value in settings.items():
            chosen &= self[name] == value
        return self.pick(chosen)


def select_common(column: str, *tables: Cases) -> tuple[Cases, ...]:
    """Return the cases of each table whose value of the column occurs in all tables, in equal
    order, so that tables can be subtracted.

    A case may be missing in a table if none of its samples was valid.
    """
    shared = sorted(set.intersection(*(set(cases[column].tolist()) for cases in tables)))
    if not shared:
        raise UserError(f"no measurements that agree in {column}")
    return tuple(
        cases.pick([cases[column].tolist().index(value) for value in shared]) for cases in tables
    )


@dataclass(frozen=True, eq=False)
class Observed:
    """All measurements of the probes on one platform: the input of a model's fit."""

    probes: Mapping[str, Sequence[CaseSamples]]
    seed: int = 1
    # nodes of each type, in order; empty: one type
    types: Mapping[str, int] = field(default_factory=dict)
    _resampled: dict[tuple[str, str], Array] = field(default_factory=dict)  # by probe and statistic
    levels: Mapping[str, Sequence[int]] = field(default_factory=dict)  # group of each node by level
    simulated: bool = False

    @property
    def placement(self) -> dict[str, Any]:
        """The types and levels of all nodes: settings of parameter sets with values for each type
        or distance class."""
        levels = {name: list(column) for name, column in self.levels.items()}
        return ({"types": dict(self.types)} if self.types else {}) | (
            {"levels": levels} if levels else {}
        )

    def cases(self, probe: str, statistic: str = "median", **where: object) -> Cases:
        """Return the cases of a probe whose settings equal `where`. The draws of a case do not
        depend on `where`.

        The statistics MEAN_COUNT and MEDIAN_COUNT are of a probe's counts, in place of a time.
        """
        if not self.probes.get(probe):
            raise UserError(f"no measurements of probe '{probe}'")
        settings = [case.settings for case in self.probes[probe]]
        numbers = [
            number
            for number, case in enumerate(settings)
            if all(case[name] == where[name] for name in where)
        ]
        if not numbers:
            conditions = ", ".join(f"{name}={value}" for name, value in where.items())
            raise UserError(f"no measurements of probe '{probe}' with {conditions}")
        columns = {
            name: np.array([settings[number][name] for number in numbers]) for name in settings[0]
        }
        return Cases(columns, self._resample_cases(probe, statistic)[numbers].T)

    def without(self, probe: str, number: int, rows: int) -> "Observed":
        """Return the observations without one case of a probe, and with the estimate and `rows` − 1
        draws only."""
        cases = list(self.probes[probe])
        del cases[number]
        resampled = {
            (name, statistic): (np.delete(draws, number, axis=0) if name == probe else draws)[
                :, :rows
            ]
            for (name, statistic), draws in self._resampled.items()
        }
        return Observed(
            {**self.probes, probe: cases},
            self.seed,
            self.types,
            resampled,
            self.levels,
            self.simulated,
        )

    def _resample_cases(self, probe: str, statistic: str) -> Array:
        """Return estimate and draws of the statistic for all cases of a probe: (cases, 1 +
        draws)."""
        if (probe, statistic) not in self._resampled:
            rng, cases = np.random.default_rng([self.seed, sum(probe.encode())]), self.probes[probe]
            column, name = STATISTICS_OF_COUNTS.get(statistic, ("seconds", statistic))
            rows = [
                resample_statistic(getattr(case, column), case.passes, name, DEFAULT_DRAWS, rng)
                for case in cases
            ]
            self._resampled[probe, statistic] = np.array(rows)
        return self._resampled[probe, statistic]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a model's fit: draws by name, forms of functions, notes, and curves as
    evidence."""

    values: Mapping[str, Array]
    bytes_range: tuple[float, float]  # measured sizes; a prediction outside is an extrapolation
    forms: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    # values that the data do not determine, and why
    unidentified: Mapping[str, str] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    # parameters that could not be observed, and why
    missing: Mapping[str, str] = field(default_factory=dict)
    residuals: StoredResiduals | None = None  # at held-out points
    # that replace those of the draws
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PartialFit:
    """The values fitted so far. With them, further cases are predicted to decide between
    alternatives."""

    values: dict[str, Array]
    forms: dict[str, str]
    settings: dict[str, Any]

    def add(self, values: Mapping[str, Array], forms: Mapping[str, str] | None = None) -> None:
        """Add values of functions, in place of any earlier ones. If no forms are given, a function
        with values at sampled sizes gets the form TABLE."""
        tables = {parse_key(name).function: TABLE for name in values if parse_key(name).sample}
        new_forms = tables if forms is None else forms
        for name in [name for name in self.values if parse_key(name).function in new_forms]:
            del self.values[name]
        self.values.update(values)
        self.forms.update(new_forms)

    def estimate(self, **further_values: float) -> Values:
        """Return the estimate without draws, and further values by name."""
        estimates = {name: draws[:1, None] for name, draws in self.values.items()}
        return Values(
            estimates | {name: np.array([[number]]) for name, number in further_values.items()},
            self.forms,
            self.settings,
        )

    @property
    def draws(self) -> Values:
        """All draws of the values."""
        return Values(
            {name: draws[:, None] for name, draws in self.values.items()}, self.forms, self.settings
        )


def make_estimate(
    draws: Array,
    unit: str,
    note: str = "",
    determined: bool = True,
    interval: tuple[float, float] | None = None,
) -> Estimate:
    """Return the value of row 0 with the 95 % interval of the draws, or with `interval`; without
    both, the value is exact."""
    if interval is None and len(draws) == 1:
        return Estimate.exact(float(draws[0]), unit, note, determined)
    low, high = np.percentile(draws[1:], [2.5, 97.5]) if interval is None else interval
    return Estimate(
        float(draws[0]),
        unit,
        float(min(low, draws[0])),
        float(max(high, draws[0])),
        note,
        determined,
    )
