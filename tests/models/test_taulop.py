"""τ–Lop: the paper's worked equations and examples, term by term, and a reference loop."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.models.evaluation.taulop_algebra import find_longest_group, make_terms
from commodel.models.evaluation.values import Pairs, Values
from commodel.models.families import complete_values, find_family
from commodel.models.families.taulop import make_stage_terms
from commodel.models.parameter_sets import make_given_set
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule, Work
from commodel.predictions.predictions import predict
from commodel_formats.taulop import read_tables
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


METROPOLIS = Path(__file__).parents[3] / "shared" / "data" / "taulop-metropolis"
SUMMA = {"join": "yes"}
LETTER = {"rest": "message"}  # literal equations: the rest of a message is one of its own


def iteration_80(block=1) -> Schedule:
    """Return iteration 80 of figure 8: six processes on two nodes. In the pivot column, p1 sends
    134 blocks to p0 on its node and 158 to the other node; p4 sends 116 and 104. The pivot row is
    sent down three columns concurrently. The packing is omitted, as in the paper's equations."""
    operation = "summa:partition=params/partitions/taulop-summa.csv:iteration=80"
    pattern = build_schedule(point(operation, "paper", ranks=6, bytes=block, layout="block:3"))
    return replace(pattern, work=Work.empty())


def test_iteration_80_by_memories_and_ports():
    """Pivot column and pivot row are concurrent. p1 sends 134 blocks in memory, and 146, 12 and 124
    to the other node, as p0 sends 97. p4 sends 110 and 6 in memory, and 104 to the other node, as
    p3 sends 35. The outgoing port of the first node is the bottleneck."""
    pattern, parameter_set = (
        iteration_80(),
        parameters({"shared": "port"}, **table(3.0, 40.0, 0.5, 2.0)),
    )
    (stage,) = make_stage_terms(
        pattern, pattern.bytes, parameter_set.settings, Pairs(pattern, None)
    )
    groups = np.split(np.stack([stage.channel, stage.count, stage.bytes], axis=1), stage.group[1:])
    out = [[1, 2, 12], [1, 1, 134], [1, 2, 97], [1, 1, 27]]
    back = [[1, 1, 104], [1, 1, 35]]
    memories = [[[0, 1, 134]], [[0, 2, 6], [0, 1, 104]]]
    assert sorted(group.tolist() for group in groups) == sorted([*memories, out, out, back, back])
    longest = 40 + 2 * (2 * 12 + 134) + 40 + 2 * (2 * 97 + 27)
    assert costs(find_family("taulop"), pattern, parameter_set, drawn=False)[0] == pytest.approx(
        longest
    )
    busy = parameters({"shared": "port"}, **table(3.0, 4000.0, 0.5, 2.0), p_0=1900.0, p_1=2000.0)
    # p1 posts one message in memory and three to the other node, of which one is in the overhead;
    # and takes none.
    assert costs(find_family("taulop"), pattern, busy, drawn=False)[0] == pytest.approx(
        4000 + 1900 + 2 * 2000
    )


def test_join_yes_is_refused_with_shared_port():
    parameter_set = parameters({"shared": "port", "join": "yes"}, **table(3.0, 40.0, 0.5, 2.0))
    with pytest.raises(UserError, match="found join: yes with shared: port; wanted join: no"):
        costs(find_family("taulop"), iteration_80(), parameter_set, drawn=False)


def test_joined_transmissions_may_each_pay_their_overhead():
    """The paper's remark on A1: with `join: overheads`, there are two overheads in memory (p4), two
    over the network (p1), and one of the row."""
    numbers = table(3.0, 40.0, 0.5, 2.0)
    transferred = 2 * (3 * 35 + 2 * 166 + 81) + 2 * 0.5 * (2 * 116 + 18)
    for rest in ("transfer", "message"):
        parameter_set = parameters({"join": "overheads", "rest": rest}, **numbers)
        assert costs(find_family("taulop"), iteration_80(), parameter_set, drawn=False)[
            0
        ] == pytest.approx(transferred + 2 * 3 + 2 * 40 + 40)
    dropped = parameters(SUMMA, **numbers)
    assert costs(find_family("taulop"), iteration_80(), dropped, drawn=False)[0] == pytest.approx(
        transferred + 3 + 40
    )


def test_joined_stages_pay_one_overhead_and_latency_a_channel():
    """By default, the rest of a longer message has no overhead: 3‖35, then 2‖166, then 81
    blocks."""
    parameter_set = parameters(SUMMA, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    network = 40 + 5 + 2 * (3 * 35 + 2 * 166 + 81)
    memory = 3 + 2 * 5 + 2 * 0.5 * (2 * 116 + 18)
    assert costs(find_family("taulop"), iteration_80(), parameter_set, drawn=False)[
        0
    ] == pytest.approx(network + memory)


def test_stages_are_joined_by_the_slowest_term_of_each_draw():
    """The network is slowest in one draw, the memory in the other."""
    numbers = table(0.0, 10.0, 0.0, 0.0)
    for size in (0, 1000):
        for level in (1, 8):
            numbers[f"L_0.{size}x{level}"] = size * level
    values = complete_values(find_family("taulop"), Values.of(parameters(SUMMA, **numbers)))
    numbers = {name: np.repeat(column, 2, axis=0) for name, column in values.numbers.items()}
    numbers["o_1.0"] = np.array([[10.0], [1000.0]])
    pattern = Schedule.of(4, [0, 0, 1, 1], [0, 2, 0, 2], [1, 0, 1, 0], [10, 30, 10, 30]).place(
        [0, 0, 1, 1]
    )
    cost = pattern.cost(find_family("taulop").predict(pattern, replace(values, numbers=numbers)))
    assert cost == pytest.approx([2 * 20, 1000])


def wave_2d(double: int) -> Schedule:
    """Return the messages of p1 in figure 9 of the paper: to three neighbours on its own node and
    three on the other. Its rectangle follows from the message sizes; the other rectangles are read
    off the drawing."""
    operation = "wave2d:partition=params/partitions/taulop-wave.csv"
    pattern = build_schedule(point(operation, "paper", ranks=8, bytes=double)).place(
        [1, 0, 1, 0, 1, 0, 0, 1]
    )
    sent = pattern.src == 1
    assert pattern.dst[sent].tolist() == [0, 2, 3, 4, 5, 6]
    return Schedule.of(8, 0, 1, pattern.dst[sent], pattern.bytes[sent]).place(pattern.node)


@pytest.mark.skipif(
    not METROPOLIS.is_dir(), reason="the measured tables are not part of the project"
)
def test_the_papers_examples_on_a_real_cluster():
    """Equations 13 and 10 and a binomial broadcast (equation 4) with the cluster's InfiniBand
    values: 8,000 bytes per double of the paper, and 64 bytes per block."""
    tables = read_tables(METROPOLIS)

    def microseconds(pattern, **settings):
        return (
            costs(find_family("taulop"), pattern, replace(tables, settings=settings), drawn=False)[
                0
            ]
            * 1e6
        )

    assert microseconds(wave_2d(8000), rest="message") == pytest.approx(545.97, abs=0.01)
    # a message pays one overhead
    assert microseconds(wave_2d(8000)) == pytest.approx(528.88, abs=0.01)
    assert microseconds(iteration_80(64), rest="message", join="yes") == pytest.approx(
        47.14, abs=0.01
    )
    bcast = build_schedule(point("bcast", "binomial", ranks=16, bytes=65536))
    assert microseconds(bcast) == pytest.approx(314.72, abs=0.01)
    assert microseconds(bcast, shared="node") == pytest.approx(133.98, abs=0.01)
