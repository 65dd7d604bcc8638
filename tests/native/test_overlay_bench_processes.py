"""The processes of overlay-bench: what starts them, whose clocks their times are of, and that none outlives it."""

import csv
import json
import sys
import time

from tests.native.test_overlay_bench import QUICK
from tests.processes import family, kill, still_there
from tests.waiting import until

LONG = ("--min-samples", "1000000", "--max-samples", "1000000", "--max-seconds", "600")


def test_clocks_can_only_be_set_where_all_processes_are_forked(bench):
    process = bench(["a,skew,flat.top,0,sum,0,tree,0,1"], "--launch", "ssh {host}")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "column operation: found 'skew', wanted one that goes elsewhere than on this machine" in err


def running(process, tmp_path, count):
    """All processes of it, once the network is up and samples are being taken."""
    until(lambda: (tmp_path / "out" / ".now").exists() and len(family(process.pid)) == count)
    time.sleep(0.2)
    return family(process.pid)


def test_a_back_end_that_dies_ends_the_case_and_leaves_nobody(bench, tmp_path):
    process = bench(["a,reduce,unequal.top,8,sum,0,waves,0,1"], *LONG)
    everyone = running(process, tmp_path, 7)
    kill(everyone[-1:])
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert any(".c:" in line for line in err.splitlines())
    assert (tmp_path / "out" / ".now").read_text() == "a\n"
    assert not (tmp_path / "out" / "a.csv").exists()
    assert not still_there(everyone)


def test_a_front_end_that_is_killed_leaves_nobody(bench, tmp_path):
    process = bench(["a,reduce,unequal.top,8,sum,0,waves,0,1"], *LONG)
    everyone = running(process, tmp_path, 7)
    kill([process.pid])
    process.communicate(timeout=60)
    assert not still_there(everyone)


# Stands between a process and its parent, whose port it replaces in what that boots from. Only the packets that compare
# clocks are slow, in both directions.
RELAY = """
import os, socket, struct, subprocess, sys, threading, time

packet = sys.stdin.buffer.raw.read(1 << 16)
start = packet.index(b"127.0.0.1 ") + 10
end = packet.index(b" ", start)
parent = socket.create_connection(("127.0.0.1", int(packet[start:end])))
listener = socket.create_server(("127.0.0.1", 0))
for _ in range(1000):  # one with as many digits
    if len(port := str(listener.getsockname()[1]).encode()) == end - start:
        break
    listener = socket.create_server(("127.0.0.1", 0))
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
child.stdin.write(packet[:start] + port + packet[end:])
child.stdin.close()
own, _ = listener.accept()


def hand_on(source, target):
    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while taken := source.recv(1 << 16):
        if taken[4:6] in (b"\\x0e\\0", b"\\x0f\\0"):
            time.sleep(0.02)
        target.sendall(taken)
    target.shutdown(socket.SHUT_WR)


threading.Thread(target=hand_on, args=(own, parent), daemon=True).start()
hand_on(parent, own)
sys.exit(child.wait())
"""


def test_processes_are_started_by_a_command_where_one_is_named(bench, tmp_path):
    """The command stands for an agent: it gets the host, and here runs the rest on this machine."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\necho "$1" >>asked\nshift\nexec "$@"\n')
    agent.chmod(0o755)
    (tmp_path / "here.top").write_text("127.0.0.1:0 => 127.0.0.1:1 127.0.0.1:2 ;\n")
    rows = ["a,reduce,here.top,1024,sum,0,synchronous,0,1", "b,bcast,here.top,64,sum,0,waves,0,1"]
    options = ("--launch", f"{agent} {{host}}", "--meta", "meta.json", *QUICK)
    process = bench([*rows, "c,pingpong,here.top,64,sum,0,waves,0,1"], *options)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (tmp_path / "asked").read_text() == "127.0.0.1\n" * 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a.csv", "b.csv", "c.csv"}
    uncertainty = json.loads((tmp_path / "meta.json").read_text())["clock_uncertainty"]
    assert 0 < uncertainty < 0.1
    for case in "ab":  # from one clock to another's
        samples = list(csv.DictReader((tmp_path / "out" / f"{case}.csv").open()))
        assert any(row["valid"] == "1" for row in samples)
        assert all(float(row["seconds"]) >= 0 for row in samples if row["valid"] == "1")


def test_times_that_the_clocks_do_not_tell_are_marked(bench, tmp_path):
    (tmp_path / "relay.py").write_text(RELAY)
    agent = tmp_path / "agent"
    agent.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} {tmp_path / "relay.py"} "$@"\n')
    agent.chmod(0o755)
    (tmp_path / "here.top").write_text("127.0.0.1:0 => 127.0.0.1:1 127.0.0.1:2 ;\n")
    options = ("--launch", f"{agent} {{host}}", "--meta", "meta.json", *QUICK)
    process = bench(["a,reduce,here.top,8,sum,0,synchronous,0,1"], *options)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    uncertainty = json.loads((tmp_path / "meta.json").read_text())["clock_uncertainty"]
    assert 0.02 <= uncertainty < 1
    samples = list(csv.DictReader((tmp_path / "out" / "a.csv").open()))  # on a busy machine one may take longer
    assert {row["valid"] for row in samples if float(row["seconds"]) < uncertainty} == {"0"}


def test_a_back_end_on_another_host_than_planned_is_refused(bench, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    agent.chmod(0o755)
    (tmp_path / "there.top").write_text("127.0.0.1:0 => 127.0.0.1:1 elsewhere:0 ;\n")
    process = bench(["a,reduce,there.top,8,sum,0,waves,0,1"], "--launch", f"{agent} {{host}}", *QUICK)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "back-end 1 should be on elsewhere, but is on " in err
