"""Parameter sets and values without uncertainty, and parameter sets with values scaled by
factors."""

from collections.abc import Mapping

import numpy as np

from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.recalibration import Factor, RecalibrationFactors, scale_set


def estimates(values: Mapping[str, float]) -> dict[str, Estimate]:
    return {name: Estimate(value, "s", value, value) for name, value in values.items()}


def make_exact_values(
    values: Mapping[str, float], function_forms: Mapping[str, str] | None = None
) -> Values:
    """Return values of one draw. `function_forms` has the form of each function, such as linear."""
    return Values(
        {name: np.array([[float(value)]]) for name, value in values.items()}, function_forms or {}
    )


def cost(
    name: str, pattern: Schedule, function_forms: Mapping[str, str] | None = None, **values: float
) -> float:
    """Return the predicted time of a pattern by a model with these values."""
    entry = find_family(name)
    return float(
        pattern.cost(
            entry.predict(
                pattern, complete_values(entry, make_exact_values(values, function_forms))
            )
        )[0]
    )


def moved(parameters: ParameterSet, latency: float, per_byte: float) -> ParameterSet:
    factors = (Factor(factor, factor, factor) for factor in (latency, per_byte))
    return scale_set(parameters, RecalibrationFactors(*factors), "", "")
