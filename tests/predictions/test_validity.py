"""Validity of predictions: kinds and texts, single-message ratios, the range of the fit, and levels
of a network."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.hierarchy import Hierarchy
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import Curve
from commodel.patterns import build
from commodel.patterns.build import Shape
from commodel.patterns.repeated import CompactSchedule
from commodel.patterns.schedule import Schedule, stack_schedules
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict, predict_shapes
from commodel.predictions.validity import (
    POOR_FIT_FACTOR,
    VALID,
    Validity,
    ValidityKind,
    assess_validity,
    compute_single_message_ratios,
    estimate_typical_error,
    find_contention,
    select_reported_check,
)
from tests.models.synthetic import fitted_set
from tests.patterns.catalogue import point
from tests.predictions.residuals import make_stored

WHY = "messages of 1 MiB: probed up to 64 KiB"
KINDS = [kind for kind in ValidityKind if kind is not ValidityKind.OF_MODEL]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reason", ["", WHY])
def test_parsing_the_text_of_a_validity_returns_the_same_validity(kind, reason):
    validity = Validity(kind, reason or (WHY if kind.cause else ""))
    assert Validity.parse(validity.text) == validity
    assert validity.label == kind.label
    assert {other for other in KINDS if Validity.parse(validity.text).is_of(other)} == (
        {kind, ValidityKind.PLACEMENT} if kind is ValidityKind.UNNAMED_LEVELS else {kind}
    )


def test_a_validity_text_of_a_model_is_kept_unchanged():
    validity = Validity.parse("loses packets: 25 % get through")
    assert (validity.kind, validity.label) == (ValidityKind.OF_MODEL, "loses packets")
    assert validity.text == "loses packets: 25 % get through"
    assert Validity.parse("") == VALID


def test_the_failed_check_with_weight_0_is_reported_first():
    blind, crowded, far = (
        Validity(kind, WHY)
        for kind in (ValidityKind.SIZE, ValidityKind.CONTENTION, ValidityKind.NOT_PROBED)
    )
    assert select_reported_check(crowded, far, VALID, blind) == blind
    assert select_reported_check(VALID, far, crowded) == far
    assert select_reported_check(VALID) == select_reported_check() == VALID


FAR = {"bytes": [0, 100, 1600], "measured": [1.0, 2.0, 8.0], "predicted": [1.0, 1.0, 2.0]}
NEAR = {"bytes": [8], "measured": [3.0], "predicted": [1.0]}
LOGGP = make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])


def measured(**trips):
    return replace(LOGGP, settings={"single_messages": trips})


def times(parameters, src, dst, *sizes, node=None):
    several = stack_schedules(
        [Schedule.of(4, 0, src, dst, np.broadcast_to(size, len(src))) for size in sizes]
    )
    return compute_single_message_ratios(
        parameters, several.place(np.arange(4) if node is None else np.array(node))
    )


def test_single_message_ratios_are_interpolated_in_logarithms():
    assert times(measured(beyond=FAR), [0], [1], 0, 100, 400, 1600, 1 << 20) == pytest.approx(
        [1, 2, 4 / 2**0.5, 4, 4]
    )


def test_the_ratio_of_several_messages_is_that_of_their_sums():
    assert times(measured(beyond=FAR), [0, 1, 2], [1, 2, 3], [100, 100, 1600]) == pytest.approx(
        (2 + 2 + 8) / (1 + 1 + 2)
    )


def test_single_message_ratios_depend_on_the_distance_class():
    both, only = measured(node=NEAR, beyond=FAR), measured(beyond=FAR)
    node = [0, 0, 1, 1]
    assert times(both, [0, 0], [1, 2], 100, node=node) == pytest.approx((3 + 2) / (1 + 1))
    assert times(only, [0, 0], [1, 2], 100, node=node) == pytest.approx(2)
    assert times(only, [0], [1], 100, node=node) == times(LOGGP, [0], [1], 100) == [1]


@pytest.mark.parametrize(
    ("operation", "algorithm", "ranks"),
    [("allreduce", "ring", 8), ("bcast", "scatter-allgather-ring", 70)],
)
def test_single_message_ratios_of_compact_and_expanded_schedules_are_equal(
    monkeypatch, operation, algorithm, ranks
):
    """Some compact schedules also have messages outside of their repeated rounds."""
    requested = point(operation, algorithm, ranks=ranks, bytes=100 * ranks)
    expanded = build.build_schedule(requested)
    monkeypatch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
    compact = build.build_schedule(requested)
    assert isinstance(compact, CompactSchedule)
    assert not isinstance(expanded, CompactSchedule)
    compact_ratios = compute_single_message_ratios(measured(beyond=FAR), compact)
    assert compact_ratios == pytest.approx(
        compute_single_message_ratios(measured(beyond=FAR), stack_schedules([expanded]))
    )


GROUPS = {"leaf": [node // 4 for node in range(32)], "pod": [node // 16 for node in range(32)]}
BY_CLASS = {
    "contention": {},
    "levels": GROUPS,
    "classes": ["node"],
    "probed_classes": ["core", "node", "leaf", "pod"],
}


@pytest.mark.parametrize("layout", ["block:1", "block:2", "block:16", "cyclic:2", "cyclic:8"])
@pytest.mark.parametrize(
    ("operation", "choice"),
    [
        *(("allgather", name) for name in ("ring", "neighbor-exchange")),
        *(("allreduce", name) for name in ("ring", "recursive-doubling")),
        ("bcast", "scatter-allgather-ring"),
        ("alltoall", "pairwise"),
        ("barrier", "dissemination"),
    ],
)
def test_compact_rounds_have_the_validity_of_all_their_messages(
    operation, choice, layout, monkeypatch
):
    monkeypatch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
    compact = build.build_schedule(point(operation, choice, ranks=32, bytes=4096, layout=layout))
    assert isinstance(compact, CompactSchedule)
    settings = [BY_CLASS, BY_CLASS | {"probed_classes": ["node"]}]
    settings += [
        {"contention": {case: {"ratio": 2.0, "from_bytes": 0.0}}} for case in ("nodes", "ranks")
    ]
    for of_set in settings:
        parameters = replace(
            LOGGP, settings={**LOGGP.settings, **of_set}, vectors={"reduce": 64, "copy": 64}
        )
        model = Model.of_set(parameters)
        whole = assess_validity(model, parameters, stack_schedules([compact.whole]))
        assert [entry.text for entry in assess_validity(model, parameters, compact)] == [
            entry.text for entry in whole
        ]


@pytest.mark.parametrize(
    ("operation", "choice"),
    [
        *(("allgather", name) for name in ("ring", "neighbor-exchange")),
        *(("allreduce", name) for name in ("ring", "ring:64")),
        ("bcast", "scatter-allgather-ring"),
        ("alltoall", "pairwise"),
    ],
)
@pytest.mark.parametrize("layout", ["block:1", "block:2"])
@pytest.mark.parametrize("from_bytes", [0.0, 100.0, 1000.0])
def test_messages_of_all_parts_count_as_rounds(operation, choice, layout, from_bytes, monkeypatch):
    """The ring of an allreduce has two parts or more: each has fewer messages of a pair than the
    probe."""
    monkeypatch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
    parameters = replace(
        LOGGP, settings={"contention": {"rounds": {"ratio": 2.0, "from_bytes": from_bytes}}}
    )
    for ranks in (2, 4, 6, 8, 10, 12, 16, 32):
        compact = build.build_schedule(
            point(operation, choice, ranks=ranks, bytes=960, layout=layout)
        )
        assert find_contention(parameters, compact) == find_contention(
            parameters, stack_schedules([compact.whole])
        )


def test_the_two_rings_of_an_allreduce_have_the_contention_of_one_long_ring(monkeypatch):
    """With six ranks each ring has five rounds; the probe has eight messages."""
    monkeypatch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
    parameters = replace(
        LOGGP, settings={"contention": {"rounds": {"ratio": 2.0, "from_bytes": 0.0}}}
    )
    compact = build.build_schedule(point("allreduce", "ring", ranks=6, bytes=960))
    assert isinstance(compact, CompactSchedule)
    assert find_contention(parameters, compact)[0].kind is ValidityKind.CONTENTION


def test_a_poor_fit_to_single_messages_is_reported_and_changes_no_time():
    parameters = replace(measured(beyond=FAR), bytes_range=(1.0, 2000.0))
    short, long = predict(
        parameters, [point("bcast", "binomial", ranks=4, bytes=size) for size in (64, 1600)]
    )
    for prediction, off in ((short, 2 ** (np.log(64) / np.log(100))), (long, 4.0)):
        assert prediction.single_message_ratio == pytest.approx(off)
    assert long.validity_text == "poor fit: single messages take 4.0 times as long as predicted"
    by_set = predict(LOGGP, [long.point])[0]
    assert long.seconds == by_set.seconds


def test_messages_much_faster_than_predicted_are_a_poor_fit_too():
    quick = {"bytes": [8], "measured": [1.0], "predicted": [4.0]}
    (prediction,) = predict(measured(beyond=quick), [point("bcast", "binomial", ranks=4, bytes=64)])
    assert (prediction.validity_text, prediction.single_message_ratio) == (
        "poor fit: single messages take only 0.25 of the predicted time",
        0.25,
    )


def test_a_small_single_message_error_is_valid():
    little = {"bytes": [8], "measured": [0.99 * POOR_FIT_FACTOR], "predicted": [1.0]}
    (prediction,) = predict(
        measured(beyond=little), [point("bcast", "binomial", ranks=4, bytes=64)]
    )
    assert (prediction.validity_text, prediction.single_message_ratio) == (
        "valid",
        pytest.approx(0.99 * POOR_FIT_FACTOR),
    )


LOGP = make_given_set("logp", ["L=10us", "o=1us", "g=2us"])
LOGGP = make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])


def predicted(size, **more):
    known = replace(
        LOGGP, bytes_range=(1024.0, 65536.0), left_out={"error": 0.2, "cases": 5}, **more
    )
    (prediction,) = predict(known, [point("bcast", "linear", ranks=4, bytes=size)])
    return prediction


@pytest.mark.parametrize(
    ("size", "doublings", "intervals_text"),
    [
        (1024, 0, "valid"),
        (65536, 0, "valid"),
        (131072, 1, "extrapolated: messages of 128 KiB, probed up to 64 KiB"),
        (1 << 20, 4, "extrapolated: messages of 1 MiB, probed up to 64 KiB"),
        (256, 2, "extrapolated: messages of 256 B, probed from 1 KiB"),
        (64, 4, "extrapolated: messages of 64 B, probed from 1 KiB"),
        # short messages count as one size
        (0, 4, "extrapolated: messages of 0 B, probed from 1 KiB"),
    ],
)
def test_the_interval_widens_with_every_doubling(size, doublings, intervals_text):
    prediction = predicted(size)
    assert prediction.validity_text == intervals_text
    spread = 1.96 * np.log(1.2) * np.sqrt(doublings)
    assert np.log(prediction.high / prediction.seconds) == pytest.approx(spread)
    assert np.log(prediction.seconds / prediction.low) == pytest.approx(spread)


def test_probes_of_short_messages_cover_empty_messages():
    known = replace(LOGGP, bytes_range=(8.0, 65536.0))
    (prediction,) = predict(known, [point("barrier", "linear", ranks=4, bytes=0)])
    assert prediction.validity_text == "valid"


def test_more_ranks_than_probed_are_extrapolated_and_have_an_interval():
    prediction = predicted(1024, settings={"ranks": 2})
    assert prediction.validity_text == "extrapolated: 4 ranks, probed up to 2"
    assert prediction.high > prediction.seconds


@pytest.mark.parametrize(
    ("fitted", "intervals_text"),
    [
        ([2, 4], "valid"),
        ([4, 8], "valid"),
        ([2, 3], "extrapolated: 4 ranks, fitted at 2 to 3"),
        ([8, 64], "extrapolated: 4 ranks, fitted at 8 to 64"),
    ],
)
def test_other_numbers_of_ranks_than_a_set_was_fitted_to(fitted, intervals_text):
    """The validity does not change the interval: residuals determine its width."""
    prediction = predicted(1024, settings={"fitted_ranks": fitted})
    assert prediction.validity_text == intervals_text
    assert prediction.high == predicted(1024).high


def test_without_left_out_cases_the_typical_error_is_that_of_the_fit():
    curve = Curve("t", "x", "y", (1.0, 2.0), (1.0, 1.0), (1.1, 1 / 1.1), "line", 1.0)
    assert estimate_typical_error(replace(LOGGP, curves=(curve,))) == pytest.approx(np.log(1.1))
    assert estimate_typical_error(LOGGP) == 0


@pytest.mark.parametrize(
    ("doubt", "settings"),
    [
        ("contention not modelled", {"contention": {"nodes": {"ratio": 3.0, "from_bytes": 0.0}}}),
        ("placement not modelled", {"heterogeneity": 2.0}),
    ],
)
def test_size_not_modelled_is_reported_before_checks_that_keep_the_weight(doubt, settings):
    known = replace(LOGP, bytes_range=(1.0, 16.0), settings=settings)
    short, long = (
        predict(known, [point("alltoall", "linear", ranks=4, bytes=size)])[0].validity_text
        for size in (16, 1024)
    )
    assert short.startswith(doubt)
    assert long == "size not modelled: valid for 1 B to 16 B"


APART = "ranks in different leaf groups"
LEVELS = Hierarchy.written({"leaf": 4}, 24)


def on_leaves(name, *probed):
    parameters = fitted_set(name)
    levels = {"levels": LEVELS.group_lists, "probed_classes": list(probed)}
    return replace(parameters, settings={**parameters.settings, **levels})


@pytest.mark.parametrize(
    ("name", "probed", "ranks", "validity"),
    [
        ("loggp", ["leaf"], 4, "valid"),
        ("loggp", ["leaf"], 5, f"not probed: {APART}"),
        (
            "loggp",
            ["leaf", "beyond"],
            5,
            "placement not modelled: ranks in different leaf groups are predicted as nearer ranks",
        ),
        ("loggp", ["beyond"], 4, "not probed: ranks in different nodes"),
        ("shares", ["leaf", "beyond"], 5, "valid"),
        ("shares", ["leaf"], 5, f"not probed: {APART}"),
    ],
)
def test_a_prediction_at_an_unprobed_distance_is_flagged(name, probed, ranks, validity):
    predictions = predict(
        on_leaves(name, *probed), [point("bcast", "linear", ranks=ranks, bytes=64)]
    )
    assert [prediction.validity_text for prediction in predictions] == [validity]


def test_levels_of_a_set_determine_the_reach_of_a_point_without_platform():
    """Four ranks sit on one leaf, where 45 groups were measured, and five do not."""
    residuals = make_stored(
        np.linspace(0, 1, 45), ranks=4.0, size=64.0, nodes=4.0, levels_crossed="node/leaf"
    )
    parameters = replace(on_leaves("loggp", "leaf"), residuals=residuals)
    points = [point("bcast", "linear", ranks=ranks, bytes=64) for ranks in (4, 5)]
    intervals_text = [prediction.interval for prediction in predict(parameters, points)]
    assert intervals_text[0].endswith("45 workloads of bcast")
    assert intervals_text[1] == "parameters only: nothing measured beyond one leaf"
    shapes = [Shape.of(one_size, (64,)) for one_size in points]
    assert [
        columns["basis"][0] for columns in predict_shapes(shapes, {"s": parameters})
    ] == intervals_text


def test_validity_of_repeated_rounds_is_that_of_expanded_ones():
    ring = point("allreduce", "ring", ranks=9, bytes=9000)
    assert predict(on_leaves("loggp", "leaf"), [ring])[0].validity_text == f"not probed: {APART}"


def test_without_levels_placement_is_valid():
    predictions = predict(fitted_set("loggp"), [point("bcast", "linear", ranks=9, bytes=64)])
    assert predictions[0].validity_text == "valid"


@pytest.mark.parametrize("ranks", [1, 2, 4, 5, 16, 24])
def test_distance_classes_of_all_pairs_equal_the_classes_of_a_loop_over_pairs(ranks):
    node = np.arange(ranks) // 2
    slow = {int(LEVELS.distance(one, two)) for i, one in enumerate(node) for two in node[:i]}
    assert set(LEVELS.classes(node)) == slow
    assert set(LEVELS.apart(node, *np.triu_indices(ranks, 1))) == slow
