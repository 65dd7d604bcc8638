"""Shares: ranks that are like others are not looked at, against the same pattern written out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models.pricing import link_sharing
from commodel.models.pricing.repeated_rounds import few
from commodel.patterns import build
from commodel.patterns.layouts import place
from commodel.predictions.model import Model
from tests.models.sharedlines import model
from tests.patterns.catalogue import point

PATTERNS = [("alltoall", "pairwise"), ("allgather", "ring"), ("allreduce", "ring"), ("reduce-scatter", "pairwise")]
KINDS = [f"c_{kind}.{level}" for kind in ("out", "pair", "all") for level in ("node", "leaf", "group")]
FAR = {"L.group.a": 3e-5, "G.group.a": 1.1e-9}
MOST = 1 << 20


def rounds(operation, algorithm, ranks, layout, size, more=0):
    """Not written out, with a block of so many bytes in each message; so many blocks are a byte longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "WRITTEN", 0)
        bytes = size if operation in ("alltoall", "allgather") else size * ranks + more
        return build.schedule(point(operation, algorithm, ranks=ranks, bytes=bytes, layout=layout))


@st.composite
def crowded(draw):
    """A network, what its lines hold, and rounds on it."""
    ranks, layout = draw(st.sampled_from([12, 16, 24, 36])), draw(st.sampled_from(["block:1", "block:2", "cyclic:2"]))
    leaf, inner = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    nodes = int(place(layout, ranks).max()) + 1
    levels = Hierarchy.written({"leaf": leaf, "group": leaf * inner}, nodes)
    capacities, costs = st.sets(st.sampled_from(KINDS)), st.sampled_from([3e-10, 1e-9, 2e-9])
    numbers = {f"{name}.a": draw(costs) for name in sorted(draw(capacities))}
    numbers |= draw(st.sampled_from([{}, {"back": 0.05}]))
    numbers |= draw(st.sampled_from([{}, {"S": 5000.0}, {"S": 100.0}, {"S": 5000.0, "E": 0.0}, {"c_in.node.a": 2e-9}]))
    settings = {"levels": levels.settings, "half": sorted(draw(st.sets(st.sampled_from(["node", "leaf", "group"]))))}
    settings |= draw(st.sampled_from([{}, {"links": {"leaf": 2}}, {"links": {"leaf": 3}}, {"order": "turn"}]))
    priced = model(**FAR, **numbers)
    schedule = rounds(*draw(st.sampled_from(PATTERNS)), ranks, layout, draw(st.sampled_from([8, 1000, 4096])))
    return Model(priced.entry, replace(priced.values, settings=settings)), levels, schedule


@given(crowded())
def test_few_ranks_cost_what_all_cost(case):
    priced, levels, schedule = case
    assume(few(schedule, levels, priced.values.settings.get("links", {}), MOST) is not None)
    finish = priced.entry.price(schedule, priced.values)
    assert "whole" not in schedule.__dict__
    np.testing.assert_allclose(finish, link_sharing.timed(schedule.whole, priced.values, levels), rtol=1e-9)


@pytest.mark.parametrize(("layout", "leaf", "ranks"), [("block:1", 4, 4), ("block:2", 4, 8), ("cyclic:2", 4, 4)])
def test_as_many_ranks_are_looked_at_as_there_are_that_differ(layout, leaf, ranks):
    levels = Hierarchy.written({"leaf": leaf}, 48)
    looked_at = few(rounds("alltoall", "pairwise", 48, layout, 8), levels, {}, MOST)
    assert (looked_at.played.ranks, looked_at.played.messages) == (ranks, 47 * ranks)


def test_ranks_that_differ_are_all_looked_at():
    """Leaves of 5 of 48 nodes, blocks that differ by a byte, and more messages than wanted."""
    exchange = rounds("alltoall", "pairwise", 48, "block:1", 8)
    even, odd = (Hierarchy.written({"leaf": leaf}, 48) for leaf in (4, 5))
    assert few(exchange, odd, {}, MOST) is None
    assert few(rounds("allreduce", "ring", 48, "block:1", 8, more=1), even, {}, MOST) is None
    assert few(exchange, even, {}, 4 * 47 - 1) is None
    assert few(exchange, even, {"leaf": 5}, MOST) is None  # the destination tells which of five links is taken
    assert few(exchange, even, {"leaf": 4}, MOST) is not None


def test_nodes_that_the_levels_do_not_know_are_refused():
    with pytest.raises(UserError, match="the levels know 24 nodes, found node 47"):
        few(rounds("alltoall", "pairwise", 48, "block:1", 8), Hierarchy.written({"leaf": 4}, 24), {}, MOST)


def test_a_pairwise_exchange_of_thousands_is_priced_by_those_of_one_leaf():
    """16,384 ranks, 268 million messages: what all wait for is the way out of their leaf."""
    ranks, size, out = 16384, 65536, 6e-10
    priced = model(**{"c_out.leaf.a": out})
    values = replace(priced.values, settings={"levels": Hierarchy.written({"leaf": 16}, ranks).settings})
    exchange = rounds("alltoall", "pairwise", ranks, "block:1", size)
    seconds = Model(priced.entry, values).cost(exchange)[0]
    assert "whole" not in exchange.__dict__
    busy = (ranks - 16) * 16 * size * out
    assert busy < seconds < 1.1 * busy
