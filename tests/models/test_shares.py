"""Shares: lines that messages share against a slow fluid simulation, and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models.families import family, shares
from commodel.models.pricing import link_sharing
from commodel.models.pricing.shared_lines import Busy
from commodel.models.pricing.values import Values
from commodel.patterns import build
from commodel.patterns.repeated import Long
from commodel.patterns.schedule import Schedule
from commodel.predictions.model import Model
from tests.models.sharedlines import fluid, model
from tests.models.truths.shares import C_OUT, C_PAIR, O_R, O_S, G, L, one_way
from tests.patterns.catalogue import point


def across(flows, size, first=0, second=4):
    return Schedule.of(24, 0, first + np.arange(flows), second + np.arange(flows), size)


def joined(one, other):
    ends = (np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("src", "dst"))
    return Schedule.of(24, 0, *ends, 10**6)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.floats(0, 50))
def test_messages_that_begin_together_get_equal_shares(sizes, begin):
    sizes = np.array(sizes, dtype=float)
    ends = Busy(1).through(np.zeros(len(sizes), dtype=int), np.full(len(sizes), begin), sizes)
    np.testing.assert_allclose(ends[sizes > 0], fluid([begin] * len(sizes), sizes)[sizes > 0])


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 10)), min_size=1, max_size=12))
def test_a_line_works_as_long_as_there_is_work_and_nobody_is_faster_than_alone(messages):
    start, last = np.array(messages, dtype=float).T
    ends = Busy(1).through(np.zeros(len(start), dtype=int), start, last)
    slow = fluid(start, last)
    assert ends.max() == pytest.approx(slow.max())
    assert np.all(ends >= start + last - 1e-9)
    assert np.all(ends >= slow - 1e-9) or len(set(last)) > 1


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 10)), min_size=2, max_size=8), st.integers(1, 7))
def test_what_earlier_steps_left_on_a_line_is_done_first(messages, cut):
    """Step after step, in the order of time, a line is free when it would be in one step."""
    start, last = np.array(sorted(messages), dtype=float).T
    line, cut = Busy(1), min(cut, len(start) - 1)
    ends = [
        line.through(np.zeros(len(part), dtype=int), start[part], last[part])
        for part in (np.arange(cut), np.arange(cut, len(start)))
    ]
    assert float(line.until[0]) == pytest.approx(fluid(start, last).max())
    assert np.concatenate(ends).max() <= fluid(start, last).max() + 1e-9


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_messages_between_two_leaves_share_the_narrower_line(flows):
    size = 1_000_000
    alone = O_S + O_R + L["beyond"]
    out = model(**{"c_out.leaf.a": C_OUT}).cost(across(flows, size))[0]
    assert out == pytest.approx(alone + size * max(G["beyond"], flows * C_OUT))
    pair = model(**{"c_out.leaf.a": C_OUT, "c_pair.leaf.a": C_PAIR}).cost(across(flows, size))[0]
    assert pair == pytest.approx(alone + size * max(G["beyond"], flows * C_PAIR))


@pytest.mark.parametrize("links", [1, 2, 4])
def test_a_destination_may_tell_which_of_several_links_a_message_takes(links):
    """From nodes 0 to 3, on one leaf, to every fourth node of others: of four links, or of two, all take the same."""
    size, values = 1_000_000, model(**{"c_out.leaf.a": G["beyond"] / 4})
    known = replace(values.values, settings={**values.values.settings, "links": {"leaf": links}})
    one, several = (Schedule.of(24, 0, np.arange(4), target, size) for target in ([4, 9, 14, 19], [4, 8, 12, 16]))
    alone, same = (Model(values.entry, known).cost(pattern)[0] for pattern in (one, several))
    assert alone == pytest.approx(O_S + O_R + L["beyond"] + size * G["beyond"])
    assert same == pytest.approx(O_S + O_R + L["beyond"] + size * G["beyond"] * links)


def test_groups_that_nothing_joins_do_not_disturb_each_other():
    one, priced, joining = across(4, 10**6), model(**{"c_out.leaf.a": C_OUT}), model(**{"c_all.leaf.a": C_OUT})
    both = joined(one, across(4, 10**6, 8, 12))
    assert priced.cost(both) == pytest.approx(priced.cost(one))
    assert joining.cost(both)[0] > 1.9 * joining.cost(one)[0]


def test_both_ways_of_a_half_duplex_line_share_it():
    there = across(4, 10**6)
    both = joined(there, across(4, 10**6, 4, 0))
    full = model(**{"c_out.leaf.a": C_OUT})
    settings = {**full.values.settings, "half": ["leaf"]}
    half = Model.of(full.entry, Values(full.values.numbers, full.values.forms, settings))
    assert full.cost(both) == pytest.approx(full.cost(there), rel=1e-3)
    assert half.cost(both)[0] > 1.9 * half.cost(there)[0]


@pytest.mark.parametrize(("operation", "choice", "near"), [("allreduce", "ring", 1e-6), ("alltoall", "pairwise", 0.12)])
def test_rounds_gone_through_one_by_one_cost_about_what_they_cost_written_out(operation, choice, near, monkeypatch):
    """Exactly so where no message of a round meets one of the next."""
    monkeypatch.setattr(build, "WRITTEN", 0)
    rounds = build.schedule(point(operation, choice, ranks=12, bytes=12 * 4096))
    assert isinstance(rounds, Long)
    priced = model(**{"c_out.leaf.a": C_OUT})
    written = priced.cost(rounds)
    monkeypatch.setattr(link_sharing, "WRITTEN", 0)
    assert priced.cost(rounds) == pytest.approx(written, rel=near)


def test_a_ring_of_thousands_whose_messages_meet_nowhere_is_neither_written_out_nor_gone_through():
    """In the steady state a round takes as long as the way around the ring does on average, or the slowest message."""
    ranks = 8192
    levels = Hierarchy.written({"leaf": 16}, ranks)
    priced = model(**{"c_out.leaf.a": C_OUT})
    values = replace(priced.values, settings={"levels": levels.settings})
    ring = build.schedule(point("allreduce", "ring", ranks=ranks, bytes=ranks * 16)).placed(np.arange(ranks))
    seconds = Model(priced.entry, values).cost(ring)[0]
    assert "whole" not in ring.__dict__
    near, far = (one_way(name, 16) for name in ("leaf", "beyond"))
    assert seconds == pytest.approx(2 * ranks * (15 * near + far) / 16, rel=0.01)


def test_a_class_without_values_is_not_priced():
    priced = model()
    lacking = {name: number for name, number in priced.values.numbers.items() if ".beyond" not in name}
    with pytest.raises(UserError, match="not probed: ranks in different leaf"):
        Model(priced.entry, Values(lacking, priced.values.forms, priced.values.settings)).cost(across(1, 8))


@pytest.mark.parametrize("copies", [True, False])
def test_copies_and_reductions_take_what_each_takes(copies):
    """Of a set without copies, as older ones are, a copy takes as long as a reduction."""
    values = model(**{"gamma.64": 64e-10, "gamma.6400": 6400e-10}).values
    if copies:
        numbers = dict(values.numbers) | {f"copy.{size}": np.array([[size * 6e-11]]) for size in (64, 6400)}
        values = replace(values, numbers=numbers, forms=dict(values.forms) | {"copy": "table"})
    for operation, choice, rate in (
        ("alltoall", "bruck", 6e-11 if copies else 1e-10),
        ("reduce", "binomial", 1e-10),
    ):
        pattern = build.schedule(point(operation, choice, ranks=8, bytes=640))
        assert len(pattern.work.bytes) > 3
        np.testing.assert_allclose(link_sharing.work_of(pattern, values)[0], pattern.work.bytes * rate)


@pytest.mark.parametrize("size", [512, 30_000, 1 << 20])
def test_messages_within_a_node_share_what_their_size_leaves(size):
    """Its own between two samples, the last one's beyond them."""
    pattern = Schedule.of(4, 0, range(4), [1, 2, 3, 0], size).placed(np.zeros(4, dtype=int))

    def finish(**inside):
        values = {"o_s": O_S, "o_r": O_R, "L.node.a": L["node"], "G.node.a": G["node"], "gamma.64": 0.0} | inside
        stacked = {name: np.array([[number]]) for name, number in values.items()}
        forms = {"gamma": "table", "c_inside.node": "table"}
        return Model.of(family("shares"), Values(stacked, forms)).cost(pattern)[0]

    by_size = np.interp(size, [1024, 65536], [2e-10, 4e-10])
    several = {"c_inside.node.1024": 2e-10, "c_inside.node.65536": 4e-10}
    assert finish(**several) == pytest.approx(one_way("node", size, 4 * by_size))


def test_lines_that_lead_opposite_ways_share_what_comes_back():
    """Between two leaves: three messages against one each get what the fuller of the two lines leaves each."""
    size, both = 1_000_000, joined(across(3, 10**6), across(1, 10**6, 4, 0))
    for line in ("c_out.leaf.a", "c_pair.leaf.a"):
        free, held = (shares.price(both, model(**{line: C_OUT}, **back).values) for back in ({}, {"back": 0.05}))
        last = O_S + L["beyond"] + O_R + size * 3.05 * C_OUT
        assert free[0, 0] == pytest.approx(O_S + L["beyond"] + O_R + size * G["beyond"])
        np.testing.assert_allclose(held[0, [0, 4, 5, 6]], last, rtol=1e-6)
