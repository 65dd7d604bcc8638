"""τ–Lop: the paper's worked SUMMA iteration, and the algebra against an obvious loop."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.fit.probes import as_parameters
from commodel.models.families import complete, family
from commodel.models.families import given as given_on_the_command_line
from commodel.models.families.taulop import expression
from commodel.models.pricing.concurrency import Terms
from commodel.models.pricing.pairs import Pairs
from commodel.models.pricing.values import Values
from commodel.parameters import Estimate, ParameterSet
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule, Work
from commodel.price.predict import predict
from tests.models.synthetic import costs, observed, truth
from tests.patterns.catalogue import point

PAPER = {"shared": "channel", "join": "yes"}


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
    """Bytes by (count, channel) of a sum of terms, A1 applied across stages: `3‖T¹(35) + 2‖T¹(166) + …`."""
    collection: dict[tuple[int, int], int] = defaultdict(int)
    for terms in several:
        for count, channel, size in zip(terms.count, terms.channel, terms.bytes, strict=True):
            collection[int(count), int(channel)] += int(size)
    return dict(collection)


def test_iteration_80_of_summa():
    """Six processes on two nodes. First the pivot column: p1 sends 134 blocks to p0 on its own node and 158 to the
    other node, p4 likewise 116 and 104. Then the pivot row, down three columns at once. Equation (10) of the paper."""
    pattern = Schedule.of(
        6,
        step=[0, 0, 0, 0, 0, 0, 1, 1, 1],
        src=[1, 1, 1, 4, 4, 4, 1, 0, 3],
        dst=[0, 3, 5, 5, 3, 2, 4, 5, 2],
        bytes=[134, 100, 58, 70, 46, 104, 124, 97, 35],
    ).placed([0, 0, 0, 1, 1, 1])
    found = collected(expression(pattern, pattern.bytes, PAPER, Pairs(pattern, None)))
    assert found == {
        (3, NETWORK): 35,
        (2, NETWORK): 166,
        (1, NETWORK): 81,
        (2, MEMORY): 116,
        (1, MEMORY): 18,
    }
    # With a transfer time of 1 a block and transfer at any concurrency: 35 + 166 + 81 over the network, 116 + 18 not.
    flat = dict.fromkeys(("o_0.0", "o_1.0"), 0.0)
    flat |= {f"L_{channel}.{size}x1": float(size) for channel in (0, 1) for size in (0, 1000)}
    flat |= {f"L_{channel}.{size}x9": float(size) for channel in (0, 1) for size in (0, 1000)}
    cost = costs(family("taulop"), pattern, parameters(PAPER, **flat), drawn=False)
    assert cost[0] == pytest.approx(35 + 166 + 81 + 2 * (116 + 18))


def test_two_of_one_length_leave_nothing_to_send_alone():
    pattern = Schedule.of(4, 0, [0, 1], [2, 3], [40, 40]).placed([0, 0, 1, 1])
    assert collected(expression(pattern, pattern.bytes, PAPER, Pairs(pattern, None))) == {(2, NETWORK): 40}


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


@pytest.mark.parametrize(("procs", "within"), [(2, False), (4, False), (8, False), (2, True), (4, True)])
def test_a_ring_costs_what_it_took(procs, within):
    """τ is counted as it was measured: an exchange between two nodes is 1 into each."""
    machine, ranks = truth("taulop"), np.arange(procs)
    found = as_parameters(family("taulop"), family("taulop").fit(observed(machine, "taulop")))
    pattern = Schedule.of(procs, 0, ranks, (ranks + 1) % procs, 4096).placed(0 * ranks if within else ranks % 2)
    took = machine.times["ring"]({"pair": "node.same" if within else "node.node", "procs": procs, "bytes": 4096})
    assert costs(family("taulop"), pattern, found, drawn=False)[0] == pytest.approx(took, rel=1e-6)


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
    drawn = next(curve for curve in found.curves if curve.title.startswith("between") and "2 at once" in curve.title)
    place = drawn.x.index(1024)
    assert drawn.measured[place] == pytest.approx(slow)
    assert drawn.fitted[place] == pytest.approx(found.values["o_1.a"].value + found.values["L_1.1024x2"].value)
    assert drawn.fitted[place] == drawn.fitted[place + 1] < slow
    assert "levelled" in found.values["L_1.1024x2"].note
    assert not found.values["L_1.1024x2"].known
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


def slow(pattern, everywhere, o, transfer, latency):
    """A message at a time: the k-th sends of all ranks go on together. A transfer takes `latency` and as long as its
    bytes, in proportion to how many there are; the rest of one is what it takes more than the part that is over."""
    cost = 0.0
    for step in sorted(set(pattern.step.tolist())):
        turns, stages = defaultdict(int), defaultdict(lambda: defaultdict(list))
        for row in np.flatnonzero(pattern.step == step):
            src, dst = pattern.src[row], pattern.dst[row]
            channel = int(pattern.node[src] != pattern.node[dst])
            target = 0 if everywhere else pattern.node[dst]
            stages[turns[src]][channel, target].append(int(pattern.bytes[row]))
            turns[src] += 1
        for groups in stages.values():
            longest = 0.0
            for (channel, _), sizes in groups.items():
                seconds, done = o[channel] + (2 - channel) * latency, 0
                while sizes:
                    shortest, count = min(sizes), len(sizes)
                    seconds += (2 - channel) * transfer[channel] * (shortest - done) * count
                    sizes, done = [size for size in sizes if size > shortest], shortest
                longest = max(longest, seconds)
            cost += longest
    return cost


@given(patterns(), st.booleans())
def test_the_algebra_equals_an_obvious_loop(pattern, everywhere):
    found = parameters({"shared": "channel" if everywhere else "node"}, **table(3.0, 20.0, 0.5, 2.0, latency=5.0))
    values = complete(family("taulop"), Values.of(found))
    cost = pattern.cost(family("taulop").price(pattern, values))[0]
    assert cost == pytest.approx(slow(pattern, everywhere, (3.0, 20.0), (0.5, 2.0), 5.0))
