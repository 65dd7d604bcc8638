"""GOAL: simulated times of exported schedules equal the prediction of LogGP; the export names what
it leaves out.

Reading an exported file gives the same predictions and bytes for every pattern, whether steps are
common or per rank.

GOAL programs in which all ranks do the same, shifted by rank, are put in order and predicted by
their first ranks, with the same result to the last digit."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.hierarchy import Hierarchy
from commodel.interchange.goal import convert_parameters, format_goal, has_untimed_work
from commodel.models.evaluation.repeated_rounds import find_representative_ranks
from commodel.models.evaluation.replay import Costs, finish_times
from commodel.models.families import complete_values, find_family, loggp
from commodel.models.parameter_sets import make_given_set
from commodel.patterns.build import build_schedule
from commodel.patterns.layouts import place_ranks
from commodel.patterns.pattern_files import goal as reader
from commodel.patterns.pattern_files import goal_binary
from commodel.patterns.pattern_files import tasks as goal_tasks
from commodel.patterns.pattern_files.tasks import (
    CALCULATE,
    RECEIVE,
    SEND,
    Dependencies,
    Tasks,
    find_shift,
)
from commodel.patterns.pattern_files.tasks import make_schedule as in_steps
from commodel.patterns.schedule import Schedule, Work
from commodel.predictions.predictions import predict
from tests.interchange.goal_simulator import play, read
from tests.models.exact import make_exact_values
from tests.models.synthetic import costs
from tests.patterns.catalogue import catalogue, point
from tests.patterns.goal_files import packed
from tests.patterns.rank_local import built, programs
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


def loggp_set(L, o, g, G):
    return make_given_set(
        "loggp", [f"L={L}ns", f"o_s={o}ns", f"o_r={o}ns", f"g={g}ns", f"G={G}ns", f"gamma={GAMMA}s"]
    )


def predict_and_play(wanted, machine):
    """Return the prediction of LogGP and the simulated time, in ns."""
    pattern = build_schedule(wanted)
    prediction = predict(loggp_set(*machine), [wanted])[0].seconds * 1e9
    return prediction, pattern.cost(np.array(play(format_goal(pattern, GAMMA), *machine)))


TWO = "num_ranks 2\nrank 0 {{\n{}\n}}\nrank 1 {{\nl1: recv 8b from 0 tag 0\n}}{}"
READ = [
    TWO.format("l1: send 8b to 1 tag 0", ""),
    TWO.format("\n// x\nl1 :send 8 b to 1 tag 0 \n", "\n\n"),
]
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
def test_an_exported_goal_program_plays_at_the_prediction_of_loggp(ranks):
    agree(
        (
            (
                (*algorithm, size, machine),
                *predict_and_play(point(*algorithm, ranks=ranks, bytes=size), machine),
            )
            for algorithm, size, machine in product(ALONE, (1, 64, 1000), MACHINES)
        ),
        abs=1 + ranks,  # calc is rounded to whole ns
    )


@pytest.mark.parametrize(
    "machine", [machine for machine in MACHINES if machine[2] >= 2 * machine[1]]
)
def test_a_pipeline_with_long_gaps_plays_at_the_prediction(machine):
    """If g is at least 2·o, an early segment does not delay the segment that is forwarded."""
    for ranks in (2, 8, 32):
        prediction, played = predict_and_play(
            point("bcast", "chain:24", ranks=ranks, bytes=1000), machine
        )
        assert played == pytest.approx(prediction, abs=1)


def test_trees_play_at_the_prediction_of_loggp():
    agree(
        (
            (
                (operation, spec, machine),
                *predict_and_play(point(operation, topology=spec, bytes=200), machine),
            )
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
    """Pairwise exchanges of uniform ranks: no rank is more than one step ahead of another."""
    step, rank = np.divmod(np.arange(len(sizes) * ranks), ranks)
    bytes = np.array(sizes)[step]
    pattern = Schedule.of(ranks, step, rank, (rank + step % (ranks - 1) + 1) % ranks, bytes)
    machine = (100_000, o, o + more, G)
    prediction = loggp_set(*machine)
    wanted = costs(find_family("loggp"), pattern, prediction, drawn=False).item() * 1e9
    assert max(play(format_goal(pattern), *machine)) == pytest.approx(wanted, abs=1)


@given(ranks=st.integers(2, 12), o=st.integers(0, 500), more=st.integers(0, 3000))
def test_a_posted_list_to_everyone(ranks, o, more):
    """A linear all-to-all: each rank sends to all others in one step; the first message arrives
    after the last send."""
    g = o + more
    rank = np.repeat(np.arange(ranks), ranks - 1)
    turn = np.tile(np.arange(1, ranks), ranks)
    pattern = Schedule.of(ranks, 0, rank, (rank + turn) % ranks, 1)
    L = ranks * g + ranks * o + 1  # the first message comes when all are sent
    wanted = costs(find_family("loggp"), pattern, loggp_set(L, o, g, 0), drawn=False).item() * 1e9
    assert max(play(format_goal(pattern), L, o, g, 0)) == pytest.approx(wanted, abs=1)


@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_every_pattern_can_be_played(ranks):
    """The simulator matches all messages. They have at least one byte and together all bytes of the
    schedule. A message takes fewer than 12 lines."""
    for wanted in catalogue(ranks, 64):
        pattern = build_schedule(wanted)
        text = format_goal(pattern, GAMMA)
        count, nodes = read(text)
        assert count == pattern.ranks
        sends = [node for node in nodes if node.kind == "send"]
        assert sum(node.size for node in sends) == np.maximum(pattern.bytes, 1).sum()
        assert len(play(text, 1000, 100, 200, 1)) == count
        assert text.count("\n") < 12 * len(pattern.src) + 8 * count + 10


def test_known_times_by_hand():
    """Times of LogGP in closed form: two sends at an interval of g; a combination of 1000 B at 3
    ns/B."""
    pattern = build_schedule(point("bcast", "linear", ranks=3, bytes=11))
    assert play(format_goal(pattern), 1000, 100, 500, 2) == [
        600 + 20,
        1000 + 200 + 20,
        1000 + 200 + 20 + 520,
    ]
    text = format_goal(build_schedule(point("reduce", topology="flat:1", bytes=1000)), GAMMA)
    assert play(text, 1000, 100, 500, 2)[0] == 1000 + 200 + 2 * 999 + 3000


def test_work_without_gamma_is_stated():
    pattern = build_schedule(point("allreduce", "ring", ranks=4, bytes=64))
    assert has_untimed_work(pattern, None)
    assert "without gamma" in format_goal(pattern)
    assert not has_untimed_work(pattern, 0.0)
    assert "without gamma" not in format_goal(pattern, 0.0)
    assert re.search(r"calc [1-9]", format_goal(pattern, GAMMA))


def test_time_that_is_given_is_exported():
    none = np.empty(0, dtype=int)
    work = Work(np.array([0]), np.array([1]), np.array([2]), np.array([0.0]), np.array([2.5e-6]))
    pattern = Schedule.of(2, none, none, none, none, work=work)
    assert "calc 2500" in format_goal(pattern)
    assert "calc 2500000" in format_goal(pattern, unit="ps")


def test_the_simulator_gets_the_values():
    gamma, arguments = convert_parameters(
        make_given_set("loggops", ["L=2.5us", "o=1us", "g=1us", "G=6ns", "S=64KiB", "gamma=1ns"])
    )
    assert gamma == 1e-9
    assert "-L 2500 -o 1000 -g 1000 -G 6 -O 0 -S 65536" in arguments
    assert "-S 2147483647" in convert_parameters(loggp_set(1, 1, 1, 1))[1]


def test_parameters_that_are_not_whole_nanoseconds_need_unit_ps():
    fine = make_given_set("loggp", ["L=2us", "o_s=1us", "o_r=1us", "g=1us", "G=0.1ns"])
    with pytest.raises(UserError, match="give --unit ps"):
        convert_parameters(fine)
    assert "-L 2000000 -o 1000000 -g 1000000 -G 100 " in convert_parameters(fine, "ps")[1]
    with pytest.raises(UserError, match="no value of o_r"):
        convert_parameters(
            replace(fine, values={name: fine.values[name] for name in ("L", "o_s", "g", "G")})
        )
    with pytest.raises(UserError, match="wanted loggp or loggops"):
        convert_parameters(make_given_set("hockney", ["alpha=1us", "beta=1ns"]))


BACK_GAMMA = 3e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("goal")


def export_and_read(pattern, folder, gamma=0.0):
    """Export a schedule and read it again, as text and as the binary file of txt2bin; check that
    both agree."""
    path = folder / "a.goal"
    path.write_text(format_goal(pattern, gamma))
    tasks = reader.read_tasks(path)
    (folder / "a.bin").write_bytes(packed(tasks))
    again, binary = (
        goal_tasks.make_schedule(reader.read_tasks(path)),
        in_steps(goal_binary.read_tasks(folder / "a.bin")),
    )
    assert again.has_same_structure(binary)
    assert again.bytes.tolist() == binary.bytes.tolist()
    return again


def finish_by_loggp(pattern, L, o_s, o_r, g, G, gamma=0.0):
    """Return the time at which each rank finishes by LogGP; all times are in ns."""
    numbers = np.array([L, o_s, o_r, g, G]) / 1e9
    return finish_times(
        pattern, loggp.compute_costs(pattern, *numbers), pattern.work_seconds(gamma)
    )


@settings(max_examples=150)
@given(programs(), st.integers(0, 1 << 20))
def test_rank_local_steps_come_back_at_the_same_price(folder, case, seed):
    ranks, rows, work = case
    rng = np.random.default_rng(seed)
    # no arrivals at the same time, whose order is anyone's
    machine = rng.random(5) * (5000, 500, 500, 1000, 5)
    sizes = rng.integers(0, 300, len(rows)) * rng.integers(0, 2, len(rows))
    work = [(rank, step, seconds / 1e9) for rank, step, seconds in work]
    try:
        pattern = built(ranks, rows, work, sizes)
    except UserError:
        return
    event("plain" if pattern.nonblocking is None else "steps of their own")
    again = export_and_read(pattern, folder)
    np.testing.assert_allclose(
        finish_by_loggp(again, *machine), finish_by_loggp(pattern, *machine), rtol=1e-12, atol=1e-21
    )
    pairs = [
        sorted(zip(form.src, form.dst, np.maximum(form.bytes, 1), strict=True))
        for form in (pattern, again)
    ]
    assert pairs[0] == pairs[1]
    assert len(play(format_goal(pattern), 1000, 100, 200, 1)) == ranks  # to its end


@pytest.mark.parametrize("ranks", [2, 5, 8])
@pytest.mark.parametrize("machine", [(1000, 100, 150, 500, 2), (2500, 1500, 700, 1000, 6)])
def test_every_pattern_comes_back_at_the_same_prediction(folder, ranks, machine):
    for wanted in catalogue(ranks, 64):
        pattern = build_schedule(wanted)
        again = export_and_read(pattern, folder, BACK_GAMMA)
        np.testing.assert_allclose(
            finish_by_loggp(again, *machine),
            finish_by_loggp(pattern, *machine, gamma=BACK_GAMMA),
            rtol=1e-12,
            err_msg=str(wanted),
        )
        assert np.maximum(pattern.bytes, 1).sum() == again.bytes.sum()


@settings(max_examples=120)
@given(programs(), st.integers(0, 1 << 20), st.sampled_from([0.3, 1.0]))
def test_so_do_messages_that_ask_first(folder, case, seed, asking):
    """Costs of messages are random, and some messages use the rendezvous protocol. The bytes are
    the index of the message's costs."""
    ranks, rows, work = case
    columns = 40 * np.random.default_rng(seed).random((8, len(rows) + 1))
    columns[5, columns[7] >= asking] = np.nan
    try:
        pattern = built(
            ranks,
            rows,
            [(rank, step, seconds / 1e9) for rank, step, seconds in work],
            1 + np.arange(len(rows)),
        )
    except UserError:
        return
    first, again = (
        replay_or_none(form, columns) for form in (pattern, export_and_read(pattern, folder))
    )
    event("deadlock" if first is None else "price")
    assert (first is None) == (again is None)
    if first is not None:
        np.testing.assert_allclose(again, first, rtol=1e-12, atol=1e-9)


