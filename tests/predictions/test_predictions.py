"""Predictions of a whole matrix and of streams of waves, against every point by itself and the slow replay."""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import inf

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.streamed_tables import make_arrow_schema, make_piece, read_stream, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS, Field
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family, list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources
from commodel.plan.config import load_experiment
from commodel.plan.prediction_list import estimate_cost, list_shapes, select_part
from commodel.predictions.model import Model
from commodel.predictions.predictions import (
    MAX_CELLS,
    MIN_DRAWS,
    Stream,
    predict,
    predict_shapes,
    predicts_streams,
    repeat_waves,
)
from commodel.progress import listen_with
from tests.models.exact import numbers as exactly
from tests.models.synthetic import costs, fitted_set
from tests.patterns.catalogue import TREES, point

WAYS = ["bcast linear", "bcast binomial:64", "bcast chain:100", "gather binomial", "allreduce ring", "barrier linear"]
HEAD = "platform: nowhere\nmatrix:\n"
TYPES = make_arrow_schema(MATRIX_PREDICTIONS)


@lru_cache
def fitted(name):
    return fitted_set(name, noise=0.03)


def loaded(tmp_path_factory, blocks):
    file = tmp_path_factory.mktemp("matrix") / "chosen.yaml"
    file.write_text(HEAD + "\n".join(blocks) + "\n")
    return load_experiment(file)


def block(way, ranks, sizes):
    operation, choice = way.split()
    return f"- axes: {{bytes: {sizes}, operation: {operation}, algorithm: [{choice}], ranks: {ranks}}}"


def rows(pieces):
    return pd.concat([make_piece(columns, TYPES).to_pandas() for columns in pieces], ignore_index=True)


CHOSEN = st.tuples(
    st.sampled_from(WAYS),
    st.lists(st.integers(2, 12), min_size=1, max_size=2, unique=True),
    st.lists(st.integers(0, 5000), min_size=1, max_size=3, unique=True),
)


@given(
    st.lists(CHOSEN, min_size=1, max_size=2),
    st.lists(st.sampled_from(list_family_names()), min_size=1, max_size=6, unique=True),
)
@settings(max_examples=15, deadline=None)
def test_predictions_are_those_of_every_single_point(tmp_path_factory, chosen, names):
    experiment = loaded(tmp_path_factory, [block(*axes) for axes in chosen])
    sets = {f"{name}.yaml": fitted(name) for name in names}
    predictions = rows(predict_shapes(list_shapes(experiment, PlatformResources.unlimited()), sets))
    assert not predictions.duplicated(["operation", "algorithm", "ranks", "bytes", "parameters"]).any()
    wanted = {
        (*way.split(), count, 0 if "barrier" in way else size, name)
        for way, ranks, sizes in chosen
        for count in ranks
        for size in sizes
        for name in names
    }
    assert {tuple(row) for row in predictions[["operation", "algorithm", "ranks", "bytes", "family"]].values} == wanted
    for row in predictions.itertuples():
        entry, parameters = find_family(row.family), sets[row.parameters]
        pattern = build_schedule(point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes))
        exact = costs(entry, pattern, parameters, drawn=False)[0]
        low, high = np.percentile(np.broadcast_to(costs(entry, pattern, parameters, drawn=True), 200), [2.5, 97.5])
        assert row.seconds == pytest.approx(exact, rel=1e-12)
        assert (row.low, row.high) == pytest.approx((min(low, exact), max(high, exact)), rel=1e-9)
        (alone,) = predict(parameters, [point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes)])
        assert row.validity == alone.validity_text


