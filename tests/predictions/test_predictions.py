"""Predictions of many points equal those of single points; periods of streams of waves equal those
of a replay of all waves."""

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
from commodel.files.streamed_tables import make_arrow_schema, make_piece, write_stream
from commodel.files.tables import MATRIX_PREDICTIONS, Field
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family, list_family_names
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources
from commodel.plan.config import load_experiment
from commodel.plan.prediction_list import list_shapes
from commodel.predictions.model import Model
from commodel.predictions.predictions import (
    MAX_CELLS,
    MIN_DRAWS,
    WaveStream,
    predict,
    predict_shapes,
    predicts_streams,
    repeat_waves,
)
from commodel.progress import listen_with
from tests.models.exact import make_exact_values
from tests.models.synthetic import costs, fitted_set
from tests.patterns.catalogue import point

WAYS = [
    "bcast linear",
    "bcast binomial:64",
    "bcast chain:100",
    "gather binomial",
    "allreduce ring",
    "barrier linear",
]
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
    return (
        f"- axes: {{bytes: {sizes}, operation: {operation}, algorithm: [{choice}], ranks: {ranks}}}"
    )


def rows(pieces):
    return pd.concat(
        [make_piece(columns, TYPES).to_pandas() for columns in pieces], ignore_index=True
    )


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
def test_predictions_of_a_matrix_equal_predictions_of_single_points(
    tmp_path_factory, chosen, names
):
    experiment = loaded(tmp_path_factory, [block(*axes) for axes in chosen])
    sets = {f"{name}.yaml": fitted(name) for name in names}
    predictions = rows(predict_shapes(list_shapes(experiment, PlatformResources.unlimited()), sets))
    assert not predictions.duplicated(
        ["operation", "algorithm", "ranks", "bytes", "parameters"]
    ).any()
    wanted = {
        (*way.split(), count, 0 if "barrier" in way else size, name)
        for way, ranks, sizes in chosen
        for count in ranks
        for size in sizes
        for name in names
    }
    assert {
        tuple(row)
        for row in predictions[["operation", "algorithm", "ranks", "bytes", "model"]].values
    } == wanted
    for row in predictions.itertuples():
        entry, parameters = find_family(row.model), sets[row.parameters]
        pattern = build_schedule(
            point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes)
        )
        exact = costs(entry, pattern, parameters, drawn=False)[0]
        low, high = np.percentile(
            np.broadcast_to(costs(entry, pattern, parameters, drawn=True), 200), [2.5, 97.5]
        )
        assert row.seconds == pytest.approx(exact, rel=1e-12)
        assert (row.low, row.high) == pytest.approx((min(low, exact), max(high, exact)), rel=1e-9)
        (single,) = predict(
            parameters, [point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes)]
        )
        assert row.validity == single.validity_text


def test_a_long_schedule_has_fewer_draws_but_the_same_prediction_in_blocks(monkeypatch):
    parameters = fitted("loggp")
    points = [point("bcast", "binomial", ranks=500, bytes=size) for size in (8, 80, 800)]
    whole = predict(parameters, points)
    monkeypatch.setattr("commodel.predictions.predictions.MAX_STEP_CELLS", 1 << 8)
    progress_texts = []
    with listen_with(progress_texts.append):
        assert predict(parameters, points) == whole
    assert progress_texts[0] == "bcast binomial over 500 ranks, 3 sizes"
    assert progress_texts[1].startswith(f"{progress_texts[0]}, part 1 of ")
    assert (
        progress_texts[-1]
        == f"{progress_texts[0]}, part {len(progress_texts) - 1} of {len(progress_texts) - 1}"
    )
    assert len(progress_texts) > 3
    monkeypatch.setattr("commodel.predictions.predictions.MAX_CELLS", 1)
    entry = find_family("loggp")
    for row, requested in zip(predict(parameters, points), points, strict=True):
        drawn = costs(entry, build_schedule(requested), parameters, drawn=True)[:MIN_DRAWS]
        assert row.low == pytest.approx(min(np.percentile(drawn, 2.5), row.seconds), rel=1e-12)
    assert MAX_CELLS > MIN_DRAWS