def replay_or_none(pattern, columns):
    """Return the time at which each rank finishes, or None after a deadlock."""
    send, wire, receive, gap_out, gap_in, request, answer, _ = columns[:, None, pattern.bytes]
    costs = Costs(send, receive, wire, gap_out, gap_in, request, answer)
    try:
        return finish_times(pattern, costs, 1e9 * pattern.work_seconds(0.0))
    except UserError as error:
        if "deadlock" not in error.message:
            raise
        return None


@pytest.mark.parametrize(("ranks", "segments"), [(2, 5), (4, 20), (8, 50)])
@pytest.mark.parametrize("machine", [(5000, 500, 1000, 1), (100, 200, 400, 3)])
def test_unordered_segment_chains_forward_each_segment_on_arrival(folder, ranks, segments, machine):
    """schedgen writes a pipeline as one chain per segment. Waiting for all segments before
    forwarding the first would take `ranks` times as long. The times are compared with the
    simulator's."""
    blocks = []
    for rank in range(ranks):
        lines = []
        for number in range(1, segments + 1):
            lines += [f"r{number}: recv 9b from {rank - 1} tag 0"] if rank else []
            lines += [f"s{number}: send 9b to {rank + 1} tag 0"] if rank + 1 < ranks else []
            lines += [f"s{number} requires r{number}"] if 0 < rank < ranks - 1 else []
        blocks.append("\n".join([f"rank {rank} {{", *lines, "}"]))
    path = folder / "ring.goal"
    path.write_text("\n".join([f"num_ranks {ranks}", *blocks]))
    L, o, g, G = machine
    predicted = (
        finish_by_loggp(goal_tasks.make_schedule(reader.read_tasks(path)), L, o, o, g, G).max()
        * 1e9
    )
    assert predicted == pytest.approx(max(play(path.read_text(), *machine)), rel=1e-9)
    message = L + 2 * o + 8 * G
    assert predicted == pytest.approx(
        (ranks - 1) * message + (segments - 1) * (g + 8 * G), rel=1e-9
    )


