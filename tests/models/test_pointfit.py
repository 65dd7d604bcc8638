"""Fits to collectives without probes: true values are recovered, values that the data do not
determine are marked."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits import parameter_search, table_fits
from commodel.fits.measured_tables import Measured
from commodel.fits.probe_fits import make_parameter_set
from commodel.fits.table_fits import describe_fit, fit_measured, fit_points
from commodel.models.families import find_family, list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

BURSTS = [  # the last two send several messages from, or to, one rank
    ("bcast", "binomial"),
    ("allreduce", "recursive-doubling"),
    ("bcast", "linear"),
    ("gather", "linear"),
]


def points(patterns, sizes=(8, 1024, 16384, 131072), counts=(4, 8, 16)):
    return [
        point(operation, choice, ranks=ranks, bytes=size)
        for operation, choice in patterns
        for ranks in counts
        for size in sizes
    ]


def measured(parameters, chosen, noise=0.02, seed=1) -> np.ndarray:
    exact = np.array([prediction.seconds for prediction in predict(parameters, chosen)])
    return exact * np.exp(noise * np.random.default_rng(seed).standard_normal(len(exact)))


def make_truth(name, **values):
    return make_given_set(name, [f"{key}={value}" for key, value in values.items()])


LOGGP = make_truth("loggp", L="10us", o_s="1.5us", o_r="2us", g="4us", G="8ns", gamma="1ns")


def fitted(name, truth, chosen, **noise):
    return make_parameter_set(
        find_family(name), fit_points(find_family(name), chosen, measured(truth, chosen, **noise))
    )


@pytest.fixture(scope="module")
def from_bursts():
    return fitted("loggp", LOGGP, points(BURSTS))


def test_bursts_determine_the_gap_of_loggp_but_not_smaller_overheads(from_bursts):
    values = from_bursts.values
    for key in ("L", "G", "g", "gamma"):
        assert values[key].low <= LOGGP.values[key].value <= values[key].high, key
    assert values["g"].known
    assert values["G"].known
    assert values["g"].value == pytest.approx(4e-6, rel=0.05)
    for key in ("o_s", "o_r"):
        assert not values[key].known, key
        assert values[key].note
        assert values[key].low <= LOGGP.values[key].value <= values[key].high


def test_trees_do_not_determine_the_gap_of_loggp():
    """In a tree a rank sends its next message after the time of a whole message, which is longer
    than the gap."""
    truth = make_truth("loggp", L="10us", o_s="1.5us", o_r="2us", g="0.5us", G="8ns")
    chosen = points([("bcast", "binomial")])
    values = fitted("loggp", truth, chosen).values
    assert values["G"].low <= 8e-9 <= values["G"].high
    # The data determine only the sum: any of the three may be near 0, or near the sum.
    for name in ("L", "o_s", "o_r"):
        assert not values[name].known
        assert values[name].low < 1e-6, name
        assert values[name].high > 13e-6, name
    assert not values["g"].known
    # Among equally good values, the choice does not depend on the seed.
    with_other_seed = fit_points(
        find_family("loggp"), chosen, measured(truth, chosen), seed=2
    ).values
    for name, estimate in values.items():
        assert with_other_seed[name][0] == pytest.approx(estimate.value, rel=0.01), name


def test_predictions_stay_narrow_where_values_are_wide(from_bursts):
    parameters = replace(from_bursts, residuals=None)  # only the parameter interval
    for prediction in predict(parameters, points(BURSTS, sizes=(4096,), counts=(12,))):
        assert prediction.high < 1.1 * prediction.low


def test_the_faster_fit_of_large_tables_gives_the_same_values(from_bursts, monkeypatch):
    of_small_table = from_bursts.values
    monkeypatch.setattr(parameter_search, "LARGE_TABLE_MESSAGES", 0)
    parameters = fitted("loggp", LOGGP, points(BURSTS))
    for key, estimate in parameters.values.items():
        assert estimate.value == pytest.approx(of_small_table[key].value, rel=0.02), key
        assert estimate.low <= LOGGP.values[key].value <= estimate.high, key
        assert estimate.known == of_small_table[key].known, key
    # at workloads left out
    assert parameters.residuals.error == pytest.approx(from_bursts.residuals.error, abs=0.02)
    np.testing.assert_allclose(parameters.residuals.log, from_bursts.residuals.log, atol=0.02)
    for prediction in predict(
        replace(parameters, residuals=None), points(BURSTS, sizes=(4096,), counts=(12,))
    ):
        assert prediction.high < 1.1 * prediction.low


def test_a_large_table_is_fitted_to_a_sample_of_its_points(monkeypatch):
    """The sample does not depend on the order of the table. The values are those of the machine,
    and remarks about the fit name the number of points."""
    chosen = points(BURSTS, sizes=(8, 64, 1024, 16384, 131072), counts=(4, 6, 12))
    times = measured(LOGGP, chosen)
    monkeypatch.setattr(table_fits, "WHOLE_POINTS", len(chosen))
    assert fit_measured(chosen, times, "pmnf", "here").provenance["points"] == len(chosen)
    monkeypatch.setattr(table_fits, "WHOLE_POINTS", len(chosen) - 1)
    monkeypatch.setattr(table_fits, "MAX_POINTS", 40)
    monkeypatch.setattr(parameter_search, "LARGE_TABLE_MESSAGES", 0)
    parameters = fit_measured(chosen, times, "loggp", "here")
    assert parameters.provenance["points"] == 40
    assert parameters.values == fit_measured(chosen[::-1], times[::-1], "loggp", "here").values
    assert parameters.values["G"].value == pytest.approx(8e-9, rel=0.05)
    assert parameters.values["g"].value == pytest.approx(4e-6, rel=0.05)
    monkeypatch.setattr(table_fits, "MIN_SAMPLE_POINTS", 41)  # a sample of fewer points is not used
    assert fit_measured(chosen, times, "pmnf", "here").provenance["points"] == len(chosen)
    monkeypatch.setattr(table_fits, "MIN_SAMPLE_POINTS", 40)
    remarks = list(describe_fit(parameters, Measured(chosen, times.tolist(), 0), "t.csv"))
    assert "t.csv: remarks are about a sample of 40 of its 60 points" in remarks


def test_values_of_hockney_are_recovered():
    truth = make_truth("hockney", alpha="12us", beta="3ns")
    values = fitted("hockney", truth, points([("bcast", "binomial"), ("bcast", "linear")])).values
    for key, value in (("alpha.a", 12e-6), ("beta.a", 3e-9)):
        assert values[key].known
        assert values[key].low <= value <= values[key].high
        assert values[key].value == pytest.approx(value, rel=0.03)
    assert set(values) == {"alpha.a", "beta.a", "gamma"}  # one piece is enough
    assert not values["gamma"].known
    assert "a typical value: no point reduces or copies" in values["gamma"].note


def test_values_that_change_with_the_protocol_are_recovered():
    values = {"alpha.a": 12e-6, "alpha.a1": 30e-6, "beta.a": 3e-9, "beta.a1": 0.5e-9}
    edges = {"alpha.x1": 8192, "beta.x1": 8192}
    truth = make_given_set(
        "hockney",
        [f"{key}={value}s" for key, value in values.items()]
        + [f"{key}={value}" for key, value in edges.items()],
    )
    sizes = (8, 64, 1024, 4096, 8192, 16384, 65536, 262144, 1 << 20)
    chosen = points([("bcast", "binomial"), ("bcast", "linear")], sizes=sizes, counts=(4, 8))
    parameters = fitted("hockney", truth, chosen)
    assert parameters.forms == {"alpha": "piecewise", "beta": "piecewise"}
    assert set(parameters.values) == {*values, *edges, "gamma"}
    for key, value in edges.items():
        assert parameters.values[key].value == value
        assert parameters.values[key].note.startswith("found in the points")
    for key, value in values.items():
        assert parameters.values[key].low <= value <= parameters.values[key].high
        assert parameters.values[key].value == pytest.approx(value, rel=0.03)


def test_outliers_do_not_change_values_and_are_listed():
    """One in ten times is multiplied by 7 or by 0.2."""
    truth = make_truth("hockney", alpha="12us", beta="3ns", gamma="1ns")
    chosen = points(BURSTS)
    times, outliers_at = (
        measured(truth, chosen),
        np.random.default_rng(1).choice(len(chosen), len(chosen) // 10, False),
    )
    times[outliers_at] *= np.resize([7, 0.2], len(outliers_at))
    parameters = fit_measured(chosen, times, "hockney", "t.csv")
    for key, value in truth.values.items():
        assert parameters.values[key].low <= value.value <= parameters.values[key].high
        assert parameters.values[key].value == pytest.approx(
            value.value, rel=0.05 if key == "gamma" else 0.02
        ), key
    places = {point: [f"t.csv:{number}"] for number, point in enumerate(chosen)}
    outliers = describe_fit(parameters, Measured(chosen, list(times), 0, places=places), "t.csv")
    assert sorted(int(line.split(":")[1]) for line in outliers) == sorted(outliers_at)


@pytest.mark.parametrize(
    ("repeats", "min_covered"), [(15, 12), pytest.param(60, 52, marks=pytest.mark.slow)]
)
def test_parameter_intervals_cover_the_true_values_at_about_the_nominal_rate(repeats, min_covered):
    truth = make_truth("hockney", alpha="12us", beta="3ns")
    chosen = points([("bcast", "binomial"), ("gather", "linear")])
    covered = dict.fromkeys(truth.values, 0)
    for seed in range(repeats):
        values = fitted("hockney", truth, chosen, seed=seed).values
        for key, value in truth.values.items():
            covered[key] += values[key].low <= value.value <= values[key].high
    assert all(count >= min_covered for count in covered.values()), covered


def test_values_of_which_only_the_sum_is_determined_are_marked():
    truth = make_truth("tan", L="98us", **{"o.a": "49us", "o.b": "1us"})
    chosen = [
        point("reduce", topology=spec)
        for spec in ("flat:8", "flat:32", "kary:2^4", "chain:9", "kary:3^3")
    ]
    parameters = fitted("tan", truth, chosen)
    assert parameters.forms == {"o": "linear"}
    assert not parameters.values["o.a"].known
    total = parameters.values["L"].value + parameters.values["o.a"].value
    assert total == pytest.approx(147e-6, rel=0.2)


def test_a_model_without_message_size_is_fitted_at_the_smallest_size():
    chosen = points([("bcast", "linear"), ("bcast", "binomial"), ("gather", "linear")])
    parameters = fit_measured(chosen, measured(LOGGP, chosen), "logp", "t.csv")
    assert parameters.source == "fitted from 9 points of t.csv; these points are not held out"
    assert parameters.provenance["held_out"] is False
    assert parameters.bytes_range == (8, 8)


def test_without_noise_predictions_are_the_times():
    chosen = points(BURSTS, sizes=(8, 16384), counts=(4, 16))
    times = measured(LOGGP, chosen, noise=0)
    (curve,) = fit_points(find_family("loggp"), chosen, times).curves
    np.testing.assert_allclose(curve.fitted, times, rtol=1e-3)
    assert curve.measured == tuple(times)


def test_too_few_points_and_families_that_need_probes_are_refused():
    chosen = points([("bcast", "linear")], counts=(4,))
    with pytest.raises(UserError, match="found 4 points, wanted more than its 5 values"):
        fit_points(find_family("loggp"), chosen, np.ones(4))
    for name in list_family_names():
        entry = find_family(name)
        if not entry.table_fit:
            with pytest.raises(UserError, match="needs its probes"):
                fit_points(entry, chosen, np.ones(4))
