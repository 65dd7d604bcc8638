"""Internal processes die or hang: their children attach to ancestors, and every packet arrives
once."""

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


def list_internal(tool):
    """Return the internal processes, in the order of their start."""
    return [process for process in tool.processes() if command_name(process) == "overlay-node"]


def expected_values(seed, backends, wave=0):
    return [sent(seed, backend, wave, 1, ["%ld"])[0] for backend in range(backends)]


def list_attachments(tool):
    """Return child, new parent and seconds since the loss of each attachment."""
    return re.findall(
        r"(\S+) has attached to (\S+), ([0-9.]+) s after its parent was lost", tool.read_stderr()
    )


def check_all_answer(tool, stream, seed, backends):
    tool.execute_ok(f"ask {stream} {seed} 1 1 %ld")
    answer = tool.execute_ok(f"recv {stream} 60")
    assert (answer["leaves"], answer["values"][0]) == (backends, expected_values(seed, backends))
    assert tool.execute_ok("lost 0")["lost"] == []


@pytest.mark.parametrize("checked", [False, True])
def test_children_of_a_lost_process_attach_to_the_grandparent(start, checked):
    tool = start(kary(2, 3), checked)
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    tool.execute_ok(f"open concat {WAIT} 0 {STOP}")  # no back-end is lost, so it continues, too
    check_all_answer(tool, 0, 1, 8)
    kill(list_internal(tool)[0])
    for seed in range(3):
        check_all_answer(tool, 0, seed, 8)
        check_all_answer(tool, 1, seed, 8)
    assert {(child, parent) for child, parent, _ in list_attachments(tool)} == {
        ("h:3", "h:0"),
        ("h:4", "h:0"),
    }
    # some back-ends, also below re-attached processes
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE} 0 3 5")
    tool.execute_ok("ask 2 5 1 1 %ld")
    assert tool.execute_ok("recv 2 60")["values"][0] == [
        expected_values(5, 8)[backend] for backend in (0, 3, 5)
    ]
    assert tool.end() == 0


def test_back_ends_attach_to_the_front_end_if_all_internal_processes_are_lost(start):
    tool = start("h:0 => h:1 ;\nh:1 => h:2 ;\nh:2 => h:3 ;\nh:3 => h:4 h:5 h:6 ;\n")
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    # a back-end gets its ancestors in the first packet of its parent
    check_all_answer(tool, 0, 3, 3)
    for process in list_internal(tool):
        kill(process)
    check_all_answer(tool, 0, 4, 3)
    assert {(f"h:{i}", "h:0") for i in (4, 5, 6)} <= {
        (child, parent) for child, parent, _ in list_attachments(tool)
    }


WAVES = 400


@pytest.mark.parametrize("seed", range(4))
# with a small window, packets wait at every level
@pytest.mark.parametrize("window", ["0", "3000"])
@pytest.mark.parametrize("checked", [False, True])
def test_streams_deliver_every_packet_once_while_processes_die(start, seed, window, checked):
    """A random number of internal processes is killed at random times, with four streams."""
    rng = random.Random(seed)
    tool = start(kary(*rng.choice([(2, 3), (3, 2), (2, 4)])), checked, DRIVE_WINDOW=window)
    backends = tool.up["backends"]
    victims = list_internal(tool)
    rng.shuffle(victims)
    victims = victims[: rng.randint(1, len(victims))]
    kinds = (f"concat {WAIT}", f"none {DO_NOT_WAIT}", f"none {WAIT}", f"concat {WAIT}")
    for kind in kinds:
        tool.execute_ok(f"open {kind} 0 {CONTINUE}")
    check_all_answer(tool, 3, 0, backends)
    for stream in range(3):
        tool.execute_ok(f"ask {stream} {seed} {WAVES} 1 %ld")
    waves, requested, received = 0, [], [[[] for _ in range(backends)] for _ in kinds]
    while (
        waves < WAVES
        or requested
        or any(len(row) < WAVES for stream in (1, 2) for row in received[stream])
    ):
        if victims and rng.random() < 0.03:
            kill(victims.pop())
            requested.append(waves)
            tool.execute_ok(f"ask 3 {waves} 1 1 %ld")
        answer = tool.execute_ok("any 60")
        if answer["stream"] == 3:
            assert answer["values"][0] == expected_values(requested.pop(0), backends)
        elif answer["stream"] == 0:
            assert answer["values"][0] == expected_values(seed, backends, waves)
            waves += 1
        else:
            assert answer["leaves"] == 1
            received[answer["stream"]][answer["source"]].append(answer["values"][0])
    for stream in (1, 2):
        for backend in range(backends):
            assert received[stream][backend] == [
                sent(seed, backend, wave, 1, ["%ld"])[0] for wave in range(WAVES)
            ]
    assert tool.execute("any 0.2")["code"] == "timeout"  # no packet was delivered twice
    for process in victims:
        kill(process)
    check_all_answer(tool, 3, 1, backends)
    assert tool.end() == 0


@pytest.mark.parametrize("losses", range(1, 7))
def test_after_any_number_of_losses_all_back_ends_are_attached(start, losses):
    tool = start(kary(2, 3))
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    check_all_answer(tool, 0, 0, 8)
    for process in random.Random(losses).sample(list_internal(tool), losses):
        kill(process)  # all at once
    check_all_answer(tool, 0, losses, 8)
    assert tool.end() == 0