def repeat_shifted(rows_of, needs, turn, turns):
    """Return tasks of turn × turns ranks that repeat the first `turn` ranks, shifted. `rows_of`:
    the rows (kind, size, distance, tag) of each of the first ranks. `needs`: their dependencies
    (before, after, begun) by row."""
    ranks = turn * turns
    rows, all_needs = [], []
    for rank in range(ranks):
        first = len(rows)
        for kind, size, rank_offset, tag in rows_of[rank % turn]:
            rows.append(
                (rank, kind, size, 0 if kind == CALCULATE else (rank + rank_offset) % ranks, tag)
            )
        all_needs += [
            (first + before, first + after, begun) for before, after, begun in needs[rank % turn]
        ]
    columns = np.array(rows, dtype=np.int64).T
    before, after, begun = np.array(all_needs, dtype=np.int64).reshape(-1, 3).T
    return Tasks("made up", ranks, *columns, Dependencies(before, after, begun.astype(bool)))


@st.composite
def shifted_programs(draw):
    """Draw rounds in which every rank sends, receives and computes. In some programs one size
    differs."""
    turn, turns = draw(st.integers(1, 3)), draw(st.integers(2, 5))
    ranks = turn * turns
    rows_of, needs = [[] for _ in range(turn)], [[] for _ in range(turn)]
    for tag in range(draw(st.integers(1, 4))):
        rank_offset, size = draw(st.integers(1, ranks - 1)), draw(st.sampled_from([1, 8, 9000]))
        orders = draw(st.lists(st.booleans(), min_size=turn, max_size=turn))
        for rank in range(turn):
            moves = [(SEND, size + rank, rank_offset, tag), (RECEIVE, 0, -rank_offset, tag)]
            rows_of[rank] += moves if orders[rank] else moves[::-1]
            rows_of[rank] += [(CALCULATE, draw(st.sampled_from([0, 700])), 0, 0)]
    for rank in range(turn):
        for _ in range(draw(st.integers(0, 8))):
            pair = sorted(
                draw(st.sets(st.integers(0, len(rows_of[rank]) - 1), min_size=2, max_size=2))
            )
            needs[rank].append((*pair, draw(st.booleans())))
    tasks = repeat_shifted(rows_of, needs, turn, turns)
    if draw(st.integers(0, 3)) == 0:
        size = tasks.size.copy()
        size[draw(st.integers(0, len(size) - 1))] += 1
        tasks = replace(tasks, size=size)
    return tasks


