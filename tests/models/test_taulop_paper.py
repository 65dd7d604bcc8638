"""The worked examples of τ–Lop's paper, term by term."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.interchange.taulop import read
from commodel.models.families import complete, family
from commodel.models.families.taulop import expression
from commodel.models.pricing.values import Pairs, Values
from commodel.patterns.build import schedule
from commodel.patterns.schedule import MEMORY, NETWORK, Schedule, Work
from tests.models.synthetic import costs
from tests.models.taulop_terms import collected, parameters, table, transmission
from tests.patterns.catalogue import point

METROPOLIS = Path(__file__).parents[3] / "shared" / "data" / "taulop-metropolis"
SUMMA = {"join": "yes"}
LETTER = {"rest": "message"}  # equations to the letter: the rest of a message is one of its own


ITERATION_80 = [(3, NETWORK, 35), (2, NETWORK, 166), (1, NETWORK, 81), (2, MEMORY, 116), (1, MEMORY, 18)]


def iteration_80(block=1) -> Schedule:
    """Figure 8: six processes on two nodes, whose rectangles follow from the text's numbers. First the pivot column: p1
    sends 134 blocks to p0 on its own node and 158 to the other node, p4 likewise 116 and 104. Then the pivot row, down
    three columns at once. The equations leave out the packing."""
    operation = "summa:partition=params/partitions/taulop-summa.csv:iteration=80"
    pattern = schedule(point(operation, "paper", ranks=6, bytes=block, layout="block:3"))
    return replace(pattern, work=Work.empty())


def test_the_stages_of_iteration_80_are_equations_8_and_9():
    pattern = iteration_80()
    column, row = expression(pattern, pattern.bytes, SUMMA | LETTER, Pairs(pattern, None))
    assert collected([column]) == {(2, MEMORY): 116, (1, MEMORY): 18, (2, NETWORK): 104, (1, NETWORK): 54}
    assert collected([row]) == {(3, NETWORK): 35, (2, NETWORK): 62, (1, NETWORK): 27}


def test_iteration_80_of_summa_is_equation_10():
    """The terms, and what they cost: A1 from stage to stage, so that 7 transmissions become 5."""
    pattern, parameter_set = iteration_80(), parameters(SUMMA | LETTER, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    terms = expression(pattern, pattern.bytes, SUMMA, Pairs(pattern, None))
    assert collected(terms) == {(count, channel): size for count, channel, size in ITERATION_80}
    values = complete(family("taulop"), Values.of(parameter_set))
    wanted = sum(transmission(values, channel, size, count) for count, channel, size in ITERATION_80)
    assert costs(family("taulop"), pattern, parameter_set, drawn=False)[0] == pytest.approx(wanted)


def test_iteration_80_by_memories_and_ports():
    """Nobody waits for the column before the row is sent, so that both go on together. p1 sends 134 blocks in memory,
    and out of its node 146 and 12, then 124 and, from p0, 97; p4 sends 110 and 6 in memory, and out 104, then, from p3,
    35. Of the four ways of the ports and the two memories the port out of the first node is done last."""
    pattern, parameter_set = iteration_80(), parameters({"shared": "port"}, **table(3.0, 40.0, 0.5, 2.0))
    (stage,) = expression(pattern, pattern.bytes, parameter_set.settings, Pairs(pattern, None))
    groups = np.split(np.stack([stage.channel, stage.count, stage.bytes], axis=1), stage.group[1:])
    out = [[1, 2, 12], [1, 1, 134], [1, 2, 97], [1, 1, 27]]
    back = [[1, 1, 104], [1, 1, 35]]
    memories = [[[0, 1, 134]], [[0, 2, 6], [0, 1, 104]]]
    assert sorted(group.tolist() for group in groups) == sorted([*memories, out, out, back, back])
    longest = 40 + 2 * (2 * 12 + 134) + 40 + 2 * (2 * 97 + 27)
    assert costs(family("taulop"), pattern, parameter_set, drawn=False)[0] == pytest.approx(longest)
    busy = parameters({"shared": "port"}, **table(3.0, 4000.0, 0.5, 2.0), p_0=1900.0, p_1=2000.0)
    # p1 posts one message in memory and three to the other node, of which one is in the overhead; and takes none.
    assert costs(family("taulop"), pattern, busy, drawn=False)[0] == pytest.approx(4000 + 1900 + 2 * 2000)


def test_a1_does_not_join_what_adds_up_by_ports_anyway():
    parameter_set = parameters({"shared": "port", "join": "yes"}, **table(3.0, 40.0, 0.5, 2.0))
    with pytest.raises(UserError, match="found join: yes beside shared: port; wanted join: no"):
        costs(family("taulop"), iteration_80(), parameter_set, drawn=False)


def test_joined_transmissions_may_each_pay_their_overhead():
    """The paper's remark on A1. In memory p4 posts two; over the network p1 posts two, and then one of the row."""
    numbers = table(3.0, 40.0, 0.5, 2.0)
    transferred = 2 * (3 * 35 + 2 * 166 + 81) + 2 * 0.5 * (2 * 116 + 18)
    for rest in ("transfer", "message"):
        parameter_set = parameters({"join": "overheads", "rest": rest}, **numbers)
        assert costs(family("taulop"), iteration_80(), parameter_set, drawn=False)[0] == pytest.approx(
            transferred + 2 * 3 + 2 * 40 + 40
        )
    dropped = parameters(SUMMA, **numbers)
    assert costs(family("taulop"), iteration_80(), dropped, drawn=False)[0] == pytest.approx(transferred + 3 + 40)


