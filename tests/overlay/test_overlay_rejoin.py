"""Internal processes die or hang: their children attach to ancestors, and every packet arrives once."""

import os
import random
import re
import signal
import time
from statistics import median

import pytest

from tests.overlay.conftest import kary, kill
from tests.overlay.wire import sent
from tests.processes import command_name, family, still_there

CONTINUE, STOP = range(2)
WAIT, TIME_OUT, DO_NOT_WAIT = range(3)


def inner(tool):
    """Internal processes, in the order of their start."""
    return [process for process in tool.processes() if command_name(process) == "overlay-node"]


def values(seed, backends, wave=0):
    return [sent(seed, backend, wave, 1, ["%ld"])[0] for backend in range(backends)]


def attached(tool):
    """Who has attached to whom, and after how many seconds."""
    return re.findall(r"(\S+) has attached to (\S+), ([0-9.]+) s after its parent was lost", tool.said())


def check_all_answer(tool, stream, seed, backends):
    tool.good(f"ask {stream} {seed} 1 1 %ld")
    answer = tool.good(f"recv {stream} 60")
    assert (answer["leaves"], answer["values"][0]) == (backends, values(seed, backends))
    assert tool.good("lost 0")["lost"] == []


@pytest.mark.parametrize("checked", [False, True])
def test_children_of_a_lost_process_attach_to_its_parent(start, checked):
    tool = start(kary(2, 3), checked)
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    tool.good(f"open concat {WAIT} 0 {STOP}")  # no back-end is lost, so it goes on, too
    check_all_answer(tool, 0, 1, 8)
    kill(inner(tool)[0])
    for seed in range(3):
        check_all_answer(tool, 0, seed, 8)
        check_all_answer(tool, 1, seed, 8)
    assert {(child, parent) for child, parent, _ in attached(tool)} == {("h:3", "h:0"), ("h:4", "h:0")}
    tool.good(f"open concat {WAIT} 0 {CONTINUE} 0 3 5")  # over some, below adopted processes too
    tool.good("ask 2 5 1 1 %ld")
    assert tool.good("recv 2 60")["values"][0] == [values(5, 8)[backend] for backend in (0, 3, 5)]
    assert tool.end() == 0


def test_back_ends_attach_to_the_front_end_when_all_between_are_lost(start):
    tool = start("h:0 => h:1 ;\nh:1 => h:2 ;\nh:2 => h:3 ;\nh:3 => h:4 h:5 h:6 ;\n")
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    check_all_answer(tool, 0, 3, 3)  # before it has read its welcome, a back-end knows no ancestors
    for process in inner(tool):
        kill(process)
    check_all_answer(tool, 0, 4, 3)
    assert {(f"h:{i}", "h:0") for i in (4, 5, 6)} <= {(child, parent) for child, parent, _ in attached(tool)}


WAVES = 400


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", ["0", "3000"])  # in a small one, packets wait at every level
@pytest.mark.parametrize("checked", [False, True])
def test_streams_lose_and_double_nothing_while_processes_die(start, seed, window, checked):
    """A random number of internal processes, at random moments of four streams."""
    chance = random.Random(seed)
    tool = start(kary(*chance.choice([(2, 3), (3, 2), (2, 4)])), checked, DRIVE_WINDOW=window)
    backends = tool.up["backends"]
    victims = inner(tool)
    chance.shuffle(victims)
    victims = victims[: chance.randint(1, len(victims))]
    kinds = (f"concat {WAIT}", f"none {DO_NOT_WAIT}", f"none {WAIT}", f"concat {WAIT}")
    for kind in kinds:
        tool.good(f"open {kind} 0 {CONTINUE}")
    check_all_answer(tool, 3, 0, backends)
    for stream in range(3):
        tool.good(f"ask {stream} {seed} {WAVES} 1 %ld")
    reduced, asked, numbers = 0, [], [[[] for _ in range(backends)] for _ in kinds]
    while reduced < WAVES or asked or any(len(row) < WAVES for stream in (1, 2) for row in numbers[stream]):
        if victims and chance.random() < 0.03:
            kill(victims.pop())
            asked.append(reduced)
            tool.good(f"ask 3 {reduced} 1 1 %ld")
        answer = tool.good("any 60")
        if answer["stream"] == 3:
            assert answer["values"][0] == values(asked.pop(0), backends)
        elif answer["stream"] == 0:
            assert answer["values"][0] == values(seed, backends, reduced)
            reduced += 1
        else:
            assert answer["leaves"] == 1
            numbers[answer["stream"]][answer["source"]].append(answer["values"][0])
    for stream in (1, 2):
        for backend in range(backends):
            assert numbers[stream][backend] == [sent(seed, backend, wave, 1, ["%ld"])[0] for wave in range(WAVES)]
    assert tool.do("any 0.2")["code"] == "timeout"  # nothing came twice
    for process in victims:
        kill(process)
    check_all_answer(tool, 3, 1, backends)
    assert tool.end() == 0


