"""What a fit gets, the raw samples of every probe case with resamples of them, and what it returns.

Row 0 of every array is the estimate, the rows below it are bootstrap draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from commodel.errors import UserError
from commodel.records import Curve, Estimate
from commodel.stats import resampled

DRAWS = 200


@dataclass(frozen=True, eq=False)
class CaseSamples:
    """All valid raw samples of one case of a probe."""

    settings: Mapping[str, object]
    seconds: np.ndarray
    passes: np.ndarray  # which pass each sample was taken in
    counts: np.ndarray | None = None  # of a probe that counts what arrives


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases of one probe: their settings as columns, their times as (1 + draws, cases)."""

    columns: Mapping[str, np.ndarray]
    seconds: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return self.seconds.shape[1]

    def pick(self, chosen: np.ndarray) -> "Cases":
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Cases(columns, self.seconds[:, chosen])


def at_common(column: str, *several: Cases) -> tuple[Cases, ...]:
    """Of cases that are to be subtracted from each other those with a value of the column that all have, in its order:
    one may be missing, because none of its samples was valid."""
    shared = sorted(set.intersection(*(set(cases[column].tolist()) for cases in several)))
    if not shared:
        raise UserError(f"no measurements that agree in {column}")
    return tuple(cases.pick([cases[column].tolist().index(value) for value in shared]) for cases in several)


@dataclass(frozen=True, eq=False)
class Observed:
    """Everything measured on one platform by the probes; what a family's fit gets."""

    probes: Mapping[str, Sequence[CaseSamples]]
    seed: int = 1
    types: Mapping[str, int] = field(default_factory=dict)  # nodes of each type, in order; empty: all are alike
    _resampled: dict = field(default_factory=dict)

    @property
    def placement(self) -> dict[str, object]:
        """What a set of parameters by type has to know: which nodes are of which."""
        return {"types": dict(self.types)} if self.types else {}

    def has(self, probe: str) -> bool:
        return bool(self.probes.get(probe))

    def cases(self, probe: str, statistic: str = "median", **where: object) -> Cases:
        """The cases of a probe whose settings equal `where`. A case has the same draws however it is asked for."""
        if not self.has(probe):
            raise UserError(f"no measurements of probe '{probe}'")
        rows = self._all(probe, statistic)
        known = self.probes[probe]
        kept = [
            number
            for number, case in enumerate(known)
            if all(case.settings[name] == value for name, value in where.items())
        ]
        if not kept:
            wanted = ", ".join(f"{name}={value}" for name, value in where.items())
            raise UserError(f"no measurements of probe '{probe}' with {wanted}")
        columns = {name: np.array([known[number].settings[name] for number in kept]) for name in known[0].settings}
        return Cases(columns, rows[kept].T)

    def without(self, probe: str, number: int, rows: int) -> "Observed":
        """The same without one case of a probe, and with the first `rows` of the draws only."""
        cases = list(self.probes[probe])
        del cases[number]
        kept = {
            key: (np.delete(found, number, axis=0) if key[0] == probe else found)[:, :rows]
            for key, found in self._resampled.items()
        }
        return Observed({**self.probes, probe: cases}, self.seed, self.types, kept)

    def counts(self, probe: str) -> Cases:
        """The same of a probe that counts: means of its counts in place of times."""
        if not self.has(probe):
            raise UserError(f"no measurements of probe '{probe}'")
        known = self.probes[probe]
        rng = np.random.default_rng([self.seed, sum(probe.encode())])
        rows = [resampled(case.counts, case.passes, "mean", DRAWS, rng) for case in known]
        columns = {name: np.array([case.settings[name] for case in known]) for name in known[0].settings}
        return Cases(columns, np.array(rows).T)

    def _all(self, probe: str, statistic: str) -> np.ndarray:
        key = (probe, statistic)
        if key not in self._resampled:
            rng = np.random.default_rng([self.seed, sum(probe.encode())])
            samples = ((case.seconds, case.passes) for case in self.probes[probe])
            self._resampled[key] = np.array([resampled(*each, statistic, DRAWS, rng) for each in samples])
        return self._resampled[key]


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a family's fit returns: draws by name, forms of functions, notes on doubtful values, and the evidence."""

    values: Mapping[str, np.ndarray]
    bytes_range: tuple[float, float]  # sizes that the values rest on; outside it a price is an extrapolation
    forms: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)  # values that the data cannot tell apart, and from what
    curves: tuple[Curve, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # parameters that could not be observed, and why
    reach: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # intervals that hold more than the draws do


def estimate(
    draws: np.ndarray, unit: str, note: str = "", known: bool = True, reach: tuple[float, float] | None = None
) -> Estimate:
    """The value of row 0 with the 95 % interval of the rows below it, or with a wider one that is known."""
    low, high = np.percentile(draws[1:], [2.5, 97.5]) if reach is None else reach
    return Estimate(float(draws[0]), unit, float(min(low, draws[0])), float(max(high, draws[0])), note, known)
