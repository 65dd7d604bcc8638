"""The residual model: its derivatives, its closed forms, what it says near the data and far away, and its coverage."""

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.compare import residual_model
from commodel.compare.residual_model import PRIOR, Likeness, MeasuredResiduals, Places, Posterior, ResidualModel, Scales
from commodel.patterns.points import PlatformResources, make_point

SIZES = [8, 512, 32768, 2097152]
ALGORITHMS = ["ring", "recursive-doubling", "chain:2", "chain:4"]


def make_places(nodes=(2, 4, 8), sizes=SIZES, algorithms=ALGORITHMS, operations=("allreduce", "bcast"), per_node=8):
    table = [
        {"operation": operation, "alternative": algorithm, "workload": f"{operation} {count} {size}"}
        | {"bytes": size, "nodes": count, "ranks": count * per_node, "leaves": 0}
        for operation in operations
        for count in nodes
        for size in sizes
        for algorithm in algorithms
    ]
    return Places.of_rows(pd.DataFrame(table))


def draw(places, scales=PRIOR, seed=0):
    """Draw residuals from the prior."""
    covariance = Likeness.of(places, places).covariance(scales) + scales.point**2 * np.eye(len(places))
    return np.linalg.cholesky(covariance) @ np.random.default_rng(seed).standard_normal(len(places))


def fit(places, residuals):
    return ResidualModel.fit(MeasuredResiduals(places, residuals, np.zeros(len(residuals))))


def test_points_and_rows_of_a_comparison_have_the_same_places():
    resources = PlatformResources("p", nodes=8, cores=4)
    entries = [
        {"operation": "allreduce", "algorithm": "ring", "ranks": 16, "layout": "block:4", "bytes": 4096},
        {"operation": "barrier", "algorithm": "dissemination", "ranks": 3, "layout": "block:1", "bytes": 0},
    ]
    points = [make_point(resources, entry) for entry in entries]
    names = ("operation", "alternative", "workload", "ranks", "leaves", "bytes", "nodes")
    rows = pd.DataFrame([{name: getattr(point, name) for name in names} for point in points])
    of_points, of_rows = Places.of_points(points), Places.of_rows(rows)
    assert of_points.doublings.tolist() == of_rows.doublings.tolist() == [[12, 2, 2], [0, np.log2(3), 0]]
    assert of_points.algorithm.tolist() == of_rows.algorithm.tolist()


