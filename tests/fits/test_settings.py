"""Fits to a table of several settings: factors between settings are recovered, and intervals cover
residuals of other settings."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters
from commodel.fits.measured_tables import Measured, read_points
from commodel.fits.settings import (
    FACTORS_KEY,
    SETTING_KEY,
    Effect,
    describe_factors,
    estimate_factors,
    fit_in_settings,
    list_settings,
)
from commodel.models.families import find_family, list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import ParameterSet
from commodel.patterns.points import PlatformResources, make_point
from commodel.predictions.predictions import predict
from commodel.predictions.recalibration import (
    Factor,
    RecalibrationFactors,
    can_recalibrate,
    parse_factors,
    scale_set,
)
from tests.cli import running
from tests.models.exact import moved
from tests.patterns.catalogue import point

HOCKNEY = make_given_set("hockney", ["alpha=10us", "beta=1ns"])
LOGGP = make_given_set("loggp", ["L=5us", "o_s=2us", "o_r=1us", "g=1us", "G=1ns"])
SIX = tuple(
    point("bcast", "linear", ranks=2, bytes=size) for size in (1, 8, 64, 10**6, 3 * 10**6, 10**7)
)
MANY = tuple(
    point(operation, choice, ranks=ranks, bytes=size)
    for operation, choice in (("bcast", "binomial"), ("bcast", "chain:4KiB"), ("allgather", "ring"))
    for ranks in (4, 8)
    for size in (1, 1 << 10, 1 << 14, 1 << 18)
)


def seconds(parameters, points):
    return np.array([prediction.seconds for prediction in predict(parameters, points)])


@pytest.mark.parametrize(("latency", "per_byte"), [(2.0, 1.0), (1.0, 2.0), (0.5, 3.0), (20.0, 0.1)])
@pytest.mark.parametrize("parameters", [HOCKNEY, LOGGP], ids=["hockney", "loggp"])
@pytest.mark.parametrize("points", [SIX, MANY], ids=["six", "many"])
def test_known_factors_are_found(parameters, points, latency, per_byte):
    logs = np.log(
        seconds(moved(parameters, latency, per_byte), points) / seconds(parameters, points)
    )
    factors = estimate_factors(parameters, points, logs)
    assert factors.latency.value == pytest.approx(latency, rel=1e-6)
    assert factors.per_byte.value == pytest.approx(per_byte, rel=1e-6)
    for factor, truth in ((factors.latency, latency), (factors.per_byte, per_byte)):
        assert factor.low <= truth <= factor.high
        assert factor.high / factor.low < 1.01


def test_factors_are_of_alpha_and_beta():
    recalibrated = moved(HOCKNEY, 2.0, 3.0)
    assert recalibrated.values["alpha.a"].value == pytest.approx(20e-6)
    assert recalibrated.values["beta.a"].value == pytest.approx(3e-9)
    assert recalibrated.provenance["pace"]["latency"]["value"] == 2.0
    loggp = moved(
        replace(LOGGP, values={**LOGGP.values, "gamma": LOGGP.values["G"]}), 2.0, 3.0
    ).values
    assert [loggp[name].value for name in ("L", "o_s", "o_r", "g")] == pytest.approx(
        [1e-5, 4e-6, 2e-6, 2e-6]
    )
    assert [loggp[name].value for name in ("G", "gamma")] == pytest.approx([3e-9, 1e-9])


def test_the_increase_of_samples_over_the_smallest_scales_with_the_time_per_byte():
    texts = ["L=5us"] + [
        f"{name}.{size}={time}us"
        for name in ("g", "o_s", "o_r")
        for size, time in ((1, 1), (1001, 3))
    ]
    plogp = make_given_set("plogp", texts)
    values = moved(plogp, 2.0, 5.0).values
    assert values["g.1"].value == pytest.approx(2e-6)
    assert values["g.1001"].value == pytest.approx(2e-6 + 5 * 2e-6)
    factors = estimate_factors(
        plogp, SIX, np.log(seconds(moved(plogp, 2.0, 5.0), SIX) / seconds(plogp, SIX))
    )
    assert (factors.latency.value, factors.per_byte.value) == (
        pytest.approx(2.0),
        pytest.approx(5.0),
    )


@pytest.mark.parametrize("count", [3, 4, 6, 24])
def test_intervals_of_recalibration_factors_cover_the_true_factors(count):
    """The fit estimates the noise. Coverage is 95 % within three standard errors."""
    rng, points = (
        np.random.default_rng(count),
        (SIX * 4)[:count] if count > 6 else [SIX[n] for n in ORDER[:count]],
    )
    latency, per_byte, noise, repeats = 1.7, 0.6, 0.05, 60 if count > 6 else 150
    exact = np.log(seconds(moved(HOCKNEY, latency, per_byte), points) / seconds(HOCKNEY, points))
    inside = []
    for _ in range(repeats):
        factors = estimate_factors(HOCKNEY, points, exact + noise * rng.standard_normal(count))
        if factors.together:
            continue  # two factors and one spare point: often it cannot tell
        inside += [
            factors.latency.low <= latency <= factors.latency.high,
            factors.per_byte.low <= per_byte <= factors.per_byte.high,
        ]
    assert len(inside) > repeats / 4
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(inside))


ORDER = (0, 5, 1, 4, 2, 3)


def test_odd_points_among_many_move_little():
    points, logs = (
        SIX * 4,
        np.log(seconds(moved(HOCKNEY, 2.0, 0.5), SIX * 4) / seconds(HOCKNEY, SIX * 4)),
    )
    logs = logs + 0.01 * np.random.default_rng(1).standard_normal(len(logs))
    logs[[1, 8, 15]] += 3.0
    factors = estimate_factors(HOCKNEY, points, logs)
    assert factors.latency.value == pytest.approx(2.0, rel=0.03)
    assert factors.per_byte.value == pytest.approx(0.5, rel=0.03)
    assert factors.latency.low <= 2.0 <= factors.latency.high


def test_the_same_job_has_factors_of_one():
    noise = 0.02 * np.random.default_rng(2).standard_normal(len(SIX))
    factors = estimate_factors(HOCKNEY, SIX, noise)
    for factor in (factors.latency, factors.per_byte):
        assert factor.low < 1 < factor.high


def test_noise_that_is_known_and_errors_that_all_share_widen_an_interval():
    exact, noisy, shared = (
        estimate_factors(HOCKNEY, SIX, np.zeros(6), *more) for more in ((), (0.1,), (0.0, 0.1))
    )
    width = [
        np.log(factors.latency.high / factors.latency.low) / 2 for factors in (exact, noisy, shared)
    ]
    assert width[0] < 1e-3
    assert width[1] == pytest.approx(1.96 * 0.1 / np.sqrt(3), rel=0.05)
    assert width[2] == pytest.approx(1.96 * 0.1, rel=0.05)


def test_factors_that_the_points_do_not_determine_are_not_estimated_separately():
    short = [
        point("bcast", "linear", ranks=2, bytes=1),
        point("bcast", "binomial", ranks=4, bytes=1),
    ]
    factors = estimate_factors(HOCKNEY, short, np.log([2.0, 2.0]))
    assert (factors.latency.value, factors.per_byte.known, factors.per_byte.value) == (
        pytest.approx(2.0, rel=1e-3),
        False,
        1.0,
    )
    near = [
        point("bcast", "linear", ranks=2, bytes=size) for size in (9_000, 9_500, 10_000, 11_000)
    ]
    factors = estimate_factors(HOCKNEY, near, np.log(2.0) + 0.05 * np.array([1, -1, -1, 1]))
    assert factors.together
    assert factors.latency == factors.per_byte
    assert factors.latency.low <= 2.0 <= factors.latency.high
    with pytest.raises(UserError, match="found 0 points"):
        estimate_factors(HOCKNEY, [], [])


def test_draws_of_a_recalibrated_set_include_the_uncertainty_of_the_factors():
    wide = RecalibrationFactors(Factor(2.0, 1.6, 2.5), Factor(1.0, 0.99, 1.01), False, 6)
    other = scale_set(HOCKNEY, wide, "friday", "setting friday")
    (short,) = predict(other, SIX[:1])
    assert short.seconds == pytest.approx(20e-6, rel=1e-3)
    assert short.low == pytest.approx(16e-6, rel=0.05)
    assert short.high == pytest.approx(25e-6, rel=0.05)
    assert other.values["alpha.a"].low == pytest.approx(16e-6, rel=0.05)
    assert other.source.endswith("recalibrated to setting friday")


@lru_cache
def sets():
    """Return a parameter set of every model, from its initial values for fits to collectives."""
    found = {}
    for name in list_family_names():
        table_fit = find_family(name).table_fit
        guess = table_fit.initial_values if table_fit else {}
        if guess:
            texts = [f"{key}={value:.3e}{'s' if value < 1 else ''}" for key, value in guess.items()]
            found[name] = make_given_set(name, texts)
    return found


@pytest.mark.parametrize("name", sorted(sets()))
def test_every_family_s_predictions_follow_both_factors_alike(name):
    """If both factors are 3, every prediction without local work is three times as high."""
    parameters: ParameterSet = sets()[name]
    if not can_recalibrate(parameters):
        pytest.skip("recalibration does not change it")
    points = [point("bcast", "binomial", ranks=8, bytes=size) for size in (1, 1 << 12, 1 << 20)]
    assert Effect(parameters, points)(np.log([[3.0, 3.0]]))[0] == pytest.approx(
        np.log(3.0), rel=1e-6
    )


TRUTH = make_given_set("hockney", ["alpha=10us", "beta=1ns"])
POINTS = [
    point(operation, choice, ranks=ranks, bytes=size)
    for operation, choice in (("bcast", "linear"), ("bcast", "binomial"), ("allgather", "ring"))
    for ranks in (2, 4, 8)
    for size in (8, 1 << 12, 1 << 18)
]
FACTORS = {"friday": (2.0, 0.5), "sunday": (1.0, 3.0)}


def times(latency, per_byte, points=POINTS):
    return [row.seconds for row in predict(moved(TRUTH, latency, per_byte), points)]


@pytest.fixture(scope="module")
def table():
    """Return measured points of three settings. Monday has all points but the first two, which only
    friday has; friday and sunday have a part of the others."""
    parts = {"monday": POINTS[2:], "friday": POINTS[:14], "sunday": POINTS[9:23]}
    rows = [
        (entry, seconds, name)
        for name, points in parts.items()
        for entry, seconds in zip(
            points, times(*FACTORS.get(name, (1.0, 1.0)), points), strict=True
        )
    ]
    points, seconds, settings = (list(column) for column in zip(*rows, strict=True))
    return Measured(points, seconds, 0, settings=settings)


@pytest.fixture(scope="module")
def fitted(table):
    return fit_in_settings(table, "hockney", "a table")


def test_the_fit_is_of_the_setting_with_most_points_alone(fitted):
    assert fitted.provenance[SETTING_KEY] == "monday"
    assert fitted.values["alpha.a"].value == pytest.approx(10e-6, rel=1e-3)
    assert fitted.values["beta.a"].value == pytest.approx(1e-9, rel=1e-3)


def test_every_other_setting_has_separate_recalibration_factors(fitted):
    factors_by_setting = {
        entry["setting"]: parse_factors(entry) for entry in fitted.provenance[FACTORS_KEY]
    }
    assert set(factors_by_setting) == set(FACTORS)
    for name, (latency, per_byte) in FACTORS.items():
        assert factors_by_setting[name].latency.value == pytest.approx(latency, rel=1e-3)
        assert factors_by_setting[name].per_byte.value == pytest.approx(per_byte, rel=1e-3)
        assert factors_by_setting[name].points == 14
    assert [line.partition(":")[0] for line in describe_factors(fitted)] == [
        f"setting '{name}' against setting 'monday'" for name in FACTORS
    ]


def test_intervals_cover_errors_in_other_settings(fitted):
    """Long messages of sunday take three times as long as predicted with the values of monday."""
    (prediction,) = predict(fitted, [point("bcast", "linear", ranks=2, bytes=1 << 18)])
    assert prediction.low <= 0.95 * times(1.0, 3.0, [prediction.point])[0] <= prediction.high
    assert prediction.interval.startswith("at least: 3 allocations")
    (single_setting,) = predict(
        fit_in_settings(table_of("monday"), "hockney", ""), [prediction.point]
    )
    assert single_setting.high < 1.5 * single_setting.seconds
    assert single_setting.interval.startswith("at least: 1 allocation,")


def table_of(name):
    points = POINTS[2:]
    return Measured(
        points, times(*FACTORS.get(name, (1.0, 1.0)), points), 0, settings=[name] * len(points)
    )


def test_another_setting_may_be_requested(table):
    sunday = fit_in_settings(table, "hockney", "", "sunday")
    assert sunday.values["beta.a"].value == pytest.approx(3e-9, rel=1e-3)
    monday = {entry["setting"]: entry for entry in sunday.provenance[FACTORS_KEY]}["monday"]
    assert monday["per_byte"]["value"] == pytest.approx(1 / 3, rel=1e-3)
    with pytest.raises(UserError, match="found no point of setting 'sunnday'"):
        fit_in_settings(table, "hockney", "", "sunnday")


def test_on_the_screen_and_in_the_file(tmp_path, table):
    rows = [
        f"{entry.operation},{entry.alternative},{entry.ranks},{entry.bytes},{seconds!r},{setting}"
        for entry, seconds, setting in zip(table.points, table.seconds, table.settings, strict=True)
    ]
    path, out = tmp_path / "points.csv", tmp_path / "hockney.yaml"
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds,setting", *rows]) + "\n")
    run = partial(running.run, "fit", "table")
    done = run(path, "--model", "hockney", "--out", out)
    assert "hockney: setting 'sunday' against setting 'monday': latency × 1 [" in done.stderr
    assert "not explained" not in done.stderr
    assert read_parameters(out).provenance[FACTORS_KEY][0]["setting"] == "friday"
    held = run(path, "--model", "hockney", "--hold-out", "setting != 'monday'", "--format", "json")
    assert '"points": 5' in held.stdout


def test_of_one_setting_nothing_changes():
    plain = fit_in_settings(Measured(POINTS, times(1.0, 1.0), 0), "pmnf", "")
    assert SETTING_KEY not in plain.provenance
    assert not list(describe_factors(plain))
    assert set(plain.residuals.setting) == {""}


def test_stored_residuals_have_the_settings_of_the_table(fitted, table):
    stored = set(fitted.residuals.setting)
    assert stored == set(list_settings(table))
    assert len(stored) > 1


def test_intervals_of_a_placement_cover_other_settings():
    """Setting b is three times as slow: the intervals within one node and between nodes grow by
    about that factor."""
    points, seconds_of_points = [], []
    for layout, latency in (("block:1", 1e-5), ("block:8", 2e-6)):
        for ranks in (2, 4, 8):
            for size in (8, 64, 512, 4096, 32768, 262144):
                workload = {
                    "operation": "bcast",
                    "algorithm": "binomial",
                    "ranks": ranks,
                    "bytes": size,
                }
                points.append(
                    make_point(PlatformResources.unlimited(), workload | {"layout": layout})
                )
                seconds_of_points.append(np.log2(ranks) * (latency + size * 1e-9))
    times = np.concatenate([np.array(seconds_of_points), 3 * np.array(seconds_of_points)]).tolist()
    settings = ["a"] * len(points) + ["b"] * len(points)
    of_both, of_one = (
        predict(fit_in_settings(measured, "hockney", "table", "a"), [points[0], points[-1]])
        for measured in (
            Measured(points * 2, times, 0, settings=settings),
            Measured(points, seconds_of_points, 0, settings=["a"] * 36),
        )
    )
    for both, one in zip(of_both, of_one, strict=True):
        assert both.basis.allocations == 2
        assert both.high > 2.5 * one.seconds
        assert both.high / both.low > 2 * one.high / one.low


def test_streams_of_the_library_are_no_single_waves(tmp_path):
    path = tmp_path / "table.csv"
    head = "operation,algorithm,ranks,bytes,waves,seconds"
    path.write_text(
        f"{head}\nbcast,linear,4,8,1,1e-5\nbcast,library,4,8,1,2e-5\nbcast,library,4,8,20,9e-5\n"
    )
    measured = read_points(path)
    assert list(measured.library.values()) == [2e-5]
    assert measured.unpredicted == 2
