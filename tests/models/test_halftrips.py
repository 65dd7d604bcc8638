"""Half round trips as lines or as samples: closed forms, noise, and what comes beyond the last size."""

import numpy as np
import pytest

from commodel.models.families import family
from commodel.models.fitting.round_trips import HalfTrip
from commodel.models.pricing.values import Values
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model

SIZES = np.array([0.0, 16, 256, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22])
CACHES = 1e-6 + SIZES * 5e-11 * (1 + np.sin(np.arange(len(SIZES))) / 2)  # a byte costs something else at every size


def exact(times):
    return np.stack([times] * 3)


def test_lines_are_pieces_where_the_protocol_changes():
    times = np.where(SIZES <= 4096, 1e-6 + SIZES * 2e-10, 5e-6 + SIZES * 1e-10)
    trip = HalfTrip.of(SIZES, exact(times))
    values, forms = trip.named("node", np.full(3, 4e-7))
    assert forms == {"L.node": "piecewise", "G.node": "piecewise"}
    fitted = {name: draws[0] for name, draws in values.items()}
    wanted = {"L.node.a": 6e-7, "L.node.a1": 4.6e-6, "L.node.x1": 4096, "G.node.a": 2e-10, "G.node.a1": 1e-10}
    assert fitted == pytest.approx(wanted | {"G.node.x1": 4096})
    assert trip.terms == 5


def test_samples_where_no_line_holds():
    trip = HalfTrip.of(SIZES, exact(CACHES))
    assert trip.forms == {"L": "constant", "G": "table"}
    np.testing.assert_allclose(trip.at(SIZES[4:])[0], CACHES[4:], rtol=1e-12)
    np.testing.assert_allclose(trip.at(SIZES[:4])[0], CACHES[:4], rtol=0.03)  # where bytes do not count yet


def test_times_that_fall_where_the_protocol_changes_stay_as_they_were_measured():
    times = np.where(SIZES > 1 << 18, CACHES / 8, CACHES)
    trip = HalfTrip.of(SIZES, exact(times))
    assert trip.forms["G"] == "table"
    np.testing.assert_allclose(trip.at(SIZES[5:])[0], times[5:], rtol=1e-12)


def test_a_price_between_two_ranks_is_what_was_measured_and_grows_in_proportion_beyond():
    named, forms = HalfTrip.of(SIZES, exact(CACHES)).named("node", np.full(3, 4e-7))
    values = {name: draws[:1, None] for name, draws in named.items()} | {
        name: np.array([[number]]) for name, number in (("o_s", 1e-7), ("o_r", 3e-7), ("gamma.64", 0.0))
    }
    model = Model.of(family("shares"), Values(values, forms | {"gamma": "table"}))

    def seconds(size):
        return model.cost(Schedule.of(2, 0, [0], [1], size).placed(np.zeros(2, dtype=int)))[0]

    assert seconds(1 << 20) == pytest.approx(CACHES[-2])
    assert seconds(1 << 24) - 1e-6 == pytest.approx(4 * (CACHES[-1] - 1e-6), rel=0.01)


@pytest.mark.parametrize("noise", [0.02, 0.2])
def test_noise_alone_makes_no_samples(noise):
    kept = 0
    for seed in range(40):
        scatter = np.exp(noise * np.random.default_rng(seed).normal(size=(100, len(SIZES))))
        samples = (1e-6 + SIZES * 1e-10) * scatter
        draws = np.random.default_rng(seed + 1000).choice(samples, (200, 15)).mean(axis=1)
        kept += HalfTrip.of(SIZES, np.concatenate([samples[:15].mean(axis=0)[None], draws])).forms["G"] != "table"
    assert kept >= 38
