"""τ–Lop: the paper's worked equations and examples, term by term, and a reference loop."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.evaluation.taulop_algebra import find_longest_group, make_terms
from commodel.models.evaluation.values import Values
from commodel.models.families import complete_values, find_family
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule, Work
from commodel.predictions.predictions import predict
from tests.models.exact import estimates
from tests.models.synthetic import costs
from tests.models.taulop_terms import parameters, table, transmission
from tests.patterns.catalogue import point


@pytest.mark.parametrize("ranks", [2, 8, 16])
@pytest.mark.parametrize("layout", ["block:1", "block:16"])
def test_binomial_broadcast_is_equation_4(ranks, layout):
    """The time is Σ 2^i‖T^c(m): by default all transmissions of a stage share the channel, whatever
    their nodes."""
    parameter_set = parameters(**table(3.0, 20.0, 0.5, 2.0, latency=5.0))
    values = complete_values(find_family("taulop"), Values.of(parameter_set))
    channel = MEMORY if layout == "block:16" else NETWORK
    wanted = sum(transmission(values, channel, 1000, 2**i) for i in range(ranks.bit_length() - 1))
    pattern = build_schedule(point("bcast", "binomial", ranks=ranks, bytes=1000, layout=layout))
    assert costs(find_family("taulop"), pattern, parameter_set, False)[0] == pytest.approx(wanted)
    if channel == NETWORK and ranks > 2:
        apart = replace(parameter_set, settings={"shared": "node"})
        single = (ranks.bit_length() - 1) * transmission(values, channel, 1000, 1)
        assert costs(find_family("taulop"), pattern, apart, False)[0] == pytest.approx(single)


def test_more_at_once_than_was_measured_is_an_extrapolation():
    parameter_set = parameters(**table(3.0, 20.0, 0.5, 2.0))
    points = [point("bcast", "binomial", ranks=ranks, bytes=100) for ranks in (16, 17, 32)]
    assert [prediction.validity_text for prediction in predict(parameter_set, points)] == [
        "valid",
        "valid",
        (
            "extrapolated: 16 transfers at once between nodes, measured up to 8; "
            "`shared: port` counts messages that share a port"
        ),
    ]
    apart = replace(parameter_set, settings={"shared": "node"})
    assert {prediction.validity_text for prediction in predict(apart, points)} == {"valid"}
    gather = [point("gather", "linear", ranks=senders + 1, bytes=100) for senders in (4, 5)]
    # 5 into a node: a ring of 10
    both_ways = replace(parameter_set, settings={"shared": "node", "rings": "both-ways"})
    validity = "extrapolated: 10 transfers at once between nodes, measured up to 8"
    assert [prediction.validity_text for prediction in predict(both_ways, gather)] == [
        "valid",
        validity,
    ]


def test_the_group_with_most_bytes_is_chosen_among_groups_of_equal_duration():
    """Bytes take no time here, so both nodes take equally long: the node that receives three bytes
    is chosen."""
    zeros = np.zeros(6, dtype=int)
    for sizes in ([0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1]):
        stage = make_terms(zeros, zeros, np.arange(6) // 3, np.array(sizes), zeros)
        chosen = find_longest_group(stage, np.where(stage.message >= 0, 1.0, 0.0))[0]
        rows = slice(stage.group[chosen], (*stage.group, len(stage.count))[chosen + 1])
        assert (stage.count[rows] * stage.bytes[rows]).sum() == 3


@pytest.mark.parametrize("operation", ["allreduce", "reduce-scatter", "allgather"])
def test_uneven_blocks_add_no_latency_so_predictions_do_not_fall_with_size(operation):
    """7 bytes on 8 ranks make blocks of 0 and 1 bytes; 8 bytes make blocks of 1 byte only."""
    parameter_set = parameters(**table(1.0, 10.0, 0.1, 1.0, latency=30.0))
    points = [
        point(operation, "ring", ranks=8, bytes=size, layout="block:8") for size in range(1, 33)
    ]
    predictions = np.array([prediction.seconds for prediction in predict(parameter_set, points)])
    assert np.all(np.diff(predictions) >= -1e-9 * predictions[1:]), predictions
    assert predictions[6] <= predictions[7]


def test_copies_at_both_ends():
    pattern = Schedule.of(2, 0, [0], [1], [100])
    predictions = costs(
        find_family("taulop"),
        pattern,
        parameters({"network": "copies"}, **table(1.0, 10.0, 0.1, 1.0)),
        False,
    )
    assert predictions[0] == pytest.approx(10 + 2 * 0.1 * 100 + 100)


def test_local_work_is_the_longest_of_each_step():
    work = Work.reduce([0, 0, 1], [0, 1, 1], [100, 300, 100])
    values = table(0.0, 0.0, 0.0, 0.0) | {"gamma.0": 0.0, "gamma.1000": 10.0}
    pattern = Schedule.of(2, [0, 1], [0, 1], [1, 0], [1, 1], work=work)
    assert costs(find_family("taulop"), pattern, parameters(**values), False)[0] == pytest.approx(
        3 + 1
    )


def test_taulop_uses_values_by_node_type_and_names_a_missing_pair_of_types():
    values = {"o_0.fat.0": 1.0, "L_0.fat.0x1": 0.0, "o_1.fat.thin.0": 5.0, "L_1.fat.thin.0x1": 0.0}
    forms = {name.rpartition(".")[0]: "table" for name in values}
    numbers = estimates(values)
    parameter_set = ParameterSet(
        "taulop", "", "", numbers, forms=forms, settings={"types": {"fat": 1, "thin": 2}}
    )

    def cost(src, dst):
        return costs(
            find_family("taulop"),
            Schedule.of(4, 0, [src], [dst], [1]).place([0, 0, 1, 2]),
            parameter_set,
            False,
        )[0]

    assert cost(0, 1) == pytest.approx(1)
    assert cost(0, 2) == cost(2, 1) == pytest.approx(5)
    with pytest.raises(UserError, match=r"no L_1 for thin\.thin"):
        cost(2, 3)


@pytest.mark.parametrize("sizes", [(1000, 1000), (1000, 500), (500, 1000)])
def test_of_different_pairs_at_once_the_slowest_counts(sizes):
    """The slower of two concurrent pairs determines the time, in either order of rows."""
    keys = {
        f"L_1.{pair}.{m}x{t}": s * m * t
        for pair, s in (("a.a", 1.0), ("a.b", 10.0))
        for m in (0, 1000)
        for t in (1, 2)
    }
    numbers = {
        name: Estimate(value, "s", value, value) for name, value in {"o_1.a": 0.0, **keys}.items()
    }
    forms = {"o_1": "constant", "L_1.a.a": "table", "L_1.a.b": "table"}
    parameter_set = ParameterSet(
        "taulop", "", "", numbers, forms=forms, settings={"types": {"a": 2, "b": 1}}
    )

    def cost(order):
        pattern = Schedule.of(3, 0, np.array([1, 2])[order], [0, 0], np.array(sizes)[order])
        return costs(find_family("taulop"), pattern, parameter_set, False)[0]

    shorter, rest = min(sizes), abs(sizes[0] - sizes[1])
    single = (1.0 if sizes[0] > sizes[1] else 10.0) * rest
    assert cost([0, 1]) == cost([1, 0]) == pytest.approx(10.0 * shorter * 2 + single)


@pytest.mark.parametrize(
    "transfer",
    [
        {"L_1.a": "0", "L_1.b": "1ns"},
        {"L_1.0": "0", "L_1.1000": "1us"},
        {"L_1.0x1": "0", "L_1.1000x1": "1us"},
    ],
)
def test_transfers_of_which_only_one_alone_is_known_share_in_proportion(transfer):
    """Sixteen concurrent transfers take 16 times as long as one."""
    settings = [f"{name}={value}" for name, value in {"o_1": "2us", **transfer}.items()]
    pattern = Schedule.of(17, 0, np.arange(1, 17), [0] * 16, [1000] * 16)
    assert costs(find_family("taulop"), pattern, make_given_set("taulop", settings), False)[
        0
    ] == pytest.approx(18e-6)


@st.composite
def patterns(draw):
    ranks = draw(st.integers(2, 7))
    rank = st.integers(0, ranks - 1)
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 2), rank, rank, st.integers(0, 50)), min_size=1, max_size=20
        )
    )
    rows = [row for row in rows if row[1] != row[2]]
    node = draw(st.lists(st.integers(0, 2), min_size=ranks, max_size=ranks))
    return Schedule.of(ranks, *np.array(rows, dtype=int).reshape(-1, 4).T).place(node)


def slow(pattern, shared, rest, o, transfer, latency, p=(0.0, 0.0)):
    """Return the time of a schedule by a reference loop over messages. `shared` is `node` (the k-th
    sends of all ranks into one node), `port` (messages of a memory or of one direction of a port,
    with `p` of processor time per further message), or else the channel. A transfer takes `latency`
    plus the time of its bytes, in proportion to the number of concurrent ones. `rest`: whether the
    rest of a longer message is a message by itself."""

    def busy(messages):
        """Return the processor time: o of the slowest channel plus p of each further message, in
        each direction; a rank that sends and receives takes at least p of all its messages."""
        ways = [
            o[max(channels)] + sum(p[channel] for channel in channels) - p[max(channels)]
            for channels in messages.values()
            if channels
        ]
        return max(*ways, sum(p[channel] for channels in messages.values() for channel in channels))

    cost = 0.0
    for step in sorted(set(pattern.step.tolist())):
        turns, stages = defaultdict(int), defaultdict(lambda: defaultdict(list))
        handled = defaultdict(lambda: {"sent": [], "taken": []})
        for row in np.flatnonzero(pattern.step == step):
            src, dst = pattern.src[row], pattern.dst[row]
            channel = int(pattern.node[src] != pattern.node[dst])
            size, turn, passed = int(pattern.bytes[row]), 0, [0]
            if shared == "node":
                turn, passed = turns[src], [pattern.node[dst]]
            elif shared == "port":
                passed = [("in", pattern.node[dst])] + [("out", pattern.node[src])] * channel
            for place in passed:
                stages[turn][channel, place].append(size)
            turns[src] += 1
            handled[src]["sent"].append(channel)
            handled[dst]["taken"].append(channel)
        for groups in stages.values():
            longest = max(map(busy, handled.values())) if shared == "port" else 0.0
            for (channel, _), sizes in groups.items():
                begin = o[channel] + (2 - channel) * latency
                seconds, done, started = 0.0, 0, False
                while sizes:
                    shortest, count = min(sizes), len(sizes)
                    seconds += (2 - channel) * transfer[channel] * (shortest - done) * count
                    seconds += begin if rest == "message" or not started else 0.0
                    sizes, done, started = (
                        [size for size in sizes if size > shortest],
                        shortest,
                        True,
                    )
                longest = max(longest, seconds)
            cost += longest
    return cost


@given(
    patterns(),
    st.sampled_from(["channel", "node", "port"]),
    st.sampled_from(["transfer", "message"]),
)
def test_the_algebra_equals_an_obvious_loop(pattern, shared, rest):
    numbers = table(3.0, 20.0, 0.5, 2.0, latency=5.0) | {"p_0": 10.0, "p_1": 30.0}
    parameter_set = parameters({"shared": shared, "rest": rest}, **numbers)
    values = complete_values(find_family("taulop"), Values.of(parameter_set))
    cost = pattern.cost(find_family("taulop").predict(pattern, values))[0]
    # Beyond the 8 at once that the table holds a latency takes its share as well, so it is left out
    # there.
    if max(np.bincount(pattern.step), default=0) <= 8:
        assert cost == pytest.approx(
            slow(pattern, shared, rest, (3.0, 20.0), (0.5, 2.0), 5.0, (10.0, 30.0))
        )


def test_a_rank_with_many_neighbours_is_limited_by_processor_time_not_latency():
    """In a stencil with eight messages of 1 µs each at either end, processor time is the limit.
    With two neighbours the time is that of an empty message plus the processor time of the
    second."""
    numbers = table(3.0, 10.0, 0.0, 0.0) | {"p_1": 1.0}
    ports = parameters({"shared": "port"}, **numbers)
    for neighbours, wanted in ((1, 10.0), (2, 11.0), (8, 17.0), (10, 20.0)):
        rank = np.arange(12)
        src, distance = np.repeat(rank, neighbours), np.tile(np.arange(1, neighbours + 1), 12)
        pattern = Schedule.of(12, 0, src, (src + distance) % 12, 8)
        assert costs(find_family("taulop"), pattern, ports, drawn=False)[0] == pytest.approx(wanted)
