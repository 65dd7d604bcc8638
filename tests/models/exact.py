"""Parameters without a doubt: values as estimates and as numbers to predict with, and sets that a factor has moved."""

from collections.abc import Mapping

import numpy as np

from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.recalibration import Factor, RecalibrationFactors, scale_set


def estimates(values: Mapping[str, float]) -> dict[str, Estimate]:
    return {name: Estimate(value, "s", value, value) for name, value in values.items()}


def numbers(values: Mapping[str, float], forms: Mapping[str, str] | None = None) -> Values:
    return Values({name: np.array([[float(value)]]) for name, value in values.items()}, forms or {})


def cost(name: str, pattern: Schedule, forms: Mapping[str, str] | None = None, **values: float) -> float:
    """Of a pattern under a family with these values."""
    entry = find_family(name)
    return float(pattern.cost(entry.predict(pattern, complete_values(entry, numbers(values, forms))))[0])


def moved(parameters: ParameterSet, latency: float, per_byte: float) -> ParameterSet:
    factors = (Factor(factor, factor, factor) for factor in (latency, per_byte))
    return scale_set(parameters, RecalibrationFactors(*factors), "", "")
