"""GOAL: what is exported plays at the price of LogGP, and says what it leaves out."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.interchange.goal import from_set, goal, untimed
from commodel.models.families import family
from commodel.models.parameter_sets import set_given
from commodel.patterns.build import schedule
from commodel.patterns.schedule import Schedule, Work
from commodel.predictions.predictions import predict
from tests.interchange.goal_simulator import play, read
from tests.models.synthetic import costs
from tests.patterns.catalogue import catalogue, point
from tests.tables import agree

GAMMA = 3e-9
MACHINES = [  # L, o, g in ns, G in ns/B
    (1000, 100, 500, 2),
    (5000, 300, 4000, 1),
    (10000, 1500, 1500, 0),
    (1000, 100, 2000, 50),
    (10**6, 100, 500, 2),
]
ALONE = [  # ranks do one thing at a time: no message comes before its step
    ("bcast", "linear"),
    ("bcast", "binomial"),
    ("bcast", "binomial-near"),
    ("gather", "linear"),
    ("gather", "binomial"),
    ("allreduce", "recursive-doubling"),
    ("allreduce", "ring"),
    ("allgather", "ring"),
    ("barrier", "dissemination"),
    ("barrier", "linear"),
]
TREES = ("flat:5", "flat:33", "chain:4", "kary:2^3", "balanced:3x2", "binomial:4", "groups:3,1,2x2")


def loggp(L, o, g, G):
    return set_given("loggp", [f"L={L}ns", f"o_s={o}ns", f"o_r={o}ns", f"g={g}ns", f"G={G}ns", f"gamma={GAMMA}s"])


def both(wanted, machine):
    """What LogGP says and what is played, in ns."""
    pattern = schedule(wanted)
    price = predict(loggp(*machine), [wanted])[0].seconds * 1e9
    return price, pattern.cost(np.array(play(goal(pattern, GAMMA), *machine)))


TWO = "num_ranks 2\nrank 0 {{\n{}\n}}\nrank 1 {{\nl1: recv 8b from 0 tag 0\n}}{}"
READ = [TWO.format("l1: send 8b to 1 tag 0", ""), TWO.format("\n// x\nl1 :send 8 b to 1 tag 0 \n", "\n\n")]
REFUSED = [  # every one by txt2bin of LogGOPSim, or taken for something else, when it was tried
    TWO.format("  l1: send 8b to 1 tag 0", ""),
    TWO.format("\tl1: send 8b to 1 tag 0", ""),
    TWO.format("l1: send 8b to 1 tag 0 // x", ""),
    TWO.format("  // x\nl1: send 8b to 1 tag 0", ""),
    TWO.format("1: send 8b to 1 tag 0", ""),
    TWO.format("_l: send 8b to 1 tag 0", ""),
    TWO.format("send: send 8b to 1 tag 0", ""),
    TWO.format("l1: send 8 to 1 tag 0", ""),
    TWO.format("l1: send 8b from 1 tag 0", ""),
    TWO.format("l1: send 8b tag 0 to 1", ""),
    TWO.format("l1: send 0b to 1 tag 0", ""),
    TWO.format("l1: calc 5.5", ""),
    TWO.format("l1: calc -5", ""),
    TWO.format("l1: calc 1e5", ""),
    TWO.format("l1: calc 5\nl1 requires l2", ""),
    TWO.format("l2 requires l1\nl1: calc 5\nl2: calc 5", ""),
    TWO.format("l1: calc 5\nl2: calc 5\nl3: calc 5\nl3 requires l1, l2", ""),
    "# x\n" + READ[0],
    READ[0].replace("num_ranks 2\n", ""),
    READ[0].replace("num_ranks 2", "num_ranks 3"),
    READ[0].removesuffix("}"),
    READ[0].replace("rank 0 {", "rank 1 {"),
]


def test_the_reader_is_as_strict_as_txt2bin():
    assert all(read(text)[0] == 2 for text in READ)
    for text in REFUSED:
        with pytest.raises(AssertionError):
            read(text)


@pytest.mark.parametrize("ranks", [2, 8, 32])
def test_it_plays_at_the_price_of_loggp(ranks):
    agree(
        (
            ((*algorithm, size, machine), *both(point(*algorithm, ranks=ranks, bytes=size), machine))
            for algorithm, size, machine in product(ALONE, (1, 64, 1000), MACHINES)
        ),
        abs=1 + ranks,  # calc is rounded to whole ns
    )


@pytest.mark.parametrize("machine", [machine for machine in MACHINES if machine[2] >= 2 * machine[1]])
def test_a_pipeline_whose_ports_leave_time_to_receive(machine):
    """Where g is 2·o or more, a segment that comes early does not hold up the one that is sent on."""
    for ranks in (2, 8, 32):
        price, played = both(point("bcast", "chain:24", ranks=ranks, bytes=1000), machine)
        assert played == pytest.approx(price, abs=1)


def test_trees_play_at_the_price_of_loggp():
    agree(
        (
            ((operation, spec, machine), *both(point(operation, topology=spec, bytes=200), machine))
            for operation, spec, machine in product(("bcast", "reduce"), TREES, MACHINES)
        ),
        abs=10,
    )


@given(
    ranks=st.integers(2, 9),
    sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=3),
    o=st.integers(0, 500),
    more=st.integers(0, 3000),
    G=st.integers(0, 40),
)
def test_everyone_to_everyone_in_turn(ranks, sizes, o, more, G):
    """Pairwise exchanges: a rank is never early for more than one step where all are alike."""
    step, rank = np.divmod(np.arange(len(sizes) * ranks), ranks)
    bytes = np.array(sizes)[step]
    pattern = Schedule.of(ranks, step, rank, (rank + step % (ranks - 1) + 1) % ranks, bytes)
    machine = (100_000, o, o + more, G)
    price = loggp(*machine)
    wanted = costs(family("loggp"), pattern, price, drawn=False).item() * 1e9
    assert max(play(goal(pattern), *machine)) == pytest.approx(wanted, abs=1)


@given(ranks=st.integers(2, 12), o=st.integers(0, 500), more=st.integers(0, 3000))
def test_a_posted_list_to_everyone(ranks, o, more):
    """All sends of a rank in one step, in order, while messages come in turn: all to all as linear exchanges are."""
    g = o + more
    rank = np.repeat(np.arange(ranks), ranks - 1)
    turn = np.tile(np.arange(1, ranks), ranks)
    pattern = Schedule.of(ranks, 0, rank, (rank + turn) % ranks, 1)
    L = ranks * g + ranks * o + 1  # the first message comes when all are sent
    wanted = costs(family("loggp"), pattern, loggp(L, o, g, 0), drawn=False).item() * 1e9
    assert max(play(goal(pattern), L, o, g, 0)) == pytest.approx(wanted, abs=1)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_every_pattern_can_be_played(ranks):
    """No message without its receive, none of 0 bytes, all bytes of the schedule; a few lines a message."""
    for wanted in catalogue(ranks, 64):
        pattern = schedule(wanted)
        text = goal(pattern, GAMMA)
        count, nodes = read(text)
        assert count == pattern.ranks
        sends = [node for node in nodes if node.kind == "send"]
        assert sum(node.size for node in sends) == np.maximum(pattern.bytes, 1).sum()
        assert len(play(text, 1000, 100, 200, 1)) == count
        assert text.count("\n") < 12 * len(pattern.src) + 8 * count + 10


def test_known_times_by_hand():
    """LogGP's closed forms: two sends, the second one g later; a combine of 1000 B at 3 ns a byte."""
    pattern = schedule(point("bcast", "linear", ranks=3, bytes=11))
    assert play(goal(pattern), 1000, 100, 500, 2) == [600 + 20, 1000 + 200 + 20, 1000 + 200 + 20 + 520]
    text = goal(schedule(point("reduce", topology="flat:1", bytes=1000)), GAMMA)
    assert play(text, 1000, 100, 500, 2)[0] == 1000 + 200 + 2 * 999 + 3000


