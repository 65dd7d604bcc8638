"""The fast replay compared with the slow one, critical paths, and worked examples of docstrings."""

import doctest
import re
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.parameter_sets import write_parameters
from commodel.models.evaluation.replay import Costs, attribute_to_messages, finish_times
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.points import PlatformResources, make_point
from commodel.patterns.schedule import Schedule, Work, stack_schedules
from commodel.predictions.model import Model
from tests.cli.running import run
from tests.models.synthetic import fitted_set
from tests.patterns import slow_events, slow_replay
from tests.patterns.catalogue import catalogue


@st.composite
def schedules(draw):
    ranks = draw(st.integers(2, 6))
    rank = st.integers(0, ranks - 1)
    rows = draw(
        st.lists(st.tuples(st.integers(0, 4), rank, rank, st.integers(0, 100)), max_size=25)
    )
    rows = [row for row in rows if row[1] != row[2]]
    work = draw(st.lists(st.tuples(st.integers(0, 4), rank, st.integers(0, 50)), max_size=5))
    columns = np.array(rows, dtype=int).reshape(-1, 4).T
    local = Work.reduce(*np.array(work, dtype=int).reshape(-1, 3).T)
    return Schedule.of(ranks, *columns, work=local)


cost = st.integers(0, 40)
ASKS_NOT = (np.nan, np.nan)


def by_events(pattern, costs):
    """Return the finish times by the event simulator, for schedules that post and wait in different
    steps."""
    columns = (
        pattern.src,
        pattern.dst,
        pattern.bytes,
        pattern.step,
        pattern.src_wait,
        pattern.dst_step,
        pattern.dst_wait,
    )
    messages = [slow_events.Message(*map(int, row)) for row in zip(*columns, strict=True)]
    work = list(zip(pattern.work.rank, pattern.work.step, pattern.work_seconds(2.0), strict=True))
    return slow_events.finish_times(pattern.ranks, messages, work, costs)


def both(pattern, send, receive, latency, gap, per_byte):
    body = per_byte * pattern.bytes.astype(float)
    costs = Costs(
        *(
            np.asarray(value, dtype=float)[None]
            for value in (
                send + 0 * body,
                receive + 0 * body,
                latency + body,
                gap + body,
                gap + body,
            )
        )
    )
    fast = finish_times(pattern, costs, pattern.work_seconds(2.0))[0]
    if pattern.nonblocking is not None:
        return fast, by_events(
            pattern,
            lambda row: (send, latency + body[row], receive, *2 * [gap + body[row]], *ASKS_NOT),
        )
    slow = slow_replay.finish_times(
        pattern,
        lambda row: send,
        lambda row: receive,
        lambda row: latency + body[row],
        lambda row: gap + body[row],
        lambda row: gap + body[row],
        pattern.work_seconds(2.0),
    )
    return fast, slow


@given(schedules(), cost, cost, cost, cost, st.integers(0, 3))
def test_fast_equals_slow_on_random_schedules(pattern, send, receive, latency, gap, per_byte):
    fast, slow = both(pattern, send, receive, latency, gap, per_byte)
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-9)


@given(schedules(), st.integers(0, 1 << 20), st.sampled_from([0.0, 0.3, 1.0]))
def test_fast_replay_equals_slow_replay_with_costs_per_message_and_rendezvous(pattern, seed, share):
    rng, rows = np.random.default_rng(seed), len(pattern.src)
    *columns, request, answer = rng.integers(0, 40, (7, 2, rows)).astype(float)  # two draws
    request[rng.random(request.shape) >= share] = np.nan
    columns += [request, answer] if share else []  # no message asks: a shorter way
    fast = finish_times(pattern, Costs(*columns), pattern.work_seconds(2.0))
    for draw in range(2):
        own = [column[draw].__getitem__ for column in columns]
        slow = slow_replay.finish_times(pattern, *own[:5], pattern.work_seconds(2.0), *own[5:])
        np.testing.assert_allclose(fast[draw], slow, rtol=1e-12, atol=1e-9)


