"""A model as data (`Family`): its parameters, the probes it needs, its fit and its prediction.

Each model is one file in this folder. `find_family` returns a model by name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from commodel.errors import UserError, suggest_name
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.evaluation.values import (
    FORM_NAMES,
    PIECEWISE,
    TABLE,
    Values,
    find_coefficient_unit,
    format_form,
    is_value_of_form,
    list_needed_coefficients,
)
from commodel.models.fitting.observed import Fitted, Observed
from commodel.models.fitting.regression import fit_mean
from commodel.models.keys import make_key, parse_key, remove_class
from commodel.patterns.schedule import Schedule
from commodel.records import LIBRARY
from commodel.registry import discover, lookup
from commodel.stats import NORMAL_QUANTILE
from commodel.units import show_value

__all__ = [  # what the file of a model needs
    "GAMMA",
    "LOCAL_WORK",
    "LOCAL_WORK_PRIOR",
    "Array",
    "Family",
    "Fitted",
    "Observed",
    "Parameter",
    "Prior",
    "Schedule",
    "Values",
    "find_family",
    "fit_local_work",
    "list_family_names",
]

# Number of words after a parameter's name, if it depends on the node type, a pair of types, ….
PLACES_OF_ARGUMENT = {"": 0, "type": 1, "pair": 2, "channel": 1, "class": 1, "level": 1}


@dataclass(frozen=True)
class Parameter:
    """One parameter: a number, or a function of its argument.

    The values of a function are coefficients `o.a`, `o.b` or samples `o.64`. If the parameter
    depends on node types (`per`), these follow its name: `L.fat.thin`.
    """

    name: str
    unit: str
    meaning: str
    argument: str = ""  # m: bytes of a message; any other letter: a count
    default: float | None = None  # None: required
    form: str = ""  # default form of a function
    per: str = ""  # what it depends on: one of PLACES_OF_ARGUMENT
    optional: bool = False  # may be missing; a prediction that needs it raises an error
    # Whether a slower network changes it; False: local work, sizes, times fixed by a protocol.
    recalibrated: bool = True
    random: bool = False  # its draws are seeds of simulations, not estimates

    @property
    def symbol(self) -> str:
        """The parameter as in an equation: o_s(m), L[pair], o."""
        return (
            self.name
            + (f"[{self.per}]" if self.per else "")
            + (f"({self.argument})" if self.argument else "")
        )

    @property
    def about(self) -> str:
        """The meaning with the default."""
        return self.meaning + ("" if self.default is None else f" (default {self.default:g})")


GAMMA = Parameter(
    "gamma", "s/B", "local reduction or copy, per byte", default=0.0, recalibrated=False
)


def fit_local_work(observed: Observed) -> Array:
    """Return γ in seconds per byte from the probe `work`; all sizes have the same weight."""
    work = observed.cases("work")
    return fit_mean(work.seconds / work["bytes"])


LOCAL_WORK = "local work"


@dataclass(frozen=True)
class Prior:
    """A typical value, and the factor within which, either way, a value lies with a probability of
    two thirds. `needs`: what the points of a table must have to determine it."""

    typical: float
    factor: float
    needs: str = ""  # messages of a distance class, or LOCAL_WORK

    @property
    def interval(self) -> tuple[float, float]:
        """The range in which the value lies with a probability of 95 %."""
        ratio = self.factor**NORMAL_QUANTILE
        return self.typical / ratio, self.typical * ratio


# seconds per byte of a reduction or copy of what is in a processor's cache, or in memory
LOCAL_WORK_PRIOR = Prior(2e-10, 4, LOCAL_WORK)


@dataclass(frozen=True)
class TableFit:
    """How a model is fitted to a table of measured collectives: by a search from first values, by
    one in which priors hold values that the table does not determine, or by a function of its own.
    """

    initial_values: Mapping[str, float] = field(default_factory=dict)
    # functions among these that change at the same message sizes
    by_size: tuple[str, ...] = ()
    # returns the priors from the largest number of ranks on a node
    priors: Callable[[int], Mapping[str, Prior]] | None = None
    # with priors: settings of the fitted set
    settings: Mapping[str, str] = field(default_factory=dict)
    # with priors: values that are chosen among message sizes, with what each needs
    eager_limits: Mapping[str, str] = field(default_factory=dict)
    fit: Callable[[Sequence[Schedule], Array], Fitted] | None = None


@dataclass(frozen=True)
class Setting:
    """A variant of a model: its values, the default first, and what it decides."""

    values: tuple[str, ...]
    meaning: str

    @property
    def default(self) -> str:
        return self.values[0]


@dataclass(frozen=True)
class Family:
    name: str
    title: str
    citation: str
    equation: str
    parameters: tuple[Parameter, ...]
    probes: tuple[str, ...]
    fit: Callable[[Observed], Fitted]
    predict: Callable[[Schedule, Values], Array]  # finish times in seconds (last axis: ranks)
    ignores: str
    uses_bytes: bool = True
    # time between waves, if it has an equation
    pipelined: Callable[[Schedule, Values], Array] | None = None
    overlaps_work: bool = True  # messages in flight overlap with local work
    # ranks proceed without global synchronization, so waves of a stream overlap
    independent: bool = False
    same_for_all_ranks: bool = False  # all ranks have one predicted time
    by_message: bool = False  # a prediction replays all messages, also those of repeated rounds
    # for a fit on another substrate, if they differ from `probes`
    probes_without_mpi: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)  # variants of the model, by name
    # returns the validity of a prediction as text, "" if valid; one text, or one for each size of a
    # stack
    limits: Callable[[Schedule, Values], str | list[str]] | None = None
    # returns the smallest share of packets that a receiver gets, for each size; None without a
    # buffer size
    delivered: Callable[[Schedule, Values], Array | None] | None = None
    table_fit: TableFit | None = None  # None: it cannot be fitted to measured collectives
    # ranks whose messages may have values by distance class: EVERYWHERE, BETWEEN nodes
    by_class: str = ""

    def list_probes(self, uses_mpi: bool) -> tuple[str, ...]:
        """Return the probes for a fit on a platform with MPI, or with another substrate."""
        return self.probes if uses_mpi else self.probes_without_mpi or self.probes

    @cached_property
    def by_type(self) -> bool:
        """Whether values depend on node types."""
        return any(parameter.per in ("type", "pair") for parameter in self.parameters)

    @property
    def has_classes(self) -> bool:
        """Whether the model has values by distance class of its own, instead of one fit for each
        class."""
        return any(parameter.per == "class" for parameter in self.parameters)

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    def accepts(self, name: str, classes: Collection[str] = ()) -> bool:
        """Return whether the model may have a value of this name, also in one of the given distance
        classes."""
        parameter, plain = self.by_name.get(parse_key(name).parameter), name
        if self.by_class and parse_key(name).part in classes:
            plain = remove_class(name, parse_key(name).part)
        return parameter is not None and bool(
            parameter.argument or parameter.per or plain == parameter.name
        )

    def full_name(self, name: str, classes: Collection[str] = ()) -> str:
        """Return the full name of a function that is given as one number: `alpha` is `alpha.a`,
        `o.fat` is `o.fat.a`."""
        parameter, parsed = self.by_name.get(parse_key(name).parameter), parse_key(name)
        if parameter is None or not parameter.argument or parsed.of_function:
            return name
        places = name.split(".")[1:]
        if self.by_class and parsed.part in classes:
            places.pop()
        return (
            make_key(name, "a") if len(places) in (0, PLACES_OF_ARGUMENT[parameter.per]) else name
        )


def find_family(name: str) -> Family:
    if name == LIBRARY:
        raise UserError(
            f"model '{LIBRARY}' predicts the MPI default alone, from a set that `commodel fit table` "
            "fitted to its times; wanted a model of algorithms"
        )
    return lookup("models.families", "FAMILY", name)


def list_family_names() -> list[str]:
    return list(discover("models.families", "FAMILY"))


def complete_values(family: Family, values: Values) -> Values:
    """Return the values with defaults filled in; raise a UserError for a missing or unknown one."""
    _check_classes(family, values)
    numbers = dict(values.numbers)
    unknown = [name for name in numbers if not family.accepts(name, values.classes)]
    if unknown:
        raise UserError(
            f"model {family.name} has no parameter '{unknown[0]}'; {suggest_name(unknown[0], family.by_name)}"
        )
    present = {parse_key(name).parameter for name in numbers}
    for parameter in family.parameters:
        if parameter.name in present or parameter.optional:
            continue
        if parameter.default is None:
            raise UserError(
                f"model {family.name} needs {parameter.name} ({parameter.meaning}, {parameter.unit})"
            )
        numbers[make_key(parameter.name, "a" if parameter.argument else "")] = np.array(
            [[parameter.default]]
        )
    for name, chosen in values.settings.items():
        setting = family.settings.get(name)
        if setting and chosen not in setting.values:
            wanted = " or ".join(setting.values)
            raise UserError(
                f"model {family.name}, setting {name}: found '{chosen}', wanted {wanted}"
            )
    return replace(values, numbers=numbers, forms=_check_forms(family, values.forms, numbers))


def _check_classes(family: Family, values: Values) -> None:
    """Check that values by distance class have levels with these classes, and that the model allows
    them."""
    classes = values.settings.get("classes", ())
    class_names: tuple[str, ...] = ()
    if not classes:
        return
    if not family.by_class or (family.by_type and values.settings.get("types")):
        why = "together with node types" if family.by_class else "which the model does not support"
        raise UserError(
            f"model {family.name}, setting classes: found distance classes {why}, wanted none"
        )
    types = values.settings.get("types", {})
    if not isinstance(types, Mapping) or not all(
        isinstance(count, int) and count >= 0 for count in types.values()
    ):
        wanted = f"found {show_value(types)}, wanted the number of nodes of each type"
        raise UserError(f"model {family.name}, setting types: {wanted}")
    if isinstance(classes, list | tuple):
        class_names = Hierarchy.of(values.settings.get("levels", {})).names
    if not class_names or any(name not in class_names for name in classes):
        wanted = (
            f"a list of {', '.join(class_names)}" if class_names else "a list of distance classes"
        )
        raise UserError(
            f"model {family.name}, setting classes: found {show_value(classes)}, wanted {wanted}"
        )


def _check_forms(
    family: Family, chosen: Mapping[str, str], names: Collection[str]
) -> dict[str, str]:
    """Return the form of every non-constant function; raise a UserError for a coefficient that it
    lacks or cannot use.

    A function with coefficient `a` only is constant, whatever its default form.
    """
    parts: dict[str, set[str]] = {}
    for name in names:
        parts.setdefault(parse_key(name).parameter, set()).add(name)
    forms = {parameter.name: parameter.form for parameter in family.parameters if parameter.form}
    forms = {
        name: form for name, form in forms.items() if parts.get(name) != {make_key(name, "a")}
    } | dict(chosen)
    for function, form in forms.items():
        if form not in FORM_NAMES:
            raise UserError(
                f"model {family.name}, form of {function}: found '{form}'; {suggest_name(form, FORM_NAMES)}"
            )
        for letter in list_needed_coefficients(form, function, names):
            if make_key(function, letter) not in names:
                raise UserError(
                    f"model {family.name} needs {function}.{letter}: {function} is {format_form(form)}"
                )
    for name in names:
        parameter, function, _ = parse_key(name)
        form, parameter_entry = forms.get(function, "constant"), family.by_name[parameter]
        if parameter_entry.argument and not is_value_of_form(form, name):
            raise UserError(
                f"model {family.name} does not use {name}: {function or name} is {format_form(form)}"
            )
    return forms


def find_unit(family: Family, name: str, forms: Mapping[str, str]) -> str:
    """Return the unit of a value, e.g. of `o.b`."""
    parsed = parse_key(name)
    parameter = family.by_name[parsed.parameter]
    if not parameter.argument:
        return parameter.unit
    form = forms.get(parsed.function, forms.get(parameter.name, parameter.form or "constant"))
    return find_coefficient_unit(
        form, name, parameter.unit, "B" if parameter.argument == "m" else ""
    )


def infer_forms(family: Family, names: Iterable[str]) -> dict[str, str]:
    """Return the forms of functions from the names of their values, for functions without a default
    form."""
    parts: dict[str, set[str]] = {}
    for parsed in map(parse_key, sorted(names)):
        parameter = family.by_name.get(parsed.parameter)
        if parameter and parameter.argument and not parameter.form:
            parts.setdefault(parsed.function, set()).add("sample" if parsed.sample else parsed.part)
    # The part that identifies a form, in this order.
    signs = {"sample": TABLE, "x1": PIECEWISE, "c": "quadratic", "b": "linear"}
    chosen = {
        function: next((signs[sign] for sign in signs if sign in parts_of_function), "")
        for function, parts_of_function in parts.items()
    }
    return {function: form for function, form in chosen.items() if form}


def list_meanings(names: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return the meaning of each parameter, by model and parameter name."""
    return {
        (name, parameter.name): parameter.meaning
        for name in names
        for parameter in find_family(name).parameters
    }
