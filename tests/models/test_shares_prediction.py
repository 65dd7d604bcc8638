"""Model `shares`: the compiled replay in time order compared with a reference simulation, with
closed forms, and with replays that use symmetry or repeated rounds."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.models.evaluation import (
    native_library,
    repeated_rounds,
    shares_prediction,
    time_order,
)
from commodel.models.evaluation.repeated_rounds import find_representatives
from commodel.models.evaluation.shared_links import BusyPeriods, SharedLinks
from commodel.models.evaluation.time_order import (
    MAX_QUEUE,
    Bundles,
    RankPrograms,
    Traffic,
    replay_in_time,
    replay_parts,
)
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, shares
from commodel.models.fitting.link_capacities import fit_header
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.fitting.round_trips import BURST_MESSAGES, RoundTrips
from commodel.patterns import build
from commodel.patterns.layouts import place_ranks
from commodel.patterns.rank_local_steps import make_rank_local_schedule
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.patterns.schedule import Schedule, Work
from commodel.predictions.model import Model
from commodel.progress import listen_with
from tests.models.truths.shares import C_OUT, C_PAIR, O_R, O_S, G, L, fluid, model, one_way
from tests.patterns import reference_link_sharing
from tests.patterns.catalogue import point
from tests.patterns.rank_local import built, programs

TIMES = st.integers(0, 9)
NO_WORK = np.zeros(0)


def simulate(pattern, rendezvous, waits, uses, costs, opposite, bundled=False, one_at_a_time=False):
    links_passed, offsets = defaultdict(dict), defaultdict(dict)
    offset_of_use = np.zeros(len(costs.uses)) if costs.offsets is None else costs.offsets
    columns = *uses, costs.uses, offset_of_use
    for number, link, seconds, offset in zip(*(column.tolist() for column in columns), strict=True):
        if seconds:  # else the message does not wait for the link
            links_passed[number][link], offsets[number][link] = seconds, offset
    opposites = {link: other for link, other in enumerate(opposite.tolist()) if other >= 0}
    columns = (np.broadcast_to(column, pattern.src.shape) for column in (costs.send, costs.receive))
    columns = *columns, costs.wire, costs.unshared, costs.work
    weights = np.ones(len(pattern.src)) if costs.weights is None else costs.weights
    kinds = opposites, costs.opposite_share, bundled, one_at_a_time, weights
    return reference_link_sharing.finish_times(
        pattern, rendezvous, waits, links_passed, offsets, *kinds, *columns
    )


@st.composite
def traffics(draw):
    """Draw a schedule, its rendezvous messages, the messages that their senders wait for, uses of
    three links, times, and opposite links."""
    try:
        pattern = built(*draw(programs()))
    except UserError:
        assume(False)
    several = len(pattern.src)

    def column(values):
        return np.array(draw(st.lists(values, min_size=several, max_size=several)))

    links = np.concatenate([column(st.integers(0, 3)), column(st.integers(0, 3))])  # 3: none
    message, on = np.tile(np.arange(several), 2), links < 3
    on[several:] &= links[several:] != links[:several]
    rendezvous, waits = column(st.booleans()), column(st.booleans())
    wire, unshared = column(TIMES).astype(float), column(TIMES).astype(float)
    uses = np.concatenate([column(TIMES), column(TIMES)]).astype(float)[on]
    count = int(links[on].max(initial=-1)) + 1
    opposite = np.array(draw(st.sampled_from([[-1, -1, -1], [1, 0, -1], [-1, 2, 1], [0, 2, 1]])))[
        :count
    ]
    costs = column(TIMES), column(TIMES), wire, unshared, uses, pattern.work_seconds(0.0)
    share = draw(st.sampled_from([0.05, 0.25]))
    opposite = np.where(opposite < count, opposite, -1)
    weights = column(st.sampled_from([1.0, 0.5, 0.3])) if draw(st.booleans()) else None
    # of the latency, before the second link
    offsets = draw(st.none() | st.sampled_from([0.5, 1.0]))
    if offsets:
        offsets = np.concatenate([np.zeros(several), offsets * wire])[on]
    costs = Traffic(*costs, share, weights, offsets)
    return pattern, rendezvous, rendezvous & waits, (message[on], links[on]), costs, opposite


@settings(max_examples=100)
@given(traffics())
def test_link_sharing_by_weights_equals_the_reference_simulation(traffic):
    pattern, rendezvous, waits, uses, costs, opposite = traffic
    program, wanted = (
        RankPrograms.of(pattern, rendezvous, uses, False, waits, opposite),
        simulate(*traffic),
    )
    if wanted is None:
        with pytest.raises(UserError, match="ranks wait for each other"):
            replay_in_time(program, costs)
    else:
        np.testing.assert_allclose(replay_in_time(program, costs), wanted, atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_many_messages_on_few_links_are_shared_as_in_the_reference(seed):
    """Messages have few or many sizes, so they leave links in the order of arrival or in another
    order. If the seed is a multiple of 3, messages between two ranks are transferred one at a
    time."""
    rng, one_at_a_time = np.random.default_rng(seed), seed % 3 == 0
    ranks, several = int(rng.integers(2, 6)), int(rng.integers(40, 100))
    src = rng.integers(0, ranks, several)
    dst = (src + rng.integers(1, ranks, several)) % ranks
    pattern = Schedule.of(ranks, np.sort(rng.integers(0, 4, several)), src, dst, 8)
    uses = np.divmod(np.flatnonzero(rng.random(5 * several) < 0.4), 5)
    sizes = rng.random(several) if seed % 2 or one_at_a_time else rng.integers(1, 4, several)
    rendezvous = rng.random(several) < rng.choice([0.0, 0.3])
    unshared = sizes * (not one_at_a_time)  # messages that go one at a time wait for links
    weights = rng.choice([1.0, 0.4], several) if seed > 5 else None
    # a part of the latency
    offsets = rng.random(len(uses[0])) * sizes[uses[0]] if seed > 8 else None
    link_seconds = sizes[uses[0]] * (1 + uses[1] % 2)
    costs = Traffic(
        sizes / 4, sizes / 4, sizes, unshared, link_seconds, NO_WORK, 0.05, weights, offsets
    )
    opposite = np.array([1, 0, 3, 2, 4 - 5 * (seed % 2)]) if seed % 4 > 1 else np.full(5, -1)
    wanted = simulate(
        pattern, rendezvous, rendezvous, uses, costs, opposite, one_at_a_time=one_at_a_time
    )
    ends = replay_in_time(
        RankPrograms.of(pattern, rendezvous, uses, one_at_a_time, rendezvous, opposite), costs
    )
    np.testing.assert_allclose(ends, wanted, atol=1e-6)


def test_segments_sent_one_at_a_time_form_a_pipeline_and_concurrent_ones_do_not():
    """A segment takes 5 + 4 on each of p − 1 links; each later segment adds 5. If all segments of
    the first rank share its link, all arrive late."""
    ranks, parts, o_s, o_r, L, lasts = 8, 40, 1.0, 1.0, 2.0, 5.0
    segment, src = np.divmod(np.arange(parts * (ranks - 1)), ranks - 1)
    pattern, rendezvous = (
        Schedule.of(ranks, segment + src, src, src + 1, 8),
        np.zeros(len(segment), dtype=bool),
    )
    costs = Traffic(
        o_s, o_r, *(np.full(len(rendezvous), seconds) for seconds in (L, lasts, lasts)), NO_WORK
    )
    programs = (
        RankPrograms.of(pattern, rendezvous, (np.arange(len(segment)), pattern.src), turn)
        for turn in (True, False)
    )
    one_at_a_time, sharing = (replay_in_time(program, costs)[-1] for program in programs)
    assert one_at_a_time == pytest.approx(
        (ranks - 1) * (o_s + lasts + L + o_r) + (parts - 1) * lasts
    )
    assert sharing > 1.3 * one_at_a_time


def test_a_rendezvous_sender_waits_for_delivery_or_only_for_the_send():
    """The message is sent at 1 s; the transfer takes 3 s and the latency 2 s. The receive is posted
    at once, or after 7 s of work."""
    pattern = make_rank_local_schedule(
        2, [0], [1], 8, 0, 0, 1, 1, work=Work.compute(0, np.array([1]), np.array([0.0, 7.0]))
    )
    for work, waits, wanted in (
        (0.0, True, [4.0, 7.0]),
        (7.0, False, [1.0, 7.0 + 3.0 + 2.0 + 1.0]),
    ):
        program = RankPrograms.of(
            pattern, np.array([True]), (np.array([0]), np.array([0])), waits=np.array([waits])
        )
        costs = Traffic(
            1.0, 1.0, np.array([2.0]), np.array([3.0]), np.array([3.0]), np.array([work])
        )
        np.testing.assert_allclose(replay_in_time(program, costs), wanted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STRUCTURE_VERSION", native_library.STRUCTURE_VERSION + 1),
        ("LIBRARY_FILE", "/nowhere/libreplay.so"),
    ],
)
def test_an_outdated_or_missing_replay_library_is_an_error_with_the_build_command(
    monkeypatch, name, value
):
    monkeypatch.setattr(native_library, name, value)
    with pytest.raises(UserError, match="not compiled here; call commodel build replay"):
        native_library.load_library.__wrapped__()


def chains(seed):
    """Return two chains of ranks in opposite directions that forward segments, some of half the
    length, over the outgoing and incoming ports of each rank; with their costs and the pairs of
    opposite links."""
    rng = np.random.default_rng(seed)
    ranks, parts = int(rng.integers(3, 6)), int(rng.integers(MAX_QUEUE + 1, 2 * MAX_QUEUE))
    segment, hop = np.divmod(np.arange(parts * (ranks - 1)), ranks - 1)
    back = rng.random(len(segment)) < rng.choice([0.0, 0.5])
    src, dst = np.where(back, ranks - 1 - hop, hop), np.where(back, ranks - 2 - hop, hop + 1)
    bytes = np.where(rng.random(parts) < 0.3, 4, 8)[segment]
    pattern = make_rank_local_schedule(ranks, src, dst, bytes, *[hop + segment] * 4)
    message, link = (
        np.repeat(np.arange(len(segment)), 2),
        np.stack([pattern.src, ranks + pattern.dst], axis=1).ravel(),
    )
    opposite = (np.arange(2 * ranks) + ranks) % (2 * ranks)
    c, o = rng.integers(1, 5, 2 * ranks).astype(float), float(rng.integers(0, 4))
    costs = c[link] * pattern.bytes[message]
    rendezvous = rng.random(len(segment)) < rng.choice([0.0, 0.1])
    weights = rng.choice([1.0, 0.4], (ranks, ranks))[pattern.src, pattern.dst] if seed % 2 else None
    traffic = Traffic(
        o, o, np.full(len(segment), 3.0), 2.0 * pattern.bytes, costs, NO_WORK, 0.05, weights
    )
    return pattern, rendezvous, rendezvous, (message, link), traffic, opposite


@pytest.mark.parametrize("seed", range(30))
def test_the_slowest_link_of_a_bundle_limits_the_messages_of_the_bundle(seed):
    pattern, rendezvous, _, uses, costs, opposite = traffic = chains(seed)
    bundles = Bundles.of_queues(pattern, rendezvous, *uses, opposite)
    ends = replay_in_time(
        RankPrograms.of(pattern, rendezvous, uses, opposite=opposite, bundles=bundles), costs
    )
    np.testing.assert_allclose(ends, simulate(*traffic, bundled=bundles is not None), rtol=1e-9)


def test_only_long_queues_are_replayed_in_bundles():
    """Only a chain with more than MAX_QUEUE segments has queues that form bundles."""
    for operation, choice, size, queues in (
        ("bcast", f"chain:{1 << 10}B", (MAX_QUEUE + 1) << 10, True),
        ("bcast", f"chain:{1 << 10}B", MAX_QUEUE << 10, False),
        ("allgather", "ring", 1024, False),
        ("alltoall", "linear", 1024, False),
    ):
        pattern = build.build_schedule(point(operation, choice, ranks=24, bytes=size))
        every = np.arange(len(pattern.src))
        bundles = Bundles.of_queues(pattern, every < 0, every, pattern.src, np.full(24, -1))
        assert (bundles is not None) == queues, choice


def make_flows(flows, size, first=0, second=4):
    return Schedule.of(24, 0, first + np.arange(flows), second + np.arange(flows), size)


def join_schedules(one, other):
    ends = (
        np.concatenate([getattr(part, name) for part in (one, other)]) for name in ("src", "dst")
    )
    return Schedule.of(24, 0, *ends, 10**6)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.floats(0, 50))
def test_messages_that_begin_at_once_get_equal_shares(sizes, begin):
    sizes = np.array(sizes, dtype=float)
    ends = BusyPeriods(1).share_links(
        np.zeros(len(sizes), dtype=int), np.full(len(sizes), begin), sizes
    )
    np.testing.assert_allclose(ends[sizes > 0], fluid([begin] * len(sizes), sizes)[sizes > 0])


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 10)), min_size=1, max_size=12))
def test_a_link_is_busy_while_there_is_work_and_no_message_is_faster_than_unshared(messages):
    start, last = np.array(messages, dtype=float).T
    ends = BusyPeriods(1).share_links(np.zeros(len(start), dtype=int), start, last)
    exact = fluid(start, last)
    assert ends.max() == pytest.approx(exact.max())
    assert np.all(ends >= start + last - 1e-9)
    assert np.all(ends >= exact - 1e-9) or len(set(last)) > 1


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 10)), min_size=2, max_size=8),
    st.integers(1, 7),
)
def test_messages_of_earlier_steps_keep_a_link_busy(messages, cut):
    """If steps are in the order of time, a link becomes free at the same time as with all messages
    in one step."""
    start, last = np.array(sorted(messages), dtype=float).T
    link, cut = BusyPeriods(1), min(cut, len(start) - 1)
    ends = [
        link.share_links(np.zeros(len(part), dtype=int), start[part], last[part])
        for part in (np.arange(cut), np.arange(cut, len(start)))
    ]
    assert float(link.until[0]) == pytest.approx(fluid(start, last).max())
    assert np.concatenate(ends).max() <= fluid(start, last).max() + 1e-9


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_messages_between_two_leaves_share_the_slower_link(flows):
    size = 1_000_000
    unshared = O_S + O_R + L["beyond"]
    out = model(**{"c_out.leaf.a": C_OUT}).cost(make_flows(flows, size))[0]
    assert out == pytest.approx(unshared + size * max(G["beyond"], flows * C_OUT))
    pair = model(**{"c_out.leaf.a": C_OUT, "c_pair.leaf.a": C_PAIR}).cost(make_flows(flows, size))[
        0
    ]
    assert pair == pytest.approx(unshared + size * max(G["beyond"], flows * C_PAIR))


@pytest.mark.parametrize("links", [1, 2, 4])
def test_a_destination_may_select_one_of_several_links(links):
    """Nodes 0 to 3 of one leaf send to every fourth node of other leaves: all messages select the
    same of two or of four links."""
    size, values = 1_000_000, model(**{"c_out.leaf.a": G["beyond"] / 4})
    known = replace(values.values, settings={**values.values.settings, "links": {"leaf": links}})
    one, several = (
        Schedule.of(24, 0, np.arange(4), target, size)
        for target in ([4, 9, 14, 19], [4, 8, 12, 16])
    )
    unshared, shared = (Model(values.family, known).cost(pattern)[0] for pattern in (one, several))
    assert unshared == pytest.approx(O_S + O_R + L["beyond"] + size * G["beyond"])
    assert shared == pytest.approx(O_S + O_R + L["beyond"] + size * G["beyond"] * links)


def test_groups_without_a_common_link_have_no_contention():
    one, predicted, joining = (
        make_flows(4, 10**6),
        model(**{"c_out.leaf.a": C_OUT}),
        model(**{"c_all.leaf.a": C_OUT}),
    )
    both = join_schedules(one, make_flows(4, 10**6, 8, 12))
    assert predicted.cost(both) == pytest.approx(predicted.cost(one))
    assert joining.cost(both)[0] > 1.9 * joining.cost(one)[0]


def test_both_directions_share_a_half_duplex_link():
    there = make_flows(4, 10**6)
    both = join_schedules(there, make_flows(4, 10**6, 4, 0))
    full = model(**{"c_out.leaf.a": C_OUT})
    settings = {**full.values.settings, "half_duplex": ["leaf"]}
    half = Model.of(full.family, Values(full.values.numbers, full.values.forms, settings))
    assert full.cost(both) == pytest.approx(full.cost(there), rel=1e-3)
    assert half.cost(both)[0] > 1.9 * half.cost(there)[0]


@pytest.mark.parametrize(
    ("operation", "choice", "near"), [("allreduce", "ring", 1e-6), ("alltoall", "pairwise", 0.13)]
)
def test_rounds_replayed_one_by_one_take_about_as_long_as_expanded_ones(
    operation, choice, near, monkeypatch
):
    """The times are equal if no message of a round shares a link with one of the next."""
    monkeypatch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
    rounds = build.build_schedule(point(operation, choice, ranks=12, bytes=12 * 4096))
    assert isinstance(rounds, CompactSchedule)
    predicted = model(**{"c_out.leaf.a": C_OUT})
    written = predicted.cost(rounds)
    monkeypatch.setattr(shares_prediction, "MAX_EXPANDED_MESSAGES", 0)
    assert predicted.cost(rounds) == pytest.approx(written, rel=near)


def test_a_ring_of_thousands_without_contention_is_neither_expanded_nor_replayed():
    """In the steady state a round takes the mean time of a message around the ring, or that of the
    slowest message."""
    ranks = 8192
    levels = Hierarchy.written({"leaf": 16}, ranks)
    predicted = model(**{"c_out.leaf.a": C_OUT})
    values = replace(predicted.values, settings={"levels": levels.group_lists})
    ring = build.build_schedule(point("allreduce", "ring", ranks=ranks, bytes=ranks * 16)).place(
        np.arange(ranks)
    )
    seconds = Model(predicted.family, values).cost(ring)[0]
    assert "whole" not in ring.__dict__
    near, far = (one_way(name, 16) for name in ("leaf", "beyond"))
    assert seconds == pytest.approx(2 * ranks * (15 * near + far) / 16, rel=0.01)


def test_a_class_without_values_has_no_prediction():
    predicted = model()
    lacking = {
        name: number for name, number in predicted.values.numbers.items() if ".beyond" not in name
    }
    with pytest.raises(UserError, match="not probed: ranks in different leaf"):
        Model(
            predicted.family, Values(lacking, predicted.values.forms, predicted.values.settings)
        ).cost(make_flows(1, 8))


@pytest.mark.parametrize("copies", [True, False])
def test_copies_and_reductions_have_their_own_times_per_byte(copies):
    """Without a time of copies, a copy takes as long as a reduction."""
    values = model(**{"gamma.64": 64e-10, "gamma.6400": 6400e-10}).values
    if copies:
        numbers = dict(values.numbers) | {
            f"copy.{size}": np.array([[size * 6e-11]]) for size in (64, 6400)
        }
        values = replace(values, numbers=numbers, forms=dict(values.forms) | {"copy": "table"})
    for operation, choice, rate in (
        ("alltoall", "bruck", 6e-11 if copies else 1e-10),
        ("reduce", "binomial", 1e-10),
    ):
        pattern = build.build_schedule(point(operation, choice, ranks=8, bytes=640))
        assert len(pattern.work.bytes) > 3
        np.testing.assert_allclose(
            shares_prediction.compute_work_seconds(pattern, values)[0], pattern.work.bytes * rate
        )


@pytest.mark.parametrize("size", [512, 30_000, 1 << 20])
def test_the_capacity_within_a_node_depends_on_the_message_size(size):
    """The capacity is interpolated between two samples and constant beyond them."""
    pattern = Schedule.of(4, 0, range(4), [1, 2, 3, 0], size).place(np.zeros(4, dtype=int))

    def finish(**inside):
        values = {
            "o_s": O_S,
            "o_r": O_R,
            "L.node.a": L["node"],
            "G.node.a": G["node"],
            "gamma.64": 0.0,
        } | inside
        stacked = {name: np.array([[number]]) for name, number in values.items()}
        forms = {"gamma": "table", "c_inside.node": "table"}
        return Model.of(find_family("shares"), Values(stacked, forms)).cost(pattern)[0]

    by_size = np.interp(size, [1024, 65536], [2e-10, 4e-10])
    several = {"c_inside.node.1024": 2e-10, "c_inside.node.65536": 4e-10}
    assert finish(**several) == pytest.approx(one_way("node", size, 4 * by_size))


def test_acknowledgements_share_the_opposite_link():
    """Three messages meet one message in the opposite direction. All four are limited by the busier
    of the two links."""
    size, both = 1_000_000, join_schedules(make_flows(3, 10**6), make_flows(1, 10**6, 4, 0))
    for link in ("c_out.leaf.a", "c_pair.leaf.a"):
        free, delayed = (
            shares.predict(both, model(**{link: C_OUT}, **back).values)
            for back in ({}, {"back": 0.05})
        )
        last = O_S + L["beyond"] + O_R + size * 3.05 * C_OUT
        assert free[0, 0] == pytest.approx(O_S + L["beyond"] + O_R + size * G["beyond"])
        # Messages reach the link into their leaf after their latency, so links are not busy at
        # exactly the same time.
        np.testing.assert_allclose(delayed[0, [0, 4, 5, 6]], last, atol=L["beyond"])


PATTERNS = [
    ("alltoall", "pairwise"),
    ("allgather", "ring"),
    ("allreduce", "ring"),
    ("reduce-scatter", "pairwise"),
]
KINDS = [
    f"c_{kind}.{level}" for kind in ("out", "pair", "all") for level in ("node", "leaf", "group")
]
FAR = {"L.group.a": 3e-5, "G.group.a": 1.1e-9}
MAX_MESSAGES = 1 << 20


def rounds(operation, algorithm, ranks, layout, size, more=0):
    """Return repeated rounds that are not expanded, with a block of `bytes` in each message; `more`
    blocks are a byte longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MAX_EXPANDED_MESSAGES", 0)
        bytes = size if operation in ("alltoall", "allgather") else size * ranks + more
        return build.build_schedule(
            point(operation, algorithm, ranks=ranks, bytes=bytes, layout=layout)
        )


