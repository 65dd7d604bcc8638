"""The residual model: its derivatives, its closed forms, what it says near the data and far away,
and its coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions import residual_model
from commodel.predictions.interval_basis import measure_segments_beyond
from commodel.predictions.places import Places
from commodel.predictions.residual_model import (
    DEVIATION_BEYOND_SEGMENTS,
    PRIOR,
    Likeness,
    MeasuredResiduals,
    Posterior,
    ResidualModel,
    Scales,
)
from commodel.predictions.stored_residuals import load_residuals, store_residuals

SIZES = [8, 512, 32768, 2097152]
ALGORITHMS = ["ring", "recursive-doubling", "chain:2", "chain:4"]


def make_places(
    nodes=(2, 4, 8),
    sizes=SIZES,
    algorithms=ALGORITHMS,
    operations=("allreduce", "bcast"),
    per_node=8,
):
    table = [
        {
            "operation": operation,
            "alternative": algorithm,
            "workload": f"{operation} {count} {size}",
        }
        | {
            "bytes": size,
            "nodes": count,
            "ranks": count * per_node,
            "leaves": 0,
            "waves": 1,
            "levels_crossed": "",
        }
        for operation in operations
        for count in nodes
        for size in sizes
        for algorithm in algorithms
    ]
    return Places.of_rows(pd.DataFrame(table))


def draw(places, scales=PRIOR, seed=0):
    """Draw residuals from the prior."""
    covariance = Likeness.of(places, places).covariance(scales) + scales.point**2 * np.eye(
        len(places)
    )
    return np.linalg.cholesky(covariance) @ np.random.default_rng(seed).standard_normal(len(places))


def fit(places, residuals):
    return ResidualModel.fit(MeasuredResiduals.of(places, residuals))


def make_posterior(residuals, operation="allreduce", scales=PRIOR):
    return Posterior.of(residuals, operation, scales)


def test_points_and_rows_of_a_comparison_have_the_same_places():
    resources = PlatformResources("p", nodes=8, cores=4)
    entries = [
        {
            "operation": "allreduce",
            "algorithm": "ring",
            "ranks": 16,
            "layout": "block:4",
            "bytes": 4096,
        },
        {
            "operation": "barrier",
            "algorithm": "dissemination",
            "ranks": 3,
            "layout": "block:1",
            "bytes": 0,
        },
    ]
    points = [make_point(resources, entry) for entry in entries]
    names = ("operation", "alternative", "workload", "ranks", "leaves", "bytes", "nodes", "waves")
    rows = pd.DataFrame(
        [{name: getattr(point, name) for name in names} for point in points]
    ).assign(levels_crossed="")
    of_points, of_rows = Places.of_points(points), Places.of_rows(rows)
    assert (
        of_points.doublings.tolist()
        == of_rows.doublings.tolist()
        == [[12, 2, 2], [0, np.log2(3), 0]]
    )
    assert of_points.algorithm.tolist() == of_rows.algorithm.tolist()
    of_sizes = Places.of_sizes(points[0], [16, 4096])
    assert of_sizes.doublings.tolist() == [[4, 2, 2], [12, 2, 2]]
    assert of_sizes.algorithm.tolist() == [of_points.algorithm[0]] * 2


@pytest.mark.parametrize("of_setting", [(), (0.2,)])
def test_the_slopes_of_the_covariance_are_its_differences(of_setting):
    first, second = make_places(), make_places(nodes=(1, 16))
    first = replace(first, setting=np.resize(["a", "b"], len(first)))
    second = replace(second, setting=np.resize(["a", "b", "b"], len(second)))
    likeness = Likeness.of(first, second)
    scales = Scales(0.1, 0.2, 0.3, 0.15, 0.25, 0.05, 5.0, *of_setting)
    slopes = list(likeness.gradient(scales, likeness.correlate(scales)))
    slopes.insert(5, np.zeros_like(slopes[0]))  # the part of the point is not included
    assert len(slopes) == len(scales.numbers)
    for number, slope in enumerate(slopes):
        step = np.eye(len(slopes))[number] * 1e-5
        higher, lower = (
            likeness.covariance(scales.refit(np.exp(scales.logs + sign * step).tolist()))
            for sign in (1, -1)
        )
        np.testing.assert_allclose(slope, (higher - lower) / 2e-5, atol=1e-8)


def test_many_small_segments_are_less_certain_than_the_measured_ones():
    sizes = [4096, 16384, 65536]
    measured = make_places(operations=("bcast",), sizes=sizes, algorithms=["ring", "chain:4KiB"])
    model = fit(measured, np.zeros(len(measured)))
    algorithms = ["ring", "chain", "chain:4KiB", "chain:1KiB", "chain:256B", "chain:64"]
    wanted = make_places(operations=("bcast",), nodes=(4,), sizes=[65536], algorithms=algorithms)
    assert wanted.segments.tolist() == [0, 3, 4, 6, 8, 10]  # 8 KiB, if not said
    corrections = model.predict(wanted)
    widths = dict(zip(algorithms, corrections.half_width.tolist(), strict=True))
    of_segments = [widths[f"chain:{segment}"] for segment in ("4KiB", "1KiB", "256B", "64")]
    assert of_segments == sorted(of_segments)
    added = 1.96 * DEVIATION_BEYOND_SEGMENTS * 4
    assert widths["chain:256B"] > added > 2 * widths["chain:4KiB"]
    # Points of an algorithm share this error, others do not.
    others = make_places(operations=("bcast",), nodes=(4,), sizes=[65536], algorithms=["ring"])
    assert fit(others, np.zeros(1)).predict(wanted).covariance[4, 5] > 0.01 * 8 * 10
    variances = np.sqrt(np.diag(corrections.covariance))
    correlations = corrections.covariance / np.outer(variances, variances)
    assert correlations[4, 5] > 0.9 > correlations[0, 5]


def make_bcasts(sizes, algorithms, nodes=(4,)):
    return make_places(nodes, sizes, algorithms, operations=("bcast",))


def test_segments_are_known_of_all_kinds_of_alternatives():
    specs = ["hier:segment=1KiB", "hier:inter=chain:512B", "split-binary:2KiB"]
    assert make_bcasts([8192], specs).segments.tolist() == [3, 4, 2]
    without = ["library", "balanced:4x4", "binomial", "ring"]
    assert make_bcasts([8192], without).segments.tolist() == [0, 0, 0, 0]
    # The segmented ring cuts the share of each of 32 ranks.
    ring = make_places((4,), [1 << 16], ["ring:4KiB", "ring:512B"], operations=("allreduce",))
    assert ring.segments.tolist() == [0, 2]


def test_only_more_and_smaller_segments_are_beyond_the_measured_ones():
    measured = make_bcasts([1 << 14, 1 << 16], ["chain:4KiB", "chain:1KiB"])
    wanted = make_bcasts([1 << 16, 1 << 20], ["binomial", "chain:4KiB", "chain:1KiB", "chain:256B"])
    # At 1 MiB, there are 4,096 segments of 256 B; 64 KiB were measured in 64 segments of 1 KiB.
    assert measure_segments_beyond(measured, wanted).tolist() == [0, 0, 0, 2, 0, 0, 0, 2]
    alone = make_bcasts([1 << 16], ["binomial"])
    assert measure_segments_beyond(measured, alone).tolist() == [0]
    whole = make_bcasts([1 << 16], ["binomial"])
    assert measure_segments_beyond(whole, wanted).tolist() == [0, 4, 6, 8, 0, 8, 10, 12]


def test_leaving_out_in_closed_form_equals_a_fit_without_the_points():
    places = make_places(operations=("allreduce",))
    variances = np.random.default_rng(2).uniform(0, 0.01, len(places))
    residuals = MeasuredResiduals.of(places, draw(places), variances)
    posterior = make_posterior(residuals)
    for kind, label in places.labels().items():
        if kind == "operation":
            continue
        left_out = label == label[3]
        without = make_posterior(residuals.only(~left_out))
        logs, covariance = without.correct(places.only(left_out))
        errors, deviations = posterior.leave_out(label)
        np.testing.assert_allclose(
            errors[left_out], residuals.logs[left_out] - logs, rtol=1e-6, atol=1e-9
        )
        expected = np.sqrt(np.diag(covariance) + variances[left_out])
        np.testing.assert_allclose(deviations[left_out], expected, rtol=1e-6)


def test_a_workload_left_out_is_corrected_by_the_others():
    """With the scales of all points; the number of deviations is that of a workload, or of an
    unknown place."""
    places = make_places()
    model = fit(places, draw(places))
    logs, half_width, bases = model.predict_left_out()
    left_out = places.workload == "bcast 4 512"
    scales, others = model.scales["bcast"], model.residuals.only(~left_out)
    expected, covariance = make_posterior(others, "bcast", scales).correct(places.only(left_out))
    np.testing.assert_allclose(logs[left_out], expected, atol=1e-9)
    counts = half_width[left_out] / np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(counts, model.deviations["workload"], rtol=1e-6)
    assert {basis.workloads for basis in np.array(bases)[left_out]} == {11}
    assert np.mean(np.abs(model.residuals.logs - logs) <= half_width) >= 0.95


def test_a_stored_model_predicts_the_same():
    places = make_places()
    model = fit(places, draw(places).round(6))
    loaded = load_residuals(store_residuals(model))
    others = make_places(nodes=(1, 3, 64), operations=("allreduce", "gather"))
    for found, expected in zip(
        loaded.predict_singly(others), model.predict_singly(others), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert [basis.text for basis in loaded.find_bases(others)] == [
        basis.text for basis in model.find_bases(others)
    ]


def in_settings(names, places):
    return replace(places, setting=np.array(names, dtype=str))


def test_a_new_setting_is_covered_where_settings_differ():
    """Each setting shifts all times; a prediction is for a setting that was not measured."""
    places = make_places(operations=("bcast",))
    settings = np.array([f"s{number % 6}" for number in range(len(places))])
    shift = {name: 0.4 * number for number, name in enumerate(sorted(set(settings)))}
    residuals = np.array([shift[name] for name in settings]) - 1.0
    alike, differing = fit(places, residuals), fit(in_settings(settings, places), residuals)
    assert "setting" not in alike.deviations
    assert [len(model.scales["all"].numbers) for model in (alike, differing)] == [7, 8]
    logs, half_width = differing.predict_singly(places)
    assert (half_width + np.abs(logs) >= 1.0).mean() > 0.9


def test_a_measured_setting_is_corrected_by_its_own_shift():
    """Two sizes of a setting tell its shift, which its other sizes have, too."""
    places = make_places(operations=("bcast",), nodes=(2, 4, 8, 16))
    shifts = {"slow": 0.3, "usual": 0.0, "fast": -0.3, "noisy": 0.1}
    measured = places.only(np.isin(places.size, [3, 15]))
    by_nodes = dict(zip([1.0, 2.0, 3.0, 4.0], shifts, strict=True))
    settings = [by_nodes[nodes] for nodes in measured.doublings[:, 1].tolist()]
    residuals = np.array([shifts[name] for name in settings])
    model = fit(in_settings(settings, measured), residuals)
    wanted = places.only((places.size == 9) & (places.doublings[:, 1] == 2))
    slow, fast, new = (
        model.predict_singly(in_settings([name] * len(wanted), wanted))
        for name in ("slow", "fast", "")
    )
    assert (slow[0] > new[0] + 0.1).all()
    assert (fast[0] < new[0] - 0.1).all()
    assert (new[1] > slow[1]).all()
    assert load_residuals(store_residuals(model)).scales == model.scales


def test_intervals_of_a_new_setting_are_wider_if_few_settings_were_measured():
    """All residuals are 0, so that no left-out error is large: only Student's factor differs."""
    places = make_places(nodes=(2, 4, 8, 16))
    factors = []
    for count in (2, 6, 12):
        settings = np.resize([f"s{number}" for number in range(count)], len(places))
        model = fit(in_settings(settings, places), np.zeros(len(places)))
        assert model.deviations["setting"] > model.deviations["workload"]
        factors.append(model.deviations["setting"])
    assert factors == sorted(factors, reverse=True)
    assert len(set(factors)) == 3


