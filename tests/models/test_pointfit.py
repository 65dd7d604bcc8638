"""Fits from collectives alone: known machines found again, what cannot be known marked."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits import parameter_search
from commodel.fits.measured_tables import Measured
from commodel.fits.probe_fits import make_parameter_set
from commodel.fits.table_fits import describe_fit, fit_measured, fit_points
from commodel.models.families import find_family, list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.predictions.predictions import predict
from tests.patterns.catalogue import point

ONE_BY_ONE = [("bcast", "binomial"), ("allreduce", "recursive-doubling")]
BURSTS = [*ONE_BY_ONE, ("bcast", "linear"), ("gather", "linear")]


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


def machine(name, **values):
    return make_given_set(name, [f"{key}={value}" for key, value in values.items()])


LOGGP = machine("loggp", L="10us", o_s="1.5us", o_r="2us", g="4us", G="8ns", gamma="1ns")


def fitted(name, truth, chosen, **how):
    return make_parameter_set(find_family(name), fit_points(find_family(name), chosen, measured(truth, chosen, **how)))


@pytest.fixture(scope="module")
def from_bursts():
    return fitted("loggp", LOGGP, points(BURSTS))


def test_loggp_from_bursts_knows_the_gap_and_not_the_overheads_below_it(from_bursts):
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


def test_loggp_from_trees_alone_does_not_know_the_gap():
    """A gap that is nearly hidden: in a tree a rank sends again only after a whole message."""
    hidden = machine("loggp", L="10us", o_s="1.5us", o_r="2us", g="0.5us", G="8ns")
    chosen = points([("bcast", "binomial")])
    values = fitted("loggp", hidden, chosen).values
    assert values["G"].low <= 8e-9 <= values["G"].high
    # Any of the three may be next to nothing, or all of their sum.
    for name in ("L", "o_s", "o_r"):
        assert not values[name].known
        assert values[name].low < 1e-6, name
        assert values[name].high > 13e-6, name
    assert not values["g"].known
    # Which of the equally good values stand for the others is a rule, not where a search began.
    elsewhere = fit_points(find_family("loggp"), chosen, measured(hidden, chosen), seed=2).values
    for name, estimate in values.items():
        assert elsewhere[name][0] == pytest.approx(estimate.value, rel=0.01), name


def test_predictions_stay_narrow_where_values_are_wide(from_bursts):
    parameters = replace(from_bursts, errors={})  # what the values alone leave open
    for prediction in predict(parameters, points(BURSTS, sizes=(4096,), counts=(12,))):
        assert prediction.high < 1.1 * prediction.low


def test_large_tables_take_a_shorter_way_to_the_same(from_bursts, monkeypatch):
    long_way = from_bursts.values
    monkeypatch.setattr(parameter_search, "LARGE_TABLE_MESSAGES", 0)
    parameters = fitted("loggp", LOGGP, points(BURSTS))
    for key, estimate in parameters.values.items():
        assert estimate.value == pytest.approx(long_way[key].value, rel=0.02), key
        assert estimate.low <= LOGGP.values[key].value <= estimate.high, key
        assert estimate.known == long_way[key].known, key
    for prediction in predict(replace(parameters, errors={}), points(BURSTS, sizes=(4096,), counts=(12,))):
        assert prediction.high < 1.1 * prediction.low


def test_hockney_is_found_again():
    truth = machine("hockney", alpha="12us", beta="3ns")
    values = fitted("hockney", truth, points([("bcast", "binomial"), ("bcast", "linear")])).values
    for key, value in (("alpha.a", 12e-6), ("beta.a", 3e-9)):
        assert values[key].known
        assert values[key].low <= value <= values[key].high
        assert values[key].value == pytest.approx(value, rel=0.03)
    assert set(values) == {"alpha.a", "beta.a"}  # one piece is enough


def test_values_that_change_with_the_protocol_are_found_by_size():
    values = {"alpha.a": 12e-6, "alpha.a1": 30e-6, "beta.a": 3e-9, "beta.a1": 0.5e-9}
    edges = {"alpha.x1": 8192, "beta.x1": 8192}
    truth = make_given_set(
        "hockney",
        [f"{key}={value}s" for key, value in values.items()] + [f"{key}={value}" for key, value in edges.items()],
    )
    sizes = (8, 64, 1024, 4096, 8192, 16384, 65536, 262144, 1 << 20)
    chosen = points([("bcast", "binomial"), ("bcast", "linear")], sizes=sizes, counts=(4, 8))
    parameters = fitted("hockney", truth, chosen)
    assert parameters.forms == {"alpha": "piecewise", "beta": "piecewise"}
    assert set(parameters.values) == {*values, *edges}
    for key, value in edges.items():
        assert parameters.values[key].value == value
        assert parameters.values[key].note.startswith("found in the points")
    for key, value in values.items():
        assert parameters.values[key].low <= value <= parameters.values[key].high
        assert parameters.values[key].value == pytest.approx(value, rel=0.03)


def test_times_that_nothing_explains_move_no_value_and_are_named():
    """One of ten is seven times as long, or a fifth."""
    truth = machine("hockney", alpha="12us", beta="3ns", gamma="1ns")
    chosen = points(BURSTS)
    times, strange = measured(truth, chosen), np.random.default_rng(1).choice(len(chosen), len(chosen) // 10, False)
    times[strange] *= np.resize([7, 0.2], len(strange))
    parameters = fit_measured(chosen, times, "hockney", "t.csv")
    for key, value in truth.values.items():
        assert parameters.values[key].low <= value.value <= parameters.values[key].high
        assert parameters.values[key].value == pytest.approx(value.value, rel=0.05 if key == "gamma" else 0.02), key
    lines = {point: [number] for number, point in enumerate(chosen)}
    outliers = describe_fit(parameters, Measured(chosen, list(times), 0, lines=lines), "t.csv")
    assert sorted(int(line.split(":")[1]) for line in outliers) == sorted(strange)


@pytest.mark.parametrize(("machines", "least"), [(15, 12), pytest.param(60, 52, marks=pytest.mark.slow)])
def test_intervals_cover_the_truth_about_as_often_as_they_state(machines, least):
    truth = machine("hockney", alpha="12us", beta="3ns")
    chosen = points([("bcast", "binomial"), ("gather", "linear")])
    inside = dict.fromkeys(truth.values, 0)
    for seed in range(machines):
        values = fitted("hockney", truth, chosen, seed=seed).values
        for key, value in truth.values.items():
            inside[key] += values[key].low <= value.value <= values[key].high
    assert all(count >= least for count in inside.values()), inside


def test_values_that_only_matter_together_are_marked():
    truth = machine("tan", L="98us", **{"o.a": "49us", "o.b": "1us"})
    chosen = [point("reduce", topology=spec) for spec in ("flat:8", "flat:32", "kary:2^4", "chain:9", "kary:3^3")]
    parameters = fitted("tan", truth, chosen)
    assert parameters.forms == {"o": "linear"}
    assert not parameters.values["o.a"].known
    together = parameters.values["L"].value + parameters.values["o.a"].value
    assert together == pytest.approx(147e-6, rel=0.2)


def test_a_family_blind_to_size_looks_at_the_smallest_size():
    chosen = points([("bcast", "linear"), ("bcast", "binomial"), ("gather", "linear")])
    parameters = fit_measured(chosen, measured(LOGGP, chosen), "logp", "t.csv")
    assert parameters.source == "fitted from 9 points of t.csv; these points are not held out"
    assert parameters.provenance["held_out"] is False
    assert parameters.bytes_range == (8, 8)


def test_without_noise_predictions_are_the_times():
    chosen = points(BURSTS, sizes=(8, 16384), counts=(4, 16))
    times = measured(LOGGP, chosen, noise=0)
    (evidence,) = fit_points(find_family("loggp"), chosen, times).curves
    np.testing.assert_allclose(evidence.fitted, times, rtol=1e-3)
    assert evidence.measured == tuple(times)


def test_too_few_points_and_families_that_need_probes_are_refused():
    chosen = points([("bcast", "linear")], counts=(4,))
    with pytest.raises(UserError, match="found 4 points, wanted more than its 5 values"):
        fit_points(find_family("loggp"), chosen, np.ones(4))
    for name in list_family_names():
        entry = find_family(name)
        if entry.initial_values is None and entry.fit_points is None:
            with pytest.raises(UserError, match="needs its probes"):
                fit_points(entry, chosen, np.ones(4))