@st.composite
def draw_network(draw):
    """Draw a network with link capacities, and rounds on it."""
    ranks, layout = (
        draw(st.sampled_from([12, 16, 24, 36])),
        draw(st.sampled_from(["block:1", "block:2", "cyclic:2"])),
    )
    leaf, inner = draw(st.integers(2, 6)), draw(st.integers(1, 3))
    nodes = int(place_ranks(layout, ranks).max()) + 1
    levels = Hierarchy.written({"leaf": leaf, "group": leaf * inner}, nodes)
    capacities, costs = st.sets(st.sampled_from(KINDS)), st.sampled_from([3e-10, 1e-9, 2e-9])
    numbers = {f"{name}.a": draw(costs) for name in sorted(draw(capacities))}
    numbers |= draw(st.sampled_from([{}, {"back": 0.05}]))
    numbers |= draw(st.sampled_from([{}, {"S": 5000.0}, {"S": 100.0}, {"S": 5000.0, "E": 0.0}]))
    settings = {
        "levels": levels.group_lists,
        "half_duplex": sorted(draw(st.sets(st.sampled_from(["node", "leaf", "group"])))),
    }
    settings |= draw(
        st.sampled_from([{}, {"links": {"leaf": 2}}, {"links": {"leaf": 3}}, {"order": "turn"}])
    )
    predicted = model(**FAR, **numbers)
    schedule = rounds(
        *draw(st.sampled_from(PATTERNS)), ranks, layout, draw(st.sampled_from([8, 1000, 4096]))
    )
    return Model(predicted.family, replace(predicted.values, settings=settings)), levels, schedule


