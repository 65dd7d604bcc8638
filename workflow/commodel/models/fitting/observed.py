"""What a fit gets, the raw samples of every probe case with resamples of them, and what it returns.

Row 0 of every array is the estimate, the rows below it are bootstrap draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.parameters import Curve, Errors, Estimate
from commodel.stats import resampled

DRAWS = 200
COUNTED = "counted"


@dataclass(frozen=True, eq=False)
class CaseSamples:
    """All valid raw samples of one case of a probe."""

    settings: Mapping[str, object]
    seconds: Array
    passes: np.ndarray  # which pass each sample was taken in
    counts: np.ndarray | None = None  # of a probe that counts what arrives


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases of one probe: their settings as columns, their times as (1 + draws, cases)."""

    columns: Mapping[str, np.ndarray]
    seconds: Array

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return self.seconds.shape[1]

    def pick(self, chosen: np.ndarray) -> "Cases":
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Cases(columns, self.seconds[:, chosen])


def at_common(column: str, *tables: Cases) -> tuple[Cases, ...]:
    """Of cases that are to be subtracted from each other those with a value of the column that all have, in its order:
    one may be missing, because none of its samples was valid."""
    shared = sorted(set.intersection(*(set(cases[column].tolist()) for cases in tables)))
    if not shared:
        raise UserError(f"no measurements that agree in {column}")
    return tuple(cases.pick([cases[column].tolist().index(value) for value in shared]) for cases in tables)


@dataclass(frozen=True, eq=False)
class Observed:
    """Everything measured on one platform by the probes; what a family's fit gets."""

    probes: Mapping[str, Sequence[CaseSamples]]
    seed: int = 1
    types: Mapping[str, int] = field(default_factory=dict)  # nodes of each type, in order; empty: all are alike
    _resampled: dict[tuple[str, str], Array] = field(default_factory=dict)  # by probe and statistic
    levels: Mapping[str, Sequence[int]] = field(default_factory=dict)  # the groups that each node is in

    @property
    def placement(self) -> dict[str, object]:
        """What a set of parameters by type has to know: which nodes are of which."""
        levels = {name: list(column) for name, column in self.levels.items()}
        return ({"types": dict(self.types)} if self.types else {}) | ({"levels": levels} if levels else {})

    def cases(self, probe: str, statistic: str = "median", **where: object) -> Cases:
        """Return the cases of a probe whose settings equal `where`. A case has the same draws however it is asked for.
        The statistic COUNTED is the mean of a probe's counts, in place of a time."""
        if not self.probes.get(probe):
            raise UserError(f"no measurements of probe '{probe}'")
        settings = [case.settings for case in self.probes[probe]]
        kept = [number for number, own in enumerate(settings) if all(own[name] == where[name] for name in where)]
        if not kept:
            wanted = ", ".join(f"{name}={value}" for name, value in where.items())
            raise UserError(f"no measurements of probe '{probe}' with {wanted}")
        columns = {name: np.array([settings[number][name] for number in kept]) for name in settings[0]}
        return Cases(columns, self._all(probe, statistic)[kept].T)

    def without(self, probe: str, number: int, rows: int) -> "Observed":
        """Return the same without one case of a probe, and with the first `rows` of the draws only."""
        cases = list(self.probes[probe])
        del cases[number]
        kept = {
            (name, statistic): (np.delete(draws, number, axis=0) if name == probe else draws)[:, :rows]
            for (name, statistic), draws in self._resampled.items()
        }
        return Observed({**self.probes, probe: cases}, self.seed, self.types, kept, self.levels)

    def _all(self, probe: str, statistic: str) -> Array:
        if (probe, statistic) not in self._resampled:
            rng, cases = np.random.default_rng([self.seed, sum(probe.encode())]), self.probes[probe]
            if statistic == COUNTED:
                rows = [resampled(case.counts, case.passes, "mean", DRAWS, rng) for case in cases]
            else:
                rows = [resampled(case.seconds, case.passes, statistic, DRAWS, rng) for case in cases]
            self._resampled[probe, statistic] = np.array(rows)
        return self._resampled[probe, statistic]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a family's fit returns: draws by name, forms of functions, notes on doubtful values, and the evidence."""

    values: Mapping[str, Array]
    bytes_range: tuple[float, float]  # sizes that the values rest on; outside it a prediction is an extrapolation
    forms: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)  # values that the data cannot distinguish, and from what
    curves: tuple[Curve, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # parameters that could not be observed, and why
    errors: Mapping[str, Errors] = field(default_factory=dict)  # at points that no fit has seen
    reach: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # intervals that hold more than the draws do


def estimate(
    draws: Array, unit: str, note: str = "", known: bool = True, reach: tuple[float, float] | None = None
) -> Estimate:
    """Return the value of row 0 with the 95 % interval of the rows below it, or with a wider one that is known."""
    low, high = np.percentile(draws[1:], [2.5, 97.5]) if reach is None else reach
    return Estimate(float(draws[0]), unit, float(min(low, draws[0])), float(max(high, draws[0])), note, known)
