"""The contract of all models: declarations, predictions and fits."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.files.parameter_sets import write_parameters
from commodel.fits.probe_fits import make_parameter_set
from commodel.fits.validity_checks import measure_left_out_error
from commodel.models.evaluation.values import FORMS, PIECEWISE, TABLE, Values
from commodel.models.families import complete_values, find_family, list_family_names
from commodel.models.fitting import observed as samples
from commodel.models.fitting.observed import Observed, make_estimate
from commodel.models.keys import make_key, parse_key
from commodel.models.parameter_sets import read_set
from commodel.models.probes import find_probe, place_spread
from commodel.parameters import Estimate
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import NonblockingSteps, Schedule, Work
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from commodel.records import Statistic
from tests.models.synthetic import costs, fitted_set, observed, truth
from tests.models.truths.loggops import LOGGOPS
from tests.patterns.catalogue import catalogue, point

UNITS = ("s", "s/B", "1", "B", "B/s")


def test_every_model_has_a_title_citation_equation_probes_and_units(name):
    entry = find_family(name)
    assert entry.title
    assert entry.citation
    assert entry.equation
    assert entry.ignores
    assert entry.probes
    assert all(find_probe(needed) for needed in entry.probes)
    assert all(parameter.meaning and parameter.unit in UNITS for parameter in entry.parameters)
    assert all(setting.values and setting.meaning for setting in entry.settings.values())


def test_every_model_predicts_the_whole_catalogue(name):
    parameters = fitted_set(name)
    for entry in catalogue(7, 1000):
        cost = costs(find_family(name), build_schedule(entry), parameters, drawn=False)
        assert cost.shape == (1,)
        assert np.isfinite(cost[0])
        assert cost[0] >= 0
        assert cost[0] > 0 or name == "pram"


def test_the_mean_over_ranks_of_a_rooted_operation_is_predicted_or_refused(name):
    """The ranks of a linear reduction finish at different times, which models that add up steps do
    not distinguish."""
    linear = point("reduce", "linear", ranks=9, bytes=8)
    mean = replace(linear, statistic=Statistic.RANK_MEAN)
    parameters, entry = fitted_set(name), find_family(name)
    (completion, of_ranks) = predict(parameters, [linear, mean], strict=False)
    is_regression = entry.table_fit is not None and entry.table_fit.fit is not None
    if entry.same_for_all_ranks and not is_regression:
        assert np.isnan(of_ranks.seconds)
        assert (
            f"no prediction: {entry.title} has one time for all ranks of a reduce"
            in of_ranks.validity_text
        )
        with pytest.raises(UserError, match="it has no 'rank mean'"):
            predict(parameters, [mean])
    elif entry.same_for_all_ranks:
        assert of_ranks.seconds == completion.seconds
    else:
        assert 0 < of_ranks.seconds < completion.seconds


@pytest.mark.parametrize(
    ("operation", "choice"), [("bcast", "binomial"), ("bcast", "linear"), ("gather", "binomial")]
)
def test_predictions_are_finite_at_0_bytes_and_never_fall_with_size(name, operation, choice):
    parameters = fitted_set(name)
    sizes = (0, 1, 2, 100, 1500, 1501, 10_000, 1 << 20)
    points = [point(operation, choice, ranks=9, bytes=size) for size in sizes]
    predictions = np.array([prediction.seconds for prediction in predict(parameters, points)])
    assert np.all(np.isfinite(predictions))
    assert np.all(np.diff(predictions) >= -1e-12 * predictions[1:])
    assert (predictions[-1] > predictions[0]) == find_family(name).uses_bytes


def test_a_stack_of_draws_is_the_same_as_one_by_one(name):
    parameters = fitted_set(name, noise=0.05)
    pattern = build_schedule(point("allreduce", "ring", ranks=6, bytes=5000))
    together = np.broadcast_to(costs(find_family(name), pattern, parameters, drawn=True), 200)
    for number in (0, 17, 199):
        drawn = {key: draws[number] for key, draws in parameters.draws.items()}
        values = {
            key: np.array([[drawn.get(key, value.value)]])
            for key, value in parameters.values.items()
        }
        values = complete_values(
            find_family(name), Values(values, parameters.forms, parameters.settings)
        )
        single = pattern.cost(find_family(name).predict(pattern, values))
        np.testing.assert_allclose(together[number], single[0], rtol=1e-12)


def test_a_stack_of_sizes_is_the_same_as_one_by_one(name):
    parameters = fitted_set(name, noise=0.05)
    points = [
        point("allreduce", "recursive-doubling", ranks=6, bytes=size) for size in (8, 800, 80_000)
    ]
    for together, entry in zip(predict(parameters, points), points, strict=True):
        (single,) = predict(parameters, [entry])
        np.testing.assert_allclose(
            (together.seconds, together.low, together.high),
            (single.seconds, single.low, single.high),
            rtol=1e-12,
        )


def test_validity_of_points_predicted_together_equals_validity_one_by_one(name):
    parameters = fitted_set(name, noise=0.02)
    parameters = replace(parameters, bytes_range=(8.0, 800.0))
    if name == "cluster":
        parameters = replace(
            parameters, values=parameters.values | {"B_L": Estimate(3.0, "1", 3.0, 3.0)}
        )
    points = [point("gather", "linear", ranks=12, bytes=size) for size in (8, 80_000, 800, 1)]
    together = [prediction.validity_text for prediction in predict(parameters, points)]
    assert together == [predict(parameters, [entry])[0].validity_text for entry in points]


def test_a_parameter_set_read_from_a_file_equals_the_written_one(name, tmp_path):
    parameters = fitted_set(name, noise=0.02)
    write_parameters(tmp_path / "set.yaml", parameters)
    again = read_set(tmp_path / "set.yaml")
    assert again.values == parameters.values
    assert again.forms == parameters.forms
    assert again.settings == parameters.settings
    assert again.bytes_range == parameters.bytes_range
    for called, draws in parameters.draws.items():
        np.testing.assert_allclose(again.draws[called], draws, rtol=1e-5)


def test_any_function_may_be_one_number_in_a_file(name, tmp_path):
    """A single number is the constant of the function."""
    parameters, parts = fitted_set(name), find_family(name).by_name
    functions = {
        parse_key(called).function
        for called in parameters.values
        if parts[parse_key(called).parameter].argument
    }
    numbers = {
        called: entry
        for called, entry in parameters.values.items()
        if parse_key(called).function not in functions
    }
    units = {function: parts[parse_key(f"{function}.a").parameter].unit for function in functions}
    constants = {function: Estimate(2e-9, units[function], 2e-9, 2e-9) for function in functions}
    forms = {called: form for called, form in parameters.forms.items() if called not in functions}
    drawn = {called: draws for called, draws in parameters.draws.items() if called in numbers}
    drawn |= dict.fromkeys(functions, (2e-09, 3e-09)) if functions and not drawn else {}
    given = replace(parameters, values=numbers | constants, forms=forms, draws=drawn, curves=())
    write_parameters(tmp_path / "set.yaml", given)
    again = read_set(tmp_path / "set.yaml")
    full = {make_key(function, "a"): estimate for function, estimate in constants.items()}
    assert again.values == numbers | full
    assert set(again.draws) <= set(again.values)
    assert len(again.draws) == len(drawn)
    complete_values(find_family(name), Values.of(again))
    if functions:
        write_parameters(
            tmp_path / "both.yaml", replace(given, values=given.values | full, draws={})
        )
        with pytest.raises(UserError, match=r"found .*\.a, too, wanted one of them"):
            read_set(tmp_path / "both.yaml")


def test_a_missing_and_an_unknown_parameter_are_named(name):
    entry = find_family(name)
    if any(parameter.default is None and not parameter.optional for parameter in entry.parameters):
        with pytest.raises(UserError, match="needs"):
            complete_values(entry, Values({}))
    values = {key: np.array([[1.0]]) for key in ("nonsense", *fitted_set(name).values)}
    with pytest.raises(UserError, match="nonsense"):
        complete_values(entry, Values(values))


def test_a_coefficient_that_no_form_takes_is_refused(name):
    """Without the check, a misspelt coefficient would silently be ignored."""
    parameters = fitted_set(name)
    for parameter in find_family(name).parameters:
        if parameter.argument:
            values = {
                key: np.array([[estimate.value]]) for key, estimate in parameters.values.items()
            }
            values[f"{parameter.name}.zz"] = np.array([[1.0]])
            with pytest.raises(UserError, match=rf"does not use {parameter.name}\.zz"):
                complete_values(find_family(name), Values(values, parameters.forms))
            del values[f"{parameter.name}.zz"]
            values[parameter.name] = np.array([[1.0]])
            with pytest.raises(UserError, match=rf"does not use {parameter.name}: "):
                complete_values(find_family(name), Values(values, parameters.forms))


# τ–Lop's times come from rings.
TIMED = [
    name for name in list_family_names() if {"pingpong", "prtt"} & set(find_family(name).probes)
]
TIMED = [name for name in TIMED if name != "taulop"]


@pytest.mark.parametrize("name", TIMED)
def test_prediction_of_one_message_equals_half_the_measured_round_trip(name):
    """Fitted without noise, the prediction of a message between two nodes is half of its measured
    round trip."""
    machine = truth(name)
    trip = machine.times["pingpong" if "pingpong" in find_family(name).probes else "prtt"]
    entry, parameters = find_family(name), fitted_set(name)
    sizes = machine.sizes if entry.uses_bytes else [int(parameters.bytes_range[0]) or 1]
    for size in sizes:
        if name == "cluster" and size > 1500:  # a train of packets, not a message
            continue
        case = {
            "n": 1,
            "delay": 0,
            "late": 0,
            "bytes": size,
            "pair": place_spread(machine.site, 2).pair,
        }
        cost = costs(entry, Schedule.of(2, 0, [0], [1], [size]), parameters, drawn=False)[0]
        assert cost == pytest.approx(trip(case) / 2, rel=0.02), size


@pytest.mark.parametrize(
    ("given", "lacks"),
    [
        ("a1 x1", "a"),
        ("a x1", "a1"),
        ("a a1", "x1"),
        ("a x2 a2", "x1"),
        ("a b3", "x1"),
        ("a0 a", ""),
    ],
)
def test_pieces_without_an_edge_or_a_height_are_refused(given, lacks):
    """Without the check, a piece without an edge would silently be ignored."""
    values = {f"alpha.{part}": np.array([[1.0]]) for part in given.split()} | {
        "beta.a": np.array([[1.0]])
    }
    with pytest.raises(
        UserError, match=rf"needs alpha\.{lacks}:" if lacks else r"does not use alpha\.a0"
    ):
        complete_values(find_family("hockney"), Values(values, {"alpha": PIECEWISE}))


def delay_waits(pattern):
    """Return the schedule with all waits and all local work one step after the posts."""
    step, work = 2 * pattern.step, pattern.work
    work = Work(2 * work.step + 1, *work.columns[1:])
    return replace(
        pattern, step=step, work=work, nonblocking=NonblockingSteps(step + 1, step, step + 1)
    )


@cache
def list_schedule_pairs():
    """Return the catalogue schedules that wait where they post, each with the schedule whose waits
    are delayed."""
    patterns = [(entry, build_schedule(entry)) for entry in catalogue(4, 4096)]
    return [
        (entry, pattern, delay_waits(pattern))
        for entry, pattern in patterns
        if pattern.nonblocking is None
    ]


def test_a_wait_in_a_separate_step_does_not_change_the_prediction(name):
    model = Model.of_set(fitted_set(name), 0)
    for entry, pattern, longer in list_schedule_pairs():
        try:
            (plain,) = model.cost(pattern)
        except UserError:
            continue
        assert model.cost(longer) == pytest.approx([plain]), entry


def test_every_form_has_one_unit_and_one_value_per_coefficient():
    for form in FORMS.values():
        values = np.ones(len(form.coefficients))
        assert len(form.units) == len(form.coefficients)
        assert np.isfinite(form.shape(np.array([2.0]), *values)).all()


FEW_DRAWS = 20  # where no interval is looked at


def test_a_fit_without_data_names_the_missing_probe(name):
    with pytest.raises(UserError, match="no measurements of probe"):
        find_family(name).fit(Observed({}))


def test_a_case_left_out_is_predicted(name, monkeypatch):
    """The first or last case of a probe is missing, as if it had no valid sample."""
    monkeypatch.setattr(samples, "DEFAULT_DRAWS", FEW_DRAWS)
    observations = observed(truth(name), name, noise=0.01, samples=10)
    entry = find_family(name)
    entry.fit(observations)
    score = measure_left_out_error(entry, observations)
    assert not score or np.isfinite(score["error"])
    for needed, cases in observations.probes.items():
        for number in (0, len(cases) - 1) if len(cases) > 3 else ():
            with suppress(UserError):  # one that nothing can stand in for
                entry.fit(observations.without(needed, number, 1 + FEW_DRAWS))


@pytest.mark.parametrize(
    "share", [0.1, 0.5, 0.9, *(pytest.param(more, marks=pytest.mark.slow) for more in (0.3, 0.7))]
)
def test_a_fit_with_missing_cases_is_finite_or_raises_a_user_error(name, share, monkeypatch):
    """A crash, a timeout or an exhausted time budget may remove any case."""
    monkeypatch.setattr(samples, "DEFAULT_DRAWS", FEW_DRAWS)
    everything, rng = (
        observed(truth(name), name, noise=0.02, samples=6),
        np.random.default_rng(int(100 * share)),
    )
    for _ in range(6):
        complete_probe = rng.choice(["", *everything.probes])
        kept = {
            probe: [case for case in cases if probe == complete_probe or rng.random() < share]
            for probe, cases in everything.probes.items()
        }
        with suppress(UserError):
            fitted = find_family(name).fit(Observed(kept, everything.seed, everything.types))
            assert all(np.isfinite(draws).all() for draws in fitted.values.values())


def test_probes_may_begin_with_an_empty_message(name):
    machine = replace(truth(name), sizes=(0, 1, 64, 1024, 4096))
    fitted = find_family(name).fit(observed(machine, name, noise=0.02))
    assert all(np.isfinite(draws).all() for draws in fitted.values.values())


@pytest.mark.parametrize("smallest", [0, 1000])
def test_overheads_of_large_messages_may_be_0(name, smallest, monkeypatch):
    """In a simulated network, processors may spend no time with messages above a size, which a
    network card sends."""
    monkeypatch.setattr(samples, "DEFAULT_DRAWS", FEW_DRAWS)
    everything = observed(truth(name), name, noise=0.02, samples=6)
    trips = {
        probe: everything.probes[probe]
        for probe in everything.probes
        if probe in ("prtt", "pairprtt")
    }
    probes = {
        probe: [
            remove_overhead(case, cases) if case.settings["bytes"] >= smallest else case
            for case in cases
        ]
        for probe, cases in trips.items()
    }
    fitted = find_family(name).fit(
        Observed({**everything.probes, **probes}, everything.seed, everything.types)
    )
    assert all(np.isfinite(draws).all() for draws in fitted.values.values())
    if name == "loggops":
        known = LOGGOPS["o"] if smallest else 0.0
        assert fitted.values["o"][0] == pytest.approx(known, rel=0.1)


def remove_overhead(case, cases):
    """Return a case as measured without overheads: a late receive takes no time, and neither does a
    delayed burst."""
    if case.settings["late"]:
        return replace(case, seconds=np.zeros_like(case.seconds))
    if not case.settings["delay"]:
        return case
    single = {**case.settings, "n": 1, "delay": 0}
    return next(replace(case, seconds=other.seconds) for other in cases if other.settings == single)


@pytest.mark.parametrize(
    ("machines", "least", "narrowest", "widest"),
    [(12, 0.75, 0.45, 2.4), pytest.param(100, 0.87, 0.8, 1.35, marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_parameter_intervals_cover_the_true_values_at_about_the_nominal_rate(
    name, machines, least, narrowest, widest
):
    """95 % intervals of noisy machines cover the true value in a share of at least `least` (of 100
    machines, 87 % is the expected minimum over all values). Their mean width is near that of the
    scatter of the estimates (2·1.96·σ)."""
    machine = truth(name)
    estimates = {value_name: [] for value_name in machine.covered}
    for seed in range(machines):
        fitted = find_family(name).fit(observed(machine, name, noise=0.03, samples=40, seed=seed))
        for value_name in estimates:
            estimates[value_name].append(make_estimate(fitted.values[value_name], "s"))
    for value_name, value in machine.covered.items():
        inside = np.mean(
            [interval.low <= value <= interval.high for interval in estimates[value_name]]
        )
        width = np.mean([interval.high - interval.low for interval in estimates[value_name]])
        scatter = np.std([interval.value for interval in estimates[value_name]])
        assert inside >= least, (value_name, inside)
        assert narrowest <= width / (2 * 1.96 * scatter) <= widest, (value_name, width, scatter)


def test_no_interval_of_a_cost_goes_below_0(name):
    """The machine deviates from the model. The misfit must not make times negative."""
    entry, machine = find_family(name), truth(name)
    functions = {parameter.name for parameter in entry.parameters if parameter.argument}
    for seed, bent in enumerate((0.3, 1.5, 0.3, 1.5)):
        rng, evidence = (
            np.random.default_rng(seed),
            observed(machine, name, noise=0.05, samples=10, seed=seed),
        )
        probes = {
            probe: [replace(case, seconds=case.seconds * rng.lognormal(0, bent)) for case in cases]
            for probe, cases in evidence.probes.items()
        }
        fitted = entry.fit(Observed(probes, seed, evidence.types))
        for value_name, estimate_ in make_parameter_set(entry, fitted).values.items():
            if parse_key(value_name).parameter not in functions or parse_key(value_name).sample:
                assert estimate_.low >= 0, value_name
                assert fitted.values[value_name].min() >= 0, value_name
        values = Values(
            {value_name: draws[:, None] for value_name, draws in fitted.values.items()},
            fitted.forms,
        )
        for function in {value_name.rpartition(".")[0] for value_name in fitted.values}:
            form = fitted.forms.get(function, "constant")
            # LoP's functions of a count may dip between the counts probed: its prediction takes no
            # less than 0 there.
            if function.partition(".")[0] in functions and form not in (
                TABLE,
                "pipeline",
                "saturating",
            ):
                costs = values.at(function, np.geomspace(2 if name == "tan" else 1, 12, 30))
                # of at least one message in and one out, beyond what is in L
                if name == "tan" and function == "o":
                    costs = costs + values["L"]
                assert costs.min() >= 0, function


def test_noise_free_data_give_the_truth_back(name):
    parameters = fitted_set(name)
    for value_name, value in truth(name).covered.items():
        assert parameters.values[value_name].value == pytest.approx(value, rel=2e-3), value_name


def test_every_fitted_value_has_a_unit_and_an_interval_that_contains_the_value(name):
    for value_name, value in fitted_set(name, noise=0.02).values.items():
        assert value.unit, value_name
        assert value.low <= value.value <= value.high