@given(draw_network())
def test_representative_ranks_take_as_long_as_all_ranks(case):
    predicted, levels, schedule = case
    assume(
        find_representatives(
            schedule, levels, predicted.values.settings.get("links", {}), MAX_MESSAGES
        )
        is not None
    )
    finish = predicted.family.predict(schedule, predicted.values)
    assert "whole" not in schedule.__dict__
    np.testing.assert_allclose(
        finish,
        shares_prediction.predict_in_time_order(schedule.whole, predicted.values, levels),
        rtol=1e-9,
    )


def test_ranks_that_are_not_symmetric_have_no_representatives():
    """Symmetry is broken by leaves of 5 of 48 nodes, or by blocks that differ by a byte. The
    message limit also excludes representatives."""
    exchange = rounds("alltoall", "pairwise", 48, "block:1", 8)
    even, odd = (Hierarchy.written({"leaf": leaf}, 48) for leaf in (4, 5))
    assert find_representatives(exchange, odd, {}, MAX_MESSAGES) is None
    assert (
        find_representatives(
            rounds("allreduce", "ring", 48, "block:1", 8, more=1), even, {}, MAX_MESSAGES
        )
        is None
    )
    assert find_representatives(exchange, even, {}, 4 * 47 - 1) is None
    # the destination selects one of five links
    assert find_representatives(exchange, even, {"leaf": 5}, MAX_MESSAGES) is None
    assert find_representatives(exchange, even, {"leaf": 4}, MAX_MESSAGES) is not None