@given(st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_parts_of_an_experiment_are_complete_and_balanced(tmp_path_factory, parts):
    trees = f"- axes: {{operation: reduce, topology: {list(TREES)}, bytes: [1, 8]}}"
    experiment = loaded(tmp_path_factory, [*(block(way, [4, 9, 33, 64], [8, 4000]) for way in WAYS), trees])
    whole = list_shapes(experiment, PlatformResources.unlimited())
    pieces = [select_part(whole, number, parts) for number in range(1, parts + 1)]
    assert [shape for piece in pieces for shape in piece] == whole
    total, heaviest = sum(map(estimate_cost, whole)), max(map(estimate_cost, whole))
    assert max(sum(map(estimate_cost, piece)) for piece in pieces) <= total / parts + heaviest + 1e-6 * total


@pytest.mark.parametrize("way", [*WAYS, "gather linear", "alltoall linear", "allgather ring", "barrier dissemination"])
def test_the_estimated_cost_of_a_shape_follows_its_messages(tmp_path_factory, way):
    experiment = loaded(tmp_path_factory, [block(way, [200], [1000])])
    (shape,) = list_shapes(experiment, PlatformResources.unlimited())
    pattern = build_schedule(shape.point if way.startswith("barrier") else point(*way.split(), ranks=200, bytes=1000))
    messages = estimate_cost(shape) - 3000 - 2000 * len(pattern.steps)
    assert messages == pytest.approx(len(pattern.src), rel=0.3, abs=2000 * 0.3 * len(pattern.steps))


def test_a_long_schedule_has_fewer_draws_but_the_same_prediction_in_blocks(monkeypatch):
    parameters = fitted("loggp")
    points = [point("bcast", "binomial", ranks=500, bytes=size) for size in (8, 80, 800)]
    whole = predict(parameters, points)
    monkeypatch.setattr("commodel.predictions.predictions.MAX_STEP_CELLS", 1 << 8)
    said = []
    with listen_with(said.append):
        assert predict(parameters, points) == whole
    assert said[0] == "bcast binomial over 500 ranks, 3 sizes"
    assert said[1].startswith(f"{said[0]}, part 1 of ")
    assert said[-1] == f"{said[0]}, part {len(said) - 1} of {len(said) - 1}"
    assert len(said) > 3
    monkeypatch.setattr("commodel.predictions.predictions.MAX_CELLS", 1)
    entry = find_family("loggp")
    for row, requested in zip(predict(parameters, points), points, strict=True):
        drawn = costs(entry, build_schedule(requested), parameters, drawn=True)[:MIN_DRAWS]
        assert row.low == pytest.approx(min(np.percentile(drawn, 2.5), row.seconds), rel=1e-12)
    assert MAX_CELLS > MIN_DRAWS


def test_with_a_replay_of_all_messages_of_rounds_there_are_fewer_draws(monkeypatch):
    """With as many cells as messages of the fewest draws, LogGP, which replays one round, has all draws.

    The result does not depend on the number of draws at a time.
    """
    monkeypatch.setattr("commodel.patterns.build.MAX_EXPANDED_MESSAGES", 0)
    monkeypatch.setattr("commodel.predictions.predictions.MAX_CELLS", 24 * 23 * MIN_DRAWS)
    requested, rows = point("alltoall", "pairwise", ranks=24, bytes=64), []

    def cost(model, pattern):
        rows.append(model.rows)
        return model.cost(pattern)

    whole = predict(fitted("shares"), [requested], cost=cost)
    predict(fitted("loggp"), [requested], cost=cost)
    assert rows == [1 + MIN_DRAWS, 1 + len(fitted("loggp").draws["L"])]
    monkeypatch.setattr("commodel.models.evaluation.link_sharing.MAX_COSTS_AT_ONCE", 1)
    assert predict(fitted("shares"), [requested]) == whole


def test_a_stream_is_the_same_however_it_comes(tmp_path, monkeypatch):
    monkeypatch.setattr("commodel.files.streamed_tables.GROUP_ROWS", 7)
    types = make_arrow_schema((Field("name", str), Field("count", int), Field("seconds", float)))
    table = make_piece({"name": "a", "count": np.arange(20), "seconds": np.r_[np.nan, np.arange(19.0)]}, types)
    for suffix in ("parquet", "csv"):
        for number, cuts in enumerate(([0, 20], [0, 1, 6, 7, 8, 20], range(21))):
            pieces = (table.slice(start, stop - start) for start, stop in pairwise(cuts))
            assert write_stream(tmp_path / f"{number}.{suffix}", types, pieces) == 20
        assert len({path.read_bytes() for path in tmp_path.glob(f"*.{suffix}")}) == 1
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "0.csv"), pd.read_parquet(tmp_path / "0.parquet"))
    again, pieces = read_stream([tmp_path / "0.parquet"] * 2)
    assert write_stream(tmp_path / "twice.csv", again, pieces) == 40


