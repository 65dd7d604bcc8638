"""Shares: rounds among ranks that all differ, some at a time, against the same written out; and what is told where."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models.pricing import link_sharing, native_replay, repeated_rounds
from commodel.models.pricing.time_order import in_parts
from commodel.predictions.model import Model
from commodel.progress import heard_by
from tests.models.sharedlines import model
from tests.models.test_turning import rounds


def priced(leaf, nodes, **numbers):
    values = model(**{"c_out.leaf.a": 1e-9}, **numbers)
    levels = Hierarchy.written({"leaf": leaf}, nodes)
    return Model(values.entry, replace(values.values, settings={"levels": levels.settings})), levels


@pytest.mark.parametrize(
    ("operation", "choice"),
    [
        ("alltoall", "pairwise"),
        ("reduce-scatter", "pairwise"),
        ("allgather", "neighbor-exchange"),
        ("allreduce", "ring"),
        ("bcast", "scatter-allgather-ring"),
    ],
)
@pytest.mark.parametrize("layout", ["block:1", "cyclic:2"])
@pytest.mark.parametrize("numbers", [{}, {"S": 5000.0}, {"S": 100.0, "c_pair.leaf.a": 2e-9}, {"back": 0.05}])
@pytest.mark.parametrize("at_once", [1, 100, 300])
def test_pieces_cost_what_all_rounds_cost_to_the_bit(library, monkeypatch, operation, choice, layout, numbers, at_once):
    """38 ranks on 38 or 19 nodes, in leaves of 5, so that all differ; and blocks do."""
    ranks = 38
    values, levels = priced(5, ranks, **numbers)
    schedule = rounds(operation, choice, ranks, layout, 4096, more=3)
    monkeypatch.setattr(repeated_rounds, "PIECE_MESSAGES", at_once)
    said = []
    with heard_by(said.append):
        some = link_sharing.in_pieces(schedule, values.values, levels)
    assert said[0] == "draw 1 of 1"
    assert said[-1].startswith("draw 1 of 1, part ")
    assert said[-1].endswith(f" of {len(said) - 1}")
    assert "whole" not in schedule.__dict__
    np.testing.assert_array_equal(some, link_sharing.timed(schedule.whole, values.values, levels))


def test_long_exchanges_come_in_pieces_where_prices_are_compiled(library, monkeypatch):
    """Round by round, short messages that are sent at once seem to hold each other up half as long as they do."""
    values, levels = priced(7, 260, S=32768.0, **{"c_in.node.a": 2e-9})
    schedule = rounds("alltoall", "pairwise", 260, "block:1", 4096)
    exact = link_sharing.timed(schedule.whole, values.values, levels).max()
    monkeypatch.setattr(link_sharing, "WRITTEN", 2000)
    monkeypatch.setattr(link_sharing, "PIECE_MESSAGES", 1000)
    monkeypatch.setattr(repeated_rounds, "PIECE_MESSAGES", 1000)
    assert values.cost(schedule)[0] == exact
    assert values.entry.doubts(schedule, values.values) == ""
    monkeypatch.setattr(native_replay, "library", lambda: None)
    assert values.cost(schedule)[0] < 0.9 * exact
    assert "round by round" in values.entry.doubts(schedule, values.values)
    around = rounds("allgather", "ring", 260, "cyclic:2", 4096)
    assert "an eighth" in values.entry.doubts(around, values.values)
    even = priced(5, 260)[0]
    assert even.entry.doubts(rounds("alltoall", "pairwise", 260, "block:1", 4096), even.values) == ""


def test_what_goes_wrong_with_a_piece_is_told(library):
    def part(number):
        raise UserError("no such piece")

    with pytest.raises(UserError, match="no such piece"):
        in_parts(part, 3, 100, 4)