def test_nodes_outside_the_levels_are_refused():
    with pytest.raises(UserError, match="the levels have 24 nodes, found node 47"):
        find_representatives(
            rounds("alltoall", "pairwise", 48, "block:1", 8),
            Hierarchy.written({"leaf": 4}, 24),
            {},
            MAX_MESSAGES,
        )


def test_a_pairwise_exchange_of_thousands_is_predicted_from_the_ranks_of_one_leaf():
    """16,384 ranks, 268 million messages. The links out of the leaves are the bottleneck."""
    ranks, size, out = 16384, 65536, 6e-10
    predicted = model(**{"c_out.leaf.a": out})
    values = replace(
        predicted.values, settings={"levels": Hierarchy.written({"leaf": 16}, ranks).group_lists}
    )
    exchange = rounds("alltoall", "pairwise", ranks, "block:1", size)
    seconds = Model(predicted.family, values).cost(exchange)[0]
    assert "whole" not in exchange.__dict__
    busy = (ranks - 16) * 16 * size * out
    assert busy < seconds < 1.1 * busy


def make_predicting_model(leaf, nodes, **numbers):
    values = model(**{"c_out.leaf.a": 1e-9}, **numbers)
    levels = Hierarchy.written({"leaf": leaf}, nodes)
    return Model(
        values.family, replace(values.values, settings={"levels": levels.group_lists})
    ), levels


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
@pytest.mark.parametrize(
    "numbers", [{}, {"S": 5000.0}, {"S": 100.0, "c_pair.leaf.a": 2e-9}, {"back": 0.05}]
)
@pytest.mark.parametrize("at_once", [1, 100])
def test_pieces_of_rounds_take_exactly_as_long_as_all_rounds(
    monkeypatch, operation, choice, layout, numbers, at_once
):
    """38 ranks on 38 or 19 nodes, in leaves of 5, with unequal blocks: no two ranks are
    symmetric."""
    ranks = 38
    values, levels = make_predicting_model(5, ranks, **numbers)
    schedule = rounds(operation, choice, ranks, layout, 4096, more=3)
    monkeypatch.setattr(repeated_rounds, "PIECE_MESSAGES", at_once)
    monkeypatch.setattr(time_order, "WINDOWS_NEEDED", time_order.KEPT_PARTS)  # none are skipped
    reports = []
    with listen_with(reports.append):
        some = shares_prediction.predict_in_pieces(schedule, values.values, levels)
    assert reports[0] == "draw 1 of 1"
    assert reports[-1].startswith("draw 1 of 1, piece ")
    assert reports[-1].endswith(f" of {len(reports) - 1}")
    assert "whole" not in schedule.__dict__
    np.testing.assert_array_equal(
        some, shares_prediction.predict_in_time_order(schedule.whole, values.values, levels)
    )


