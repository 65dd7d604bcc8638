"""What is exported as GOAL and read again says the same: prices and bytes of every pattern, plain or with steps of each
rank's own."""

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.interchange.goal import goal
from commodel.models.families import loggp
from commodel.models.pricing.replay import Costs, finish_times
from commodel.patterns.build import schedule
from commodel.patterns.written import goal as reader
from commodel.patterns.written import goal_binary
from commodel.patterns.written.tasks import schedule as in_steps
from tests.interchange.goal_simulator import play
from tests.patterns.catalogue import catalogue
from tests.patterns.goal_files import packed
from tests.patterns.rank_local import built, programs

GAMMA = 3e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("goal")


def back(pattern, folder, gamma=0.0):
    """Through the text; through tasks that are packed as txt2bin packs them it is the same."""
    path = folder / "a.goal"
    path.write_text(goal(pattern, gamma))
    tasks = reader.tasks(path)
    (folder / "a.bin").write_bytes(packed(tasks))
    again, binary = reader.read(path), in_steps(goal_binary.tasks(folder / "a.bin"))
    assert again.alike(binary)
    assert again.bytes.tolist() == binary.bytes.tolist()
    return again


def ends(pattern, L, o_s, o_r, g, G, gamma=0.0):
    """When each rank is done, by LogGP; times in ns."""
    numbers = np.array([L, o_s, o_r, g, G]) / 1e9
    return finish_times(pattern, loggp.costs(pattern, *numbers), pattern.work_seconds(gamma))


@settings(max_examples=400)
@given(programs(), st.integers(0, 1 << 20))
def test_rank_local_steps_come_back_at_the_same_price(folder, case, seed):
    ranks, rows, work = case
    rng = np.random.default_rng(seed)
    machine = rng.random(5) * (5000, 500, 500, 1000, 5)  # no arrivals at the same time, whose order is anyone's
    sizes = rng.integers(0, 300, len(rows)) * rng.integers(0, 2, len(rows))
    work = [(rank, step, seconds / 1e9) for rank, step, seconds in work]
    try:
        pattern = built(ranks, rows, work, sizes)
    except UserError:
        return
    event("plain" if pattern.ends is None else "steps of their own")
    again = back(pattern, folder)
    np.testing.assert_allclose(ends(again, *machine), ends(pattern, *machine), rtol=1e-12, atol=1e-21)
    pairs = [sorted(zip(form.src, form.dst, np.maximum(form.bytes, 1), strict=True)) for form in (pattern, again)]
    assert pairs[0] == pairs[1]
    assert len(play(goal(pattern), 1000, 100, 200, 1)) == ranks  # to its end


@pytest.mark.parametrize("ranks", [2, 5, 8])
@pytest.mark.parametrize("machine", [(1000, 100, 150, 500, 2), (2500, 1500, 700, 1000, 6)])
def test_every_pattern_comes_back_at_the_same_price(folder, ranks, machine):
    for wanted in catalogue(ranks, 64):
        pattern = schedule(wanted)
        again = back(pattern, folder, GAMMA)
        np.testing.assert_allclose(
            ends(again, *machine), ends(pattern, *machine, gamma=GAMMA), rtol=1e-12, err_msg=str(wanted)
        )
        assert np.maximum(pattern.bytes, 1).sum() == again.bytes.sum()


@settings(max_examples=300)
@given(programs(), st.integers(0, 1 << 20), st.sampled_from([0.3, 1.0]))
def test_so_do_messages_that_ask_first(folder, case, seed, asking):
    """Any costs, by the number of the message: its bytes."""
    ranks, rows, work = case
    columns = 40 * np.random.default_rng(seed).random((8, len(rows) + 1))
    columns[5, columns[7] >= asking] = np.nan
    try:
        pattern = built(
            ranks, rows, [(rank, step, seconds / 1e9) for rank, step, seconds in work], 1 + np.arange(len(rows))
        )
    except UserError:
        return
    first, again = (asked(form, columns) for form in (pattern, back(pattern, folder)))
    event("deadlock" if first is None else "price")
    assert (first is None) == (again is None)
    if first is not None:
        np.testing.assert_allclose(again, first, rtol=1e-12, atol=1e-9)


def asked(pattern, columns):
    """When each rank is done; None where some wait for ever."""
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
def test_chains_that_nothing_orders_pass_on_what_has_come(folder, ranks, segments, machine):
    """A pipeline as schedgen writes it: every segment is a chain of its own. Who waited for all segments before passing
    on the first would take `ranks` times as long. Times are the simulator's."""
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
    priced = ends(reader.read(path), L, o, o, g, G).max() * 1e9
    assert priced == pytest.approx(max(play(path.read_text(), *machine)), rel=1e-9)
    message = L + 2 * o + 8 * G
    assert priced == pytest.approx((ranks - 1) * message + (segments - 1) * (g + 8 * G), rel=1e-9)