def test_children_of_a_hanging_process_reattach_and_that_process_ends(start):
    tool = start(kary(2, 3), DRIVE_SILENCE="1")
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    victim = list_internal(tool)[0]
    os.kill(victim, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        check_all_answer(tool, 0, 1, 8)
        assert time.monotonic() - begin > 0.5  # the process was silent for longer than the limit
        times = [float(seconds) for _, _, seconds in list_attachments(tool)]
        print(f"re-attached {median(times):.3f} s after the loss was detected")
    finally:
        os.kill(victim, signal.SIGCONT)
    assert not still_there([victim])
    check_all_answer(tool, 0, 2, 8)
    assert tool.end() == 0


def test_a_back_end_that_attaches_late_takes_part_in_new_streams(start):
    """The back-end computes for longer than `silence` seconds when its parent is lost."""
    tool = start(kary(2, 2), DRIVE_SILENCE="1")
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    tool.execute_ok(f"open none {DO_NOT_WAIT} 0 {CONTINUE}")
    tool.execute_ok("tell 1 sleep 5 0")
    time.sleep(0.3)
    kill(list_internal(tool)[0])
    tool.execute_ok("ask 0 1 1 1 %ld")
    answer = tool.execute_ok("recv 0 60")
    assert answer["leaves"] == 3
    assert tool.execute_ok("missing 0")["missing"] == [0]
    deadline = time.monotonic() + 60
    while tool.execute_ok("lost 0")["lost"] and time.monotonic() < deadline:
        tool.execute("any 0.2")
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    check_all_answer(tool, 2, 3, 4)
    tool.execute_ok("ask 0 2 1 1 %ld")
    assert tool.execute_ok("recv 0 60")["leaves"] == 3
    assert tool.end() == 0


def test_processes_without_a_running_ancestor_end(start):
    tool = start(kary(2, 3))
    all_processes = tool.processes()
    kill(list_internal(tool)[0])
    tool.process.kill()
    tool.process.wait()
    assert not still_there(all_processes)


def test_back_ends_of_a_killed_sub_tree_are_lost(start):
    tool = start(kary(2, 3), DRIVE_SILENCE="1")
    tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
    for process in reversed(family(list_internal(tool)[0])):
        kill(process)
    assert tool.wait_for_losses(4) == [0, 1, 2, 3]
    tool.execute_ok("ask 0 3 1 1 %d")
    answer = tool.execute_ok("recv 0 60")
    assert (answer["leaves"], answer["source"]) == (4, 4)
    assert tool.execute_ok("missing 0")["missing"] == [0, 1, 2, 3]
    assert tool.end() == 0


def test_metrics_events_and_topology_after_a_loss(start):
    tool = start(kary(2, 2), checked=True)
    tool.execute_ok(f"open sum {WAIT} 0 {CONTINUE}")
    tool.execute_ok("pump 0 5")
    rows = {(row[0], row[1]): row[2:] for row in tool.execute_ok("metrics 60")["rows"]}
    assert rows == {(node, stream): rows[node, stream] for node in range(7) for stream in (-1, 0)}
    assert [rows[node, 0] for node in range(7)] == [[5, 10, 5, 0]] + [
        [5, 10, 5, 0],
        [5, 0, 0, 0],
        [5, 0, 0, 0],
    ] * 2
    kill(list_internal(tool)[0])
    assert tool.execute_ok("pump 0 1")["waves"] == 1
    events = [tool.execute_ok("event") for _ in range(3)]
    assert sorted(event["event"] for event in events[:2]) == [
        [1, 0, 0, 2, 0, -1, 0],
        [1, 0, 0, 3, 0, -1, 0],
    ]
    assert "event" not in events[2]
    assert [tool.execute_ok(f"node {node}")["node"] for node in range(4)] == [
        [-1, 0, 3, -1],
        [-2, 0, 0, -1],
        [0, 1, 0, 0],
        [0, 1, 0, 1],
    ]
    assert "found no process 7" in tool.execute("node 7")["error"]
    assert len(tool.execute_ok("metrics 60")["rows"]) == 12
    tool.execute_ok("close 0")
    assert tool.execute_ok("event")["event"][5:] == [0, -3]


@pytest.mark.slow
def test_packets_are_delivered_once_despite_a_thousand_kills(start):
    kills = round_ = 0
    while kills < 1000:
        tool = start(kary(2, 4))
        backends = tool.up["backends"]
        rng = random.Random(round_)
        tool.execute_ok(f"open concat {WAIT} 0 {CONTINUE}")
        check_all_answer(tool, 0, 0, backends)
        tool.execute_ok(f"ask 0 {round_} 200 1 %ld")
        victims = list_internal(tool)
        rng.shuffle(victims)
        for wave in range(200):
            if victims and rng.random() < 0.1:
                kill(victims.pop())
                kills += 1
            assert tool.execute_ok("recv 0 60")["values"][0] == expected_values(
                round_, backends, wave
            )
        check_all_answer(tool, 0, round_, backends)
        assert tool.end() == 0
        round_ += 1