def test_an_interrupted_output_leaves_no_file(tmp_path):
    def broken():
        yield make_piece({"name": ["a"]}, make_arrow_schema((Field("name", str),)))
        raise UserError("enough")

    with pytest.raises(UserError, match="enough"):
        write_stream(tmp_path / "x.parquet", make_arrow_schema((Field("name", str),)), broken())
    assert not list(tmp_path.iterdir())


def between(name, pattern, forms=None, waves=inf, **numbers):
    values = exactly(numbers, forms)
    model = Model.of(find_family(name), values)
    return float(np.ravel(Stream(pattern).period(model.entry, lambda cost, stream: cost(model, stream), waves))[0])


def reduce(topology):
    return build_schedule(point("reduce", topology=topology, bytes=1))


@pytest.mark.parametrize("leaves", [1, 4, 16])
@pytest.mark.parametrize(("o", "g"), [(2.0, 1.0), (2.0, 5.0)])
def test_the_period_of_a_flat_reduction_is_that_of_its_root(leaves, o, g):
    """One message of each leaf, each max(g, o) after the last."""
    assert between("loggp", reduce(f"flat:{leaves}"), L=10, o_s=o, o_r=o, g=g, G=0) == pytest.approx(leaves * max(g, o))


@pytest.mark.parametrize("height", [2, 7])
def test_a_chain_is_as_fast_as_one_of_its_nodes(height):
    """A node takes a message and sends one, however many there are above it."""
    period = between("loggp", reduce(f"chain:{height}"), L=10, o_s=2, o_r=3, g=1, G=0)
    assert period == pytest.approx(2 + 3)


@pytest.mark.parametrize(("topology", "busiest"), [("balanced:4x8", 8), ("balanced:8x4", 8), ("kary:2^5", 2)])
def test_the_busiest_node_determines_the_period(topology, busiest):
    """It takes a message of each child; the root sends none, the others one."""
    period = between("loggp", reduce(topology), L=10, o_s=2, o_r=3, g=1, G=0)
    root = int(topology.partition(":")[2][0])
    assert period == pytest.approx(max(3 * root, 3 * busiest + 2 * (busiest > root or topology.startswith("kary"))))


def test_tan_has_an_equation_of_its_own():
    """L + max o(x + 1) + g."""
    period = between("tan", reduce("balanced:4x8"), {"o": "linear"}, L=10, **{"o.a": 1, "o.b": 0.5}, g=2)
    assert period == pytest.approx(10 + 1 + 0.5 * 9 + 2)


def test_models_that_add_up_steps_predict_no_stream():
    with pytest.raises(UserError, match="bsp adds up steps for all ranks at once: it has no prediction of waves"):
        between("bsp", reduce("flat:4"), g=2, **{"l.a": 10})
    assert not predicts_streams(find_family("bsp"))
    assert predicts_streams(find_family("tan"))


