"""τ–Lop on kernels: the paper's examples, term by term."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.models.evaluation.values import Pairs, Values
from commodel.models.families import complete_values, find_family
from commodel.models.families.taulop import make_stage_terms
from commodel.patterns.build import build_schedule
from commodel.patterns.schedule import Schedule, Work
from commodel_formats.taulop import read_tables
from tests.models.synthetic import costs
from tests.models.taulop_terms import parameters, table
from tests.patterns.catalogue import point

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
