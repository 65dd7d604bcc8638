"""Parts of fits: regressions, half round trips, and undetermined values. Fits do not depend on
processor features, the order of rows, or the last bit of a time."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import chdtri

from commodel.fits.probe_fits import make_parameter_set
from commodel.fits.table_fits import fit_points
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, list_family_names
from commodel.models.families.hloggp import choose_overheads
from commodel.models.fitting import numerics
from commodel.models.fitting.observed import DEFAULT_DRAWS
from commodel.models.fitting.regression import (
    CHANCE_PROBABILITY,
    add_misfit_draws,
    find_segments,
    is_by_chance,
    make_curve,
    make_sample_values,
)
from commodel.models.fitting.round_trips import HalfTrip, RoundTrips
from commodel.models.keys import Pair
from commodel.models.probes.node_pairs import list_dense_sizes
from commodel.parameters import ParameterSet
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from tests.models.synthetic import fit_machine, observed, truth
from tests.models.test_pointfit import make_truth, measured, points


def levelled(draws):
    samples = make_sample_values("o", range(1, draws.shape[1] + 1), draws)
    return np.stack([samples[f"o.{size}"] for size in range(1, draws.shape[1] + 1)], axis=-1)


def pooled(y, weights):
    """Return the isotonic regression by an obvious loop: two decreasing neighbours are merged until
    none is left."""
    blocks = []
    for value, weight in zip(y, weights, strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, v, i), (b, w, j) = blocks[-2:]
            blocks[-2:] = [((a * v + b * w) / (v + w), v + w, i + j)]
    return [value for value, _, count in blocks for _ in range(count)]


def test_a_sample_left_out_is_guessed_from_the_others():
    """The means of the other samples are 11/3, 10/3, 3 and 2. Relative to the measured values, the
    errors are 8/3, 2/3, 0 and −2/3."""
    y = np.array([1.0, 2.0, 3.0, 6.0])
    evidence = make_curve(
        "mean", y, y, np.full(4, 3.0), "a", refit=lambda keep: np.full(4, y[keep].mean())
    )
    assert evidence.left_out == pytest.approx(2**0.5)


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0.01, 1)), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_samples_are_levelled_as_their_noise_says(samples, seed):
    centre, spread = np.array(samples).T
    noise = np.random.default_rng(seed).standard_normal((50, len(centre)))
    draws = centre + spread * np.concatenate([np.zeros((1, len(centre))), noise])
    levels = levelled(draws)
    for row in (0, 7):
        np.testing.assert_allclose(
            levels[row], pooled(draws[row], 1 / draws[1:].var(axis=0)), rtol=1e-9, atol=1e-12
        )


def test_levelled_leaves_rising_samples_unchanged():
    draws = np.sort(np.random.default_rng(1).standard_normal((20, 6)), axis=-1)
    np.testing.assert_allclose(levelled(draws), draws, rtol=1e-12)


def test_a_spoilt_sample_does_not_pull_down_the_sure_ones():
    rng = np.random.default_rng(1)
    draws = np.array([3.0, 3.0, 1.0]) + np.array([0.01, 0.01, 2.0]) * rng.standard_normal((201, 3))
    draws[0] = 3, 3, 1
    np.testing.assert_allclose(levelled(draws)[0], 3, rtol=1e-3)


def test_only_the_misfit_that_noise_does_not_explain_is_put_on_the_draws():
    """Ten residuals of 1, noise of 0.5, and two coefficients: noise explains 10·0.5²·8/10 = 2 of
    the sum of squares 10. The draws are widened by the other share, 0.8, with 8 degrees of
    freedom."""
    noise = np.random.default_rng(1).standard_normal((4000, 10))
    y = np.vstack([np.zeros(10), 0.5 * noise])
    widened = add_misfit_draws(y, np.ones(10), np.ones(10), 2)
    assert np.all(widened[0] == y[0])
    np.testing.assert_allclose(np.mean((widened - y)[1:] ** 2), 0.8 * 10 / 8, rtol=0.05)


@pytest.mark.parametrize("free", [1, 2, 3, 10, 100, 1000])
def test_a_misfit_isby_chance_up_to_the_quantile_of_chi_squared(free):
    quantile = chdtri(free, CHANCE_PROBABILITY) / free
    ratios = [*np.geomspace(0.1, 10, 101), quantile * (1 - 1e-9), quantile * (1 + 1e-9)]
    assert [is_by_chance(ratio * 3.0, 3.0, free) for ratio in ratios] == [
        ratio < quantile for ratio in ratios
    ]
    assert not is_by_chance(1.0, 0.0, free)
    assert not is_by_chance(1e300, 1e-300, free)
    assert is_by_chance(1e-300, 1.0, free)


@pytest.mark.parametrize("noise", [0.0])
def test_many_pieces_of_a_line_are_found(noise):
    """As in SimGrid's factors by size, a time has five pieces. Each piece begins at its true edge
    or at the next size."""
    places = np.geomspace(1, 1 << 20, 60).round()
    edges = [0, 300, 5_000, 40_000, 300_000, np.inf]
    rng, time = np.random.default_rng(1), np.zeros(len(places))
    for number, (low, high) in enumerate(pairwise(edges)):
        here = (places > low) & (places <= high)
        time[here] = 1e-6 * 2**number + places[here] * 1e-9 / (1 + number % 2)
    time = time * (1 + noise * rng.standard_normal(len(time)))
    ends = [places[piece].max() for piece in find_segments(places, time[None], 1 / time**2, 8)]
    assert ends[:-1] == [places[places <= edge].max() for edge in edges[1:-1]]


SIZES = np.array([0.0, 16, 256, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22])
# a byte costs something else at every size
CACHES = 1e-6 + SIZES * 5e-11 * (1 + np.sin(np.arange(len(SIZES))) / 2)


def exact(times):
    return np.stack([times] * 3)


def test_lines_are_pieces_where_the_protocol_changes():
    times = np.where(SIZES <= 4096, 1e-6 + SIZES * 2e-10, 5e-6 + SIZES * 1e-10)
    trip = HalfTrip.of(SIZES, exact(times))
    values, forms = trip.name_values("node", np.full(3, 4e-7))
    assert forms == {"L.node": "piecewise", "G.node": "piecewise"}
    fitted = {name: draws[0] for name, draws in values.items()}
    wanted = {
        "L.node.a": 6e-7,
        "L.node.a1": 4.6e-6,
        "L.node.x1": 4096,
        "G.node.a": 2e-10,
        "G.node.a1": 1e-10,
    }
    assert fitted == pytest.approx(wanted | {"G.node.x1": 4096})
    assert trip.terms == 5


def test_samples_where_no_line_holds():
    trip = HalfTrip.of(SIZES, exact(CACHES))
    assert trip.forms == {"L": "constant", "G": "table"}
    np.testing.assert_allclose(trip.at(SIZES[4:])[0], CACHES[4:], rtol=1e-12)
    # where bytes do not count yet
    np.testing.assert_allclose(trip.at(SIZES[:4])[0], CACHES[:4], rtol=0.03)


def test_half_trips_keep_measured_times_that_fall_at_a_protocol_change():
    times = np.where(SIZES > 1 << 18, CACHES / 8, CACHES)
    trip = HalfTrip.of(SIZES, exact(times))
    assert trip.forms["G"] == "table"
    np.testing.assert_allclose(trip.at(SIZES[5:])[0], times[5:], rtol=1e-12)


def test_a_prediction_for_two_ranks_is_the_measured_time_and_grows_in_proportion():
    named, forms = HalfTrip.of(SIZES, exact(CACHES)).name_values("node", np.full(3, 4e-7))
    values = {name: draws[:1, None] for name, draws in named.items()} | {
        name: np.array([[number]])
        for name, number in (("o_s", 1e-7), ("o_r", 3e-7), ("gamma.64", 0.0))
    }
    model = Model.of(find_family("shares"), Values(values, forms | {"gamma": "table"}))

    def seconds(size):
        return model.cost(Schedule.of(2, 0, [0], [1], size).place(np.zeros(2, dtype=int)))[0]

    assert seconds(1 << 20) == pytest.approx(CACHES[-2])
    assert seconds(1 << 24) - 1e-6 == pytest.approx(4 * (CACHES[-1] - 1e-6), rel=0.01)


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_noise_alone_makes_no_samples(noise):
    kept = 0
    for seed in range(40):
        scatter = np.exp(noise * np.random.default_rng(seed).normal(size=(100, len(SIZES))))
        samples = (1e-6 + SIZES * 1e-10) * scatter
        draws = np.random.default_rng(seed + 1000).choice(samples, (200, 15)).mean(axis=1)
        kept += (
            HalfTrip.of(SIZES, np.concatenate([samples[:15].mean(axis=0)[None], draws])).forms["G"]
            != "table"
        )
    assert kept >= 38


@pytest.mark.parametrize("name", ["logp", "loggp", "loggops", "hloggp", "loggph"])
def test_no_latency_is_stated_not_to_be_known(name):
    machine = truth("loggp")

    def prtt(case):
        return 25e-6 if case["late"] else machine.times["prtt"](case)

    times = {**machine.times, "prtt": prtt, "pairprtt": prtt}
    parameters = fit_machine(name, replace(machine, times=times))
    latencies = [value for key, value in parameters.values.items() if key.partition(".")[0] == "L"]
    assert latencies
    assert all(
        value.value == 0 and not value.known and "overheads" in value.note for value in latencies
    )


@pytest.mark.parametrize("name", ["loggp", "loggops", "loggph"])
def test_an_empty_message_has_no_bytes_to_pay_for(name):
    """For an empty message, the byte term (m−1)·G is 0 and not −G."""
    machine = replace(truth("loggp"), sizes=(0, 1024, 65536))
    times = {**machine.times, "pairprtt": machine.times["prtt"]}
    values = fit_machine(name, replace(machine, times=times)).values
    (latency,) = (value.value for key, value in values.items() if key.partition(".")[0] == "L")
    assert latency == pytest.approx(10e-6, rel=1e-9)


HIDDEN = make_truth("loggp", L="10us", o_s="1.5us", o_r="2us", g="0.5us", G="8ns")
TREES = points([("bcast", "binomial")])
SAME = 1e-6


def numbers(fitted: ParameterSet) -> dict[str, tuple[float, ...]]:
    """Return value, interval and bootstrap draws of each parameter. A value without draws is
    repeated."""
    alike = {key: DEFAULT_DRAWS * (estimate.value,) for key, estimate in fitted.values.items()}
    return {
        key: (estimate.value, estimate.low, estimate.high, *fitted.draws.get(key, alike[key]))
        for key, estimate in fitted.values.items()
    }


def from_trees(chosen=TREES, seconds=None) -> dict[str, tuple[float, ...]]:
    """Return LogGP fitted to broadcasts over trees, which determine little but L + o_s + o_r and
    G."""
    seconds = measured(HIDDEN, TREES) if seconds is None else seconds
    return numbers(
        make_parameter_set(find_family("loggp"), fit_points(find_family("loggp"), chosen, seconds))
    )


def from_probes(name, evidence=None) -> dict[str, tuple[float, ...]]:
    evidence = evidence or observed(truth(name), name, noise=0.02, samples=10)
    return numbers(make_parameter_set(find_family(name), find_family(name).fit(evidence)))


def fits() -> dict[str, dict[str, tuple[float, ...]]]:
    return {"trees": from_trees()} | {name: from_probes(name) for name in list_family_names()}


def assert_same(computed, wanted):
    assert computed.keys() == wanted.keys()
    for key, column in wanted.items():
        np.testing.assert_allclose(computed[key], column, rtol=SAME, err_msg=key)


def test_fits_without_vector_instructions_give_the_same_parameter_sets():
    """OpenBLAS and numpy choose their code by the processor's features; environment variables
    switch these off."""
    features = np._core._multiarray_umath.__cpu_features__
    dispatched = np._core._multiarray_umath.__cpu_dispatch__
    without = " ".join(name for name in dispatched if features.get(name))
    code = "import json; from tests.models.test_fitting import fits; print(json.dumps(fits()))"
    plain = {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": without,
    }
    without_vectors = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | plain,
        capture_output=True,
        text=True,
        check=True,
    )
    without_vectors, with_vectors = json.loads(without_vectors.stdout), fits()
    assert without_vectors.keys() == with_vectors.keys()
    for name, values in with_vectors.items():
        assert_same(without_vectors[name], values)


def test_the_order_of_a_table_and_the_last_bit_of_a_time_change_no_set():
    seconds, rng = measured(HIDDEN, TREES), np.random.default_rng(5)
    order = rng.permutation(len(TREES))
    shaken = seconds * (1 + rng.choice([-1, 0, 1], len(seconds)) * np.finfo(float).eps)
    assert_same(from_trees([TREES[number] for number in order], shaken[order]), from_trees())


@pytest.mark.parametrize("name", list_family_names())
def test_the_last_bit_of_a_sample_changes_no_set(name):
    rng = np.random.default_rng(5)
    for noise in (0, 0.05):
        evidence = observed(truth(name), name, noise=noise, samples=10)
        probes = {
            probe: [
                replace(
                    case,
                    seconds=case.seconds * (1 + rng.choice([-1, 0, 1], 10) * np.finfo(float).eps),
                )
                for case in cases
            ]
            for probe, cases in evidence.probes.items()
        }
        shaken = make_parameter_set(
            find_family(name),
            find_family(name).fit(replace(evidence, probes=probes, _resampled={})),
        )
        whole = make_parameter_set(find_family(name), find_family(name).fit(evidence))
        assert shaken.forms == whole.forms
        for key, estimate in whole.values.items():
            again = shaken.values[key]
            assert again.known == estimate.known, key
            ends = (again.value, again.low, again.high)
            np.testing.assert_allclose(
                ends, (estimate.value, estimate.low, estimate.high), rtol=SAME, err_msg=key
            )


def test_portable_functions_equal_numpy_functions_up_to_rounding():
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            rng.uniform(-690, 690, 1000),
            rng.uniform(-1, 1, 1000),
            10.0 ** rng.uniform(-12, 0, 1000),
            [0],
        ]
    )
    np.testing.assert_allclose(numerics.exp(x), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(numerics.expm1(x), np.expm1(x), rtol=2e-15)
    y = np.concatenate([np.exp(x), 1 + rng.normal(0, 1e-6, 1000), 2.0 ** np.arange(-1020, 1020, 7)])
    np.testing.assert_allclose(numerics.log(y), np.log(y), rtol=1e-15)
    columns, target = rng.standard_normal((50, 5, 9)), rng.standard_normal((50, 5))
    normal = columns @ np.swapaxes(columns, 1, 2)
    np.testing.assert_allclose(numerics.multiply_columns(columns), normal, rtol=1e-12, atol=1e-12)
    wanted = np.linalg.solve(normal, target[..., None])[..., 0]
    np.testing.assert_allclose(numerics.solve(normal, target), wanted, rtol=1e-9)


# SimGrid's factors of latency and of bandwidth, from these sizes on.
LATENCY_FACTORS = {
    0: 2.01,
    257: 1.95,
    1426: 1.61,
    3484: 1.88,
    5776: 2.19,
    9376: 2.59,
    15424: 3.49,
    65536: 11.6,
}
SPEED_FACTORS = {
    0: 0.81,
    257: 0.34,
    1426: 0.61,
    3484: 0.77,
    5776: 1.09,
    9376: 0.59,
    15424: 0.70,
    65472: 0.94,
}


def at_size(factors, sizes):
    return np.array(list(factors.values()))[np.searchsorted(list(factors), sizes, side="right") - 1]


@pytest.mark.parametrize("speed", [125e6, 1.25e9, 12e9])
@pytest.mark.parametrize("latency", [2e-6, 8e-5])
def test_a_network_of_many_protocols_is_fitted_also_where_times_drop(latency, speed):
    sizes = np.array(sorted({0, 1, 4, 16, 64, *list_dense_sizes(1 << 20)}), dtype=float)
    times = latency * at_size(LATENCY_FACTORS, sizes) + sizes / (
        speed * at_size(SPEED_FACTORS, sizes)
    )
    trip = HalfTrip.of(sizes, exact(times))
    assert trip.at(sizes)[0] == pytest.approx(times, rel=0.08)
    long = sizes >= 1 << 17
    assert trip.split_time(sizes)[1][0, long] == pytest.approx(
        (sizes / speed / 0.94)[long], rel=0.02
    )


def test_a_protocol_change_in_a_piece_of_few_sizes_does_not_distort_the_byte_time():
    """On a slow network the bytes take almost all of the time. 12 KiB and 16 KiB have other
    protocols."""
    sizes = np.array(sorted({0, 1, 4, 16, 64, *list_dense_sizes(1 << 20)}), dtype=float)
    byte_times = sizes / (125e6 * at_size(SPEED_FACTORS, sizes))
    trip = HalfTrip.of(sizes, exact(2e-6 * at_size(LATENCY_FACTORS, sizes) + byte_times))
    above = sizes >= 1024
    assert trip.split_time(sizes)[1][0, above] == pytest.approx(byte_times[above], rel=0.2)


def test_samples_of_bytes_keep_the_latencies_of_lines():
    times = np.where(SIZES <= 4096, 1e-6 + SIZES * 2e-10, 2e-5 + SIZES * 1e-10)
    times = times * np.where(SIZES == 1 << 18, 1.2, 1.0)
    trip = HalfTrip.of(SIZES, exact(times))
    assert trip.forms == {"L": "piecewise", "G": "table"}
    assert trip.at(SIZES)[0] == pytest.approx(times, rel=0.03)


def test_overheads_of_a_type_with_one_node_come_from_pairs_within_it():
    def make_trips(overhead):
        one = np.ones((1, 2))
        overheads = [2 * overhead * one, overhead * one, overhead * one]
        return RoundTrips(np.array([1.0, 64.0]), 1e-5 * one, *overheads, 1e-6 * one)

    trips = {Pair.parse("fat.thin"): make_trips(1e-6), Pair.parse("thin.same"): make_trips(5e-6)}
    overheads = choose_overheads(trips)
    assert [ends[0][0] for ends in (overheads["fat"], overheads["thin"])] == pytest.approx(
        [1e-6, 5e-6]
    )
