"""A family is data: its parameters, the probes it needs, its fit and its price. One file each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commodel.errors import UserError, suggest
from commodel.fitting import Fitted, Observed
from commodel.records import Estimate, ParameterSet
from commodel.registry import discover, lookup
from commodel.schedule import Schedule
from commodel.units import parse_number, parse_seconds

Values = Mapping[str, np.ndarray]  # every value broadcasts over (draws, rows)


@dataclass(frozen=True)
class Parameter:
    """One parameter. A function has a letter for its argument, and its values are coefficients: `o.a`, `o.b`, …"""

    name: str
    unit: str
    meaning: str
    argument: str = ""
    default: float | None = None  # None: it must be given


GAMMA = Parameter("gamma", "s/B", "local reduction or copy, per byte", default=0.0)


@dataclass(frozen=True)
class Family:
    name: str
    title: str
    citation: str
    equation: str
    parameters: tuple[Parameter, ...]
    probes: tuple[str, ...]
    fit: Callable[[Observed], Fitted]
    price: Callable[[Schedule, Values, Mapping[str, str]], np.ndarray]  # finish time of every rank, last axis
    ignores: str
    uses_bytes: bool = True
    pipelined: Callable[[Schedule, Values, Mapping[str, str]], np.ndarray] | None = None  # time between waves, if known


def family(name: str) -> Family:
    return lookup("families", "FAMILY", name)


def family_names() -> list[str]:
    return list(discover("families", "FAMILY"))


def complete(entry: Family, values: Values, forms: Mapping[str, str]) -> dict[str, np.ndarray]:
    """The values with defaults filled in, or a UserError about a missing or unknown one."""
    full = dict(values)
    known = set()
    for parameter in entry.parameters:
        if parameter.argument:
            known |= {name for name in values if name.split(".")[0] == parameter.name}
            missing = f"{parameter.name}.a" not in values
        else:
            known.add(parameter.name)
            missing = parameter.name not in values
        if not missing:
            continue
        if parameter.default is None:
            raise UserError(f"family {entry.name} needs {parameter.name} ({parameter.meaning}, {parameter.unit})")
        full[parameter.name + (".a" if parameter.argument else "")] = np.array([[parameter.default]])
    for name in values:
        if name not in known:
            wanted = [parameter.name for parameter in entry.parameters]
            raise UserError(f"family {entry.name} has no parameter '{name}'; {suggest(name, wanted)}")
    return full


def costs(entry: Family, schedule: Schedule, parameters: ParameterSet, drawn: bool) -> np.ndarray:
    """Cost of a schedule, (draws,) or (sizes, draws): one draw, or all of the set's joint bootstrap draws."""
    values = parameters.drawn_values() if drawn else parameters.point_values()
    return schedule.cost(entry.price(schedule, complete(entry, values, parameters.forms), parameters.forms))


def given(name: str, settings: Sequence[str]) -> ParameterSet:
    """A parameter set from `NAME=VALUE` texts, taken as exact. A function's constant may go by its name alone."""
    entry = family(name)
    by_name = {parameter.name: parameter for parameter in entry.parameters}
    values = {}
    for text in settings:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise UserError(f"found '{text}', wanted NAME=VALUE")
        parameter = by_name.get(key.split(".")[0])
        if parameter is None:
            raise UserError(f"family {name} has no parameter '{key}'; {suggest(key, by_name)}")
        number = parse_seconds(value) if parameter.unit.startswith("s") else parse_number(value)
        if key in values or f"{key}.a" in values:
            raise UserError(f"found {key} twice")
        key = f"{key}.a" if parameter.argument and "." not in key else key
        values[key] = Estimate(number, parameter.unit, number, number)
    shapes = {
        key.split(".")[0]: "quadratic" if f"{key[:-2]}.c" in values else "linear" for key in values if key[-2:] == ".b"
    }
    parameters = ParameterSet(name, "", "given on the command line", values, forms=shapes)
    complete(entry, parameters.point_values(), parameters.forms)
    return parameters


def meanings(names: Sequence[str]) -> dict[tuple[str, str], str]:
    """What each parameter means, by family and name."""
    return {(name, parameter.name): parameter.meaning for name in names for parameter in family(name).parameters}
