"""Hostile input to the overlay network.

Edited packets, streams of packets and topologies are given to each role under the sanitizers; a
back-end fills its parent's memory; a network runs under valgrind. If a back-end or the front-end
dies, hangs or leaves, the network detects the loss in time, and no process is left."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from contextlib import suppress

import pytest

from tests.overlay.building import run_clean
from tests.overlay.conftest import flat, kary, kill
from tests.overlay.wire import DATA, OPEN, WELCOME, frame, hello, received, sent
from tests.processes import alive, command_name, still_there

SEED = int(os.environ.get("FUZZ_SEED", "1"))


@pytest.mark.parametrize("seed", [SEED, pytest.param(SEED + 1, marks=pytest.mark.slow)])
def test_randomly_edited_packets_are_read_or_refused(checked_programs, seed):
    count = 15_000 if seed == SEED else 500_000
    done = run_clean([checked_programs / "hostile", seed, count])
    assert done.stdout == f"{count} inputs\n"
    assert "sent an invalid packet" in done.stderr  # some do reach what they are aimed at
    assert "which is not for here" in done.stderr


def test_parts_that_need_no_network(checked_programs):
    assert run_clean([checked_programs / "parts"]).stderr == ""


def test_a_back_end_that_heeds_no_window_is_lost(start, tmp_path):
    """Its packets stay in memory, since no wave is complete without the other back-end."""
    file = tmp_path / "connection"
    tool = start(flat(2), up=False, checked=True, DRIVE_FILE=str(file))
    assert tool.answer()["code"] == "waiting"
    _, token, *rows = file.read_text().splitlines()
    secret, (_, host, port, _) = bytes.fromhex(token.split()[1]), rows[0].split()
    members = [socket.create_connection((host, int(port)), timeout=60) for _ in rows]
    for node, member in enumerate(members, 1):
        member.sendall(hello(secret, node))
        assert received(member)[0] == WELCOME
    assert tool.answer()["backends"] == 2
    tool.execute_ok("open sum 0 0 0")
    assert tool.execute("any 0")["code"] == "timeout"  # which sends what was opened
    assert {received(member) for member in members} == {(OPEN, 0)}
    packet = frame(DATA, "%ud", struct.pack("=I", 1), source=0, leaves=1)
    with suppress(OSError):
        members[0].sendall(packet * (2 * 256 * 1024 // len(packet)))
    assert tool.wait_for_losses(1) == [0]
    assert "lost h:1: it sent more than a stream's window" in tool.read_stderr()
    for member in members:
        member.close()
    assert tool.end() == 0


@pytest.mark.slow
def test_valgrind_finds_nothing(overlay_programs, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    (tmp_path / "tree").write_text(kary(2, 2))
    commands = (
        "open concat 0 0 0\nask 0 1 3 3 %s %ad %lf %as\nrecv 0 60\nopen none 2 0 0\necho 1 100000 "
        "4\nskew 0 5\nquit\n"
    )
    options = [
        "-q",
        "--error-exitcode=9",
        "--trace-children=yes",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ]
    done = subprocess.run(
        ["valgrind", *options, overlay_programs / "drive", tmp_path / "tree"],
        input=commands,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count('"code": "ok"') == 7, done.stdout


CONTINUE, STOP = range(2)


def leaves(tool):
    return [process for process in tool.processes()[1:] if command_name(process) == "drive"]


@pytest.mark.parametrize(
    "topology", [flat(4), kary(2, 2), "h:0 => h:1 ;\nh:1 => h:2 ;\nh:2 => h:3 h:4 h:5 h:6 ;\n"]
)
@pytest.mark.parametrize("checked", [False, True])
def test_a_stream_goes_on_without_a_lost_back_end(start, topology, checked):
    tool = start(topology, checked)
    tool.execute_ok(f"open concat 0 0 {CONTINUE}")
    tool.execute_ok(f"open sum 0 0 {STOP}")
    tool.execute_ok(f"open sum 0 0 {STOP} 0 1")
    tool.execute_ok("tell 0 sleep 0.3 1")
    tool.execute_ok("ask 0 7 1 1 %ld")  # its wave waits for one that never answers
    tool.execute_ok("tell 0 kill 0 2")
    rest = [backend for backend in range(4) if backend != 2]
    answers = [tool.execute_ok("recv 0 60")]
    assert answers[0]["leaves"] in (3, 4)  # it may have answered before it was killed
    tool.execute_ok("ask 0 8 1 1 %ld")
    answer = tool.execute_ok("recv 0 60")
    assert answer["values"][0] == [sent(8, backend, 0, 1, ["%ld"])[0] for backend in rest]
    assert tool.execute_ok("missing 0")["missing"] == [2]
    assert tool.execute_ok("missing 2")["missing"] == []
    answer = tool.execute("recv 1 60")
    assert answer["code"] == "lost"
    assert "lost h:" in answer["error"]
    assert "closed the connection" in answer["error"]
    assert tool.execute("ask 1 1 1 1 %d")["code"] == "lost"
    tool.execute_ok("ask 2 1 1 1 %d")  # the lost one is none of its own
    assert tool.execute_ok("recv 2 60")["leaves"] == 2
    assert tool.end() == 0
    assert tool.read_stderr().count("overlay: lost ") == 1


@pytest.mark.parametrize("how", ["exit", "leave"])
def test_one_that_leaves_is_lost_too(start, how):
    tool = start(kary(2, 2))
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok(f"tell 0 {how} 0 3")
    assert tool.wait_for_losses(1) == [3]


@pytest.mark.parametrize("topology", [flat(4), kary(2, 2)])
# a small one holds them below while the loss is told of
@pytest.mark.parametrize("window", ["0", "20000"])
def test_the_last_words_of_one_that_leaves_arrive(start, topology, window):
    tool = start(topology, DRIVE_WINDOW=window)
    tool.execute_ok("open concat 0 0 0")
    for seed in range(10):
        tool.execute_ok(f"ask 0 {seed} 1 1000 %alf")
    tool.execute_ok("tell 0 leave 0")
    for seed in range(10):
        answer = tool.execute_ok("recv 0 60")
        assert answer["values"][0] == [
            x for backend in range(4) for x in sent(seed, backend, 0, 1000, ["%alf"])[0]
        ]
    assert tool.execute("recv 0 60")["code"] == "lost"
    assert tool.wait_for_losses(4) == [0, 1, 2, 3]


def test_all_back_ends_lost(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok("tell 0 kill 0")
    answer = tool.execute("recv 0 60")
    assert answer["code"] == "lost"
    assert "all back-ends of the stream are lost" in answer["error"]
    assert tool.wait_for_losses(4) == [0, 1, 2, 3]
    assert tool.end() == 0


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM"])
def test_nothing_outlives_the_front_end(start, signal_name):
    tool = start(kary(3, 2))
    everybody = tool.processes()
    assert len(everybody) == 13
    os.kill(tool.process.pid, getattr(signal, signal_name))
    tool.process.wait()
    assert not still_there(everybody)


def test_a_back_end_that_computes_when_the_front_end_dies_ends_too(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 sleep 1000")
    everybody = tool.processes()
    tool.kill()
    assert not any(map(alive, everybody))


def test_a_busy_back_end_is_not_lost(start):
    tool = start(kary(2, 2), DRIVE_SILENCE="1")
    tool.execute_ok("open concat 0 0 0")
    # far longer than the silence that is allowed an internal process
    tool.execute_ok("tell 0 sleep 4 3")
    tool.execute_ok("ask 0 3 1 1 %d")
    assert tool.execute_ok("recv 0 60")["leaves"] == 4
    assert tool.execute_ok("lost 0")["lost"] == []


def test_an_idle_tool_does_not_report_back_ends_as_lost(start):
    tool = start(kary(2, 2), DRIVE_SILENCE="1")
    tool.execute_ok("open sum 0 0 0")
    time.sleep(3)
    tool.execute_ok("ask 0 3 1 1 %d")
    assert tool.execute_ok("recv 0 60")["leaves"] == 4
    assert tool.execute_ok("lost 0")["lost"] == []


def test_a_back_end_that_hangs_is_killed_at_the_end(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 stop 0 1")
    assert tool.end() == 0
    assert "does not end: killed" in tool.read_stderr()


def test_an_agent_gets_sigterm_before_a_hanging_back_end_is_killed(start, tmp_path):
    """Without SIGTERM, srun would leave its job step behind."""
    agent, log = tmp_path / "agent", tmp_path / "log"
    agent.write_text(
        f"#!/bin/sh\ntrap 'kill -9 $!; echo ended >> {log}; exit 1' TERM\nexec 3<&0\nshift\n\"$@\" <&3 &\nwait\n"
    )
    agent.chmod(0o755)
    tool = start("localhost:0 => localhost:1 localhost:2 ;\n", DRIVE_LAUNCH=f"{agent} {{host}}")
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 stop 0 1")
    assert tool.end() == 0
    assert "localhost:2 does not end: killed" in tool.read_stderr()
    assert log.read_text() == "ended\n"


def test_losses_leave_no_files_open(start):
    tool = start(flat(6))
    tool.execute_ok("open none 2 0 0")
    before = tool.execute_ok("files")["files"][0]
    for backend in range(5):
        tool.execute_ok(f"tell 0 kill 0 {backend}")
        tool.wait_for_losses(backend + 1)
    assert tool.execute_ok("files")["files"][0] == before - 5


@pytest.mark.slow
def test_five_hundred_and_twelve_back_ends(start):
    for topology in (flat(512), kary(8, 3)):
        tool = start(topology)
        tool.execute_ok("open sum 0 0 0")
        tool.execute_ok("pump 0 20")
        everybody = tool.processes()
        assert len(everybody) == 513 + (72 if topology.count(";") > 1 else 0)
        victim = leaves(tool)[-1]
        kill(victim)
        assert tool.wait_for_losses(1) == [511]
        assert tool.end() == 0


def test_a_sub_tree_without_back_ends_is_not_waited_for(start):
    tool = start(kary(2, 3), checked=True)
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok("open sum 0 0 0 0 1 7")
    for backend in (0, 1):
        tool.execute_ok(f"tell 0 kill 0 {backend}")
    assert tool.wait_for_losses(2) == [0, 1]
    tool.execute_ok("open sum 0 0 0 1 7")
    tool.execute_ok("open sum 0 0 0 0 1")
    for stream, leaves_left in ((0, 6), (1, 1), (2, 1)):
        tool.execute_ok(f"ask {stream} 1 1 1 %d")
        assert tool.execute_ok(f"recv {stream} 60")["leaves"] == leaves_left
    assert tool.execute("recv 3 60")["code"] == "lost"
    for stream in range(4):
        tool.execute_ok(f"close {stream}")
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok("ask 4 1 1 1 %d")
    assert tool.execute_ok("recv 4 60")["leaves"] == 6
