"""A family is data: its parameters, the probes it needs, its fit and its prediction. One file each."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from commodel.errors import UserError, suggest
from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.evaluation.values import (
    FORM_NAMES,
    PIECEWISE,
    TABLE,
    Values,
    coefficient_unit,
    form_takes,
    form_text,
    needed_coefficients,
)
from commodel.models.fitting.observed import Fitted, Observed
from commodel.models.fitting.regression import mean
from commodel.models.keys import key, parse, without_class
from commodel.patterns.schedule import Schedule
from commodel.registry import discover, lookup
from commodel.units import shown

# How many words follow a parameter's name where it differs from one type of node, pair of types, … to another.
PLACES = {"": 0, "type": 1, "pair": 2, "channel": 1, "class": 1, "level": 1}


@dataclass(frozen=True)
class Parameter:
    """One parameter: a number, or a function with a letter for its argument, whose values are coefficients `o.a`, `o.b`
    or samples `o.64`. Where it differs from node type to node type (`of`), the types follow its name: `L.fat.thin`."""

    name: str
    unit: str
    meaning: str
    argument: str = ""  # m: bytes of a message; any other letter: a count
    default: float | None = None  # None: it must be given
    form: str = ""  # of a function where nothing else says it
    of: str = ""  # one of PLACES
    optional: bool = False  # it may be missing: the prediction says when it cannot do without
    paced: bool = True  # a slower network moves it; False: local work, what a protocol fixes, what no network has

    @property
    def symbol(self) -> str:
        """o_s(m), L[pair], o."""
        return self.name + (f"[{self.of}]" if self.of else "") + (f"({self.argument})" if self.argument else "")

    @property
    def about(self) -> str:
        return self.meaning + ("" if self.default is None else f" (default {self.default:g})")


GAMMA = Parameter("gamma", "s/B", "local reduction or copy, per byte", default=0.0, paced=False)


def local_work(observed: Observed) -> Array:
    """GAMMA from the probe `work`, every size counting alike."""
    work = observed.cases("work")
    return mean(work.seconds / work["bytes"])


@dataclass(frozen=True)
class Family:
    name: str
    title: str
    citation: str
    equation: str
    parameters: tuple[Parameter, ...]
    probes: tuple[str, ...]
    fit: Callable[[Observed], Fitted]
    predict: Callable[[Schedule, Values], Array]  # finish time of every rank, last axis
    ignores: str
    uses_bytes: bool = True
    pipelined: Callable[[Schedule, Values], Array] | None = None  # time between waves, if it has an equation
    hides: bool = True  # whether messages that are waited for later go on beside the work until then
    independent: bool = False  # its ranks go on each at its own pace, so that waves of a stream overlap
    by_message: bool = False  # a prediction goes through all messages, also those of rounds that repeat
    on_overlay: tuple[str, ...] = ()  # probes that its fit takes there, where it has none of `probes`
    settings: Mapping[str, tuple[str, ...]] | None = None  # variants that a set may choose, the default first
    decides: Mapping[str, str] | None = None  # what each setting is about, for people
    # what limits a prediction; of a stack: or one each
    doubts: Callable[[Schedule, Values], str | list[str]] | None = None
    through: Callable[[Schedule, Values], Array | None] | None = None  # the share of packets that gets through at each
    # size of a stack where most are lost; None where no value tells what a receiver's buffer holds
    from_points: Mapping[str, float] | None = None  # first guesses of what collectives alone can be fitted to
    fit_points: Callable[[Sequence[Schedule], Array], Fitted] | None = None  # own way from collectives to values
    by_class: str = ""  # among which ranks its messages may have values by distance class: EVERYWHERE, BETWEEN nodes
    by_size: tuple[str, ...] = ()  # functions of `from_points` that change at the same sizes, if points tell

    def asks(self, overlay: bool) -> tuple[str, ...]:
        """Return the probes that it is fitted from on an overlay network, and elsewhere."""
        return (self.on_overlay or self.probes) if overlay else self.probes

    @cached_property
    def by_type(self) -> bool:
        """Whether its values go by the types of nodes."""
        return any(parameter.of in ("type", "pair") for parameter in self.parameters)

    @property
    def sees_classes(self) -> bool:
        """Whether it has values by distance class of its own, and is not fitted to each class anew."""
        return any(parameter.of == "class" for parameter in self.parameters)

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    def takes(self, name: str, classes: Collection[str] = ()) -> bool:
        """Return whether it may have a value called so: one number, or any of those that a parameter stands for; also
        one of these distance classes."""
        parameter, plain = self.by_name.get(parse(name).parameter), name
        if self.by_class and parse(name).part in classes:
            plain = without_class(name, parse(name).part)
        return parameter is not None and bool(parameter.argument or parameter.of or plain == parameter.name)

    def in_full(self, name: str, classes: Collection[str] = ()) -> str:
        """Return a function may be one number, which is its constant: `alpha` is `alpha.a`, `o.fat` is `o.fat.a`."""
        parameter, parsed = self.by_name.get(parse(name).parameter), parse(name)
        if parameter is None or not parameter.argument or parsed.of_function:
            return name
        places = name.split(".")[1:]
        if self.by_class and parsed.part in classes:
            places.pop()
        return key(name, "a") if len(places) in (0, PLACES[parameter.of]) else name


def family(name: str) -> Family:
    return lookup("models.families", "FAMILY", name)


def family_names() -> list[str]:
    return list(discover("models.families", "FAMILY"))


def complete(entry: Family, values: Values) -> Values:
    """Return the values with defaults filled in, or a UserError about a missing or unknown one."""
    _check_classes(entry, values)
    numbers = dict(values.numbers)
    unknown = [name for name in numbers if not entry.takes(name, values.classes)]
    if unknown:
        raise UserError(f"family {entry.name} has no parameter '{unknown[0]}'; {suggest(unknown[0], entry.by_name)}")
    present = {parse(name).parameter for name in numbers}
    for parameter in entry.parameters:
        if parameter.name in present or parameter.optional:
            continue
        if parameter.default is None:
            raise UserError(f"family {entry.name} needs {parameter.name} ({parameter.meaning}, {parameter.unit})")
        numbers[key(parameter.name, "a" if parameter.argument else "")] = np.array([[parameter.default]])
    for name, chosen in values.settings.items():
        allowed = (entry.settings or {}).get(name)
        if allowed and chosen not in allowed:
            raise UserError(f"family {entry.name}, setting {name}: found '{chosen}', wanted {' or '.join(allowed)}")
    return replace(values, numbers=numbers, forms=_checked_forms(entry, values.forms, numbers))


def _check_classes(entry: Family, values: Values) -> None:
    """Values by distance class need levels that have these classes, and a family whose values go by no types there."""
    classes, known = values.settings.get("classes", ()), ()
    if not classes:
        return
    if not entry.by_class or (entry.by_type and values.settings.get("types")):
        why = "beside types of nodes" if entry.by_class else "of which it knows nothing"
        raise UserError(f"family {entry.name}, setting classes: found distance classes {why}, wanted none")
    types = values.settings.get("types", {})
    if not isinstance(types, Mapping) or not all(isinstance(count, int) and count >= 0 for count in types.values()):
        wanted = f"found {shown(types)}, wanted how many nodes there are of each"
        raise UserError(f"family {entry.name}, setting types: {wanted}")
    if isinstance(classes, list | tuple):
        known = Hierarchy.of(values.settings.get("levels", {})).names
    if not known or any(name not in known for name in classes):
        wanted = f"a list of {', '.join(known)}" if known else "a list of distance classes"
        raise UserError(f"family {entry.name}, setting classes: found {shown(classes)}, wanted {wanted}")


def _checked_forms(entry: Family, chosen: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the form of every function that is no constant, or a UserError about a coefficient that it lacks or cannot
    use. A function of which nothing but `a` is given is constant, whatever form the family has for it."""
    parts: dict[str, set[str]] = {}
    for name in names:
        parts.setdefault(parse(name).parameter, set()).add(name)
    forms = {parameter.name: parameter.form for parameter in entry.parameters if parameter.form}
    forms = {name: form for name, form in forms.items() if parts.get(name) != {key(name, "a")}} | dict(chosen)
    for function, form in forms.items():
        if form not in FORM_NAMES:
            raise UserError(f"family {entry.name}, form of {function}: found '{form}'; {suggest(form, FORM_NAMES)}")
        for letter in needed_coefficients(form, function, names):
            if key(function, letter) not in names:
                raise UserError(f"family {entry.name} needs {function}.{letter}: {function} is {form_text(form)}")
    for name in names:
        parameter, function, _ = parse(name)
        form, about = forms.get(function, "constant"), entry.by_name[parameter]
        if about.argument and not form_takes(form, name):
            raise UserError(f"family {entry.name} has no use for {name}: {function or name} is {form_text(form)}")
    return forms