def lengthen(schedule, count):
    """Return a schedule with so many rounds in each part of repeated rounds."""
    parts = [
        replace(part, count=count) if isinstance(part, Rounds) else part for part in schedule.parts
    ]
    pieces = [repeated_rounds.Piece(part, 0, count).expand(schedule.node) for part in parts]
    begins = np.cumsum([0, *(piece.last_step + 1 for piece in pieces)])
    steps = [piece.step + begin for piece, begin in zip(pieces, begins, strict=False)]
    work = [
        replace(piece.work, step=piece.work.step + begin)
        for piece, begin in zip(pieces, begins, strict=False)
    ]
    columns = (
        np.concatenate([getattr(piece, name) for piece in pieces])
        for name in ("src", "dst", "bytes")
    )
    whole = Schedule.of(
        schedule.ranks, np.concatenate(steps), *columns, work=Work.concatenate(work)
    )
    return CompactSchedule(schedule.ranks, parts, None, lambda: whole).place(schedule.node)


RINGS = [("allgather", "ring"), ("allgather", "neighbor-exchange"), ("allreduce", "ring")]


def predict_skipping(key, ranks, per_node, size, limit, rng):
    """Return the relative errors of mean and maximum of the finish times of a long ring, of which
    similar pieces are skipped, and the share of the pieces that are simulated."""
    numbers = {
        "S": limit,
        "c_out.node.a": 2e-9,
        "c_inside.node.a": 5e-10,
        "L.node.a": 2e-7,
        "G.node.a": 2e-10,
    }
    numbers = {
        name: value * np.exp(rng.uniform(-2, 2) * (name != "S")) for name, value in numbers.items()
    }
    values, levels = make_predicting_model(5, ranks, **numbers)
    schedule = lengthen(rounds(*key, ranks, f"block:{per_node}", size), 240)
    reports = []
    with pytest.MonkeyPatch.context() as patch, listen_with(reports.append):
        patch.setattr(repeated_rounds, "PIECE_MESSAGES", 4 * ranks)
        some = shares_prediction.predict_in_pieces(schedule, values.values, levels)
    whole = shares_prediction.predict_in_time_order(schedule.whole, values.values, levels)
    errors = [some.mean() / whole.mean() - 1, some.max() / whole.max() - 1]
    return np.abs(errors).max(), (len(reports) - 1) / (60 * len(schedule.parts))


