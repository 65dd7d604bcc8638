"""What every family must do, whichever it is: one test, all families."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.files.sets import write_parameters
from commodel.fit.leftout import left_out
from commodel.fit.probes import as_parameters
from commodel.keys import parse
from commodel.models.families import complete, family, family_names, read_set
from commodel.models.fitting.observed import Observed, estimate
from commodel.models.pricing.functions import FORMS, PIECEWISE, TABLE
from commodel.models.pricing.values import Values
from commodel.models.probes import probe, spread
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import schedule
from commodel.patterns.schedule import Ends, Schedule, Work
from commodel.price.predict import predict
from tests.models.synthetic import costs, observed, truth
from tests.patterns.catalogue import catalogue, point

UNITS = ("s", "s/B", "1", "B", "B/s")


# Intervals are tried on so many machines; on fewer where a fit takes a tenth of a second.
MACHINES = dict.fromkeys(family_names(), 100) | {"lop": 60}


@cache
def fitted_set(name, **how) -> ParameterSet:
    return as_parameters(family(name), family(name).fit(observed(truth(name), name, **how)))


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
    assert all(probe(needed) for needed in entry.probes)
    assert all(parameter.meaning and parameter.unit in UNITS for parameter in entry.parameters)
    assert set(entry.decides or {}) == set(entry.settings or {})


def test_its_values_have_units_of_their_own(name):
    for key, value in fitted_set(name, noise=0.02).values.items():
        assert value.unit, key
        assert value.low <= value.value <= value.high


def test_it_prices_the_whole_catalogue(name):
    parameters = fitted_set(name)
    for entry in catalogue(7, 1000):
        cost = costs(family(name), schedule(entry), parameters, drawn=False)
        assert cost.shape == (1,)
        assert np.isfinite(cost[0])
        assert cost[0] >= 0
        assert cost[0] > 0 or name == "pram"


@pytest.mark.parametrize(("operation", "choice"), [("bcast", "binomial"), ("bcast", "linear"), ("gather", "binomial")])
def test_it_is_finite_at_nothing_and_never_falls_with_size(name, operation, choice):
    parameters = fitted_set(name)
    sizes = (0, 1, 2, 100, 1500, 1501, 10_000, 1 << 20)
    points = [point(operation, choice, ranks=9, bytes=size) for size in sizes]
    found = np.array([prediction.seconds for prediction in predict(parameters, points)])
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) >= -1e-12 * found[1:])
    assert (found[-1] > found[0]) == family(name).uses_bytes


def test_a_stack_of_draws_is_the_same_as_one_by_one(name):
    parameters = fitted_set(name, noise=0.05)
    pattern = schedule(point("allreduce", "ring", ranks=6, bytes=5000))
    together = np.broadcast_to(costs(family(name), pattern, parameters, drawn=True), 200)
    for number in (0, 17, 199):
        one = {key: np.array([[draws[number]]]) for key, draws in parameters.draws.items()}
        values = complete(family(name), Values(one, parameters.forms, parameters.settings))
        alone = pattern.cost(family(name).price(pattern, values))
        np.testing.assert_allclose(together[number], alone[0], rtol=1e-12)


def test_a_stack_of_sizes_is_the_same_as_one_by_one(name):
    parameters = fitted_set(name, noise=0.05)
    points = [point("allreduce", "recursive-doubling", ranks=6, bytes=size) for size in (8, 800, 80_000)]
    for together, one in zip(predict(parameters, points), points, strict=True):
        (alone,) = predict(parameters, [one])
        np.testing.assert_allclose(
            (together.seconds, together.low, together.high), (alone.seconds, alone.low, alone.high), rtol=1e-12
        )


def test_doubts_about_a_stack_are_those_about_one_by_one(name):
    parameters = fitted_set(name, noise=0.02)
    parameters = replace(parameters, bytes_range=(8.0, 800.0))
    if name == "cluster":
        parameters = replace(parameters, values=parameters.values | {"B_L": Estimate(3.0, "1", 3.0, 3.0)})
    points = [point("gather", "linear", ranks=12, bytes=size) for size in (8, 80_000, 800, 1)]
    together = [found.status for found in predict(parameters, points)]
    assert together == [predict(parameters, [each])[0].status for each in points]


def test_a_parameter_set_survives_its_file(name, tmp_path):
    parameters = fitted_set(name, noise=0.02)
    write_parameters(tmp_path / "set.yaml", parameters)
    again = read_set(tmp_path / "set.yaml")
    assert again.values == parameters.values
    assert again.forms == parameters.forms
    assert again.settings == parameters.settings
    assert again.bytes_range == parameters.bytes_range
    for key, draws in parameters.draws.items():
        np.testing.assert_allclose(again.draws[key], draws, rtol=1e-5)


def test_a_missing_and_an_unknown_parameter_are_named(name):
    entry = family(name)
    if any(parameter.default is None and not parameter.optional for parameter in entry.parameters):
        with pytest.raises(UserError, match="needs"):
            complete(entry, Values({}))
    values = {key: np.array([[1.0]]) for key in ("nonsense", *fitted_set(name).values)}
    with pytest.raises(UserError, match="nonsense"):
        complete(entry, Values(values))


def test_a_coefficient_that_no_form_takes_is_refused(name):
    """Or a misspelt one would leave the price as if it were not there."""
    parameters = fitted_set(name)
    for parameter in family(name).parameters:
        if parameter.argument:
            values = {key: np.array([[each.value]]) for key, each in parameters.values.items()}
            values[f"{parameter.name}.zz"] = np.array([[1.0]])
            with pytest.raises(UserError, match=rf"no use for {parameter.name}\.zz"):
                complete(family(name), Values(values, parameters.forms))


def test_without_data_it_says_what_it_lacks(name):
    with pytest.raises(UserError, match="no measurements of probe"):
        family(name).fit(Observed({}))


def test_a_case_left_out_is_predicted(name):
    """Whichever case is missing, as where none of its samples was valid, the rest can be fitted."""
    observations = observed(truth(name), name, noise=0.01, samples=10)
    entry = family(name)
    entry.fit(observations)
    found = left_out(entry, observations)
    assert not found or np.isfinite(found["error"])
    for needed, cases in observations.probes.items():
        for number in {0, len(cases) // 2, len(cases) - 1} if len(cases) > 3 else ():
            with suppress(UserError):  # one that nothing can stand in for
                entry.fit(observations.without(needed, number, 21))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_whatever_was_not_measured_a_fit_is_finite_or_says_what_it_lacks(name, share):
    """A crash, a timeout or a spent budget may take any of its cases."""
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


def test_intervals_cover_the_truth_about_as_often_as_they_say(name):
    """95 % intervals over many noisy machines: the truth inside in 90 % of them or more, and no wider than they need be
    for that: the estimates of those machines scatter as widely as the intervals say."""
    machine = truth(name)
    found = {key: [] for key in machine.covered}
    for seed in range(MACHINES[name]):
        fitted = family(name).fit(observed(machine, name, noise=0.03, samples=40, seed=seed))
        for key in found:
            found[key].append(estimate(fitted.values[key], "s"))
    for key, value in machine.covered.items():
        inside = np.mean([one.low <= value <= one.high for one in found[key]])
        width = np.mean([one.high - one.low for one in found[key]])
        scatter = np.std([one.value for one in found[key]])
        assert inside >= 0.90, (key, inside)
        assert 0.8 <= width / (2 * 1.96 * scatter) <= 1.35, (key, width, scatter)


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
                found = values.at(function, np.geomspace(2 if name == "tan" else 1, 12, 30))
                if name == "tan" and function == "o":  # of at least one message in and one out, beyond what is in L
                    found = found + values["L"]
                assert found.min() >= 0, function


def test_noise_free_data_give_the_truth_back(name):
    parameters = fitted_set(name)
    for key, value in truth(name).covered.items():
        assert parameters.values[key].value == pytest.approx(value, rel=2e-3), key


# τ–Lop's times come from rings.
TIMED = [name for name in family_names() if {"pingpong", "prtt"} & set(family(name).probes)]
TIMED = [name for name in TIMED if name != "taulop"]


@pytest.mark.parametrize("name", TIMED)
def test_one_message_costs_what_it_took(name):
    """Fitted without noise, the price of a message between two nodes is half of its measured round trip."""
    machine = truth(name)
    trip = machine.times["pingpong" if "pingpong" in family(name).probes else "prtt"]
    entry, parameters = family(name), fitted_set(name)
    sizes = machine.sizes if entry.uses_bytes else [int(parameters.bytes_range[0]) or 1]
    for size in sizes:
        if name == "cluster" and size > 1500:  # a train of packets, not a message
            continue
        case = {"n": 1, "delay": 0, "late": 0, "bytes": size, "pair": spread(machine.site, 2).pair}
        cost = costs(entry, Schedule.of(2, 0, [0], [1], [size]), parameters, drawn=False)[0]
        assert cost == pytest.approx(trip(case) / 2, rel=0.02), size


@pytest.mark.parametrize(
    ("given", "lacks"),
    [("a1 x1", "a"), ("a x1", "a1"), ("a a1", "x1"), ("a x2 a2", "x1"), ("a b3", "x1"), ("a0 a", "")],
)
def test_pieces_without_an_edge_or_a_height_are_refused(given, lacks):
    """A piece that lacks its edge would otherwise not be there, and nobody would know."""
    values = {f"alpha.{part}": np.array([[1.0]]) for part in given.split()} | {"beta.a": np.array([[1.0]])}
    with pytest.raises(UserError, match=rf"needs alpha\.{lacks}:" if lacks else r"no use for alpha\.a0"):
        complete(family("hockney"), Values(values, {"alpha": PIECEWISE}))


def stretched(pattern):
    """The same, with every wait and all work in a step after the one that posts."""
    step, work = 2 * pattern.step, pattern.work
    work = Work(2 * work.step + 1, *work.columns[1:])
    return replace(pattern, step=step, work=work, ends=Ends(step + 1, step, step + 1))


def test_a_wait_in_a_step_of_its_own_costs_nothing(name):
    parameters = fitted_set(name)
    for entry in catalogue(8, 4096):
        pattern = schedule(entry)
        try:
            (plain,) = costs(family(name), pattern, parameters, drawn=False)
        except UserError:
            continue
        assert costs(family(name), stretched(pattern), parameters, drawn=False) == pytest.approx([plain]), entry


def test_every_form_has_its_coefficients_in_order():
    for form in FORMS.values():
        values = np.ones(len(form.coefficients))
        assert len(form.units) == len(form.coefficients)
        assert np.isfinite(form.shape(np.array([2.0]), *values)).all()
