"""The contract of models with values by distance class, on machines of several levels, and of
several levels and node types."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.parameter_sets import write_parameters
from commodel.fits import probe_fits
from commodel.fits.probe_fits import fit_set, make_parameter_set
from commodel.fits.validity_checks import list_nodes
from commodel.hierarchy import Hierarchy
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, list_family_names
from commodel.models.fitting import observed as samples
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.parameter_sets import read_set
from commodel.models.probes import Site, find_probe, make_round_trip
from commodel.patterns.repeated import CompactSchedule
from commodel.predictions.model import Model
from commodel.predictions.predictions import make_predictor, predict
from tests.models.synthetic import SIZES
from tests.models.test_repeating import REPEATING, long, places
from tests.patterns.catalogue import point

LEVELS = Hierarchy.written({"leaf": 4, "group": 12}, 24)
SITE = Site(24, 4, levels=LEVELS)
SHORT = {"o_s": 1e-6, "o_r": 1.5e-6}
MACHINES = {  # each LogGP, and G is the gap's, too
    "node": {"L": 4e-7, "g": 1e-6, "G": 1e-10, **SHORT},
    "leaf": {"L": 5e-6, "g": 2e-6, "G": 1e-9, **SHORT},
    "group": {"L": 2e-5, "g": 2e-6, "G": 3e-9, **SHORT},
    "beyond": {"L": 9e-5, "g": 2e-6, "G": 9e-9, **SHORT},
}
BY_CLASS = [name for name in list_family_names() if find_family(name).by_class]
FAR = [(0, 1), (0, 5), (2, 20)]  # nodes of each class but the first


@cache
def machine(name):
    numbers = {key: np.array([[value]]) for key, value in MACHINES[name].items()}
    return Model.of(find_family("loggp"), Values(numbers))


def seconds(entry, case, name):
    """Return the time in seconds of a probe case on a machine."""
    if entry == "work":
        return 1e-10 * case["bytes"]
    if entry == "memcopy":
        return 0.0
    o_s, o_r, gap = (MACHINES[name][key] for key in ("o_s", "o_r", "g"))
    if entry in ("prtt", "pairprtt"):
        if case["late"]:
            return o_s + o_r
        spacing = o_s if case["delay"] else gap + MACHINES[name]["G"] * max(case["bytes"] - 1, 0)
        trip = make_round_trip(case["bytes"])
        return float(machine(name).cost(trip)[0]) + (case["n"] - 1) * spacing
    return float(machine(name).cost(find_probe(entry).pattern(case))[0])


def placed(entry, site):
    """Yield the settings of each probe case as in tables, the nodes of its ranks, and their
    distance class."""
    for case in find_probe(entry).cases("synthetic", site, SIZES):
        about = {**case.settings, "ranks": case.ranks, "layout": case.layout, "pair": case.pair}
        about["where"] = "+".join(map(str, case.where))
        nodes = list_nodes(case.layout, case.ranks, about["where"])
        same = about["pair"].endswith(".same")
        yield (
            about,
            nodes,
            "node" if same else LEVELS.names[int(LEVELS.distance(nodes[0], nodes).max())],
        )


@cache
def evidence(name, without=""):
    """Return the samples of all probes of a model, except those of the distance class `without`."""
    probes = {
        entry: [
            CaseSamples(about, np.full(3, seconds(entry, about, apart)), np.ones(3, dtype=int))
            for about, _, apart in placed(entry, SITE)
            if apart != without
        ]
        for entry in find_family(name).probes
    }
    return Observed(probes, levels=LEVELS.group_lists)


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    """Reduce the draws where no interval of a value is checked, and estimate no error at left-out
    cases."""
    monkeypatch.setattr(samples, "DEFAULT_DRAWS", 20)
    monkeypatch.setattr(probe_fits, "measure_left_out_error", lambda *_: {})


@cache
def parameters(name, without=""):
    return fit_set(find_family(name), evidence(name, without))


def predictions(name, nodes, size, without=""):
    trip = make_round_trip(size).place(np.array(nodes))
    stack = trip.resize(trip.bytes[None, None], trip.work.bytes[None, None])
    return make_predictor(parameters(name, without))(stack, 1)


def validity_label(prediction):
    return prediction.validity[0].text


@pytest.mark.parametrize("name", BY_CLASS)
def test_the_prediction_of_a_ping_pong_equals_the_time_of_the_distance_class(name):
    for nodes in ((7, 7), *FAR):
        apart = LEVELS.names[int(LEVELS.distance(*nodes))]
        for size in SIZES if find_family(name).uses_bytes else SIZES[:1]:
            predicted = predictions(name, nodes, size)
            measured = machine(apart).cost(make_round_trip(size))[0]
            assert predicted.seconds[0] == pytest.approx(measured, rel=0.03), (apart, size)
            assert validity_label(predicted) == "valid", apart


@pytest.mark.parametrize("name", BY_CLASS)
def test_a_class_that_was_not_probed_is_not_ok(name):
    for nodes, apart in zip(FAR[1:], ("group", "beyond"), strict=True):
        assert validity_label(predictions(name, nodes, 1, without=apart)).startswith(
            "not probed: ranks in different"
        )
        assert validity_label(predictions(name, FAR[0], 1, without=apart)) == "valid"


@pytest.mark.parametrize("name", BY_CLASS)
def test_levels_do_not_change_the_values_fitted_from_the_first_nodes(name):
    with_levels, plain = parameters(name), evidence(name)
    # whose cases say where they are, also on the first nodes
    placed = {"ring", "triplet", "pairprtt"}
    kept = {
        entry: [
            case
            for case in cases
            if not (where := case.settings["where"])
            or (entry in placed and "0" in where.split("+"))
        ]
        for entry, cases in plain.probes.items()
    }
    without_levels = make_parameter_set(
        find_family(name), find_family(name).fit(Observed(kept, plain.seed))
    )
    assert without_levels.values.items() <= with_levels.values.items()


@pytest.mark.parametrize("name", BY_CLASS)
@settings(max_examples=8)
@given(st.data())
def test_repeated_rounds_take_as_long_as_expanded_ones(name, data):
    operation, choice = data.draw(st.sampled_from(REPEATING))
    ranks, size = data.draw(st.integers(3, 24)), data.draw(st.sampled_from([7, 1000, 5000]))
    pattern = long(operation, choice, ranks, size, data.draw(places(ranks)))
    if not isinstance(pattern, CompactSchedule):
        return
    model = Model.of_set(parameters(name))
    quick, plain = (model.family.predict(form, model.values) for form in (pattern, pattern.whole))
    np.testing.assert_allclose(*np.broadcast_arrays(quick, plain), rtol=1e-11)


@pytest.mark.parametrize("name", BY_CLASS)
def test_a_parameter_set_with_classes_predicts_the_same_after_writing_and_reading(name, tmp_path):
    write_parameters(tmp_path / "set.yaml", parameters(name))
    written = read_set(tmp_path / "set.yaml")
    entry = point("allreduce", "ring", ranks=20, bytes=5000)
    once, again = (
        predict(parameter_set, [entry])[0] for parameter_set in (parameters(name), written)
    )
    assert again.seconds == pytest.approx(once.seconds, rel=1e-12)
    assert again.validity_text == once.validity_text


@pytest.mark.parametrize(
    ("name", "wrong", "what"),
    [
        ("loggp", {"classes": ["nowhere"]}, "wanted a list of node, leaf, group, beyond"),
        ("loggp", {"classes": 3}, "wanted a list of distance classes"),
        (
            "loggp",
            {"types": 3},
            "setting types: found '3', wanted the number of nodes of each type",
        ),
        (
            "loggp",
            {"types": {"fat": "many"}},
            "setting types: found a mapping, wanted the number of nodes of each type",
        ),
        ("hloggp", {"types": {"fat": 24}}, "together with node types"),
    ],
)
def test_classes_that_cannot_be_are_refused_in_one_line(name, wrong, what):
    model = Model.of_set(parameters(name))
    with pytest.raises(UserError, match=what):
        Model.of(model.family, Values(model.values.numbers, {}, model.values.settings | wrong))


@pytest.mark.parametrize("name", ["logp-tan"])
def test_the_interval_of_a_family_that_is_blind_holds_all_classes(name):
    known = {**evidence("loggp").probes, **evidence(name).probes}
    own = fit_set(find_family(name), Observed(known, levels=LEVELS.group_lists))
    near, far = (
        predict(own, [point("reduce", "linear", ranks=ranks, bytes=1024)])[0] for ranks in (4, 24)
    )
    times = [machine(apart).cost(make_round_trip(1024))[0] for apart in ("leaf", "beyond")]
    assert far.high / far.seconds >= times[1] / times[0]
    assert far.validity_text.startswith("placement not modelled")
    assert near.high >= near.seconds


TYPES = {"fat": 16, "thin": 8}  # a leaf of 4, a group of 12
TYPED_SITE = Site(24, 4, TYPES, levels=LEVELS)
THIN = 3.0  # times as long as on fat nodes


@cache
def typed_parameters(name):
    probes = {}
    for entry in dict.fromkeys([*find_family(name).probes, "prtt"]):
        probes[entry] = []
        for about, nodes, apart in placed(entry, TYPED_SITE):
            slower = THIN if (nodes >= TYPES["fat"]).any() else 1.0
            times = np.full(3, slower * seconds(entry, about, apart))
            probes[entry].append(CaseSamples(about, times, np.ones(3, dtype=int)))
    return fit_set(find_family(name), Observed(probes, types=TYPES, levels=LEVELS.group_lists))


def typed_prediction(name, nodes, size=1000):
    trip = make_round_trip(size).place(np.array(nodes))
    stack = trip.resize(trip.bytes[None, None], trip.work.bytes[None, None])
    return make_predictor(typed_parameters(name))(stack, 1)


def taken(nodes, size=1000):
    return machine(LEVELS.names[int(LEVELS.distance(*nodes))]).cost(make_round_trip(size))[0]


def test_probes_of_two_ranks_stay_on_nodes_of_the_first_type():
    for entry in ("pingpong", "prtt"):
        seen = {case.where for case in find_probe(entry).cases("p", TYPED_SITE, [8])}
        apart = {int(LEVELS.distance(*(where * 2)[:2])) for where in seen if where}
        assert apart == {0, 2, 3}, entry
        assert max(node for where in seen for node in where) < TYPES["fat"]


@pytest.mark.parametrize("name", ["hockney", "loggp", "plogp", "loggops"])
def test_a_family_that_knows_no_types_has_values_by_class(name):
    for nodes in ((7, 7), (0, 1), (0, 5), (2, 14)):
        prediction = typed_prediction(name, nodes)
        assert prediction.seconds[0] == pytest.approx(taken(nodes), rel=0.03), nodes
        assert validity_label(prediction) == "valid"
    assert (
        validity_label(typed_prediction(name, (2, 20)))
        == "placement not modelled: ranks on thin nodes are predicted as on fat nodes"
    )


def test_one_that_knows_types_has_none_by_class_and_is_marked():
    known = typed_parameters("hloggp")
    assert "classes" not in known.settings
    near, middle, far = (typed_prediction("hloggp", nodes) for nodes in ((0, 1), (0, 5), (2, 14)))
    assert near.seconds[0] == pytest.approx(taken((0, 1)), rel=0.03)
    assert validity_label(middle) == (
        "placement not modelled: ranks in different leaf groups are predicted as nearer or farther ranks"
    )
    assert validity_label(far) == "not probed: ranks in different groups"
    for prediction, nodes in ((middle, (0, 5)), (far, (2, 14))):
        assert prediction.low[0] <= taken(nodes) <= prediction.high[0]