def test_a_setting_of_another_operation_is_a_new_one():
    places = make_places()
    of_first = places.operation == "bcast"
    measured = in_settings(np.where(of_first, "a", "b"), places)
    logs = np.where(np.arange(len(places)) % 2, 0.3, -0.3)
    model = fit(measured, logs)
    known, other = (
        model.count_deviations(in_settings([name] * of_first.sum(), places.only(of_first)))
        for name in ("a", "b")
    )
    assert (other >= model.deviations["setting"]).all()
    assert (known <= other).all()
    assert model.deviations["setting"] > model.deviations["workload"]


def test_points_without_a_named_setting_are_in_another_one_than_the_measured():
    """Also if some were measured without a name: a new job is none of these."""
    places = make_places(operations=("bcast",))
    settings = np.resize(["", "monday", "friday"], len(places))
    residuals = np.array([{"": 0.0, "monday": 0.4, "friday": -0.4}[name] for name in settings])
    model = fit(in_settings(settings, places), residuals)
    point = make_point(
        PlatformResources.unlimited(),
        {"operation": "bcast", "algorithm": "chain:2", "ranks": 4, "bytes": 512},
    )
    wanted = Places.of_points([point])
    new, unnamed = (
        model.predict_singly(places)[1] for places in (wanted, in_settings([""], wanted))
    )
    assert new > 1.5 * unnamed
    assert new > 0.4


