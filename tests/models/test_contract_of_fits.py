"""What every family's fit must do, whichever family it is: one test, all families."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.fits.probe_fits import as_parameters
from commodel.fits.validity_checks import left_out
from commodel.models.families import family
from commodel.models.fitting import observed as samples
from commodel.models.fitting.observed import Observed, estimate
from commodel.models.keys import parse
from commodel.models.pricing.values import TABLE, Values
from tests.models.synthetic import fitted_set, observed, truth

FEW_DRAWS = 20  # where no interval is looked at


def test_without_data_it_says_what_it_lacks(name):
    with pytest.raises(UserError, match="no measurements of probe"):
        family(name).fit(Observed({}))


def test_a_case_left_out_is_predicted(name, monkeypatch):
    """Whichever case is missing, as where none of its samples was valid, the rest can be fitted."""
    monkeypatch.setattr(samples, "DRAWS", FEW_DRAWS)
    observations = observed(truth(name), name, noise=0.01, samples=10)
    entry = family(name)
    entry.fit(observations)
    score = left_out(entry, observations)
    assert not score or np.isfinite(score["error"])
    for needed, cases in observations.probes.items():
        for number in {0, len(cases) // 2, len(cases) - 1} if len(cases) > 3 else ():
            with suppress(UserError):  # one that nothing can stand in for
                entry.fit(observations.without(needed, number, 1 + FEW_DRAWS))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, *(pytest.param(more, marks=pytest.mark.slow) for more in (0.3, 0.7))])
def test_whatever_was_not_measured_a_fit_is_finite_or_says_what_it_lacks(name, share, monkeypatch):
    """A crash, a timeout or a spent budget may take any of its cases."""
    monkeypatch.setattr(samples, "DRAWS", FEW_DRAWS)
    everything, rng = observed(truth(name), name, noise=0.02, samples=6), np.random.default_rng(int(100 * share))
    for _ in range(6):
        whole = rng.choice(["", *everything.probes])
        kept = {
            probe: [case for case in cases if probe == whole or rng.random() < share]
            for probe, cases in everything.probes.items()
        }
        with suppress(UserError):
            fitted = family(name).fit(Observed(kept, everything.seed, everything.types))
            assert all(np.isfinite(draws).all() for draws in fitted.values.values())


def test_probes_may_begin_with_an_empty_message(name):
    machine = replace(truth(name), sizes=(0, 1, 64, 1024, 4096))
    fitted = family(name).fit(observed(machine, name, noise=0.02))
    assert all(np.isfinite(draws).all() for draws in fitted.values.values())


@pytest.mark.parametrize(
    ("machines", "least", "narrowest", "widest"),
    [(16, 0.8, 0.5, 2.2), pytest.param(100, 0.9, 0.8, 1.35, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_intervals_cover_the_truth_about_as_often_as_they_say(name, machines, least, narrowest, widest):
    """95 % intervals over noisy machines: the truth inside in most of them, and no wider than they need be for that:
    the estimates of those machines scatter as widely as the intervals say."""
    machine = truth(name)
    estimates = {key: [] for key in machine.covered}
    for seed in range(machines):
        fitted = family(name).fit(observed(machine, name, noise=0.03, samples=40, seed=seed))
        for key in estimates:
            estimates[key].append(estimate(fitted.values[key], "s"))
    for key, value in machine.covered.items():
        inside = np.mean([interval.low <= value <= interval.high for interval in estimates[key]])
        width = np.mean([interval.high - interval.low for interval in estimates[key]])
        scatter = np.std([interval.value for interval in estimates[key]])
        assert inside >= least, (key, inside)
        assert narrowest <= width / (2 * 1.96 * scatter) <= widest, (key, width, scatter)


def test_no_interval_of_a_cost_goes_below_0(name):
    """Where a machine is not what the family says, the misfit of the fit must not become a negative cost."""
    entry, machine = family(name), truth(name)
    functions = {parameter.name for parameter in entry.parameters if parameter.argument}
    for seed, bent in enumerate((0.3, 1.5, 0.3, 1.5)):
        rng, evidence = np.random.default_rng(seed), observed(machine, name, noise=0.05, samples=10, seed=seed)
        probes = {
            probe: [replace(case, seconds=case.seconds * rng.lognormal(0, bent)) for case in cases]
            for probe, cases in evidence.probes.items()
        }
        fitted = entry.fit(Observed(probes, seed, evidence.types))
        for key, estimate_ in as_parameters(entry, fitted).values.items():
            if parse(key).parameter not in functions or parse(key).sample:
                assert estimate_.low >= 0, key
                assert fitted.values[key].min() >= 0, key
        values = Values({key: draws[:, None] for key, draws in fitted.values.items()}, fitted.forms)
        for function in {key.rpartition(".")[0] for key in fitted.values}:
            form = fitted.forms.get(function, "constant")
            # LoP's functions of a count may dip between the counts probed: its price takes no less than 0 there.
            if function.partition(".")[0] in functions and form not in (TABLE, "pipeline", "saturating"):
                costs = values.at(function, np.geomspace(2 if name == "tan" else 1, 12, 30))
                if name == "tan" and function == "o":  # of at least one message in and one out, beyond what is in L
                    costs = costs + values["L"]
                assert costs.min() >= 0, function


def test_noise_free_data_give_the_truth_back(name):
    parameters = fitted_set(name)
    for key, value in truth(name).covered.items():
        assert parameters.values[key].value == pytest.approx(value, rel=2e-3), key


def test_its_values_have_units_of_their_own(name):
    for key, value in fitted_set(name, noise=0.02).values.items():
        assert value.unit, key
        assert value.low <= value.value <= value.high