def unit(entry: Family, name: str, forms: Mapping[str, str]) -> str:
    """Return the unit of a value, e.g. of `o.b`."""
    parsed = parse(name)
    parameter = entry.by_name[parsed.parameter]
    if not parameter.argument:
        return parameter.unit
    form = forms.get(parsed.function, forms.get(parameter.name, parameter.form or "constant"))
    return coefficient_unit(form, name, parameter.unit, "B" if parameter.argument == "m" else "")


def forms_of(entry: Family, names: Iterable[str]) -> dict[str, str]:
    """Return the forms of functions of which only the coefficients' names are given, unless the family says."""
    parts: dict[str, set[str]] = {}
    for parsed in map(parse, sorted(names)):
        parameter = entry.by_name.get(parsed.parameter)
        if parameter and parameter.argument and not parameter.form:
            parts.setdefault(parsed.function, set()).add("sample" if parsed.sample else parsed.part)
    signs = {"sample": TABLE, "x1": PIECEWISE, "c": "quadratic", "b": "linear"}  # what gives a form away, in this order
    chosen = {function: next((signs[sign] for sign in signs if sign in known), "") for function, known in parts.items()}
    return {function: form for function, form in chosen.items() if form}


def meanings(names: Sequence[str]) -> dict[tuple[str, str], str]:
    """Return what each parameter means, by family and name."""
    return {(name, parameter.name): parameter.meaning for name in names for parameter in family(name).parameters}