def test_the_scales_of_drawn_residuals_are_found():
    """Of many points: a few draws of a part that all points share do not show its scale."""
    true = Scales(0.1, 0.3, 0.2, 0.3, 0.2, 0.02, 4.0)
    places = make_places(nodes=(2, 4, 8, 16), algorithms=[f"a{number}" for number in range(12)])
    residuals = MeasuredResiduals.of(places, draw(places, true))
    found = residual_model.fit_scales(residuals, PRIOR, residual_model.PRIOR_DEVIATIONS)
    assert found.point == pytest.approx(true.point, rel=0.4)
    assert np.hypot(found.size, found.near) == pytest.approx(
        np.hypot(true.size, true.near), rel=0.4
    )


def test_the_scales_of_many_points_are_those_of_neighbours():
    """Residuals that change smoothly from size to size have little noise, also if only a part of
    them is used."""
    algorithms = [f"a{number}" for number in range(8)]
    places = make_places(
        nodes=(2, 4, 8, 16), sizes=[4**power for power in range(16)], algorithms=algorithms
    )
    residuals = draw(places, Scales(0.1, 0.3, 0.2, 0.3, 0.2, 0.02, 3.0))
    assert len(places) > 2 * residual_model.MAX_FITTED_POINTS
    model = fit(places, residuals)
    assert model.scales["bcast"].point < 0.05
    others = model.residuals.draw(10), model.residuals.draw(10)
    assert others[0].logs.tolist() == others[1].logs.tolist()
    assert len(others[0]) == 10


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
    """A model that is right within 5 % remains so, also far away."""
    places = make_places(nodes=(2, 4), sizes=[1024, 65536], algorithms=["ring"])
    residuals = np.array([0.04, -0.03, 0.02, 0.01, -0.04, 0.03, -0.01, -0.02])
    logs, _ = fit(places, residuals).predict_singly(make_places(nodes=(2, 64, 512)))
    assert np.abs(logs).max() < 0.04


def test_alternatives_of_a_workload_share_errors():
    """The difference of two alternatives that were both measured nearby is known better than each
    of them."""
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
    """Residuals with Student-t errors of three degrees of freedom: 95 % of new points lie inside,
    not 80 or 100 %."""
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
        make_posterior(MeasuredResiduals.of(places, residuals, variance)).correct(places)[0]
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
    assert fits[0].scales == fits[1].scales