def test_the_slopes_of_the_covariance_are_its_differences():
    likeness = Likeness.of(make_places(), make_places(nodes=(1, 16)))
    scales = Scales(0.1, 0.2, 0.3, 0.15, 0.25, 0.05, 5.0)
    slopes = list(likeness.gradient(scales))
    slopes.insert(5, np.zeros_like(slopes[0]))  # the part of the point is not included
    for number, slope in enumerate(slopes):
        step = np.eye(len(slopes))[number] * 1e-5
        higher, lower = (likeness.covariance(Scales.of_logs(scales.logs + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(slope, (higher - lower) / 2e-5, atol=1e-8)


def test_leaving_out_in_closed_form_equals_a_fit_without_the_points():
    places = make_places()
    variances = np.random.default_rng(2).uniform(0, 0.01, len(places))
    residuals = MeasuredResiduals(places, draw(places), variances)
    posterior = Posterior.of(residuals, PRIOR)
    for label in places.labels().values():
        left_out = label == label[3]
        without = Posterior.of(residuals.only(~left_out), PRIOR)
        logs, covariance = without.correct(places.only(left_out))
        scatter = np.diag(covariance) + variances[left_out]
        expected = (residuals.logs[left_out] - logs) / np.sqrt(scatter)
        np.testing.assert_allclose(posterior.leave_out(label)[left_out], expected, rtol=1e-6, atol=1e-9)


def test_the_scales_of_drawn_residuals_are_found():
    """Of many points: a few draws of a part that all points share do not tell its scale."""
    true = Scales(0.1, 0.3, 0.2, 0.3, 0.2, 0.02, 4.0)
    places = make_places(nodes=(2, 4, 8, 16), algorithms=[f"a{number}" for number in range(12)])
    residuals = MeasuredResiduals(places, draw(places, true), np.zeros(len(places)))
    found = residual_model.fit_scales(residuals, PRIOR, residual_model.PRIOR_DEVIATIONS)
    assert found.point == pytest.approx(true.point, rel=0.4)
    assert np.hypot(found.size, found.near) == pytest.approx(np.hypot(true.size, true.near), rel=0.4)


def test_the_usual_ratio_of_an_algorithm_persists_beyond_the_data_and_the_interval_widens():
    places = make_places()
    residuals = np.where(places.algorithm == "allreduce ring", 0.5, 0.0) + 0.02 * draw(places)
    model = fit(places, residuals)
    far = make_places(nodes=(8, 16, 64, 256), algorithms=["ring"], operations=("allreduce",))
    logs, half_width = model.predict_singly(far)
    np.testing.assert_allclose(logs, 0.5, atol=0.1)
    by_nodes = half_width.reshape(4, len(SIZES))
    assert (np.diff(by_nodes, axis=0) > 0).all()


def test_with_few_points_nothing_pooled_over_operations_moves_a_good_fit():
    """A model that is right within 5 % remains so, wherever it is asked."""
    places = make_places(nodes=(2, 4), sizes=[1024, 65536], algorithms=["ring"])
    residuals = np.array([0.04, -0.03, 0.02, 0.01, -0.04, 0.03, -0.01, -0.02])
    logs, _ = fit(places, residuals).predict_singly(make_places(nodes=(2, 64, 512)))
    assert np.abs(logs).max() < 0.04


def test_alternatives_of_a_workload_share_errors():
    """The difference of two alternatives that were both measured nearby is known better than each of them."""
    places = make_places()
    model = fit(places, draw(places))
    corrections = model.predict(make_places(nodes=(32,), sizes=[4096], operations=("allreduce",)))
    variances = np.diag(corrections.covariance)
    difference = variances[0] + variances[1] - 2 * corrections.covariance[0, 1]
    assert 0 < difference < variances[0] + variances[1]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_the_covariance_is_positive(seed):
    rng = np.random.default_rng(seed)
    nodes = tuple(int(count) for count in rng.integers(1, 300, 3))
    places = make_places(nodes=nodes, sizes=rng.integers(0, 1 << 24, 3).tolist())
    scales = Scales(*np.exp(rng.uniform(-3, 1, 6)).tolist(), float(rng.uniform(1, 20)))
    covariance = Likeness.of(places, places).covariance(scales)
    np.testing.assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)


def test_intervals_cover_measured_workloads_also_with_heavy_tails():
    """Residuals with Student-t errors of three degrees of freedom: 95 % of new points lie inside, not 80 or 100 %."""
    places = make_places(nodes=(2, 4, 8, 16, 32))
    covered = []
    for seed in range(4):
        errors = 0.05 * np.random.default_rng(seed).standard_t(3, len(places))
        residuals = draw(places, seed=seed) + errors
        new = np.char.endswith(places.workload, "512")
        model = fit(places.only(~new), residuals[~new])
        logs, half_width = model.predict_singly(places.only(new))
        covered += (np.abs(residuals[new] - logs) <= half_width).tolist()
    assert 0.9 <= np.mean(covered) <= 1.0


def test_an_uncertain_time_corrects_less_than_a_certain_one():
    places = make_places()
    residuals = draw(places, Scales(0.1, 0.1, 0.2, 0.2, 0.1, 0.05, 6.0))
    corrections = [
        Posterior.of(MeasuredResiduals(places, residuals, np.full(len(places), variance)), PRIOR).correct(places)[0]
        for variance in (0.0, 1.0)
    ]
    assert np.abs(corrections[1]).mean() < 0.6 * np.abs(corrections[0]).mean()


def test_an_unmeasured_operation_and_exact_residuals_have_finite_intervals():
    places = make_places(operations=("allreduce",))
    model = fit(places, np.zeros(len(places)))
    logs, half_width = model.predict_singly(make_places(operations=("gather",)))
    assert logs == pytest.approx(np.zeros(len(logs)), abs=1e-6)
    assert np.isfinite(half_width).all()
    assert (half_width > 0).all()


def test_scales_do_not_depend_on_the_last_bit():
    places = make_places()
    residuals = draw(places)
    changed = residuals * (1 + 1e-13 * np.random.default_rng(1).standard_normal(len(residuals)))
    fits = [fit(places, logs) for logs in (residuals, changed)]
    assert astuple(fits[0].scales) == astuple(fits[1].scales)
