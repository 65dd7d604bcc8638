"""What every family must do, whichever it is: one test, all families."""

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.families import complete, costs, family, family_names
from commodel.fit import as_parameters
from commodel.fitting import estimate
from commodel.functions import FORMS
from commodel.patterns import schedule
from commodel.records import ParameterSet
from commodel.tables import read_parameters, write_parameters
from commodel.values import Values
from tests.models.synthetic import loggp_times, observed
from tests.patterns import catalogue, point

TRUE = {"L": 10e-6, "o_s": 1.5e-6, "o_r": 2e-6, "g": 4e-6, "G": 8e-9, "gamma": 1e-10}


def fitted_set(name, **how) -> ParameterSet:
    return as_parameters(family(name), family(name).fit(observed(loggp_times(**TRUE), **how)))


@pytest.fixture(params=family_names())
def name(request):
    return request.param


def test_it_says_what_it_is(name):
    entry = family(name)
    assert entry.title
    assert entry.citation
    assert entry.equation
    assert entry.ignores
    assert entry.probes
    assert all(parameter.meaning and parameter.unit in ("s", "s/B") for parameter in entry.parameters)


def test_it_prices_the_whole_catalogue(name):
    parameters = fitted_set(name)
    for entry in catalogue(7, 1000):
        cost = costs(family(name), schedule(entry), parameters, drawn=False)
        assert cost.shape == (1,)
        assert np.isfinite(cost[0])
        assert cost[0] > 0


@pytest.mark.parametrize("operation", ["bcast", "gather"])
def test_it_is_finite_at_nothing_and_never_falls_with_size(name, operation):
    parameters = fitted_set(name)
    sizes = (0, 1, 2, 100, 10_000, 1 << 20)
    found = [
        float(
            costs(family(name), schedule(point(operation, "binomial", ranks=9, bytes=size)), parameters, drawn=False)[0]
        )
        for size in sizes
    ]
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) >= -1e-18)
    assert (found[-1] > found[0]) == family(name).uses_bytes


def test_a_stack_of_draws_is_the_same_as_one_by_one(name):
    parameters = fitted_set(name, noise=0.05)
    pattern = schedule(point("allreduce", "ring", ranks=6, bytes=5000))
    together = costs(family(name), pattern, parameters, drawn=True)
    for number in (0, 17, 199):
        one = {key: np.array([[draws[number]]]) for key, draws in parameters.draws.items()}
        values = complete(family(name), Values(one, parameters.forms, parameters.settings))
        alone = pattern.cost(family(name).price(pattern, values))
        np.testing.assert_allclose(together[number], alone[0], rtol=1e-12)


def test_a_parameter_set_survives_its_file(name, tmp_path):
    parameters = fitted_set(name, noise=0.02)
    write_parameters(tmp_path / "set.yaml", parameters)
    again = read_parameters(tmp_path / "set.yaml")
    assert again.values == parameters.values
    assert again.forms == parameters.forms
    assert again.bytes_range == parameters.bytes_range
    for key, draws in parameters.draws.items():
        np.testing.assert_allclose(again.draws[key], draws, rtol=1e-5)


def test_a_missing_and_an_unknown_parameter_are_named(name):

    entry = family(name)
    with pytest.raises(UserError, match="needs"):
        complete(entry, Values({}))
    values = {key: np.array([[1.0]]) for key in ("nonsense", *fitted_set(name).values)}
    with pytest.raises(UserError, match="nonsense"):
        complete(entry, Values(values))


COVERED = {  # what the synthetic machine's truth is in the family's own parameters
    "hockney": {"alpha.a": TRUE["o_s"] + TRUE["L"] + TRUE["o_r"], "beta.a": TRUE["G"]},
    "logp": {"o": (TRUE["o_s"] + TRUE["o_r"]) / 2, "L": TRUE["L"], "g": TRUE["g"]},
    "loggp": {key: TRUE[key] for key in ("L", "o_s", "o_r", "g", "G")},
    "tan": {"L": TRUE["o_s"] + TRUE["L"] + TRUE["o_r"] + 1023 * TRUE["G"]},
}


def test_intervals_cover_the_truth_about_as_often_as_they_say(name):
    """95 % intervals over 200 noisy machines: the truth inside in 90 to 99.5 % of them."""
    inside = dict.fromkeys(COVERED[name], 0)
    for seed in range(200):
        fitted = family(name).fit(observed(loggp_times(**TRUE), noise=0.03, samples=20, seed=seed, ranks=12))
        for key, truth in COVERED[name].items():
            found = estimate(fitted.values[key], "s")
            inside[key] += found.low <= truth <= found.high
    assert all(0.88 <= count / 200 <= 0.998 for count in inside.values()), inside


def test_noise_free_data_give_the_truth_back(name):
    parameters = fitted_set(name)
    for key, truth in COVERED[name].items():
        assert parameters.values[key].value == pytest.approx(truth, rel=2e-3), key


def test_every_form_has_its_coefficients_in_order():
    for form in FORMS.values():
        values = np.ones(len(form.coefficients))
        assert np.isfinite(form.shape(np.array([2.0]), *values)).all()
