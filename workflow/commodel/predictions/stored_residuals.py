"""The residual model in a parameter set: `store_residuals` writes it, `load_residuals` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache

import numpy as np

from commodel.parameters import StoredResiduals
from commodel.predictions.growth_scales import GrowthScales
from commodel.predictions.places import Places, measure_doublings, number_labels
from commodel.predictions.residual_model import MeasuredResiduals, ResidualModel, Scales

MAX_STORED_POINTS = 1000  # measured points that a parameter set keeps
LOG_DIGITS, VARIANCE_DIGITS = 9, 12  # decimals of stored numbers


@lru_cache(maxsize=64)
def load_residuals(stored: StoredResiduals) -> ResidualModel:
    """Return the residual model that a parameter set stores."""
    size, nodes, ranks = (
        np.array(column, dtype=float) for column in (stored.bytes, stored.nodes, stored.ranks)
    )
    places = Places(
        operation=np.array(stored.operation, dtype=str),
        alternative=np.array(stored.alternative, dtype=str),
        workload=np.array(stored.workload).astype(str),
        levels_crossed=np.array(stored.levels_crossed, dtype=str),
        setting=np.array(stored.setting, dtype=str),
        doublings=measure_doublings(size, nodes, ranks),
    )
    residuals = MeasuredResiduals(
        places=places,
        logs=np.array(stored.log, dtype=float),
        variances=np.array(stored.variance, dtype=float),
        allocation=np.array(stored.allocation, dtype=str),
    )
    scales = {name: _load_scales(values) for name, values in stored.scales.items()}
    return ResidualModel(
        residuals=residuals, scales=scales, error=stored.error, deviations=stored.deviations
    )


def _load_scales(numbers: Sequence[float]) -> Scales:
    """Return the scales from their numbers. Those of the MPI default have most."""
    if len(numbers) > len(fields(Scales)):
        return GrowthScales.of_numbers(numbers)
    return Scales(*numbers)


def store_residuals(model: ResidualModel, max_points: int = MAX_STORED_POINTS) -> StoredResiduals:
    """Return a residual model as a parameter set stores it, with the residuals of about
    `max_points`."""
    residuals = model.residuals.thin_out(max_points)
    places = residuals.places
    size, nodes, per_node = np.exp2(places.doublings).round(6).T
    return StoredResiduals(
        operation=tuple(places.operation.tolist()),
        alternative=tuple(places.alternative.tolist()),
        levels_crossed=tuple(places.levels_crossed.tolist()),
        allocation=tuple(residuals.allocation.tolist()),
        setting=tuple(places.setting.tolist()),
        workload=tuple(number_labels(places.workload).tolist()),
        ranks=tuple((nodes * per_node).tolist()),
        nodes=tuple(nodes.tolist()),
        bytes=tuple(np.where(size > 1, size, 0.0).tolist()),
        log=tuple(residuals.logs.round(LOG_DIGITS).tolist()),
        variance=tuple(residuals.variances.round(VARIANCE_DIGITS).tolist()),
        scales={name: scales.numbers for name, scales in model.scales.items()},
        error=model.error,
        deviations=model.deviations,
    )
