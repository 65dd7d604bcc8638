"""Factors of jobs: known ones are found again, intervals hold them, and what no point tells is not told."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fit.settings import Effect, pace_of
from commodel.models.families import family, family_names
from commodel.models.parameter_sets import set_given
from commodel.parameters import ParameterSet
from commodel.price.predictions import predict
from commodel.price.recalibration import Factor, Pace, at_pace, can_be_paced
from tests.models.exact import moved
from tests.patterns.catalogue import point

HOCKNEY = set_given("hockney", ["alpha=10us", "beta=1ns"])
LOGGP = set_given("loggp", ["L=5us", "o_s=2us", "o_r=1us", "g=1us", "G=1ns"])
SIX = tuple(point("bcast", "linear", ranks=2, bytes=size) for size in (1, 8, 64, 10**6, 3 * 10**6, 10**7))
MANY = tuple(
    point(operation, choice, ranks=ranks, bytes=size)
    for operation, choice in (("bcast", "binomial"), ("bcast", "chain:4KiB"), ("allgather", "ring"))
    for ranks in (4, 8)
    for size in (1, 1 << 10, 1 << 14, 1 << 18)
)


def seconds(parameters, points):
    return np.array([price.seconds for price in predict(parameters, points)])


@pytest.mark.parametrize(("latency", "per_byte"), [(2.0, 1.0), (1.0, 2.0), (0.5, 3.0), (20.0, 0.1)])
@pytest.mark.parametrize("parameters", [HOCKNEY, LOGGP], ids=["hockney", "loggp"])
@pytest.mark.parametrize("points", [SIX, MANY], ids=["six", "many"])
def test_known_factors_are_found(parameters, points, latency, per_byte):
    logs = np.log(seconds(moved(parameters, latency, per_byte), points) / seconds(parameters, points))
    pace = pace_of(parameters, points, logs)
    assert pace.latency.value == pytest.approx(latency, rel=1e-6)
    assert pace.per_byte.value == pytest.approx(per_byte, rel=1e-6)
    for factor, truth in ((pace.latency, latency), (pace.per_byte, per_byte)):
        assert factor.low <= truth <= factor.high
        assert factor.high / factor.low < 1.01


def test_factors_are_of_alpha_and_beta():
    alone = moved(HOCKNEY, 2.0, 3.0)
    assert alone.values["alpha.a"].value == pytest.approx(20e-6)
    assert alone.values["beta.a"].value == pytest.approx(3e-9)
    assert alone.provenance["pace"]["latency"]["value"] == 2.0
    loggp = moved(replace(LOGGP, values={**LOGGP.values, "gamma": LOGGP.values["G"]}), 2.0, 3.0).values
    assert [loggp[name].value for name in ("L", "o_s", "o_r", "g")] == pytest.approx([1e-5, 4e-6, 2e-6, 2e-6])
    assert [loggp[name].value for name in ("G", "gamma")] == pytest.approx([3e-9, 1e-9])


def test_of_samples_what_they_have_beyond_the_smallest_is_time_per_byte():
    texts = ["L=5us"] + [
        f"{name}.{size}={time}us" for name in ("g", "o_s", "o_r") for size, time in ((1, 1), (1001, 3))
    ]
    plogp = set_given("plogp", texts)
    values = moved(plogp, 2.0, 5.0).values
    assert values["g.1"].value == pytest.approx(2e-6)
    assert values["g.1001"].value == pytest.approx(2e-6 + 5 * 2e-6)
    pace = pace_of(plogp, SIX, np.log(seconds(moved(plogp, 2.0, 5.0), SIX) / seconds(plogp, SIX)))
    assert (pace.latency.value, pace.per_byte.value) == (pytest.approx(2.0), pytest.approx(5.0))


@pytest.mark.parametrize("count", [3, 4, 6, 24])
def test_intervals_hold_the_truth_as_often_as_they_say(count):
    """Times with noise that nobody was told of; of these factors 95 % give or take three standard errors of that."""
    rng, points = np.random.default_rng(count), (SIX * 4)[:count] if count > 6 else [SIX[n] for n in ORDER[:count]]
    latency, per_byte, noise, jobs = 1.7, 0.6, 0.05, 60 if count > 6 else 150
    exact = np.log(seconds(moved(HOCKNEY, latency, per_byte), points) / seconds(HOCKNEY, points))
    inside = []
    for _ in range(jobs):
        pace = pace_of(HOCKNEY, points, exact + noise * rng.standard_normal(count))
        if pace.together:
            continue  # two factors and one spare point: often it cannot tell
        inside += [
            pace.latency.low <= latency <= pace.latency.high,
            pace.per_byte.low <= per_byte <= pace.per_byte.high,
        ]
    assert len(inside) > jobs / 4
    assert np.mean(inside) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(inside))


ORDER = (0, 5, 1, 4, 2, 3)


def test_odd_points_among_many_move_little():
    points, logs = SIX * 4, np.log(seconds(moved(HOCKNEY, 2.0, 0.5), SIX * 4) / seconds(HOCKNEY, SIX * 4))
    logs = logs + 0.01 * np.random.default_rng(1).standard_normal(len(logs))
    logs[[1, 8, 15]] += 3.0
    pace = pace_of(HOCKNEY, points, logs)
    assert pace.latency.value == pytest.approx(2.0, rel=0.03)
    assert pace.per_byte.value == pytest.approx(0.5, rel=0.03)
    assert pace.latency.low <= 2.0 <= pace.latency.high


def test_the_same_job_has_factors_of_one():
    noise = 0.02 * np.random.default_rng(2).standard_normal(len(SIX))
    pace = pace_of(HOCKNEY, SIX, noise)
    for factor in (pace.latency, pace.per_byte):
        assert factor.low < 1 < factor.high


def test_noise_that_is_known_and_errors_that_all_share_widen_an_interval():
    exact, noisy, shared = (pace_of(HOCKNEY, SIX, np.zeros(6), *more) for more in ((), (0.1,), (0.0, 0.1)))
    width = [np.log(pace.latency.high / pace.latency.low) / 2 for pace in (exact, noisy, shared)]
    assert width[0] < 1e-3
    assert width[1] == pytest.approx(1.96 * 0.1 / np.sqrt(3), rel=0.05)
    assert width[2] == pytest.approx(1.96 * 0.1, rel=0.05)


def test_what_points_do_not_tell_is_not_told():
    short = [point("bcast", "linear", ranks=2, bytes=1), point("bcast", "binomial", ranks=4, bytes=1)]
    pace = pace_of(HOCKNEY, short, np.log([2.0, 2.0]))
    assert (pace.latency.value, pace.per_byte.known, pace.per_byte.value) == (pytest.approx(2.0, rel=1e-3), False, 1.0)
    near = [point("bcast", "linear", ranks=2, bytes=size) for size in (9_000, 9_500, 10_000, 11_000)]
    pace = pace_of(HOCKNEY, near, np.log(2.0) + 0.05 * np.array([1, -1, -1, 1]))
    assert pace.together
    assert pace.latency == pace.per_byte
    assert pace.latency.low <= 2.0 <= pace.latency.high
    with pytest.raises(UserError, match="found 0 points"):
        pace_of(HOCKNEY, [], [])


def test_draws_are_those_of_the_set_and_of_the_factors():
    wide = Pace(Factor(2.0, 1.6, 2.5), Factor(1.0, 0.99, 1.01), 6)
    other = at_pace(HOCKNEY, wide, "friday", "setting friday")
    (short,) = predict(other, SIX[:1])
    assert short.seconds == pytest.approx(20e-6, rel=1e-3)
    assert short.low == pytest.approx(16e-6, rel=0.05)
    assert short.high == pytest.approx(25e-6, rel=0.05)
    assert other.values["alpha.a"].low == pytest.approx(16e-6, rel=0.05)
    assert other.source.endswith("moved to setting friday")


@lru_cache
def sets():
    """Of every family a set from its first guesses for collectives, or from published values."""
    guesses = {name: family(name).from_points for name in family_names()}
    texts = {
        name: [f"{key}={value:.3e}{'s' if value < 1 else ''}" for key, value in (guess or {}).items()]
        for name, guess in guesses.items()
    }
    return {name: set_given(name, text) for name, text in texts.items() if text}


@pytest.mark.parametrize("name", sorted(sets()))
def test_every_family_s_prices_follow_both_factors_alike(name):
    """Both at once are a change of the unit of time: every price without local work is so many times as high."""
    parameters: ParameterSet = sets()[name]
    if not can_be_paced(parameters):
        pytest.skip("no factor moves it")
    points = [point("bcast", "binomial", ranks=8, bytes=size) for size in (1, 1 << 12, 1 << 20)]
    assert Effect(parameters, points)(np.log([[3.0, 3.0]]))[0] == pytest.approx(np.log(3.0), rel=1e-6)