def test_joined_stages_pay_one_overhead_and_latency_a_channel():
    """Of a message that goes on, as by default: 3, then 2, then 1 of 35 + 166 + 81 blocks."""
    parameter_set = parameters(SUMMA, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    network = 40 + 5 + 2 * (3 * 35 + 2 * 166 + 81)
    memory = 3 + 2 * 5 + 2 * 0.5 * (2 * 116 + 18)
    assert costs(family("taulop"), iteration_80(), parameter_set, drawn=False)[0] == pytest.approx(network + memory)


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
    """What p1 of the paper's figure 9 sends to its six neighbours: three on its own node, three on the other. Its
    rectangle follows from the sizes in their clockwise order; where the others end, the drawing alone says."""
    operation = "wave2d:partition=params/partitions/taulop-wave.csv"
    whole = schedule(point(operation, "paper", ranks=8, bytes=double)).placed([1, 0, 1, 0, 1, 0, 0, 1])
    sent = whole.src == 1
    assert whole.dst[sent].tolist() == [0, 2, 3, 4, 5, 6]
    return Schedule.of(8, 0, 1, whole.dst[sent], whole.bytes[sent]).placed(whole.node)


WAVE = [(3, NETWORK, 48), (2, NETWORK, 16), (1, NETWORK, 32)]


def test_what_a_rank_posts_together_goes_on_together():
    """Equation 13: T¹(64)‖T¹(48)‖T⁰(64)‖T⁰(64)‖T¹(96)‖T⁰(16), by A2 three terms on the network, by A3 those alone."""
    pattern, parameter_set = wave_2d(1), parameters(LETTER, **table(3.0, 40.0, 0.5, 2.0, latency=5.0))
    terms = expression(pattern, pattern.bytes, {}, Pairs(pattern, None))
    wanted = {(3, MEMORY): 16, (2, MEMORY): 48} | {(count, channel): size for count, channel, size in WAVE}
    assert collected(terms) == wanted
    values = complete(family("taulop"), Values.of(parameter_set))
    network = sum(transmission(values, channel, size, count) for count, channel, size in WAVE)
    assert costs(family("taulop"), pattern, parameter_set, drawn=False)[0] == pytest.approx(network)
    goes_on = replace(parameter_set, settings={})
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