def without_symmetry(tasks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goal_tasks, "find_shift", lambda tasks: tasks.ranks)
        return in_steps(tasks)


def outcome(make, *arguments):
    try:
        return make(*arguments)
    except UserError as error:
        return error.message


SETS = {
    "loggp": {"L": 2.3e-6, "o_s": 7e-7, "o_r": 4e-7, "g": 1.1e-6, "G": 9e-10, "gamma": 1e-9},
    "loggops": {
        "L": 2.3e-6,
        "o": 7e-7,
        "g": 1.1e-6,
        "G": 9e-10,
        "O": 2e-10,
        "S": 4000.0,
        "gamma": 1e-9,
    },
}


def finish(name, pattern, levels=None):
    """Return the time at which each rank finishes. With `levels`, messages between leaf switches
    take longer."""
    values = complete_values(find_family(name), make_exact_values(SETS[name]))
    if levels:
        far = {**values.numbers, "L.leaf": np.array([[7e-6]])}
        values = replace(
            values, numbers=far, settings={"classes": ["leaf"], "levels": levels.group_lists}
        )
    return find_family(name).predict(pattern, values)


@given(shifted_programs())
def test_symmetric_programs_give_the_same_columns_as_all_ranks(tasks):
    first, whole = outcome(in_steps, tasks), outcome(without_symmetry, tasks)
    if isinstance(whole, str):
        assert first == whole
        return
    assert first.encode() == whole.encode()
    assert (first.shift is None) == (find_shift(tasks) == tasks.ranks)