def test_sends_of_a_step_are_chained():
    text = goal(schedule(point("bcast", "linear", ranks=20, bytes=8)))
    assert text.startswith("num_ranks 20\n")
    assert len(re.findall(r"l\d+ irequires l\d+", text)) == 18


def test_work_without_gamma_is_said():
    pattern = schedule(point("allreduce", "ring", ranks=4, bytes=64))
    assert untimed(pattern, None)
    assert "without gamma" in goal(pattern)
    assert not untimed(pattern, 0.0)
    assert "without gamma" not in goal(pattern, 0.0)
    assert re.search(r"calc [1-9]", goal(pattern, GAMMA))


def test_time_that_is_given_is_exported():
    none = np.empty(0, dtype=int)
    work = Work(np.array([0]), np.array([1]), np.array([2]), np.array([0.0]), np.array([2.5e-6]))
    pattern = Schedule.of(2, none, none, none, none, work=work)
    assert "calc 2500" in goal(pattern)
    assert "calc 2500000" in goal(pattern, unit="ps")


def test_the_simulator_is_told_the_values():
    gamma, arguments = from_set(set_given("loggops", ["L=2.5us", "o=1us", "g=1us", "G=6ns", "S=64KiB", "gamma=1ns"]))
    assert gamma == 1e-9
    assert "-L 2500 -o 1000 -g 1000 -G 6 -O 0 -S 65536" in arguments
    assert "-S 2147483647" in from_set(loggp(1, 1, 1, 1))[1]


def test_what_whole_numbers_do_not_hold_wants_a_finer_unit():
    fine = set_given("loggp", ["L=2us", "o_s=1us", "o_r=1us", "g=1us", "G=0.1ns"])
    with pytest.raises(UserError, match="give --unit ps"):
        from_set(fine)
    assert "-L 2000000 -o 1000000 -g 1000000 -G 100 " in from_set(fine, "ps")[1]
    with pytest.raises(UserError, match="no value of o_r"):
        from_set(replace(fine, values={name: fine.values[name] for name in ("L", "o_s", "g", "G")}))
    with pytest.raises(UserError, match="wanted loggp or loggops"):
        from_set(set_given("hockney", ["alpha=1us", "beta=1ns"]))