@pytest.mark.parametrize("lost", range(1, 7))
def test_after_any_number_of_losses_all_back_ends_are_attached(start, lost):
    tool = start(kary(2, 3))
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    check_all_answer(tool, 0, 0, 8)
    for process in random.Random(lost).sample(inner(tool), lost):
        kill(process)  # all at once
    check_all_answer(tool, 0, lost, 8)
    assert tool.end() == 0


def test_children_of_a_silent_process_attach_elsewhere_and_it_ends(start):
    tool = start(kary(2, 3), DRIVE_SILENCE="1")
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    victim = inner(tool)[0]
    os.kill(victim, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        check_all_answer(tool, 0, 1, 8)
        assert time.monotonic() - begin > 0.5  # it was found to be silent
        times = [float(seconds) for _, _, seconds in attached(tool)]
        print(f"healed {median(times):.3f} s after the loss was detected")
    finally:
        os.kill(victim, signal.SIGCONT)
    assert not still_there([victim])
    check_all_answer(tool, 0, 2, 8)
    assert tool.end() == 0


def test_a_back_end_that_comes_back_late_takes_part_in_new_streams(start):
    """It computes while its parent is lost, for longer than others wait for it."""
    tool = start(kary(2, 2), DRIVE_SILENCE="1")
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    tool.good(f"open none {DO_NOT_WAIT} 0 {CONTINUE}")
    tool.good("tell 1 sleep 5 0")
    time.sleep(0.3)
    kill(inner(tool)[0])
    tool.good("ask 0 1 1 1 %ld")
    answer = tool.good("recv 0 60")  # in its stead nobody
    assert answer["leaves"] == 3
    assert tool.good("missing 0")["missing"] == [0]
    deadline = time.monotonic() + 60
    while tool.good("lost 0")["lost"] and time.monotonic() < deadline:
        tool.do("any 0.2")
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    check_all_answer(tool, 2, 3, 4)
    tool.good("ask 0 2 1 1 %ld")
    assert tool.good("recv 0 60")["leaves"] == 3
    assert tool.end() == 0


def test_who_has_no_ancestor_left_ends(start):
    tool = start(kary(2, 3))
    everybody = tool.processes()
    kill(inner(tool)[0])
    tool.process.kill()
    tool.process.wait()
    assert not still_there(everybody)


def test_a_whole_sub_tree_that_is_gone_is_lost_in_the_end(start):
    tool = start(kary(2, 3), DRIVE_SILENCE="1")
    tool.good(f"open concat {WAIT} 0 {CONTINUE}")
    for process in reversed(family(inner(tool)[0])):
        kill(process)
    assert tool.lost(4) == [0, 1, 2, 3]
    tool.good("ask 0 3 1 1 %d")
    answer = tool.good("recv 0 60")
    assert (answer["leaves"], answer["source"]) == (4, 4)
    assert tool.good("missing 0")["missing"] == [0, 1, 2, 3]
    assert tool.end() == 0


def test_counts_events_and_the_tree_follow_a_loss(start):
    tool = start(kary(2, 2), checked=True)
    tool.good(f"open sum {WAIT} 0 {CONTINUE}")
    tool.good("pump 0 5")
    rows = {(row[0], row[1]): row[2:] for row in tool.good("metrics 60")["rows"]}
    assert rows == {(node, stream): rows[node, stream] for node in range(7) for stream in (-1, 0)}
    assert [rows[node, 0] for node in range(7)] == [[5, 10, 5, 0]] + [[5, 10, 5, 0], [5, 0, 0, 0], [5, 0, 0, 0]] * 2
    kill(inner(tool)[0])
    assert tool.good("pump 0 1")["waves"] == 1
    events = [tool.good("event") for _ in range(3)]
    assert sorted(event["event"] for event in events[:2]) == [[1, 0, 0, 2, 0, -1, 0], [1, 0, 0, 3, 0, -1, 0]]
    assert "event" not in events[2]
    assert [tool.good(f"node {node}")["node"] for node in range(4)] == [
        [-1, 0, 3, -1],
        [-2, 0, 0, -1],
        [0, 1, 0, 0],
        [0, 1, 0, 1],
    ]
    assert "found no process 7" in tool.do("node 7")["error"]
    assert len(tool.good("metrics 60")["rows"]) == 12
    tool.good("close 0")
    assert tool.good("event")["event"][5:] == [0, -3]


@pytest.mark.slow
def test_a_thousand_kills_in_a_row_lose_and_double_nothing(start):
    kills = round_ = 0
    while kills < 1000:
        tool = start(kary(2, 4))
        backends = tool.up["backends"]
        chance = random.Random(round_)
        tool.good(f"open concat {WAIT} 0 {CONTINUE}")
        check_all_answer(tool, 0, 0, backends)
        tool.good(f"ask 0 {round_} 200 1 %ld")
        victims = inner(tool)
        chance.shuffle(victims)
        for wave in range(200):
            if victims and chance.random() < 0.1:
                kill(victims.pop())
                kills += 1
            assert tool.good("recv 0 60")["values"][0] == values(round_, backends, wave)
        check_all_answer(tool, 0, round_, backends)
        assert tool.end() == 0
        round_ += 1
