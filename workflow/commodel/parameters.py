"""The parameter set of a model on a platform (`ParameterSet`): its values with intervals, its
errors at held-out points, and its provenance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from commodel.errors import make_printable
from commodel.records import Count, Finite

# settings on the memory of a node: bytes per second, and bytes of the shortest message to which
# that applies (`predictions/sockets.py`)
MEMORY_BANDWIDTH, MEMORY_FROM = "memory_bandwidth", "memory_from"
DATA_SHEET_SOURCE = "from data sheets, not measured"  # source of a set without measurements


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its unit and its 95 % interval; both ends equal the value if it is exact."""

    value: Finite
    unit: str
    low: float
    high: float
    note: str = ""
    # False: the data do not determine this parameter alone; the note names the others
    known: bool = True

    @classmethod
    def exact(
        cls, value: float, unit: str, note: str = "", is_determined: bool = True
    ) -> "Estimate":
        """Return a number without uncertainty."""
        return cls(value, unit, value, value, note, is_determined)


@dataclass(frozen=True, slots=True)
class Curve:
    """The measured points of a fit and the fitted function, for charts and for checks of the
    fit."""

    title: str
    x_label: str
    y_label: str
    x: tuple[Finite, ...]
    measured: tuple[Finite, ...]
    fitted: tuple[Finite, ...]
    form: str
    r2: float = float("nan")
    # corrected for few data; smaller is better, comparable within one curve's data only
    aic: float = float("nan")
    left_out: float = float("nan")  # root mean square relative error at samples left out of the fit


# in place of an operation's name, where nothing or too little of it was measured
ALL_OPERATIONS = "all"


@dataclass(frozen=True)
class StoredResiduals:
    """Residuals ln(measured/predicted) of a model at measured points, a column for each property of
    the points, with what the residual model found in them (`predictions/residual_model.py`)."""

    operation: tuple[str, ...]
    alternative: tuple[str, ...]
    levels_crossed: tuple[str, ...]  # as in `Point.reach`
    allocation: tuple[str, ...]  # empty: allocations do not differ
    setting: tuple[str, ...]
    workload: tuple[Count, ...]  # numbers; equal for alternatives of the same workload
    ranks: tuple[Finite, ...]  # leaves of a tree
    nodes: tuple[Finite, ...]
    bytes: tuple[Finite, ...]
    log: tuple[Finite, ...]
    variance: tuple[Finite, ...]  # by the scatter of the samples
    scales: Mapping[str, tuple[Finite, ...]]  # by operation, and ALL_OPERATIONS
    error: Finite  # root mean square of the errors at left-out workloads, as logarithms
    # that cover 95 % of the points of a left-out workload, operation, …
    deviations: Mapping[str, Finite]

    # By identity: sets of parameters keep what is derived from it.
    __hash__ = object.__hash__

    @property
    def columns(self) -> dict[str, tuple[Any, ...]]:
        """The columns of the points."""
        return {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if entry.name not in NO_COLUMNS
        }


NO_COLUMNS = ("scales", "error", "deviations")


def make_file_key(field_name: str) -> str:
    """Return the name of a field in a file of parameters."""
    return "parameters" if field_name == "values" else field_name


@dataclass(frozen=True)
class ParameterSet:
    """The values of one model on one platform.

    A coefficient of a function is named `o.a`, a sample of it `o.64`; `forms` has the form of each
    function. `settings` has what is not a number: the variant of the model, or the types of nodes.
    """

    __pydantic_config__ = {"extra": "forbid", "alias_generator": make_file_key}  # noqa: RUF012

    model: str
    platform: str
    source: str
    values: Mapping[str, Estimate]
    forms: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # parameters without a value, and why
    simulated: bool = False
    # error at probe cases left out of the fit, and cases
    left_out: Mapping[str, Finite] = field(default_factory=dict)
    # of the probes; outside it a prediction is an extrapolation
    bytes_range: tuple[Finite, Finite] | None = None
    # bytes of the longest that probes reduced, and copied
    vectors: Mapping[str, Count] = field(default_factory=dict)
    residuals: StoredResiduals | None = None  # None: nothing was measured
    curves: tuple[Curve, ...] = ()
    # joint bootstrap draws of each value
    draws: Mapping[str, tuple[Finite, ...]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """The values without their intervals."""
        return {name: estimate.value for name, estimate in self.values.items()}

    @property
    def classes(self) -> tuple[str, ...]:
        """The distance classes that have their own values. A setting that is no list is refused
        when it is used for predictions."""
        named = self.settings.get("classes", ())
        return tuple(named) if isinstance(named, list | tuple) else ()

    def with_settings(self, **settings: object) -> "ParameterSet":
        """Return the set with some settings added or replaced."""
        return replace(self, settings={**self.settings, **settings})


def describe_origins(sets: Sequence[ParameterSet], platform: str) -> list[str]:
    """Return notes about values that are not from the requested platform, or from a simulated
    one."""
    families: dict[str, list[str]] = {}
    for parameters in sets:
        if parameters.platform and parameters.platform != platform:  # none: written by hand
            families.setdefault(make_printable(parameters.platform, 80), []).append(
                parameters.model
            )
    notes = []
    if families and (platform or len(families) > 1):
        of = "; ".join(
            f"{', '.join(dict.fromkeys(names))} of {where}" for where, names in families.items()
        )
        other = f"OF ANOTHER PLATFORM THAN {platform}" if platform else "OF SEVERAL PLATFORMS"
        notes.append(f"{other}: values of {of}; intervals rest on errors measured there")
    if any(parameters.simulated for parameters in sets):
        notes.append("SIMULATED: the parameters were fitted to a simulated platform")
    return notes