def test_with_a_replay_of_all_messages_of_rounds_there_are_fewer_draws(monkeypatch):
    """If MAX_CELLS holds exactly MIN_DRAWS replays of all messages, `shares` gets MIN_DRAWS draws.

    LogGP replays only one round and gets all. The result does not depend on the number of draws at
    a time.
    """
    monkeypatch.setattr("commodel.patterns.build.MAX_EXPANDED_MESSAGES", 0)
    monkeypatch.setattr("commodel.predictions.predictions.MAX_CELLS", 24 * 23 * MIN_DRAWS)
    requested, rows = point("alltoall", "pairwise", ranks=24, bytes=64), []

    def cost(model, pattern):
        rows.append(model.rows)
        return model.cost(pattern)

    in_one_block = predict(fitted("shares"), [requested], cost=cost)
    predict(fitted("loggp"), [requested], cost=cost)
    assert rows == [1 + MIN_DRAWS, 1 + len(fitted("loggp").draws["L"])]
    monkeypatch.setattr("commodel.models.evaluation.shares_prediction.MAX_COSTS_AT_ONCE", 1)
    assert predict(fitted("shares"), [requested]) == in_one_block


def test_a_streamed_table_does_not_depend_on_the_chunks_written(tmp_path, monkeypatch):
    monkeypatch.setattr("commodel.files.streamed_tables.GROUP_ROWS", 7)
    types = make_arrow_schema((Field("name", str), Field("count", int), Field("seconds", float)))
    table = make_piece(
        {"name": "a", "count": np.arange(20), "seconds": np.r_[np.nan, np.arange(19.0)]}, types
    )
    for suffix in ("parquet", "csv"):
        for number, cuts in enumerate(([0, 20], [0, 1, 6, 7, 8, 20], range(21))):
            pieces = (table.slice(start, stop - start) for start, stop in pairwise(cuts))
            assert write_stream(tmp_path / f"{number}.{suffix}", types, pieces) == 20
        assert len({path.read_bytes() for path in tmp_path.glob(f"*.{suffix}")}) == 1
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "0.csv"), pd.read_parquet(tmp_path / "0.parquet")
    )


def test_an_interrupted_output_leaves_no_file(tmp_path):
    def broken():
        yield make_piece({"name": ["a"]}, make_arrow_schema((Field("name", str),)))
        raise UserError("enough")

    with pytest.raises(UserError, match="enough"):
        write_stream(tmp_path / "x.parquet", make_arrow_schema((Field("name", str),)), broken())
    assert not list(tmp_path.iterdir())


def compute_period(name, pattern, function_forms=None, waves=inf, **parameters):
    """Return the time between two waves of a stream."""
    values = make_exact_values(parameters, function_forms)
    model = Model.of(find_family(name), values)
    return float(
        np.ravel(
            WaveStream(pattern).period(
                model.family, lambda cost, stream: cost(model, stream), waves
            )
        )[0]
    )


def reduce(topology):
    return build_schedule(point("reduce", topology=topology, bytes=1))


@pytest.mark.parametrize("leaves", [1, 4, 16])
@pytest.mark.parametrize(("o", "g"), [(2.0, 1.0), (2.0, 5.0)])
def test_the_period_of_a_flat_reduction_is_the_period_of_the_root(leaves, o, g):
    """The root receives one message of each leaf, with max(g, o) between two of them."""
    assert compute_period(
        "loggp", reduce(f"flat:{leaves}"), L=10, o_s=o, o_r=o, g=g, G=0
    ) == pytest.approx(leaves * max(g, o))