@given(
    shifted_programs(),
    st.sampled_from(["block:1", "block:2", "cyclic:2"]),
    st.sampled_from(sorted(SETS)),
    st.booleans(),
)
def test_price_is_that_of_all_ranks_to_the_last_digit(tasks, layout, name, near):
    pattern = outcome(in_steps, tasks)
    if isinstance(pattern, str):
        return
    node = place_ranks(layout, pattern.ranks)
    levels = Hierarchy.written({"leaf": 2}, int(node.max()) + 1) if near else None
    pattern = pattern.place(node)
    first, whole = (
        outcome(finish, name, one, levels) for one in (pattern, replace(pattern, shift=None))
    )
    assert np.array_equal(first, whole)


def test_ring_is_replayed_by_one_rank():
    rounds = 6
    rows_of = [row for _ in range(rounds) for row in ((SEND, 64, 1, 0), (RECEIVE, 64, -1, 0))]
    needs = [(2 * number - 1, 2 * number, False) for number in range(1, rounds)]
    ring = in_steps(repeat_shifted([rows_of], [needs], 1, 4))
    sent, played = find_representative_ranks(ring)
    assert (ring.shift, played.ranks, sent.messages, ring.messages) == (1, 1, rounds, 4 * rounds)
    assert finish("loggp", ring)[0].tolist() == pytest.approx(
        [rounds * (7e-7 + 2.3e-6 + 63 * 9e-10 + 4e-7)] * 4
    )


def test_two_sizes_in_turn_are_two_ranks():
    rows_of = [[(SEND, size, 2, 0), (RECEIVE, size, -2, 0)] for size in (8, 9)]
    assert find_shift(repeat_shifted(rows_of, [[], []], 2, 3)) == 2