def test_similar_pieces_of_rounds_are_skipped():
    """Long rings on nodes of which the last one may have fewer ranks, with random parameters:
    predictions are near those of all messages. A few rings get slower and slower, which shows too
    late."""
    rng = np.random.default_rng(5)
    cases = [
        predict_skipping(
            RINGS[rng.integers(len(RINGS))],
            int(rng.choice([14, 22, 24])),
            int(rng.integers(2, 8)),
            int(rng.choice([48, 4800, 480000])),
            float(rng.choice([100.0, 5000.0, 1e9])),
            rng,
        )
        for _ in range(60)
    ]
    errors, simulated = np.transpose(cases)
    assert np.quantile(errors, 0.9) < 0.005
    assert errors.max() < 0.06
    assert simulated.mean() < 0.6


def test_of_a_long_ring_few_pieces_are_simulated(monkeypatch):
    """The senders wait for the receivers, so that after some rounds all ranks advance alike. Of
    both parts of the allreduce, the pieces that follow are skipped, except for the last ones."""
    values, levels = make_predicting_model(5, 24, S=100.0)
    schedule = lengthen(rounds("allreduce", "ring", 24, "block:5", 48000), 400)
    monkeypatch.setattr(repeated_rounds, "PIECE_MESSAGES", 4 * 24)
    reports = []
    with listen_with(reports.append):
        shares_prediction.predict_in_pieces(schedule, values.values, levels)
    assert reports[-1] == "draw 1 of 1, piece 200 of 200"
    assert len(reports) < 100


@pytest.mark.parametrize("size", [8, 1 << 20])
def test_of_a_long_pairwise_exchange_few_rounds_are_simulated(monkeypatch, size):
    """In most rounds, all messages are between nodes, and each of these rounds takes as long as the
    others."""
    ranks = 203
    numbers = {"S": 4096.0, "c_out.node.a": 2e-9, "c_inside.node.a": 5e-10}
    values, levels = make_predicting_model(ranks, ranks, **numbers)
    schedule = rounds("alltoall", "pairwise", ranks, "block:8", size)
    monkeypatch.setattr(repeated_rounds, "PIECE_MESSAGES", ranks)
    reports = []
    with listen_with(reports.append):
        some = shares_prediction.predict_in_pieces(schedule, values.values, levels)
    assert len(reports) < 0.6 * (ranks - 1)
    whole = shares_prediction.predict_in_time_order(schedule.whole, values.values, levels)
    np.testing.assert_allclose([some.mean(), some.max()], [whole.mean(), whole.max()], rtol=0.01)


@pytest.mark.parametrize(("ranks", "deviation"), [(96, 1e-9), (94, 0.02)])
@pytest.mark.parametrize("size", [8, 2048, 1 << 16])
def test_some_senders_represent_all_of_a_large_linear_exchange(monkeypatch, ranks, deviation, size):
    """12 nodes of 8 ranks, of which the last one may have 6: with the messages of the first node's
    ranks, finish times are those with all messages."""
    numbers = {"S": 4096.0, "S_inside": 512.0, "c_out.node.a": 2e-9, "c_inside.node.a": 5e-10}
    values = make_predicting_model(12, ranks, **numbers)[0]
    schedule = build.build_schedule(
        point("alltoall", "linear", ranks=ranks, bytes=size, layout="block:8")
    )
    whole = shares_prediction.predict(schedule, values.values)
    monkeypatch.setattr(shares_prediction, "MAX_EXCHANGE_MESSAGES", 0)
    replayed = []
    replay_in_time = shares_prediction.replay_in_time
    monkeypatch.setattr(
        shares_prediction,
        "replay_in_time",
        lambda program, costs: (
            replayed.append(program.schedule.messages) or replay_in_time(program, costs)
        ),
    )
    some = shares_prediction.predict(schedule, values.values)
    assert replayed == [8 * (ranks - 1)]
    assert some.shape == whole.shape
    np.testing.assert_allclose(
        [some.mean(), some.max()], [whole.mean(), whole.max()], rtol=deviation
    )


def test_long_exchanges_are_replayed_in_pieces_up_to_a_limit(monkeypatch):
    """Beyond the limit, rounds are replayed one by one: eager messages delay each other less, so
    the prediction is more than 10 % lower."""
    values, levels = make_predicting_model(7, 260, S=32768.0, **{"c_out.node.a": 2e-9})
    schedule = rounds("alltoall", "pairwise", 260, "block:1", 4096)
    exact = shares_prediction.predict_in_time_order(schedule.whole, values.values, levels).max()
    monkeypatch.setattr(shares_prediction, "MAX_EXPANDED_MESSAGES", 2000)
    monkeypatch.setattr(shares_prediction, "PIECE_MESSAGES", 1000)
    monkeypatch.setattr(repeated_rounds, "PIECE_MESSAGES", 1000)
    assert values.cost(schedule)[0] == exact
    assert values.family.limits(schedule, values.values) == ""
    monkeypatch.setattr(shares_prediction, "MAX_MESSAGES", 0)
    monkeypatch.setattr(shares_prediction, "MAX_RING_MESSAGES", 0)
    assert values.cost(schedule)[0] < 0.9 * exact
    assert "round by round" in values.family.limits(schedule, values.values)
    around = rounds("allgather", "ring", 260, "cyclic:2", 4096)
    assert "an eighth" in values.family.limits(around, values.values)
    even = make_predicting_model(5, 260)[0]
    assert (
        even.family.limits(rounds("alltoall", "pairwise", 260, "block:1", 4096), even.values) == ""
    )


