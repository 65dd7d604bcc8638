"""τ–Lop parameters with linear transfer times, and the time of concurrent transmissions."""

import numpy as np

from commodel.models.evaluation.values import Values
from commodel.parameters import ParameterSet
from tests.models.exact import estimates


def parameters(settings=None, **values) -> ParameterSet:
    forms = {name.partition(".")[0]: "table" for name in values}
    numbers = estimates(values)
    return ParameterSet("taulop", "", "", numbers, forms=forms, settings=settings or {})


def table(o_0, o_1, memory, network, latency=0.0) -> dict[str, float]:
    """Return τ–Lop values whose transfer times are latency + size · number of concurrent transfers
    (1 or 8) · time per byte."""
    numbers = {"o_0.0": o_0, "o_1.0": o_1}
    for level in (1, 8):
        numbers |= {f"L_0.{size}x{level}": latency + memory * size * level for size in (0, 1000)}
        numbers |= {f"L_1.{size}x{level}": latency + network * size * level for size in (0, 1000)}
    return numbers


def transmission(values: Values, channel: int, size: int, count: int) -> float:
    """Return the time of n concurrent transmissions, n‖T^c(m), by equations 1 and 3."""
    o, L = (
        values.at(f"o_{channel}", np.array([size])),
        values.at(f"L_{channel}", np.array([size]), count),
    )
    return float((o + (2 - channel) * L)[0, 0])