@given(st.integers(1, 200), st.integers(0, 1 << 20))
def test_many_arrivals_at_one_rank_are_taken_in_their_order(rows, seed):
    """Some messages arrive at equal times; they are received in row order."""
    rng = np.random.default_rng(seed)
    pattern = Schedule.of(4, 0, rng.integers(1, 4, rows), 0, 8)
    columns = rng.integers(0, 40, (5, rows)).astype(float)
    fast = finish_times(pattern, Costs(*columns), np.zeros(0))
    slow = slow_replay.finish_times(pattern, *(column.__getitem__ for column in columns), [])
    assert fast.tolist() == slow


@given(schedules(), schedules(), st.integers(0, 1 << 20))
def test_the_finish_time_of_a_rank_does_not_depend_on_unconnected_ranks(pattern, other, seed):
    """A second group of ranks sends messages in the same steps."""
    both = Schedule.of(
        pattern.ranks + other.ranks,
        *(
            np.concatenate(
                [
                    getattr(pattern, name),
                    getattr(other, name) + (name in ("src", "dst")) * pattern.ranks,
                ]
            )
            for name in ("step", "src", "dst", "bytes")
        ),
        work=pattern.work,
    )
    by_size = np.random.default_rng(seed).random((5, 101))
    one, two = (
        finish_times(schedule, Costs(*by_size[:, schedule.bytes]), schedule.work_seconds(0.3))
        for schedule in (pattern, both)
    )
    assert one.tolist() == two[: pattern.ranks].tolist()


def test_a_rank_finishes_after_the_slowest_of_the_sends():
    """The first message occupies the port until 30; the send of the second takes 40, that of the
    third 0."""
    pattern = Schedule.of(4, [0, 1, 1], 0, [1, 2, 3], 100)
    costs = Costs(np.array([[0.0, 40.0, 0.0]]), 0.0, 0.0, np.array([[30.0, 0.0, 0.0]]), 0.0)
    assert finish_times(pattern, costs, pattern.work_seconds(0.0))[0].tolist() == [70, 0, 70, 40]


@pytest.mark.parametrize(
    ("late", "finish"),
    [
        (0, 2 + 10 + 7 + 20 + 3),  # the request waits for nothing
        (11, 2 + 10 + 7 + 20 + 3),
        (50, 50 + 7 + 20 + 3),  # the receiver enters the step at 50
    ],
)
def test_a_rendezvous_message_waits_for_the_receiver(late, finish):
    """Times: send 2, request 10, grant 7, wire 20, receive 3."""
    work = Work.reduce([0], [1], [late])
    pattern = Schedule.of(3, [1, 1], [0, 0], [1, 2], 100, work=work)
    request = np.array([[10, np.nan]])
    costs = Costs(2.0, 3.0, 20.0, 0.0, 0.0, request, 7.0)
    sender, requested, eager = finish_times(pattern, costs, pattern.work_seconds(1.0))[0]
    assert requested == finish
    assert sender == finish - 20 - 3  # done when its message has left
    assert eager == 2 + 2 + 20 + 3


@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("costs", [(3, 4, 10, 1, 1), (1, 1, 5, 20, 0), (2, 7, 1, 3, 5)])
def test_fast_equals_slow_on_the_catalogue(ranks, costs):
    for point in catalogue(ranks, 37):
        fast, slow = both(build_schedule(point), *costs)
        np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-9, err_msg=str(point))


def test_a_stack_of_draws_and_sizes_is_the_same_as_one_by_one():
    points = [catalogue(9, size) for size in (8, 80, 800)]
    latency, per_byte = np.array([[5.0], [50.0]]), np.array([[0.1], [0.01]])

    def predict(pattern):
        body = per_byte * pattern.bytes
        return finish_times(
            pattern, Costs(1.0, 2.0, latency + body, body, body), pattern.work_seconds(0.5)
        )

    for same in zip(*points, strict=True):
        patterns = [build_schedule(point) for point in same]
        if not all(patterns[0].has_same_structure(pattern) for pattern in patterns):
            continue  # segments: another size, another shape
        together = predict(stack_schedules(patterns))
        for size, pattern in enumerate(patterns):
            np.testing.assert_allclose(together[size], predict(pattern), rtol=1e-12)


HOCKNEY = make_given_set("hockney", ["alpha=10us", "beta=2ns"])
LOGP = make_given_set("logp", ["L=10us", "o=1us", "g=2us"])
STEP, LAST, NEXT = 12e-6, 12e-6, 2e-6  # α + 1000·β; o + L + o; g