def test_an_error_of_a_piece_is_raised():
    def part(number):
        raise UserError("no such piece")

    with pytest.raises(UserError, match="no such piece"):
        replay_parts(part, range(3), 100, 4)
    with pytest.raises(
        UserError,
        match="found a schedule in 3000 parts of up to 4194304 messages, wanted at most 512 parts",
    ):
        replay_parts(part, range(3000), 1 << 22, 4)


def test_pairs_of_nodes_may_have_latencies_of_their_own():
    """Each message takes the additional latency of its pair of nodes, as a single message and in a
    ring."""
    flat, nodes = model(), 16
    extra = np.triu(np.arange(nodes * nodes, dtype=float).reshape(nodes, nodes) * 1e-6, 1)
    settings = {**flat.values.settings, "pair_latency": extra[np.triu_indices(nodes, 1)].tolist()}
    uneven = Model.of(flat.family, Values(flat.values.numbers, flat.values.forms, settings))
    for one, two in ((0, 1), (3, 15), (15, 3)):
        message = Schedule.of(2, [0], [0], [1], 64).place(np.array([one, two]))
        pair_latency = extra[min(one, two), max(one, two)]
        assert uneven.cost(message)[0] == pytest.approx(flat.cost(message)[0] + pair_latency)
    ring = build.build_schedule(point("allgather", "ring", ranks=nodes, bytes=64))
    assert uneven.cost(ring)[0] > flat.cost(ring)[0] + extra[0, 15]


@pytest.mark.parametrize("far", [1, 9])
def test_messages_between_two_nodes_share_a_link_at_any_distance(far):
    """Two ranks of a node send to one other node. The port has the capacity for both messages, the
    link between the two nodes does not."""
    size, numbers = 10**6, {"c_out.node.a": 1e-10}
    both = Schedule.of(4, 0, [0, 1], [2, 3], size).place(np.array([0, 0, far, far]))
    apart = Schedule.of(4, 0, [0, 1], [2, 3], size).place(np.array([0, 0, far, far + 1]))
    known = model(**numbers, **{"c_pair.node.a": 2e-9})
    distance = "leaf" if far < 4 else "beyond"
    assert known.cost(both)[0] == pytest.approx(one_way(distance, size, 4e-9))
    assert known.cost(apart)[0] == pytest.approx(one_way(distance, size, 2e-9))


def test_shares_by_latency_are_smaller_for_distant_messages():
    """The message to the near node gets four fifths of the port until it ends. Then the message to
    the distant node gets the whole port."""
    size, port = 10**6, 2e-9
    schedule = Schedule.of(3, 0, [0, 0], [1, 2], size).place(np.array([0, 1, 9]))
    equal = model(**{"c_out.node.a": port, "o_s": 0.0})
    settings = {**equal.values.settings, "sharing": "latency"}
    weighted = Model.of(equal.family, Values(equal.values.numbers, equal.values.forms, settings))
    near, far = weighted.values, 1 + L["leaf"] / L["beyond"]
    finish = shares.predict(schedule, near)[0]
    assert finish[1] == pytest.approx(L["leaf"] + O_R + far * port * size)
    assert finish[2] == pytest.approx(L["beyond"] + O_R + 2 * port * size)
    assert shares.predict(schedule, equal.values)[0, 1] == pytest.approx(
        L["leaf"] + O_R + 2 * port * size
    )


@pytest.mark.parametrize("entry", ["path", "latency"])
def test_a_message_shares_a_link_from_the_arrival_at_the_link_on(entry):
    """A message occupies a port for 3 µs. Messages to a near and a distant node share the port of
    their sender, unless they use the port only after their latency. At one receiver they arrive one
    after the other in both cases."""
    size, port = 1000, 3e-9
    default = model(**{"c_out.node.a": port, "o_s": 0.0})
    settings = {**default.values.settings, "entry": entry}
    values = Model.of(
        default.family, Values(default.values.numbers, default.values.forms, settings)
    ).values
    once, shared = port * size, 2 * port * size
    nodes = np.array([0, 1, 9])
    sent = shares.predict(Schedule.of(3, 0, [0, 0], [1, 2], size).place(nodes), values)[0]
    expected = once if entry == "latency" else shared
    np.testing.assert_allclose(sent[1:], [L[name] + expected + O_R for name in ("leaf", "beyond")])
    received = shares.predict(Schedule.of(3, 0, [1, 2], [0, 0], size).place(nodes), values)[0, 0]
    assert received == pytest.approx(L["beyond"] + once + O_R)


def test_messages_share_the_links_of_a_torus():
    """In a ring of eight nodes, nodes 0 and 1 send to 3 and 2: both messages pass the link from 1
    to 2. The other pairs of messages have no common link."""
    size, c, flat = 10**6, 2e-9, model(o_s=0.0)
    numbers = {**flat.values.numbers, "c_hop.node.a": np.array([[c]])}
    numbers = {name: draws for name, draws in numbers.items() if not name.startswith("c_out")}
    settings = {"torus": [8], "pair_latency": [0.0] * 28, "entry": "latency"}
    values = Model.of(flat.family, Values(numbers, flat.values.forms, settings)).values
    for src, dst, load in (
        ([0, 1], [3, 2], 2),
        ([0, 3], [2, 5], 1),
        ([0, 4], [3, 1], 1),
        ([0, 5], [4, 2], 1),
    ):
        schedule = Schedule.of(8, 0, src, dst, size).place(np.arange(8))
        assert shares.predict(schedule, values)[0].max() == pytest.approx(
            L["beyond"] + load * c * size + O_R
        )