@pytest.mark.parametrize("height", [2, 7])
def test_the_period_of_a_chain_is_the_period_of_one_node(height):
    """Each node receives one message and sends one, whatever the height of the chain."""
    period = compute_period("loggp", reduce(f"chain:{height}"), L=10, o_s=2, o_r=3, g=1, G=0)
    assert period == pytest.approx(2 + 3)


@pytest.mark.parametrize(
    ("topology", "busiest"), [("balanced:4x8", 8), ("balanced:8x4", 8), ("kary:2^5", 2)]
)
def test_the_busiest_node_determines_the_period(topology, busiest):
    """A node receives a message of each child. The root sends none, all other nodes one."""
    period = compute_period("loggp", reduce(topology), L=10, o_s=2, o_r=3, g=1, G=0)
    root = int(topology.partition(":")[2][0])
    assert period == pytest.approx(
        max(3 * root, 3 * busiest + 2 * (busiest > root or topology.startswith("kary")))
    )


def test_the_period_predicted_by_tan_follows_equation_2():
    """The period is L + max o(x + 1) + g, where x is the number of children of a node (TAN,
    equation 2)."""
    period = compute_period(
        "tan", reduce("balanced:4x8"), {"o": "linear"}, L=10, **{"o.a": 1, "o.b": 0.5}, g=2
    )
    assert period == pytest.approx(10 + 1 + 0.5 * 9 + 2)


def test_models_that_add_up_steps_predict_no_stream():
    with pytest.raises(
        UserError, match="bsp adds up steps for all ranks at once: it has no prediction of waves"
    ):
        compute_period("bsp", reduce("flat:4"), g=2, **{"l.a": 10})
    assert not predicts_streams(find_family("bsp"))
    assert predicts_streams(find_family("tan"))


@pytest.mark.parametrize(
    ("operation", "choice"), [("allreduce", "ring"), ("bcast", "chain:24"), ("alltoall", "bruck")]
)
def test_a_stream_takes_no_longer_than_separate_waves(operation, choice):
    pattern = build_schedule(point(operation, choice, ranks=7, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete_values(find_family("loggp"), make_exact_values(machine))
    one, five = (
        p.cost(find_family("loggp").predict(p, values))[0]
        for p in (pattern, repeat_waves(pattern, 5))
    )
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
    """Few waves are replayed in full. Many are extrapolated with the last replayed period."""
    size = 0 if operation == "barrier" else 100
    pattern = build_schedule(point(operation, choice, ranks=9, bytes=size))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    values = complete_values(find_family("loggp"), make_exact_values(machine))
    first, last = (
        p.cost(find_family("loggp").predict(p, values))[0]
        for p in (pattern, repeat_waves(pattern, waves))
    )
    period = compute_period("loggp", pattern, waves=waves, **machine)
    assert period == pytest.approx((last - first) / (waves - 1), rel=1e-9 if waves <= 16 else 0.01)


def test_periods_of_many_waves_converge_to_that_of_an_endless_stream():
    pattern = build_schedule(point("allreduce", "ring", ranks=9, bytes=100))
    machine = {"L": 9.0, "o_s": 2.0, "o_r": 1.0, "g": 3.0, "G": 0.1}
    assert compute_period("loggp", pattern, waves=10**9, **machine) == pytest.approx(
        compute_period("loggp", pattern, **machine)
    )


def test_predictions_with_draws_of_stacked_sizes_equal_predictions_of_each_size():
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
        "no prediction: model bsp adds up steps for all ranks at once: it has no prediction of waves"
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
    """Without reductions, gamma is not fitted: its default has a single draw, all other parameters
    have 401."""
    known = make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns"])
    draws = {
        name: tuple(value.value * (1 + 0.001 * n) for n in range(401))
        for name, value in known.values.items()
    }
    long = point("allgather", "ring", ranks=64, bytes=1024)
    (prediction,) = predict(replace(known, draws=draws), [long])
    # the parameter interval includes the prediction; all draws take longer
    assert prediction.low == prediction.seconds
    assert prediction.high == pytest.approx(prediction.seconds * 1.39, rel=1e-6)
