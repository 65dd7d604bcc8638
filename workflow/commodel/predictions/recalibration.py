"""Recalibration of a parameter set to another setting: a latency factor f_L and a bandwidth factor
f_B of its values.

A value in seconds is multiplied by f_L, one in seconds per byte by f_B, a throughput by 1/f_B. A
function of message size is multiplied by f_L at size 0, and its growth with the size by f_B: α +
β·m becomes f_L·α + f_B·β·m. For a sampled function, the value at the smallest size is multiplied by
f_L, and the excess of the other samples by f_B. A function of a count is multiplied by f_L. Values
of local work, sizes, ratios and protocol constants remain unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from commodel.errors import UserError
from commodel.models import Array
from commodel.models.evaluation.values import TABLE
from commodel.models.families import Family, find_family, find_unit
from commodel.models.fitting.observed import DEFAULT_DRAWS
from commodel.models.keys import make_sample_key, parse_key
from commodel.parameters import Estimate, ParameterSet
from commodel.stats import NORMAL_QUANTILE

RECALIBRATION_KEY = "pace"  # key of the factors in the provenance of a recalibrated set
SEED = 1


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor with its 95 % interval. If the measurements do not determine it, the factor is 1 and
    `known` is false."""

    value: float = 1.0
    low: float = 1.0
    high: float = 1.0
    known: bool = True

    @property
    def text(self) -> str:
        return (
            f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"
            if self.known
            else "not determined"
        )


@dataclass(frozen=True, slots=True)
class RecalibrationFactors:
    """Latency factor and bandwidth factor. `together`: the measurements determine only one common
    factor."""

    latency: Factor
    per_byte: Factor
    together: bool = False
    points: int = 0
    scatter: float = 0.0  # standard deviation of ln(measured/predicted) after recalibration

    @property
    def text(self) -> str:
        if self.together:
            return f"latency and time per byte × {self.latency.text}, estimated together"
        return f"latency × {self.latency.text}, time per byte × {self.per_byte.text}"


def scale_values(
    family: Family, forms: Mapping[str, str], numbers: Mapping[str, Array], f_l: Array, f_b: Array
) -> dict[str, Array]:
    """Return the values of a set, multiplied by the factors. All are arrays with one row for each
    draw."""
    return {name: _scale_value(family, forms, numbers, name, f_l, f_b) for name in numbers}


def _scale_value(
    family: Family,
    forms: Mapping[str, str],
    numbers: Mapping[str, Array],
    name: str,
    f_l: Array,
    f_b: Array,
) -> Array:
    value = numbers[name]
    parsed = parse_key(name)
    parameter = family.by_name[parsed.parameter]
    if not parameter.recalibrated or parameter.unit not in ("s", "s/B", "B/s"):
        return value
    if parameter.unit != "s":
        has_unit = not parameter.argument or parameter.unit in find_unit(family, name, forms)
        return value * (f_b if parameter.unit == "s/B" else 1 / f_b) if has_unit else value
    if parameter.argument != "m":
        return (
            value * f_l
            if not parameter.argument or "s" in find_unit(family, name, forms)
            else value
        )
    if (
        forms.get(parsed.function, forms.get(parameter.name, parameter.form)) == TABLE
        and parsed.sample
    ):
        smallest = numbers[_find_smallest_sample(numbers, parsed.function, parsed.sample[1])]
        return f_l * smallest + f_b * (value - smallest)
    if parsed.part.startswith("a"):  # the value at size 0
        return value * f_l
    return value * f_b if "s" in find_unit(family, name, forms) else value


def _find_smallest_sample(numbers: Mapping[str, Array], function: str, level: int | None) -> str:
    samples = [
        parsed.sample
        for parsed in map(parse_key, numbers)
        if parsed.function == function and parsed.sample
    ]
    return make_sample_key(
        function, min(size for size, level_of_sample in samples if level_of_sample == level), level
    )


def can_recalibrate(parameters: ParameterSet) -> bool:
    """Return whether the factors change any value of the set."""
    family = find_family(parameters.model)
    scaled = (
        family.by_name[parse_key(name).parameter]
        for name in parameters.values
        if family.accepts(name)
    )
    return any(
        parameter.recalibrated and parameter.unit in ("s", "s/B", "B/s") for parameter in scaled
    )


def has_latency_and_bandwidth(parameters: ParameterSet) -> bool:
    """Return whether the set has a latency and a time per byte."""
    return can_recalibrate(parameters) and find_family(parameters.model).uses_bytes


def scale_set(
    parameters: ParameterSet, factors: RecalibrationFactors, setting: str, target: str
) -> ParameterSet:
    """Return the set of another setting: values and draws are scaled, so predictions include the
    factors' uncertainty. `target` describes the setting in the set's source."""
    family = find_family(parameters.model)
    if not can_recalibrate(parameters):
        raise UserError(
            f"model {family.name} has no latency and no time per byte: recalibration does not change it"
        )
    count = min((len(column) for column in parameters.draws.values()), default=DEFAULT_DRAWS)
    numbers = {
        name: np.array(
            [estimate.value, *parameters.draws.get(name, (estimate.value,) * count)[:count]]
        )
        for name, estimate in parameters.values.items()
    }
    scaled = scale_values(family, parameters.forms, numbers, *_draw_factors(factors, count))
    return replace(
        parameters,
        values={
            name: _scale_estimate(before, scaled[name])
            for name, before in parameters.values.items()
        },
        draws={
            name: tuple(map(float, column[1:])) for name, column in scaled.items() if np.ptp(column)
        },
        source=f"{parameters.source}; recalibrated to {target}",
        provenance={**parameters.provenance, RECALIBRATION_KEY: format_factors(factors, setting)},
    )


def _scale_estimate(before: Estimate, scaled: Array) -> Estimate:
    """Return the scaled estimate. Its relative interval never becomes narrower."""
    value = float(scaled[0])
    low, high = np.percentile(scaled[1:], [2.5, 97.5])
    factor = value / before.value if before.value else 1.0
    ends = [value, float(low), float(high), factor * before.low, factor * before.high]
    return replace(before, value=value, low=min(ends), high=max(ends))


def _draw_factors(factors: RecalibrationFactors, count: int) -> tuple[Array, Array]:
    """Return rows of both factors, the estimate first."""
    rng = np.random.default_rng(SEED)
    columns = []
    noise = rng.standard_normal((2, count))
    noise = noise[[0, 0]] if factors.together else noise
    for factor, drawn in zip((factors.latency, factors.per_byte), noise, strict=True):
        spread = np.log(factor.high / factor.low) / 2 / NORMAL_QUANTILE if factor.known else 0.0
        columns.append(factor.value * np.exp(np.r_[0.0, spread * drawn]))
    return columns[0], columns[1]


def format_factors(factors: RecalibrationFactors, setting: str) -> dict[str, Any]:
    return {"setting": setting, **asdict(factors)}


def parse_factors(entry: Mapping[str, Any]) -> RecalibrationFactors:
    latency = Factor(**entry["latency"])
    per_byte = Factor(**entry["per_byte"])
    return RecalibrationFactors(
        latency=latency,
        per_byte=per_byte,
        together=entry["together"],
        points=entry["points"],
        scatter=entry["scatter"],
    )
