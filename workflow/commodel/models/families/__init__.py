"""A family is data: its parameters, the probes it needs, its fit and its price. One file each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from commodel.errors import UserError, one_line, suggest
from commodel.files.paths import AnyPath
from commodel.files.sets import read_parameters
from commodel.files.yaml import read as read_yaml
from commodel.models.fitting.observed import Fitted, Observed
from commodel.models.fitting.regression import mean
from commodel.models.pricing.functions import FORM_NAMES, FORMS, KNOT, PIECEWISE, TABLE, coefficient_unit, takes, text
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule
from commodel.records import Estimate, ParameterSet
from commodel.registry import discover, lookup
from commodel.units import parse_bytes, parse_number, parse_seconds


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
    of: str = ""  # type or pair
    optional: bool = False  # it may be missing: the price says when it cannot do without

    @property
    def is_family_of_values(self) -> bool:
        return bool(self.argument or self.of)


GAMMA = Parameter("gamma", "s/B", "local reduction or copy, per byte", default=0.0)


def local_work(observed: Observed) -> np.ndarray:
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
    price: Callable[[Schedule, Values], np.ndarray]  # finish time of every rank, last axis
    ignores: str
    uses_bytes: bool = True
    pipelined: Callable[[Schedule, Values], np.ndarray] | None = None  # time between waves, if it has an equation
    independent: bool = False  # its ranks go on each at its own pace, so that waves of a stream overlap
    settings: Mapping[str, tuple[str, ...]] | None = None  # variants that a set may choose, the default first
    doubts: Callable[[Schedule, Values], str | list[str]] | None = None  # why a price is shaky; of a stack: or one each
    from_points: Mapping[str, float] | None = None  # first guesses of what collectives alone can be fitted to
    fit_points: Callable[[Sequence[Schedule], np.ndarray], Fitted] | None = None  # own way from collectives to values


def family(name: str) -> Family:
    return lookup("models.families", "FAMILY", name)


def family_names() -> list[str]:
    return list(discover("models.families", "FAMILY"))


def complete(entry: Family, values: Values) -> Values:
    """The values with defaults filled in, or a UserError about a missing or unknown one."""
    full = dict(values.numbers)
    known = set()
    for parameter in entry.parameters:
        if parameter.is_family_of_values:
            mine = {name for name in full if name.partition(".")[0] == parameter.name}
        else:
            mine = {parameter.name} & full.keys()
        known |= mine
        if mine:
            continue
        if parameter.optional:
            continue
        if parameter.default is None:
            raise UserError(f"family {entry.name} needs {parameter.name} ({parameter.meaning}, {parameter.unit})")
        full[parameter.name + (".a" if parameter.argument else "")] = np.array([[parameter.default]])
    for name in values.numbers:
        if name not in known:
            wanted = [parameter.name for parameter in entry.parameters]
            raise UserError(f"family {entry.name} has no parameter '{name}'; {suggest(name, wanted)}")
    for name, chosen in values.settings.items():
        allowed = (entry.settings or {}).get(name)
        if allowed and chosen not in allowed:
            raise UserError(f"family {entry.name}, setting {name}: found '{chosen}', wanted {' or '.join(allowed)}")
    forms = {parameter.name: parameter.form for parameter in entry.parameters if parameter.form}
    constant = {name for name in forms if {key for key in full if key.startswith(f"{name}.")} == {f"{name}.a"}}
    forms = {name: form for name, form in forms.items() if name not in constant} | dict(values.forms)
    for name, form in forms.items():
        if form not in FORM_NAMES:
            raise UserError(f"family {entry.name}, form of {name}: found '{form}'; {suggest(form, FORM_NAMES)}")
    for function, form in forms.items():
        for letter in ("a", *FORMS[form].coefficients) if form in FORMS else ():
            if f"{function}.{letter}" not in full:
                raise UserError(f"family {entry.name} needs {function}.{letter}: {function} is {FORMS[form].text}")
    functions = {parameter.name for parameter in entry.parameters if parameter.argument}
    for name in full:
        function, _, letter = name.rpartition(".")
        form = forms.get(function, "constant")
        if name.partition(".")[0] in functions and not takes(form, letter):
            raise UserError(f"family {entry.name} has no use for {name}: {function} is {text(form)}")
    return replace(values, numbers=full, forms=forms, _samples={})


def costs(entry: Family, schedule: Schedule, parameters: ParameterSet, drawn: bool) -> np.ndarray:
    """Cost of a schedule, (draws,) or (sizes, draws): one draw, or all of the set's joint bootstrap draws."""
    values = Values.drawn(parameters) if drawn else Values.exact(parameters)
    return schedule.cost(entry.price(schedule, complete(entry, values)))


