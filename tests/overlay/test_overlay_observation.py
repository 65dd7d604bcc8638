"""Metrics, events and topology of a running overlay network, in Python."""

import os
import signal
import sys
from pathlib import Path

import pytest

from commodel_overlay import GONE, Network, OverlayError, OverlayTimeoutError
from commodel_overlay.library import CLOSED
from tests.overlay.overlay_worker import DIE, ECHO, MANY, OWN
from tests.processes import arguments, command_name, family
from tests.waiting import until

WORKER = [sys.executable, str(Path(__file__).with_name("overlay_worker.py"))]
# nodes 0 l:0, 1 l:1, 2–4 l:3–l:5, 5 l:2, 6 l:6
TREE = "l:0 => l:1 l:2 ; l:1 => l:3 l:4 l:5 ; l:2 => l:6 ;"

pytestmark = pytest.mark.usefixtures("overlay_programs")


@pytest.fixture
def network():
    with Network(TREE, backend=WORKER) as made:
        yield made


def turn(network):
    try:
        network.receive(seconds=0.05)
    except (OverlayTimeoutError, OverlayError):
        return True
    return True


def inner():
    return [process for process in family(os.getpid()) if command_name(process) == "overlay-node"]


def test_every_process_counts_sent_packets_waves_and_queued_packets(network):
    stream, other = network.stream(filter="sum"), network.stream([3], filter="max")
    stream.send("%d", 7, tag=MANY)
    for wave in range(7):
        assert stream.receive(seconds=60).values[0] == 4 * wave
    other.send("", tag=OWN)
    other.receive(seconds=60)
    table = network.metrics(seconds=60)
    whole = table[table.stream == -1].set_index("node")
    assert list(whole.index) == list(range(7))
    assert list(whole.depth) == [0, 1, 2, 2, 2, 1, 2]
    assert (whole.cpu_seconds > 0).all()
    assert (whole.round_trip[1:] > 0).all()
    first = table[table.stream == stream.id].set_index("node")
    assert list(first.index) == list(range(7))
    assert list(first.packets_up) == [7] * 7  # of the front-end: those that its tool received
    assert list(first.packets_down) == [2, 3, 0, 0, 0, 1, 0]
    assert list(first.waves) == [7, 7, 0, 0, 0, 7, 0]
    assert (first.bytes_up == 7 * first.bytes_up[0] / 7).all()
    assert (first.filter_seconds[[0, 1, 5]] > 0).all()
    assert list(table[table.stream == other.id].node) == [0, 5, 6]
    assert (whole.packets_up >= first.packets_up).all()
    stream.close()
    other.send("", tag=OWN)  # whose answer is not received
    until(
        lambda: (
            network.metrics(seconds=60).query(f"stream == {other.id} and node == 0").queued.item()
            == 1
        ),
        60,
    )
    after = network.metrics(seconds=60)
    assert 0 not in set(after.stream)
    assert list(after[after.stream == -1].packets_up - whole.packets_up.array) == [
        0,
        0,
        0,
        0,
        0,
        1,
        1,
    ]


def test_metrics_of_back_ends_that_compute_are_missing(network):
    stream = network.stream(filter="sum")
    backends = [process for process in family(os.getpid()) if WORKER[1] in arguments(process)]
    os.kill(backends[0], signal.SIGSTOP)
    table = network.metrics(seconds=0.5)
    stopped = set(range(7)) - set(table[table.stream == -1].node)
    assert len(stopped) == 1
    os.kill(backends[0], signal.SIGCONT)
    stream.send("", tag=OWN)
    assert stream.receive(seconds=60).leaves == 4
    assert len(network.metrics(seconds=60).query("stream == -1")) == 7


def test_the_topology_and_the_events_follow_losses(network):
    heard = []
    network.on_event(heard.append)
    assert list(network.topology().parent) == [-1, 0, 1, 1, 1, 0, 5]
    assert list(network.topology().children) == [2, 3, 0, 0, 0, 1, 0]
    assert list(network.topology().backend) == [-1, -1, 0, 1, 2, -1, 3]
    assert set(network.topology().host) == {"l"}
    # all have started: who has not is lost
    assert len(network.metrics(seconds=60).query("stream == -1")) == 7
    os.kill(inner()[0], signal.SIGKILL)
    until(lambda: turn(network) and len(heard) == 3, 60)
    assert {(event.kind, event.node, event.parent) for event in heard} == {
        ("reattached", node, 0) for node in (2, 3, 4)
    }
    assert list(network.topology().parent) == [-1, GONE, 0, 0, 0, 0, 5]
    assert list(network.topology().depth) == [0, 0, 1, 1, 1, 1, 2]
    stream, failing = network.stream(filter="sum"), network.stream(filter="bin")
    stream.send("%d", 1, tag=DIE)
    until(lambda: turn(network) and network.lost, 60)
    failing.send("%d", 1, tag=ECHO)
    with pytest.raises(OverlayError, match="checksum"):
        failing.receive(seconds=60)
    failing.close()
    stream.close()
    assert network.events() == heard
    lost, failed, closed = heard[3:]
    assert (lost.kind, list(lost.backends)) == ("lost", [1])
    assert "lost l:4" in lost.why
    assert (failed.kind, failed.stream) == ("ended", 1)
    assert "checksum" in failed.why
    assert (closed.kind, closed.stream, closed.code) == ("ended", 0, CLOSED)
    assert network.events() == []
    assert network.topology().parent[3] == GONE
    assert len(network.metrics(seconds=60).query("stream == -1")) == 5
    network.on_event(None)
    network.stream().close()
    assert len(heard) == 6
    assert len(network.events()) == 1
