"""τ–Lop: the paper's worked equations, and the algebra against an obvious loop."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.fit.probes import as_parameters
from commodel.interchange.taulop import read
from commodel.models.families import complete, family
from commodel.models.families import given as given_on_the_command_line
from commodel.models.families.taulop import expression
from commodel.models.pricing.concurrency import Terms
from commodel.models.pricing.pairs import Pairs
from commodel.models.pricing.values import Values
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.build import schedule
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule, Work
from commodel.price.predict import predict
from tests.models.synthetic import costs, observed, truth
from tests.patterns.catalogue import point

METROPOLIS = Path(__file__).parents[3] / "shared" / "data" / "taulop-metropolis"
SUMMA = {"join": "yes"}
LETTER = {"rest": "message"}  # equations to the letter: the rest of a message is one of its own


def parameters(settings=None, **values) -> ParameterSet:
    forms = {name.partition(".")[0]: "table" for name in values}
    numbers = {name: Estimate(value, "s", value, value) for name, value in values.items()}
    return ParameterSet("taulop", "", "", numbers, forms=forms, settings=settings or {})


def table(o_0, o_1, memory, network, latency=0.0) -> dict[str, float]:
    """Transfers linear in the size, and in how many there are from 1 to 8, beside the same latency for all."""
    found = {"o_0.0": o_0, "o_1.0": o_1}
    for level in (1, 8):
        found |= {f"L_0.{size}x{level}": latency + memory * size * level for size in (0, 1000)}
        found |= {f"L_1.{size}x{level}": latency + network * size * level for size in (0, 1000)}
    return found


def collected(several: list[Terms]) -> dict[tuple[int, int], int]:
    """Bytes by (count, channel) of a sum of terms: `3‖T¹(35) + 2‖T¹(166) + …`."""
    collection: dict[tuple[int, int], int] = defaultdict(int)
    for terms in several:
        for count, channel, size in zip(terms.count, terms.channel, terms.bytes, strict=True):
            collection[int(count), int(channel)] += int(size)
    return dict(collection)


def transmission(values: Values, channel: int, size: int, count: int) -> float:
    """n‖T^c(m) by equations 1 and 3."""
    o, L = (values.at(f"o_{channel}", np.array([size])), values.at(f"L_{channel}", np.array([size]), count))
    return float((o + (2 - channel) * L)[0, 0])


ITERATION_80 = [(3, NETWORK, 35), (2, NETWORK, 166), (1, NETWORK, 81), (2, MEMORY, 116), (1, MEMORY, 18)]


def iteration_80(block=1) -> Schedule:
    """Six processes on two nodes. First the pivot column: p1 sends 134 blocks to p0 on its own node and 158 to the
    other node, p4 likewise 116 and 104. Then the pivot row, down three columns at once."""
    return Schedule.of(
        6,
        step=[0, 0, 0, 0, 0, 0, 1, 1, 1],
        src=[1, 1, 1, 4, 4, 4, 1, 0, 3],
        dst=[0, 3, 5, 5, 3, 2, 4, 5, 2],
        bytes=np.array([134, 100, 58, 70, 46, 104, 124, 97, 35]) * block,
    ).placed([0, 0, 0, 1, 1, 1])


def test_iteration_80_of_summa_is_equation_10():
    """The terms, and what they cost: A1 from stage to stage, so that 7 transmissions become 5."""
    pattern, found = iteration_80(), parameters(SUMMA | LETTER, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    terms = expression(pattern, pattern.bytes, SUMMA, Pairs(pattern, None))
    assert collected(terms) == {(count, channel): size for count, channel, size in ITERATION_80}
    values = complete(family("taulop"), Values.of(found))
    wanted = sum(transmission(values, channel, size, count) for count, channel, size in ITERATION_80)
    assert costs(family("taulop"), pattern, found, drawn=False)[0] == pytest.approx(wanted)


def test_joined_stages_pay_one_overhead_and_latency_a_channel():
    """Of a message that goes on, as by default: 3, then 2, then 1 of 35 + 166 + 81 blocks."""
    found = parameters(SUMMA, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    network = 40 + 5 + 2 * (3 * 35 + 2 * 166 + 81)
    memory = 3 + 2 * 5 + 2 * 0.5 * (2 * 116 + 18)
    assert costs(family("taulop"), iteration_80(), found, drawn=False)[0] == pytest.approx(network + memory)


def test_stages_of_every_draw_are_joined_by_what_counts_in_it():
    """A3 picks the network in one draw, memory in the other."""
    numbers = table(0.0, 10.0, 0.0, 0.0)
    for size in (0, 1000):
        for level in (1, 8):
            numbers[f"L_0.{size}x{level}"] = size * level
    values = complete(family("taulop"), Values.of(parameters(SUMMA, **numbers)))
    numbers = {name: np.repeat(column, 2, axis=0) for name, column in values.numbers.items()}
    numbers["o_1.0"] = np.array([[10.0], [1000.0]])
    pattern = Schedule.of(4, [0, 0, 1, 1], [0, 2, 0, 2], [1, 0, 1, 0], [10, 30, 10, 30]).placed([0, 0, 1, 1])
    cost = pattern.cost(family("taulop").price(pattern, replace(values, numbers=numbers)))
    assert cost == pytest.approx([2 * 20, 1000])


def wave_2d(double: int) -> Schedule:
    """What p1 of the paper's figure 9 sends to its six neighbours: three on its own node, three on the other."""
    sizes, network = np.array([64, 48, 64, 64, 96, 16]) * double, [1, 1, 0, 0, 1, 0]
    return Schedule.of(7, 0, [0] * 6, np.arange(1, 7), sizes).placed([0, *network])