def unit(entry: Family, key: str, forms: Mapping[str, str]) -> str:
    """The unit of a value, e.g. of `o.b`."""
    name, _, rest = key.partition(".")
    parameter = next(parameter for parameter in entry.parameters if parameter.name == name)
    if not parameter.argument:
        return parameter.unit
    function = key.rpartition(".")[0]
    form = forms.get(function, forms.get(name, parameter.form or "constant"))
    argument = "B" if parameter.argument == "m" else ""
    return coefficient_unit(form, rest.rpartition(".")[2], parameter.unit, argument)


def given(name: str, settings: Sequence[str]) -> ParameterSet:
    """A parameter set from `NAME=VALUE` texts, taken as exact. A function's constant may go by its name alone."""
    entry = family(name)
    by_name = {parameter.name: parameter for parameter in entry.parameters}
    texts: dict[str, str] = {}
    for setting in settings:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise UserError(f"found '{setting}', wanted NAME=VALUE")
        parameter = by_name.get(key.partition(".")[0])
        if parameter is None:
            raise UserError(f"family {name} has no parameter '{key}'; {suggest(key, by_name)}")
        if parameter.argument and "." not in key:
            key = f"{key}.a"
        if key in texts:
            raise UserError(f"found {key} twice")
        texts[key] = value
    forms = forms_of(entry, texts)
    numbers = {}
    for key, value in texts.items():
        try:
            numbers[key] = _number(value, unit(entry, key, forms), by_name[key.partition(".")[0]])
        except UserError as error:
            raise UserError(error.found, key=key) from None
    values = {key: Estimate(number, unit(entry, key, forms), number, number) for key, number in numbers.items()}
    parameters = ParameterSet(name, "", "given on the command line", values, forms=forms)
    complete(entry, Values.exact(parameters))
    return parameters


def read_set(path: AnyPath) -> ParameterSet:
    """A parameter set from a file, its values in the units that their family has: a number of another unit, or of one
    that is not named, is refused, not taken for seconds."""
    parameters = read_parameters(path)
    entry = family(parameters.family)
    names = {parameter.name for parameter in entry.parameters}
    if set(parameters.forms.values()) - set(FORM_NAMES):
        return parameters  # `complete` says what is wrong with it
    for key, estimate in parameters.values.items():
        wanted = unit(entry, key, parameters.forms) if key.partition(".")[0] in names else estimate.unit
        if estimate.unit == wanted or not (estimate.unit or (estimate.value and wanted.startswith("s"))):
            continue
        if estimate.unit:
            message = f"found the unit '{one_line(estimate.unit, 20)}', wanted a value in {wanted}"
        else:
            message = f"found a value without a unit, wanted {{value: {estimate.value:g}, unit: {wanted}}}"
        line = read_yaml(path).line(("parameters", key))
        raise UserError(message, file=path, line=line, key=f"parameters.{key}")
    return parameters


def forms_of(entry: Family, keys: Iterable[str]) -> dict[str, str]:
    """The forms of functions of which only the coefficients' names are given, unless the family says."""
    free = {parameter.name for parameter in entry.parameters if parameter.argument and not parameter.form}
    letters: dict[str, set[str]] = {}
    for key in sorted(keys):
        if key.partition(".")[0] in free:
            letters.setdefault(key.rpartition(".")[0], set()).add(key.rpartition(".")[2])
    found = {}
    for function, given_ones in letters.items():
        if any(KNOT.fullmatch(letter) for letter in given_ones):
            found[function] = TABLE
        elif "x1" in given_ones:
            found[function] = PIECEWISE
        elif given_ones & {"b", "c"}:
            found[function] = "quadratic" if "c" in given_ones else "linear"
    return found


def _number(value: str, unit: str, parameter: Parameter) -> float:
    """A coefficient of a function may be negative; nothing else may."""
    sign = -1 if parameter.argument and value.startswith("-") else 1
    value = value.removeprefix("-") if sign < 0 else value
    parse = {"s": parse_seconds, "B": parse_bytes}.get(unit[0], parse_number)
    return sign * parse(value)


def meanings(names: Sequence[str]) -> dict[tuple[str, str], str]:
    """What each parameter means, by family and name."""
    return {(name, parameter.name): parameter.meaning for name in names for parameter in family(name).parameters}
