"""Residuals and workloads for tests of intervals."""

import numpy as np

from commodel.predictions.prediction_intervals import PointSeries, find_residual_interval, fit_residual_intervals
from commodel.predictions.residuals import Residuals


def make_residuals(
    logs,
    group=None,
    operation="bcast",
    ranks=8.0,
    size=8.0,
    allocation="a",
    nodes=8.0,
    seconds=None,
    levels_crossed=None,
):
    logs = np.asarray(logs, dtype=float)
    count = len(logs)
    values = {"ranks": ranks, "bytes": size, "nodes": nodes}
    axes = {name: np.broadcast_to(value, count).astype(float) for name, value in values.items()}
    groups = np.arange(count).astype(str) if group is None else np.asarray(group).astype(str)
    labels = np.broadcast_to(operation, count), groups, np.broadcast_to(allocation, count)
    levels_crossed = None if levels_crossed is None else np.broadcast_to(levels_crossed, count).astype(str)
    return Residuals(logs, *labels, axes, seconds=seconds, levels_crossed=levels_crossed)


def make_workload(operation="bcast", ranks=8.0, size=8.0, nodes=8.0, levels_crossed=""):
    return PointSeries(operation, ranks, np.array([float(size)]), nodes, levels_crossed)


def find_ends(residuals, *args, **named):
    interval = find_residual_interval(fit_residual_intervals(residuals), make_workload(*args, **named))
    return interval.low[0], interval.high[0], interval.bases[0].text