def path(parameters, operation, topology):
    """Return the seconds of each message on the critical path, the seconds of work, and the
    prediction."""
    pattern = build_schedule(
        make_point(
            PlatformResources.unlimited(),
            {"operation": operation, "topology": topology, "bytes": 1000},
        )
    )
    model = Model.of_set(parameters)
    seconds, work = attribute_to_messages(len(pattern.src), partial(model.cost, pattern))
    ends = zip(pattern.src.tolist(), pattern.dst.tolist(), strict=True)
    return (
        {
            end: message_seconds
            for end, message_seconds in zip(ends, seconds, strict=True)
            if message_seconds
        },
        work,
        float(model.cost(pattern)[0]),
    )


@pytest.mark.parametrize(
    ("topology", "edges"),
    [
        ("flat:5", [(0, child) for child in range(1, 6)]),
        ("chain:3", [(0, 1), (1, 2), (2, 3)]),
        ("binomial:3", [(0, 1), (1, 3), (3, 7)]),
        ("kary:2^3", [(0, 1), (0, 2), (2, 5), (2, 6), (6, 13), (6, 14)]),
    ],
)
def test_the_critical_path_of_a_broadcast_contains_earlier_messages_of_a_port(topology, edges):
    """Under Hockney each earlier message of the port counts in full; under LogP it counts as one
    gap."""
    seconds, work, prediction = path(HOCKNEY, "bcast", topology)
    assert seconds == pytest.approx(dict.fromkeys(edges, STEP), rel=1e-4)
    assert prediction == pytest.approx(STEP * len(edges))
    seconds, work, prediction = path(LOGP, "bcast", topology)
    last = {
        max((end for end in edges if end[0] == src), key=lambda end: end[1]) for src, _ in edges
    }
    assert seconds == pytest.approx({end: LAST if end in last else NEXT for end in edges}, rel=1e-4)
    assert work == 0


@pytest.mark.parametrize("name", ["hockney", "logp", "loggp", "plogp", "lmo", "loggops", "postal"])
def test_contributions_of_messages_and_work_add_up_to_the_prediction(name):
    parameters = fitted_set(name)
    for operation in ("bcast", "reduce"):
        for topology in ("flat:4", "kary:2^3", "groups:4,3,2"):
            seconds, work, prediction = path(parameters, operation, topology)
            assert sum(seconds.values()) + work == pytest.approx(prediction, rel=1e-4), (
                operation,
                topology,
            )
            assert min(seconds.values()) > 0


def test_the_drawing_and_the_table_state_the_same(tmp_path):
    write_parameters(tmp_path / "hockney.yaml", HOCKNEY)
    requested = (
        "show",
        "topology",
        "binomial:3",
        "--params",
        tmp_path / "hockney.yaml",
        "--bytes",
        "1000",
    )
    printed = run(*requested).stdout
    drawn = run(*requested, "--format", "svg").stdout
    rows = [line.split()[:2] for line in printed.splitlines() if re.match(r" *\d", line)]
    assert rows == [["0", "1"], ["1", "3"], ["3", "7"]]
    assert re.findall(r"<title>(\d+) to (\d+): 12 µs, 33 %</title>", drawn) == [
        tuple(row) for row in rows
    ]
    about = "bcast over binomial:3, 1000 B: 36 µs by hockney, which waits for 3 of 7 messages"
    assert about in printed
    assert about in drawn
    assert "wanted svg" in run(*requested, "--format", "csv", code=2).stderr


MODULES = (
    "models.evaluation.replay",
    "models.evaluation.taulop_algebra",
    "models.fitting.functions_of_count",
)
MODULES += ("models.evaluation.time_order", "fits.table_fits", "fits.settings", "progress")


@pytest.mark.parametrize("name", MODULES)
def test_the_example_is_true(name):
    failed, attempted = doctest.testmod(import_module(f"commodel.{name}"))
    assert attempted
    assert not failed


@pytest.mark.parametrize(("src", "dst", "rank"), [(0, 5, 5), (-1, 1, -1)])
def test_ranks_outside_of_a_schedule_are_refused(src, dst, rank):
    """The C replay indexes its clocks by rank."""
    with pytest.raises(UserError, match=f"found rank {rank}, wanted 0 to 1"):
        Schedule.of(2, 0, src, dst, 8)
