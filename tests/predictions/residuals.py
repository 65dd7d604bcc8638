"""Residuals and places for tests of intervals."""

import numpy as np

from commodel.predictions.places import Places, measure_doublings
from commodel.predictions.residual_model import MeasuredResiduals, ResidualModel
from commodel.predictions.stored_residuals import store_residuals


def make_places(
    count,
    workload=None,
    operation="bcast",
    ranks=8.0,
    size=8.0,
    nodes=8.0,
    levels_crossed="",
    alternative="binomial",
    setting="",
):
    """Return places of points, each value one for all or one for each."""
    groups = np.arange(count) if workload is None else np.asarray(workload)
    labels = (
        np.broadcast_to(label, count).astype(str)
        for label in (operation, alternative, groups, levels_crossed, setting)
    )
    amounts = (np.broadcast_to(amount, count).astype(float) for amount in (size, nodes, ranks))
    return Places(*labels, measure_doublings(*amounts))


def make_residuals(logs, workload=None, allocation="a", **places):
    logs = np.asarray(logs, dtype=float)
    return MeasuredResiduals.of(make_places(len(logs), workload, **places), logs, 0.0, allocation)


def make_stored(logs, workload=None, **columns):
    """Return residuals as a parameter set stores them."""
    return store_residuals(ResidualModel.fit(make_residuals(logs, workload, **columns)))


def find_basis(residuals, **place):
    """Return the text of the basis of an interval at a place."""
    return ResidualModel.fit(residuals).find_bases(make_places(1, **place))[0].text
