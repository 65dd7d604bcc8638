"""Checks of a fit: single messages, contention, uniformity of nodes, and cases left out."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.fits import validity_checks
from commodel.fits.probe_fits import fit_set
from commodel.fits.validity_checks import (
    CONTENTION_FACTOR,
    check_contention,
    find_unequal_classes,
    find_unequal_types,
    measure_heterogeneity,
)
from commodel.hierarchy import Hierarchy
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family
from commodel.models.fitting.observed import CaseSamples, Fitted, Observed
from commodel.models.parameter_sets import make_given_set
from commodel.models.probes import Site, find_probe
from commodel.models.probes.mixture import (
    REPEATED_MESSAGES,
    TURN_AROUND,
    TURN_FAN,
    TURN_STREAM,
    TURN_WITHIN,
    make_pattern,
)
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns import build
from commodel.patterns.repeated import CompactSchedule
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from commodel.predictions.validity import (
    ValidityKind,
    assess_validity,
    compute_single_message_ratios,
)
from commodel.torus import Torus
from tests.models.synthetic import LOGGP, observed, truth
from tests.patterns.catalogue import point

NODES = 12
SIZES = [1, 1024, 65536]
MACHINE = Model.of(
    find_family("loggp"), Values({name: np.array([[value]]) for name, value in LOGGP.items()})
)


def evidence(times, around=1.0, row=1.0, within=1.0, fan=1.0):
    """Return samples of a LogGP machine with contention. Concurrent messages of all nodes take
    `times(size, ranks per node)` times as long as one message, and relayed messages `around` times
    per round. Messages in a `row` to one receiver, `within` a node and of a `fan` take these
    factors times the prediction."""
    factors = {TURN_STREAM: row, TURN_WITHIN: within, TURN_FAN: fan}
    machine = truth("loggp")
    several = dict(observed(machine, "loggp").probes)
    several["mixture"] = []
    for place, case in find_probe("mixture").plan(Site(NODES, 2), SIZES):
        single_time = machine.times["pingpong"](case) / 2
        settings = {**case, "ranks": place.ranks, "layout": place.layout, "pair": "", "where": ""}
        factor = (
            REPEATED_MESSAGES * around
            if case["turn"] == TURN_AROUND
            else times(case["bytes"], case["each"])
        )
        if case["turn"] in factors:
            single_time, factor = float(MACHINE.cost(make_pattern(case))[0]), factors[case["turn"]]
        seconds = np.full(5, single_time * factor)
        several["mixture"].append(CaseSamples(settings, seconds, np.ones(5)))
    return Observed(several)


def assess_words(parameters, src, dst, sizes, node=None):
    pattern = stack_schedules([Schedule.of(4, 0, src, dst, size) for size in sizes])
    placed = pattern.place(np.array(node or range(4)))
    return [check.label for check in assess_validity(Model.of_set(parameters), parameters, placed)]


@pytest.mark.parametrize("times", [1.0, 0.95 * CONTENTION_FACTOR])
def test_predictions_that_are_off_by_little_are_not_flagged(times):
    entry, seen = find_family("loggp"), evidence(lambda size, each: times)
    assert check_contention(entry, fit_set(entry, seen), seen) == {}


def test_predictions_of_messages_at_a_time_are_flagged_from_the_size_on_that_takes_longer():
    parameters = fit_set(
        find_family("loggp"), evidence(lambda size, each: 3.0 if size > 2000 else 1.0)
    )
    assert parameters.settings["contention"]["nodes"]["from_bytes"] == 4096
    assert parameters.settings["contention"]["nodes"]["ratio"] == pytest.approx(3, rel=0.1)
    assert assess_words(parameters, [0, 1], [2, 3], [64, 65536]) == [
        "valid",
        "contention not modelled",
    ]
    # one port is what a family knows
    assert assess_words(parameters, [0, 0], [2, 3], [65536]) == ["valid"]
    # within a node
    assert assess_words(parameters, [0, 1], [2, 3], [65536], [0, 0, 0, 0]) == ["not probed"]


def test_contention_of_ranks_of_a_node_is_flagged_only_if_ranks_share_a_node():
    parameters = fit_set(
        find_family("loggp"), evidence(lambda size, each: 3.0 if each == 2 else 1.0)
    )
    assert set(parameters.settings["contention"]) == {"ranks"}
    assert assess_words(parameters, [0, 1], [2, 3], [65536]) == ["valid"]
    labels = assess_words(replace(parameters), [0, 2], [4 - 1, 1], [65536], [0, 0, 1, 2])
    assert labels == ["contention not modelled"]


@pytest.mark.parametrize(
    ("rounds", "word"),
    [(REPEATED_MESSAGES, "contention not modelled"), (REPEATED_MESSAGES - 1, "valid")],
)
def test_predictions_of_messages_that_wait_for_each_other_are_flagged(rounds, word, monkeypatch):
    """Relayed messages were measured on a ring of all nodes; a ring of four ranks with as many
    rounds is flagged, too."""
    parameters = fit_set(find_family("loggp"), evidence(lambda size, each: 1.0, around=3.0))
    assert parameters.settings["contention"] == {
        "rounds": {"from_bytes": 0, "ratio": pytest.approx(3, rel=0.1)}
    }
    ranks, step = np.arange(4), np.repeat(np.arange(rounds), 4)
    ring = stack_schedules(
        [Schedule.of(4, step, np.tile(ranks, rounds), np.tile((ranks + 1) % 4, rounds), 1024)]
    )
    texts = [check.text for check in assess_validity(Model.of_set(parameters), parameters, ring)]
    assert [text.partition(":")[0] for text in texts] == [word]
    monkeypatch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
    compact = build.build_schedule(point("allgather", "ring", ranks=rounds + 1, bytes=1024))
    assert isinstance(compact, CompactSchedule)
    assert [
        check.label for check in assess_validity(Model.of_set(parameters), parameters, compact)
    ] == [word]
    assert assess_words(parameters, [0, 1], [2, 3], [65536]) == ["valid"]


def test_messages_in_a_row_are_flagged_and_so_are_streams():
    """Messages in a row wait for a receiver that processes one after the other."""
    parameters = fit_set(find_family("loggp"), evidence(lambda size, each: 1.0, row=5.0))
    assert parameters.settings["contention"] == {
        "row": {"from_bytes": 0, "ratio": pytest.approx(5, rel=0.1)}
    }
    points = [
        point("reduce", "linear", ranks=4, bytes=1024),
        replace(point("reduce", "linear", ranks=4, bytes=1024), waves=20),
        point("bcast", "chain:64", ranks=4, bytes=1024),
        point("bcast", "chain:512", ranks=4, bytes=1024),
        point("allgather", "ring", ranks=16, bytes=64),  # all get messages before they send more
    ]
    statuses = [
        prediction.validity_text.partition(":")[0] for prediction in predict(parameters, points)
    ]
    assert statuses == [
        "valid",
        "contention not modelled",
        "contention not modelled",
        "valid",
        "valid",
    ]
    assert (
        "messages in a row to one receiver took up to 5.0 times as long"
        in predict(parameters, points[1:2])[0].validity_text
    )


def test_fans_and_rows_are_probed_between_every_two_types_of_nodes_in_both_directions():
    """On a platform with a single node type, cases have no pair of types."""
    site = Site(16, 2, {"fast": 8, "slow": 8})
    found = {}
    for place, about in find_probe("mixture").plan(site, SIZES):
        if about["turn"] in (TURN_FAN, TURN_STREAM):
            types = [site.find_type(node) for node in place.nodes] or ["fast"] * place.ranks
            assert place.pair in ("", f"{types[0]}.{types[1]}")
            assert len(set(types[1:])) == 1
            found.setdefault(about["turn"], set()).add((types[0], types[1], place.ranks))
    pairs = {("fast", "fast"), ("fast", "slow"), ("slow", "fast"), ("slow", "slow")}
    assert (
        {(one, two) for one, two, _ in found[TURN_FAN]}
        == {(one, two) for one, two, _ in found[TURN_STREAM]}
        == pairs
    )
    assert {ranks for _, _, ranks in found[TURN_FAN]} == {8, 9}
    single_type = [
        (place, dict(about)) for place, about in find_probe("mixture").plan(Site(16, 2), SIZES)
    ]
    assert not [place for place, _ in single_type if place.pair]


@pytest.mark.parametrize(
    ("name", "operation", "algorithm", "ranks", "word"),
    [
        ("fan.fast.slow", "bcast", "linear", 16, "contention not modelled"),
        ("fan.fast.slow", "gather", "linear", 16, "contention not modelled"),
        ("fan.fast.slow", "bcast", "linear", 8, "valid"),  # all are fast
        ("fan.fast.slow", "bcast", "binomial", 16, "valid"),  # one message a rank and step
        ("fan.slow.fast", "bcast", "linear", 16, "valid"),
        ("fan.slow.fast", "alltoall", "linear", 16, "contention not modelled"),
        ("row.fast.slow", "bcast", "chain:1KiB", 16, "contention not modelled"),
        ("row.slow.slow", "bcast", "chain:1KiB", 8, "valid"),
        ("row.fast.fast", "bcast", "chain:1KiB", 8, "contention not modelled"),
    ],
)
def test_a_fan_or_row_between_types_speaks_of_messages_between_these(
    name, operation, algorithm, ranks, word
):
    settings = {
        "types": {"fast": 8, "slow": 8},
        "contention": {name: {"ratio": 5.0, "from_bytes": 512.0}},
    }
    known = make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
    known = replace(known, bytes_range=(1.0, 65536.0), settings=settings)
    statuses = [
        prediction.validity_text
        for prediction in predict(
            known, [point(operation, algorithm, ranks=ranks, bytes=size) for size in (64, 32768)]
        )
    ]
    assert [validity.partition(":")[0] for validity in statuses] == ["valid", word]
    if word != "valid":
        _, one, two = name.split(".")
        assert (
            f"between {one} and {two} nodes, from 512 B on, took up to 5.0 times as long as predicted"
            in statuses[1]
        )


def test_messages_within_a_node_predicted_as_between_nodes_have_a_poor_fit():
    """The single-message ratio of messages within a node is 0.1."""
    parameters = fit_set(find_family("loggp"), evidence(lambda size, each: 1.0, within=0.1))
    parameters = replace(
        parameters, settings={**parameters.settings, "probed_classes": ["node", "beyond"]}
    )
    far, near = (
        point("bcast", "linear", ranks=2, bytes=8, layout=layout)
        for layout in ("block:1", "block:2")
    )
    assert predict(parameters, [far])[0].validity_text == "valid"
    (prediction,) = predict(parameters, [near])
    assert (
        prediction.validity_text == "poor fit: single messages take only 0.10 of the predicted time"
    )
    assert prediction.single_message_ratio == pytest.approx(0.1, rel=0.01)


def test_slow_fans_are_flagged_for_linear_broadcasts_and_gathers_of_6_ranks():
    parameters = fit_set(find_family("loggp"), evidence(lambda size, each: 1.0, fan=0.2))
    statuses = {}
    for operation, algorithm, ranks in (
        ("bcast", "linear", 6),
        ("gather", "linear", 6),
        ("bcast", "linear", 3),
        ("bcast", "binomial", 16),
    ):
        (prediction,) = predict(parameters, [point(operation, algorithm, ranks=ranks, bytes=8)])
        statuses[operation, algorithm, ranks] = prediction.validity_text
    words = (
        "messages between one node and several others took as little as 0.20 of the predicted time"
    )
    fan = f"contention not modelled: {words}"
    assert list(statuses.values()) == [fan, fan, "valid", "valid"]


def test_a_model_without_sizes_is_checked_for_contention_within_the_fitted_range():
    seen = evidence(lambda size, each: 1.0)
    known = replace(
        make_given_set("logp", ["L=10us", "o=1.75us", "g=4us"]), bytes_range=(0.0, 64.0)
    )
    assert check_contention(find_family("logp"), known, seen) == {}
    assert (
        check_contention(find_family("logp"), replace(known, bytes_range=(0.0, 1e9)), seen)["row"][
            "ratio"
        ]
        > 5
    )


LONG, HANDSHAKE = 16384, 300e-6


def make_single_message_evidence(slowdown=1.0):
    """Return samples of a machine on which messages of at least LONG bytes first send a request.
    Concurrent messages of all nodes take `slowdown` times as long as one."""
    machine = truth("loggp")
    several = dict(observed(machine, "loggp").probes)

    def requested(settings):
        return HANDSHAKE * (settings["bytes"] >= LONG)

    several["prtt"] = [
        CaseSamples(case.settings, case.seconds + 2 * requested(case.settings), case.passes)
        for case in several["prtt"]
    ]
    several["mixture"] = []
    for place, about in find_probe("mixture").plan(Site(12, 1), [1, 65536]):
        settings = {**about, "ranks": place.ranks, "layout": place.layout, "pair": "", "where": ""}
        once = machine.times["pingpong"](about) / 2 + requested(about)
        rounds = REPEATED_MESSAGES if about["turn"] == TURN_AROUND else 1
        if about["turn"] <= TURN_AROUND:
            several["mixture"].append(
                CaseSamples(settings, np.full(5, slowdown * rounds * once), np.ones(5))
            )
    return Observed(several)


@pytest.fixture(scope="module")
def parameters():
    return fit_set(find_family("loggp"), make_single_message_evidence())


def test_a_set_stores_measured_and_predicted_times_of_single_round_trips(parameters):
    trips, model = parameters.settings["single_messages"]["beyond"], Model.of_set(parameters, 0)
    assert trips["bytes"] == sorted(trips["bytes"])
    assert LONG in trips["bytes"]
    for size, measured, predicted in zip(*trips.values(), strict=True):
        both_ways = stack_schedules([Schedule.of(2, [0, 1], [0, 1], [1, 0], size, root=0)])
        assert predicted == pytest.approx(float(model.cost(both_ways)[0, 0]), rel=1e-5)
        assert measured / predicted == pytest.approx(
            float(compute_single_message_ratios(parameters, both_ways)[0]), rel=1e-5
        )
    one_way = truth("loggp").times["pingpong"]({"bytes": LONG}) / 2
    assert trips["measured"][trips["bytes"].index(LONG)] == pytest.approx(
        2 * (one_way + HANDSHAKE), rel=0.02
    )


def test_single_message_times_are_the_same_after_writing_and_reading_the_set(parameters, tmp_path):
    write_parameters(tmp_path / "set.yaml", parameters)
    assert (
        read_parameters(tmp_path / "set.yaml").settings["single_messages"]
        == parameters.settings["single_messages"]
    )


def test_an_error_of_single_messages_is_not_reported_as_contention(parameters):
    assert "contention" not in parameters.settings
    contention = fit_set(find_family("loggp"), make_single_message_evidence(slowdown=4.0)).settings[
        "contention"
    ]["nodes"]
    assert contention["ratio"] > 4


RNG = np.random.default_rng(5)


def make_round_trips(probe, site, seconds, noise=0.0):
    """Return the samples of a probe. The round trip of each pair of nodes takes `seconds(one,
    two)`."""
    cases = [
        CaseSamples(
            dict(case),
            seconds(case["one"], case["two"]) * np.exp(noise * RNG.normal(size=20)),
            np.zeros(20),
        )
        for _, case in find_probe(probe).plan(site, [65536])
    ]
    return Observed({probe: cases}, 1, site.types, levels=site.levels.group_lists)


def make_uniformity_evidence(nodes, seconds, noise=0.0):
    return make_round_trips("evenness", Site(nodes, 1, levels=Hierarchy.of({})), seconds, noise)


@pytest.mark.parametrize(
    ("nodes", "group"),
    [
        (4, 2),
        (7, 2),
        (7, 3),
        *((nodes, group) for nodes in (32, 100) for group in (2, 5, 16)),
        (100, 50),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_groups_of_any_size_are_seen(nodes, group, noise):
    def seconds(one, two):
        return 1e-5 if one // group == two // group else 1.5e-5

    assert measure_heterogeneity(make_uniformity_evidence(nodes, seconds, noise)) == pytest.approx(
        1.5, rel=0.1
    )


def test_uniformity_is_assessed_relative_to_known_pair_latencies():
    """On a ring, messages to distant nodes take longer. A set with a latency per pair predicts the
    difference."""
    ring, one, two = Torus((12,)), *np.triu_indices(12, 1)
    evidence = make_uniformity_evidence(
        12, lambda one, two: 2e-6 * ring.count_hops(np.array([one]), np.array([two]))[0]
    )
    assert measure_heterogeneity(evidence) > 2
    values = {
        "o_s": 0.0,
        "o_r": 0.0,
        "gamma.a": 0.0,
        "L.node.a": 0.0,
        "G.node.a": 0.0,
        "L.beyond.a": 0.0,
    }
    values |= {"G.beyond.a": 0.0}
    estimates = {name: Estimate.exact(value, "s") for name, value in values.items()}
    forms = {name.removesuffix(".a"): "constant" for name in values if name.endswith(".a")}
    settings = {"pair_latency": (1e-6 * ring.count_hops(one, two)).tolist()}
    known = ParameterSet(
        "shares", "p", "", estimates, forms=forms, settings=settings, bytes_range=(0.0, 1e6)
    )
    assert measure_heterogeneity(evidence, known) == 1


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("slow", [None, 5, 16])
def test_neither_noise_nor_a_slow_node_is_a_distance(noise, slow):
    evidence = make_uniformity_evidence(
        32, lambda one, two: 3e-5 if slow in (one, two) else 1e-5, noise
    )
    assert measure_heterogeneity(evidence) == 1


def test_named_levels_and_few_nodes_are_not_looked_at():
    assert not [
        *find_probe("evenness").plan(Site(64, 1, levels=Hierarchy.written({"leaf": 16}, 64)), [8])
    ]
    assert not [*find_probe("evenness").plan(Site(3, 1, levels=Hierarchy.of({})), [8])]


def test_a_prediction_between_nodes_is_marked_and_one_within_a_node_does_not():
    entry = find_family("hockney")
    values = Values(
        {"alpha.a": np.array([[1e-5]]), "beta.a": np.array([[1e-9]])}, {"alpha": "constant"}
    )
    parameters = ParameterSet(
        "hockney", "p", "", {}, settings={"heterogeneity": 2.14}, bytes_range=(0.0, 1e6)
    )
    far, near = (
        stack_schedules([Schedule.of(2, 0, 0, 1, 8).place(np.array(nodes))])
        for nodes in ([0, 1], [0, 0])
    )
    model = Model(entry, values)
    doubt = "round trips between nodes are up to 2.1 times those of the probed nodes"
    doubt += ", and the platform file names no levels"
    assert [check.text for check in assess_validity(model, parameters, far)] == [
        f"placement not modelled: {doubt}"
    ]
    assert assess_validity(model, parameters, near)[0].kind is not ValidityKind.UNNAMED_LEVELS


def make_pair_evidence(nodes, seconds, levels=None, types=None):
    known = Hierarchy.written(levels, nodes) if levels else Hierarchy.of({})
    return make_round_trips("nodepairs", Site(nodes, 1, types or {}, levels=known), seconds)


def test_distance_classes_with_unequal_pairs_are_listed_with_the_ratio():
    def seconds(one, two):  # behind the first switch of two are chassis that nobody named
        return (
            3e-5 if one // 16 != two // 16 else 2e-5 if one // 4 != two // 4 and one < 16 else 1e-5
        )

    evidence = make_pair_evidence(32, seconds, {"leaf": 16})
    assert find_unequal_classes(find_family("shares"), evidence) == {"leaf": 2.0}
    assert find_unequal_classes(
        find_family("shares"),
        make_pair_evidence(32, lambda one, two: 3e-5 if one // 16 != two // 16 else 1e-5),
    ) == {"beyond": 3.0}
    assert not find_unequal_classes(
        find_family("shares"), make_pair_evidence(32, lambda one, two: 1e-5)
    )
    # a slow node
    assert not find_unequal_classes(
        find_family("shares"),
        make_pair_evidence(32, lambda one, two: 3e-5 if 5 in (one, two) else 1e-5),
    )


def test_unequal_node_types_count_for_models_with_levels_but_without_node_types():
    def seconds(one, two):
        return 1e-5 if max(one, two) < 10 else 2e-5

    evidence = make_pair_evidence(32, seconds, {"leaf": 16}, {"fat": 10, "thin": 22})
    assert find_unequal_classes(find_family("shares"), evidence) == {"leaf": 2.0}
    assert not find_unequal_classes(find_family("hloggp"), evidence)
    # is fitted to nodes of the first type, and says where others are
    assert not find_unequal_classes(find_family("loggp"), evidence)


@pytest.mark.parametrize("name", ["shares", "hockney"])
def test_a_prediction_between_such_nodes_is_marked(name):
    values = {
        "hockney": ["alpha=10us", "beta=1ns"],
        "shares": [
            "o_s=0",
            "o_r=0",
            *(
                f"{what}.{of}={value}"
                for of in ("node", "leaf", "beyond")
                for what, value in (("L", "1us"), ("G", "1ns"))
            ),
        ],
    }
    levels = {"leaf": [0] * 4 + [1] * 4}
    settings = {
        "levels": levels,
        "probed_classes": ["node", "leaf", "beyond"],
        "heterogeneity_by_class": {"leaf": 2.0},
    }
    known = make_given_set(name, values[name])
    known = replace(
        known,
        settings={
            **known.settings,
            **settings,
            **({} if name == "shares" else {"classes": ["node", "leaf", "beyond"]}),
        },
    )
    of = {}
    for layout in ("block:2", "nodes:0,1", "nodes:0,4"):
        (prediction,) = predict(known, [point("bcast", "linear", ranks=2, bytes=8, layout=layout)])
        of[layout] = prediction.validity_text
    words = "round trips of ranks in different nodes differ by a factor of up to 2.0"
    assert of == {
        "block:2": "valid",
        "nodes:0,1": f"placement not modelled: {words}",
        "nodes:0,4": "valid",
    }


TYPES = {"fat": 6, "thin": 10}


def make_typed_evidence(types, seconds):
    return make_round_trips("evenness", Site(sum(types.values()), 4, types), seconds)


def test_node_types_with_different_round_trips_are_listed_with_the_ratio():
    def slower(one, two):
        return 1e-5 * (1 + (one >= 6) + (two >= 6))

    evidence = make_typed_evidence(TYPES, slower)
    assert find_unequal_types(evidence) == {"fat.thin": 2.0, "thin.thin": 3.0}
    assert measure_heterogeneity(evidence) == 1  # among nodes of the first type
    slow_first = make_typed_evidence(TYPES, lambda one, two: 1e-5 if one > 0 and two < 6 else 3e-5)
    assert measure_heterogeneity(slow_first) == 1  # pairs of types are no distance
    assert not find_unequal_types(make_typed_evidence(TYPES, lambda one, two: 1e-5))
    faster = make_typed_evidence(
        {"one": 1, "others": 7}, lambda one, two: 1e-5 if one == 0 else 0.5e-5
    )
    # the first two nodes are of both types
    assert find_unequal_types(faster) == {"others.others": 2.0}


def test_only_sets_of_models_without_node_types_store_heterogeneity_by_types():
    evidence = make_typed_evidence(TYPES, lambda one, two: 1e-5 * (1 + (one >= 6) + (two >= 6)))
    for name, kept in (("hockney", True), ("hloggp", False)):
        entry = replace(find_family(name), probes=(), fit=lambda observed: Fitted({}, (0.0, 1.0)))
        assert ("heterogeneity_by_types" in fit_set(entry, evidence).settings) is kept


@pytest.mark.parametrize(
    ("name", "values", "doubted"),
    [
        ("hockney", ["alpha=10us", "beta=1ns"], {"nodes:0,6", "nodes:7,8", "nodes:0,20"}),
        # probed on nodes of all types
        ("pmnf", ["c0=1us"], {"nodes:0,1", "nodes:0,6", "nodes:7,8", "nodes:0,20"}),
        ("hloggp", ["L=1us", "o_s=0", "o_r=0", "g=0", "G=1ns"], set()),  # knows types
    ],
)
def test_predictions_between_nodes_of_unlike_types_are_marked(name, values, doubted):
    known = make_given_set(name, values)
    settings = {"types": TYPES, "heterogeneity_by_types": {"fat.thin": 2.0, "thin.thin": 3.0}}
    known = replace(known, settings={**known.settings, **settings})
    of_types = set()
    for layout in ("block:2", "nodes:0,1", "nodes:0,6", "nodes:7,8", "nodes:0,20")[
        : 4 if name == "hloggp" else 5
    ]:
        (prediction,) = predict(known, [point("bcast", "linear", ranks=2, bytes=8, layout=layout)])
        of_types |= (
            {layout}
            if prediction.validity_text.startswith(
                "placement not modelled: round trips between nodes of several types"
            )
            else set()
        )
    assert of_types == doubted
    without = replace(
        known, settings={name: value for name, value in known.settings.items() if name != "types"}
    )
    assert (
        predict(without, [point("bcast", "linear", ranks=2, bytes=8)])[0].validity_text == "valid"
    )


@pytest.mark.parametrize(
    ("layout", "probed", "doubt"),
    [("block:1", "beyond", "same node"), ("block:2", "node", "different nodes")],
)
def test_without_levels_too_messages_within_a_node_and_between_nodes_are_distinguished(
    layout, probed, doubt
):
    about = {"layout": layout, "ranks": 2, "where": "", "bytes": 8, "pair": "node.node"}
    evidence = Observed({"pingpong": [CaseSamples(about, np.full(5, 1e-5), np.zeros(5))]}, 1)
    entry = replace(
        find_family("hockney"), probes=("pingpong",), fit=lambda observed: Fitted({}, (0.0, 1e6))
    )
    settings = fit_set(entry, evidence).settings
    assert settings["probed_classes"] == [probed]
    known = replace(make_given_set("hockney", ["alpha=10us", "beta=1ns"]), settings=settings)
    jobs = [
        point("bcast", "linear", ranks=2, bytes=8, layout=where)
        for where in (layout, "block:2", "block:1")
    ]
    statuses = {
        prediction.point.layout: prediction.validity_text for prediction in predict(known, jobs)
    }
    assert statuses.pop(layout) == "valid"
    assert list(statuses.values()) == [f"not probed: ranks in {doubt}"]


def test_the_error_is_the_root_mean_square_of_relative_errors(monkeypatch):
    """The relative errors are 10 % and 30 %. A case that took 0 s has no relative error."""
    monkeypatch.setattr(
        validity_checks,
        "_predict_left_out",
        lambda entry, observed: [(1.1, 1.0), (1.4, 2.0), (1.0, 0.0)],
    )
    assert validity_checks.measure_left_out_error(find_family("hockney"), Observed({})) == {
        "error": pytest.approx(0.05**0.5),
        "cases": 2,
    }


def test_without_a_case_there_is_no_error():
    assert validity_checks.measure_left_out_error(find_family("pram"), Observed({})) == {}