WAVE = [(3, NETWORK, 48), (2, NETWORK, 16), (1, NETWORK, 32)]


def test_what_a_rank_posts_together_goes_on_together():
    """Equation 13: T¹(64)‖T¹(48)‖T⁰(64)‖T⁰(64)‖T¹(96)‖T⁰(16), by A2 three terms on the network, by A3 those alone."""
    pattern, found = wave_2d(1), parameters(LETTER, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    terms = expression(pattern, pattern.bytes, {}, Pairs(pattern, None))
    wanted = {(3, MEMORY): 16, (2, MEMORY): 48} | {(count, channel): size for count, channel, size in WAVE}
    assert collected(terms) == wanted
    values = complete(family("taulop"), Values.of(found))
    network = sum(transmission(values, channel, size, count) for count, channel, size in WAVE)
    assert costs(family("taulop"), pattern, found, drawn=False)[0] == pytest.approx(network)
    goes_on = replace(found, settings={})
    assert costs(family("taulop"), pattern, goes_on, drawn=False)[0] == pytest.approx(
        40 + 5 + 2 * (3 * 48 + 2 * 16 + 32)
    )


@pytest.mark.skipif(not METROPOLIS.is_dir(), reason="the measured tables are not part of the project")
def test_the_papers_examples_on_a_real_cluster():
    """Equations 13 and 10 with that cluster's InfiniBand, A2 to the letter: 8,000 bytes where the paper has a double,
    and 64 where it has a block; and a binomial broadcast, equation 4."""
    tables = read(METROPOLIS)

    def microseconds(pattern, **settings):
        return costs(family("taulop"), pattern, replace(tables, settings=settings), drawn=False)[0] * 1e6

    assert microseconds(wave_2d(8000), rest="message") == pytest.approx(545.97, abs=0.01)
    assert microseconds(wave_2d(8000)) == pytest.approx(528.88, abs=0.01)  # a message pays one overhead
    assert microseconds(iteration_80(64), rest="message", join="yes") == pytest.approx(47.14, abs=0.01)
    bcast = schedule(point("bcast", "binomial", ranks=16, bytes=65536))
    assert microseconds(bcast) == pytest.approx(314.72, abs=0.01)
    assert microseconds(bcast, shared="node") == pytest.approx(133.98, abs=0.01)


def test_blocking_sends_are_steps_of_their_own_and_add_up():
    found = parameters(**table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    alone = [costs(family("taulop"), Schedule.of(2, 0, 0, 1, size), found, False)[0] for size in (64, 48, 96)]
    pattern = Schedule.of(4, [0, 1, 2], 0, [1, 2, 3], [64, 48, 96])
    assert costs(family("taulop"), pattern, found, False)[0] == pytest.approx(sum(alone))


@pytest.mark.parametrize("ranks", [2, 8, 16])
@pytest.mark.parametrize("layout", ["block:1", "block:16"])
def test_binomial_broadcast_is_equation_4(ranks, layout):
    """Σ 2^i‖T^c(m): all transmissions of a stage share the channel, whichever nodes they are between."""
    found = parameters(**table(3.0, 20.0, 0.5, 2.0, latency=5.0))
    values = complete(family("taulop"), Values.of(found))
    channel = MEMORY if layout == "block:16" else NETWORK
    wanted = sum(transmission(values, channel, 1000, 2**i) for i in range(ranks.bit_length() - 1))
    pattern = schedule(point("bcast", "binomial", ranks=ranks, bytes=1000, layout=layout))
    assert costs(family("taulop"), pattern, found, False)[0] == pytest.approx(wanted)
    if channel == NETWORK and ranks > 2:
        apart = replace(found, settings={"shared": "node"})
        alone = (ranks.bit_length() - 1) * transmission(values, channel, 1000, 1)
        assert costs(family("taulop"), pattern, apart, False)[0] == pytest.approx(alone)


def test_more_at_once_than_was_measured_is_an_extrapolation():
    found = parameters(**table(3.0, 20.0, 0.5, 2.0))
    points = [point("bcast", "binomial", ranks=ranks, bytes=100) for ranks in (16, 17, 32)]
    assert [each.status for each in predict(found, points)] == [
        "ok",
        "ok",
        "extrapolated: 16 transfers at once between nodes, measured up to 8; `shared: node` counts those into one node",
    ]
    apart = replace(found, settings={"shared": "node"})
    assert {each.status for each in predict(apart, points)} == {"ok"}
    gather = [point("gather", "linear", ranks=senders + 1, bytes=100) for senders in (4, 5)]
    both_ways = replace(found, settings={"shared": "node", "rings": "both-ways"})  # 5 into a node: a ring of 10
    said = "extrapolated: 10 transfers at once between nodes, measured up to 8"
    assert [each.status for each in predict(both_ways, gather)] == ["ok", said]


def test_two_of_one_length_leave_nothing_to_send_alone():
    pattern = Schedule.of(4, 0, [0, 1], [2, 3], [40, 40]).placed([0, 0, 1, 1])
    assert collected(expression(pattern, pattern.bytes, {}, Pairs(pattern, None))) == {(2, NETWORK): 40}


def test_two_of_different_length_share_the_channel_for_the_shorter_ones_time():
    """A2: T(40)‖T(100) = 2‖T(40) + T(60), the 60 being the rest of a message that has paid its overhead."""
    pattern = Schedule.of(4, 0, [0, 1], [2, 3], [40, 100]).placed([0, 0, 1, 1])
    found = costs(family("taulop"), pattern, parameters(**table(1.0, 10.0, 0.1, 1.0)), drawn=False)
    assert found[0] == pytest.approx(10 + 2 * 40 + 60)


@pytest.mark.parametrize("operation", ["allreduce", "reduce-scatter", "allgather"])
def test_an_odd_byte_costs_no_latency_of_its_own(operation):
    """Blocks of 0 and 1 bytes at 7 bytes on 8 ranks, all of 1 at 8: whatever is odd, a price does not fall."""
    found = parameters(**table(1.0, 10.0, 0.1, 1.0, latency=30.0))
    points = [point(operation, "ring", ranks=8, bytes=size, layout="block:8") for size in range(1, 33)]
    prices = np.array([prediction.seconds for prediction in predict(found, points)])
    assert np.all(np.diff(prices) >= -1e-9 * prices[1:]), prices
    assert prices[6] <= prices[7]


@pytest.mark.parametrize("shared", ["channel", "node"])
@pytest.mark.parametrize(("procs", "within"), [(2, False), (4, False), (8, False), (2, True), (4, True)])
def test_a_ring_costs_what_it_took(procs, within, shared):
    """τ is counted as it was measured, whichever way prices count it."""
    machine, ranks = truth("taulop"), np.arange(procs)
    found = as_parameters(family("taulop"), family("taulop").fit(observed(machine, "taulop")))
    found = replace(found, settings={**found.settings, "shared": shared})
    pattern = Schedule.of(procs, 0, ranks, (ranks + 1) % procs, 4096).placed(0 * ranks if within else ranks % 2)
    took = machine.times["ring"]({"pair": "node.same" if within else "node.node", "procs": procs, "bytes": 4096})
    assert costs(family("taulop"), pattern, found, drawn=False)[0] == pytest.approx(took, rel=1e-6)


SIZES = (1, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_asking_first_is_in_the_overhead_and_shares_nothing(noise):
    """A machine that waits 12 µs for an answer above 8 KiB: o_1(m) jumps by them, L_1 does not, at any τ."""
    machine = truth("taulop")

    def asking(case):
        between = not case["pair"].endswith(".same")
        return 12e-6 if between and case["bytes"] > 8192 else 0.0

    times = {
        "ring": lambda case: machine.times["ring"](case) + asking(case),
        "prtt": lambda case: machine.times["prtt"](case) + 2 * asking(case),
        "pairprtt": lambda case: machine.times["pairprtt"](case) + 2 * asking(case),
    }
    asks = replace(machine, times=machine.times | times, sizes=SIZES)
    found = as_parameters(family("taulop"), family("taulop").fit(observed(asks, "taulop", noise=noise)))
    close = 1e-3 if noise == 0 else 0.1
    assert found.forms["o_1"] == "piecewise"
    assert found.values["o_1.x1"].value == 8192
    assert found.values["o_1.a"].value == pytest.approx(5e-6, rel=close)
    assert found.values["o_1.a1"].value == pytest.approx(17e-6, rel=close)
    assert found.forms["o_0"] == "constant"
    assert found.values["L_1.16384x1"].value == pytest.approx(8e-10 * 16384, rel=close)
    sixteen = Schedule.of(32, 0, np.arange(16), np.arange(16, 32), 16384)
    (cost,) = costs(family("taulop"), sixteen, found, drawn=False)
    assert cost == pytest.approx(17e-6 + 2 * 8e-10 * 16384 * (1 + 0.7 * 7), rel=close / 3)


def test_different_channels_do_not_disturb_each_other():
    """A3: the maximum."""
    pattern = Schedule.of(4, 0, [0, 1], [1, 2], [1000, 10]).placed([0, 0, 1, 1])
    found = costs(family("taulop"), pattern, parameters(**table(1.0, 10.0, 0.1, 1.0)), drawn=False)
    assert found[0] == pytest.approx(max(1 + 2 * 0.1 * 1000, 10 + 10))


def test_copies_at_both_ends():
    pattern = Schedule.of(2, 0, [0], [1], [100])
    found = costs(family("taulop"), pattern, parameters({"network": "copies"}, **table(1.0, 10.0, 0.1, 1.0)), False)
    assert found[0] == pytest.approx(10 + 2 * 0.1 * 100 + 100)


def test_a_transfer_that_was_slower_at_a_smaller_size_is_drawn_as_it_is_priced():
    slow, machine = 5e-5, truth("taulop")

    def ring(case):
        odd = case["bytes"] == 1024 and case["procs"] == 4 and not case["pair"].endswith(".same")
        return slow if odd else machine.times["ring"](case)

    bent = replace(machine, times=machine.times | {"ring": ring})
    found = as_parameters(family("taulop"), family("taulop").fit(observed(bent, "taulop")))
    drawn = next(curve for curve in found.curves if curve.title.startswith("between") and "4 at once" in curve.title)
    place = drawn.x.index(1024)
    assert drawn.measured[place] == pytest.approx(slow)
    assert drawn.fitted[place] == pytest.approx(found.values["o_1.a"].value + found.values["L_1.1024x4"].value)
    assert drawn.fitted[place] == drawn.fitted[place + 1] < slow
    assert "levelled" in found.values["L_1.1024x4"].note
    assert not found.values["L_1.1024x4"].known
    assert found.values["L_1.1024x1"].known


def test_local_work_is_the_longest_of_each_step():
    work = Work.reduce([0, 0, 1], [0, 1, 1], [100, 300, 100])
    values = table(0.0, 0.0, 0.0, 0.0) | {"gamma.0": 0.0, "gamma.1000": 10.0}
    pattern = Schedule.of(2, [0, 1], [0, 1], [1, 0], [1, 1], work=work)
    assert costs(family("taulop"), pattern, parameters(**values), False)[0] == pytest.approx(3 + 1)


def test_types_of_nodes_and_what_is_missing():
    values = {"o_0.fat.0": 1.0, "L_0.fat.0x1": 0.0, "o_1.fat.thin.0": 5.0, "L_1.fat.thin.0x1": 0.0}
    forms = {name.rpartition(".")[0]: "table" for name in values}
    numbers = {name: Estimate(value, "s", value, value) for name, value in values.items()}
    found = ParameterSet("taulop", "", "", numbers, forms=forms, settings={"types": {"fat": 1, "thin": 2}})

    def cost(src, dst):
        return costs(family("taulop"), Schedule.of(4, 0, [src], [dst], [1]).placed([0, 0, 1, 2]), found, False)[0]

    assert cost(0, 1) == pytest.approx(1)
    assert cost(0, 2) == cost(2, 1) == pytest.approx(5)
    with pytest.raises(UserError, match=r"no L_1 for thin\.thin"):
        cost(2, 3)


@pytest.mark.parametrize("sizes", [(1000, 1000), (1000, 500), (500, 1000)])
def test_of_different_pairs_at_once_the_slowest_counts(sizes):
    """Whatever the order of rows: a fast pair beside a slow one does not hide it."""
    keys = {
        f"L_1.{pair}.{m}x{t}": s * m * t for pair, s in (("a.a", 1.0), ("a.b", 10.0)) for m in (0, 1000) for t in (1, 2)
    }
    numbers = {name: Estimate(value, "s", value, value) for name, value in {"o_1.a": 0.0, **keys}.items()}
    forms = {"o_1": "constant", "L_1.a.a": "table", "L_1.a.b": "table"}
    found = ParameterSet("taulop", "", "", numbers, forms=forms, settings={"types": {"a": 2, "b": 1}})

    def cost(order):
        pattern = Schedule.of(3, 0, np.array([1, 2])[order], [0, 0], np.array(sizes)[order])
        return costs(family("taulop"), pattern, found, False)[0]

    shorter, rest = min(sizes), abs(sizes[0] - sizes[1])
    alone = (1.0 if sizes[0] > sizes[1] else 10.0) * rest
    assert cost([0, 1]) == cost([1, 0]) == pytest.approx(10.0 * shorter * 2 + alone)


@pytest.mark.parametrize(
    "transfer",
    [
        {"L_1.a": "0", "L_1.b": "1ns"},
        {"L_1.0": "0", "L_1.1000": "1us"},
        {"L_1.0x1": "0", "L_1.1000x1": "1us"},
    ],
)
def test_transfers_of_which_only_one_alone_is_known_share_in_proportion(transfer):
    """Not: do not disturb each other."""
    settings = [f"{name}={value}" for name, value in {"o_1": "2us", **transfer}.items()]
    pattern = Schedule.of(17, 0, np.arange(1, 17), [0] * 16, [1000] * 16)
    assert costs(family("taulop"), pattern, given_on_the_command_line("taulop", settings), False)[0] == pytest.approx(
        18e-6
    )


@st.composite
def patterns(draw):
    ranks = draw(st.integers(2, 7))
    rank = st.integers(0, ranks - 1)
    rows = draw(st.lists(st.tuples(st.integers(0, 2), rank, rank, st.integers(0, 50)), min_size=1, max_size=20))
    rows = [row for row in rows if row[1] != row[2]]
    node = draw(st.lists(st.integers(0, 2), min_size=ranks, max_size=ranks))
    return Schedule.of(ranks, *np.array(rows, dtype=int).reshape(-1, 4).T).placed(node)


def slow(pattern, shared, rest, o, transfer, latency):
    """A message at a time, all of a step at once; `node`: the k-th sends of all ranks, those into one node. A transfer
    takes `latency` and as long as its bytes, in proportion to how many there are; the rest of one is what it takes more
    than the part that is over, or a message of its own."""
    cost = 0.0
    for step in sorted(set(pattern.step.tolist())):
        turns, stages = defaultdict(int), defaultdict(lambda: defaultdict(list))
        for row in np.flatnonzero(pattern.step == step):
            src, dst = pattern.src[row], pattern.dst[row]
            channel = int(pattern.node[src] != pattern.node[dst])
            group = (turns[src], (channel, pattern.node[dst])) if shared == "node" else (0, (channel, 0))
            stages[group[0]][group[1]].append(int(pattern.bytes[row]))
            turns[src] += 1
        for groups in stages.values():
            longest = 0.0
            for (channel, _), sizes in groups.items():
                begin = o[channel] + (2 - channel) * latency
                seconds, done, started = 0.0, 0, False
                while sizes:
                    shortest, count = min(sizes), len(sizes)
                    seconds += (2 - channel) * transfer[channel] * (shortest - done) * count
                    seconds += begin if rest == "message" or not started else 0.0
                    sizes, done, started = [size for size in sizes if size > shortest], shortest, True
                longest = max(longest, seconds)
            cost += longest
    return cost


@given(patterns(), st.sampled_from(["channel", "node"]), st.sampled_from(["transfer", "message"]))
def test_the_algebra_equals_an_obvious_loop(pattern, shared, rest):
    found = parameters({"shared": shared, "rest": rest}, **table(3.0, 20.0, 0.5, 2.0, latency=5.0))
    values = complete(family("taulop"), Values.of(found))
    cost = pattern.cost(family("taulop").price(pattern, values))[0]
    # Beyond the 8 at once that the table holds a latency takes its share as well, so it is left out there.
    if max(np.bincount(pattern.step), default=0) <= 8:
        assert cost == pytest.approx(slow(pattern, shared, rest, (3.0, 20.0), (0.5, 2.0), 5.0))
