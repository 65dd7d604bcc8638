"""The parameter set of a model on a platform (`ParameterSet`): its values with intervals, its errors at held-out
points, and its provenance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from commodel.errors import make_printable
from commodel.records import Count, Finite

DATA_SHEET_SOURCE = "from data sheets, not measured"  # source of a set without measurements


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its unit and its 95 % interval; both ends equal the value if it is exact."""

    value: Finite
    unit: str
    low: float
    high: float
    note: str = ""
    known: bool = True  # False: the data do not determine this parameter alone; the note names the others

    @classmethod
    def exact(cls, value: float, unit: str, note: str = "", is_determined: bool = True) -> "Estimate":
        """Return a number without uncertainty."""
        return cls(value, unit, value, value, note, is_determined)


@dataclass(frozen=True, slots=True)
class Curve:
    """The measured points of a fit and the fitted function, for charts and for checks of the fit."""

    title: str
    x_label: str
    y_label: str
    x: tuple[Finite, ...]
    measured: tuple[Finite, ...]
    fitted: tuple[Finite, ...]
    form: str
    r2: float = float("nan")
    aic: float = float("nan")  # corrected for few data; smaller is better, comparable within one curve's data only
    left_out: float = float("nan")  # root mean square relative error at samples left out of the fit


SIZE_SIDES = {"smaller": -1, "larger": 1}  # sides on which sizes were not measured


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of predictions of a class of operations at held-out points.

    The interval from `low` to `high` covers 95 % of the residuals ln(measured/predicted), where the prediction is
    scaled by the single-message ratio. `widening` is added at each end for a number of ranks, a size or an operation
    that was not measured, `growth` for each doubling beyond the measured ones. Sizes below and above the measured ones
    may have an interval of their own (`beyond`)."""

    low: Finite
    high: Finite
    workloads: Count
    allocations: Count
    operations: tuple[str, ...]
    measured: Mapping[str, tuple[Finite, ...]]  # values of ranks, bytes and nodes
    widening: Mapping[str, Finite]
    growth: Mapping[str, Finite]
    beyond: Mapping[str, tuple[Finite, Finite, Finite]] = field(default_factory=dict)  # low, high, growth
    half_size: Finite = 0.0  # bytes; for distances between sizes (`predictions/residuals.py`); 0: doublings only
    levels_crossed: tuple[str, ...] = ()  # of the measured points, as in `Point.reach`


def make_file_key(field_name: str) -> str:
    """Return the name of a field in a file of parameters."""
    return "parameters" if field_name == "values" else field_name


@dataclass(frozen=True)
class ParameterSet:
    """The values of one model on one platform.

    A coefficient of a function is named `o.a`, a sample of it `o.64`; `forms` has the form of each function. `settings`
    has what is not a number: the variant of the model, or the types of nodes.
    """

    __pydantic_config__ = {"extra": "forbid", "alias_generator": make_file_key}  # noqa: RUF012

    family: str
    platform: str
    source: str
    values: Mapping[str, Estimate]
    forms: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # parameters without a value, and why
    simulated: bool = False
    left_out: Mapping[str, Finite] = field(default_factory=dict)  # error at probe cases left out of the fit, and cases
    bytes_range: tuple[Finite, Finite] | None = None  # of the probes; outside it a prediction is an extrapolation
    vectors: Mapping[str, Count] = field(default_factory=dict)  # bytes of the longest that probes reduced, and copied
    errors: Mapping[str, Errors] = field(default_factory=dict)  # by class of operations; none: nothing was measured
    curves: tuple[Curve, ...] = ()
    draws: Mapping[str, tuple[Finite, ...]] = field(default_factory=dict)  # joint bootstrap draws of each value
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[str, float]:
        """The values without their intervals."""
        return {name: estimate.value for name, estimate in self.values.items()}

    @property
    def classes(self) -> tuple[str, ...]:
        """The distance classes that have their own values. A setting that is no list is refused when it is used for
        predictions."""
        named = self.settings.get("classes", ())
        return tuple(named) if isinstance(named, list | tuple) else ()

    def with_settings(self, **settings: object) -> "ParameterSet":
        """Return the set with some settings added or replaced."""
        return replace(self, settings={**self.settings, **settings})


def describe_origins(sets: Sequence[ParameterSet], platform: str) -> list[str]:
    """Return notes about values that are not from the requested platform, or from a simulated one."""
    families: dict[str, list[str]] = {}
    for parameters in sets:
        if parameters.platform and parameters.platform != platform:  # none: written by hand
            families.setdefault(make_printable(parameters.platform, 80), []).append(parameters.family)
    notes = []
    if families and (platform or len(families) > 1):
        of = "; ".join(f"{', '.join(dict.fromkeys(names))} of {where}" for where, names in families.items())
        other = f"OF ANOTHER PLATFORM THAN {platform}" if platform else "OF SEVERAL PLATFORMS"
        notes.append(f"{other}: values of {of}; intervals rest on errors measured there")
    if any(parameters.simulated for parameters in sets):
        notes.append("SIMULATED: the parameters were fitted to a simulated platform")
    return notes