@pytest.mark.parametrize(("operation", "choice"), [("allreduce", "ring"), ("bcast", "chain:24"), ("alltoall", "bruck")])
def test_a_stream_takes_no_longer_than_separate_waves(operation, choice):
    pattern = build_schedule(point(operation, choice, ranks=7, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete_values(find_family("loggp"), exactly(machine))
    one, five = (p.cost(find_family("loggp").predict(p, values))[0] for p in (pattern, repeat_waves(pattern, 5)))
    assert one < five <= 5 * (one + 3.0 + 0.1 * 100)
    assert repeat_waves(pattern, 5).work.bytes.sum() == 5 * pattern.work.bytes.sum()
    np.testing.assert_array_equal(repeat_waves(pattern, 1).step, pattern.step)


@pytest.mark.parametrize("waves", [2, 5, 16, 50, 200])
@pytest.mark.parametrize(
    ("operation", "choice"),
    [
        ("allreduce", "ring"),
        ("bcast", "binomial"),
        ("bcast", "chain:24"),
        ("gather", "linear"),
        ("barrier", "dissemination"),
    ],
)
def test_a_period_equals_that_of_a_replay_of_all_waves(operation, choice, waves):
    """Of few waves they are played; of many the rest is taken to go on as the last of them did."""
    size = 0 if operation == "barrier" else 100
    pattern = build_schedule(point(operation, choice, ranks=9, bytes=size))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete_values(find_family("loggp"), exactly(machine))
    first, last = (p.cost(find_family("loggp").predict(p, values))[0] for p in (pattern, repeat_waves(pattern, waves)))
    period = between("loggp", pattern, waves=waves, **machine)
    assert period == pytest.approx((last - first) / (waves - 1), rel=1e-9 if waves <= 16 else 0.01)


def test_periods_of_many_waves_converge_to_that_of_an_endless_stream():
    pattern = build_schedule(point("allreduce", "ring", ranks=9, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    assert between("loggp", pattern, waves=10**9, **machine) == pytest.approx(between("loggp", pattern, **machine))


def test_predictions_of_a_stack_of_sizes_with_draws_are_those_of_each_size():
    parameters = fitted_set("loggp", noise=0.03)
    points = [
        replace(point("bcast", "chain:64", ranks=6, bytes=size), waves=waves)
        for waves in (1, 2, 50)
        for size in (8, 60, 900)
    ]
    together = predict(parameters, points)
    alone = [predict(parameters, [point])[0] for point in points]
    assert [row.point for row in together] == points
    for stacked, single in zip(together, alone, strict=True):
        times = [(row.seconds, row.low, row.high) for row in (stacked, single)]
        assert times[0] == pytest.approx(times[1], rel=1e-12)
        assert stacked.low < stacked.seconds < stacked.high
    assert together[0].seconds != together[3].seconds


def test_a_model_without_a_prediction_has_a_reason_and_predicts_the_rest():
    parameters = fitted_set("bsp", noise=0.0)
    wave = point("bcast", "binomial", ranks=4)
    predicted, not_predicted = predict(parameters, [wave, replace(wave, waves=5)], strict=False)
    assert predicted.seconds > 0
    assert not_predicted.validity_text == (
        "no prediction: family bsp adds up steps for all ranks at once: it has no prediction of waves"
    )
    assert np.isnan(not_predicted.seconds)


def test_every_model_predicts_a_stream_or_has_a_reason():
    stream = replace(point("bcast", "binomial", ranks=4), waves=5)
    for name in list_family_names():
        (prediction,) = predict(fitted_set(name, noise=0.0), [stream], strict=False)
        assert (
            np.isfinite(prediction.seconds)
            if predicts_streams(find_family(name))
            else prediction.validity_text.startswith("no prediction")
        ), name


def test_selected_draws_keep_values_with_a_single_draw():
    values = Values({"L": np.arange(6.0)[:, None], "gamma": np.array([[0.5]])}).select_draws(2, 4)
    assert values["L"].ravel().tolist() == [2, 3]
    assert values["gamma"].ravel().tolist() == [0.5]


def test_a_long_pattern_without_a_value_for_work_is_predicted_in_blocks_of_draws():
    """A set whose points combine nothing has no gamma; its default is one row beside all draws."""
    known = make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns"])
    draws = {name: tuple(value.value * (1 + 0.001 * n) for n in range(401)) for name, value in known.values.items()}
    long = point("allgather", "ring", ranks=64, bytes=1024)
    (prediction,) = predict(replace(known, draws=draws), [long])
    assert prediction.low == prediction.seconds  # an interval holds its prediction, and these draws all cost more
    assert prediction.high == pytest.approx(prediction.seconds * 1.39, rel=1e-6)
