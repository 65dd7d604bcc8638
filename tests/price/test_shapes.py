"""Prices of a whole matrix against the obvious way: every point by itself, its schedule built anew. And its parts."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.streams import arrow, piece, read_stream, write_stream
from commodel.files.tables import PRICES, Field
from commodel.models.families import family, family_names
from commodel.patterns.build import schedule
from commodel.patterns.points import Setting
from commodel.plan.config import load_experiment
from commodel.plan.prediction_list import part, shapes, weight
from commodel.price.predictions import CELLS, FEWEST_DRAWS, predict, price
from commodel.progress import heard_by
from tests.models.synthetic import costs, fitted_set
from tests.patterns.catalogue import TREES, point

WAYS = ["bcast linear", "bcast binomial:64", "bcast chain:100", "gather binomial", "allreduce ring", "barrier linear"]
HEAD = "platform: nowhere\nmatrix:\n"
TYPES = arrow(PRICES)


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
    return pd.concat([piece(columns, TYPES).to_pandas() for columns in pieces], ignore_index=True)


CHOSEN = st.tuples(
    st.sampled_from(WAYS),
    st.lists(st.integers(2, 12), min_size=1, max_size=2, unique=True),
    st.lists(st.integers(0, 5000), min_size=1, max_size=3, unique=True),
)


@given(
    st.lists(CHOSEN, min_size=1, max_size=2),
    st.lists(st.sampled_from(family_names()), min_size=1, max_size=6, unique=True),
)
@settings(max_examples=15, deadline=None)
def test_prices_are_those_of_every_point_by_itself(tmp_path_factory, chosen, names):
    experiment = loaded(tmp_path_factory, [block(*axes) for axes in chosen])
    sets = {f"{name}.yaml": fitted(name) for name in names}
    prices = rows(price(shapes(experiment, Setting.unlimited()), sets))
    assert not prices.duplicated(["operation", "algorithm", "ranks", "bytes", "parameters"]).any()
    wanted = {
        (*way.split(), count, 0 if "barrier" in way else size, name)
        for way, ranks, sizes in chosen
        for count in ranks
        for size in sizes
        for name in names
    }
    assert {tuple(row) for row in prices[["operation", "algorithm", "ranks", "bytes", "family"]].values} == wanted
    for row in prices.itertuples():
        entry, parameters = family(row.family), sets[row.parameters]
        pattern = schedule(point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes))
        exact = costs(entry, pattern, parameters, drawn=False)[0]
        low, high = np.percentile(np.broadcast_to(costs(entry, pattern, parameters, drawn=True), 200), [2.5, 97.5])
        assert row.seconds == pytest.approx(exact, rel=1e-12)
        assert (row.low, row.high) == pytest.approx((min(low, exact), max(high, exact)), rel=1e-9)
        (alone,) = predict(parameters, [point(row.operation, row.algorithm, ranks=row.ranks, bytes=row.bytes)])
        assert row.status == alone.status


@given(st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_parts_one_after_the_other_are_the_whole(tmp_path_factory, parts):
    trees = f"- axes: {{operation: reduce, topology: {list(TREES)}, bytes: [1, 8]}}"
    experiment = loaded(tmp_path_factory, [*(block(way, [4, 9, 33, 64], [8, 4000]) for way in WAYS), trees])
    whole = shapes(experiment, Setting.unlimited())
    pieces = [part(whole, number, parts) for number in range(1, parts + 1)]
    assert [shape for piece in pieces for shape in piece] == whole
    total, heaviest = sum(map(weight, whole)), max(map(weight, whole))
    assert max(sum(map(weight, piece)) for piece in pieces) <= total / parts + heaviest + 1e-6 * total


@pytest.mark.parametrize("way", [*WAYS, "gather linear", "allgather ring", "barrier dissemination"])
def test_a_shape_weighs_about_as_much_as_it_has_messages(tmp_path_factory, way):
    experiment = loaded(tmp_path_factory, [block(way, [200], [1000])])
    (shape,) = shapes(experiment, Setting.unlimited())
    pattern = schedule(shape.point if way.startswith("barrier") else point(*way.split(), ranks=200, bytes=1000))
    messages = weight(shape) - 3000 - 2000 * len(pattern.steps)
    assert messages == pytest.approx(len(pattern.src), rel=0.3, abs=2000 * 0.3 * len(pattern.steps))


def test_a_long_schedule_gets_fewer_draws_but_the_same_price_in_blocks(monkeypatch):
    parameters = fitted("loggp")
    points = [point("bcast", "binomial", ranks=500, bytes=size) for size in (8, 80, 800)]
    whole = predict(parameters, points)
    monkeypatch.setattr("commodel.price.predictions.STEP", 1 << 8)
    said = []
    with heard_by(said.append):
        assert predict(parameters, points) == whole
    assert said[0] == "bcast binomial over 500 ranks, 3 sizes"
    assert said[1].startswith(f"{said[0]}, part 1 of ")
    assert said[-1] == f"{said[0]}, part {len(said) - 1} of {len(said) - 1}"
    assert len(said) > 3
    monkeypatch.setattr("commodel.price.predictions.CELLS", 1)
    entry = family("loggp")
    for row, asked in zip(predict(parameters, points), points, strict=True):
        drawn = costs(entry, schedule(asked), parameters, drawn=True)[:FEWEST_DRAWS]
        assert row.low == pytest.approx(min(np.percentile(drawn, 2.5), row.seconds), rel=1e-12)
    assert CELLS > FEWEST_DRAWS


def test_where_all_messages_of_rounds_are_gone_through_there_are_fewer_draws(monkeypatch):
    """As many cells as there are messages of the fewest draws: of LogGP, which looks at one round, they are enough for
    all draws. And however many draws are worked out at a time."""
    monkeypatch.setattr("commodel.patterns.build.WRITTEN", 0)
    monkeypatch.setattr("commodel.price.predictions.CELLS", 24 * 23 * FEWEST_DRAWS)
    asked, rows = point("alltoall", "pairwise", ranks=24, bytes=64), []

    def cost(model, pattern):
        rows.append(model.rows)
        return model.cost(pattern)

    whole = predict(fitted("shares"), [asked], cost=cost)
    predict(fitted("loggp"), [asked], cost=cost)
    assert rows == [1 + FEWEST_DRAWS, 1 + len(fitted("loggp").draws["L"])]
    monkeypatch.setattr("commodel.models.pricing.link_sharing.COSTS_AT_ONCE", 1)
    assert predict(fitted("shares"), [asked]) == whole


def test_a_stream_is_the_same_however_it_comes(tmp_path, monkeypatch):
    monkeypatch.setattr("commodel.files.streams.GROUP", 7)
    types = arrow((Field("name", str), Field("count", int), Field("seconds", float)))
    table = piece({"name": "a", "count": np.arange(20), "seconds": np.r_[np.nan, np.arange(19.0)]}, types)
    for suffix in ("parquet", "csv"):
        for number, cuts in enumerate(([0, 20], [0, 1, 6, 7, 8, 20], range(21))):
            pieces = (table.slice(start, stop - start) for start, stop in pairwise(cuts))
            assert write_stream(tmp_path / f"{number}.{suffix}", types, pieces) == 20
        assert len({path.read_bytes() for path in tmp_path.glob(f"*.{suffix}")}) == 1
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "0.csv"), pd.read_parquet(tmp_path / "0.parquet"))
    again, pieces = read_stream([tmp_path / "0.parquet"] * 2)
    assert write_stream(tmp_path / "twice.csv", again, pieces) == 40


def test_a_stream_that_breaks_leaves_nothing(tmp_path):
    def broken():
        yield piece({"name": ["a"]}, arrow((Field("name", str),)))
        raise UserError("enough")

    with pytest.raises(UserError, match="enough"):
        write_stream(tmp_path / "x.parquet", arrow((Field("name", str),)), broken())
    assert not list(tmp_path.iterdir())