def test_latencies_of_pairs_grow_with_the_protocol_of_long_messages():
    """A message of more than 1,000 bytes makes three trips, over one hop or over several."""
    flat = model()
    numbers = {
        **flat.values.numbers,
        "L.leaf.x1": np.array([[1000.0]]),
        "L.leaf.a1": np.array([[3 * L["leaf"]]]),
    }
    settings = {
        "levels": flat.values.settings["levels"],
        "pair_latency": [0.0, 0.0, 2 * L["leaf"]] + [0.0] * 273,
    }
    forms = {**flat.values.forms, "L.leaf": "piecewise"}
    known = Model.of(flat.family, Values(numbers, forms, settings))
    for bytes, trips in ((8, 1), (10_000, 3)):
        for target, hops in ((1, 1), (3, 3)):
            message = Schedule.of(2, [0], [0], [1], bytes).place(np.array([0, target]))
            expected = O_S + trips * hops * L["leaf"] + bytes * G["leaf"] + O_R
            assert known.cost(message)[0] == pytest.approx(expected)


def test_ranks_on_a_torus_do_not_represent_each_other():
    flat = model(**{"c_hop.node.a": 5e-9})
    settings = {"torus": [4, 3]}
    numbers = {
        name: draws for name, draws in flat.values.numbers.items() if not name.startswith("c_out")
    }
    values = Model.of(flat.family, Values(numbers, flat.values.forms, settings)).values
    schedule = rounds("alltoall", "pairwise", 12, "block:1", 4096)
    expected = shares_prediction.predict_in_time_order(schedule.whole, values, Hierarchy())
    np.testing.assert_allclose(shares.predict(schedule, values), expected, rtol=1e-9)


@pytest.mark.parametrize("bytes", [0, 8, 1000])
def test_the_header_of_a_message_occupies_links_as_well(bytes):
    """The fitted latency of a single message includes the header. Concurrent messages of one port
    also wait for the headers of the others."""
    header, port, receivers = 100, 2e-9, 8
    plain = model(**{"c_out.node.a": port, "o_s": 0.0})
    settings = {**plain.values.settings, "entry": "latency"}
    numbers = {**plain.values.numbers, "H": np.array([[float(header)]])}
    values = Model.of(plain.family, Values(numbers, plain.values.forms, settings)).values
    nodes = np.array([0, *range(4, 4 + receivers)])
    single = Schedule.of(2, 0, 0, 1, bytes).place(nodes[:2])
    without = shares.predict(single, plain.values)[0, 1]
    extra = (port - G["beyond"]) * header  # the port is slower than a message alone
    assert shares.predict(single, values)[0, 1] == pytest.approx(without + extra)
    several = Schedule.of(
        1 + receivers, 0, [0] * receivers, np.arange(1, 1 + receivers), bytes
    ).place(nodes)
    expected = L["beyond"] - header * G["beyond"] + receivers * (bytes + header) * port + O_R
    np.testing.assert_allclose(shares.predict(several, values)[0, 1:], expected)
    within = Schedule.of(2, 0, 0, 1, bytes).place(np.zeros(2, dtype=int))
    assert shares.predict(within, values)[0, 1] == pytest.approx(
        L["node"] + bytes * G["node"] + O_R
    )


@pytest.mark.parametrize("layout", ["block:4", "block:1", "cyclic:3"])
@pytest.mark.parametrize("limits", [{"E": 0.0}, {"E": 0.0, "S": 1e9}, {"E": 1000.0}, {"S": 0.0}])
def test_rounds_of_messages_that_wait_for_their_receiver_equal_the_order_of_time(layout, limits):
    schedule = rounds("allgather", "ring", 12, layout, 4096)
    numbers = {
        "o_s": 1e-6,
        "o_r": 1e-6,
        "L.node.a": 1e-6,
        "G.node.a": 1e-10,
        "L.beyond.a": 2e-5,
        "G.beyond.a": 1e-9,
    }
    values = Values(
        {
            name: np.array([[value]])
            for name, value in (numbers | limits | {"gamma.a": 0.0}).items()
        },
        {},
        {},
    )
    expected = shares_prediction.predict_in_time_order(schedule.whole, values, Hierarchy()).max()
    links = SharedLinks(Hierarchy(), values)
    for contention_free in (True, False):
        predicted = shares_prediction._predict_by_rounds(schedule, values, links, contention_free)
        assert predicted.max() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("overhead", "header"),
    [(1e-7, 0), (1e-7, 40), (1e-7, 300), (5e-7, 100), (1e-6, 240), (1e-6, 500)],
)
def test_the_header_is_found_although_overheads_hide_a_part_of_it(overhead, header):
    size, count, byte_time, one = 8, BURST_MESSAGES, 8e-9, np.ones((1, 1))

    def estimate(**more):
        numbers = {"o_s": overhead, "o_r": overhead, "L.a": 1e-5, "G.a": byte_time, "gamma.a": 0.0}
        numbers |= {"c_out.node.a": byte_time}
        return Values(
            {name: np.array([[float(value)]]) for name, value in (numbers | more).items()}, {}, {}
        )

    burst = Schedule.of(2, np.arange(count + 1), [*[0] * count, 1], [*[1] * count, 0], size, root=0)
    seconds = float(burst.cost(shares_prediction.predict(burst, estimate(H=header)))[0])
    settings = {"n": count, "delay": 0, "late": 0, "bytes": size}
    observed = Observed({"prtt": [CaseSamples(settings, np.full(10, seconds), np.arange(10))]})
    spacing = max(overhead, byte_time * (size + header))
    trips = RoundTrips(
        np.array([float(size)]),
        2e-5 * one,
        2 * overhead * one,
        *[overhead * one] * 2,
        spacing * one,
    )
    assert fit_header(observed, trips, estimate, shares_prediction.predict) == pytest.approx(
        header, abs=0.1
    )
