"""Overlay networks in Python: packets preserve their values, streams reduce, networks end
cleanly."""

import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel_overlay import Network, OverlayError, OverlayTimeoutError, Packet
from commodel_overlay.library import CLOSED, LOST, _load_library
from commodel_overlay.packets import DTYPES
from tests.overlay.overlay_worker import DIE, ECHO, MANY, OWN, REASONS, SLOW, UNTIL_ENDED
from tests.processes import family, still_there
from tests.waiting import until

ROOT = Path(__file__).parents[2]
WORKER = [sys.executable, str(Path(__file__).with_name("overlay_worker.py"))]
# four back-ends, three of them behind one child
TREE = "l:0 => l:1 l:2 ; l:1 => l:3 l:4 l:5 ; l:2 => l:6 ;"

pytestmark = pytest.mark.usefixtures("overlay_programs")
INTEGERS = {name: dtype for name, dtype in DTYPES.items() if dtype.kind != "f"}


@contextmanager
def start_network():
    """Yield a network; assert that all its processes end with it."""
    before = set(family(os.getpid()))
    with Network(TREE, backend=WORKER) as network:
        processes = [process for process in family(os.getpid()) if process not in before]
        yield network
    assert len(processes) >= 6
    assert not still_there(processes)


@pytest.fixture
def network():
    with start_network() as made:
        yield made


@pytest.fixture(scope="module")
def shared_network():
    """Yield a network for all tests that lose no back-end and close their streams."""
    with start_network() as network:
        yield network


@given(st.data())
def test_the_values_of_a_packet_equal_the_given_values(data):
    names = data.draw(st.lists(st.sampled_from([*INTEGERS, "s", "lf"]), max_size=6))
    many = [data.draw(st.booleans()) for _ in names]

    def drawn(name):
        if name == "s":
            return data.draw(
                st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=9)
            )
        if name == "lf":
            return data.draw(st.floats(allow_nan=False))
        limits = np.iinfo(INTEGERS[name])
        return data.draw(st.integers(int(limits.min), int(limits.max)))

    values = [
        [drawn(name) for _ in range(data.draw(st.integers(0, 5)))] if array else drawn(name)
        for name, array in zip(names, many, strict=True)
    ]
    text = " ".join(
        f"%{'a' if array else ''}{name}" for name, array in zip(names, many, strict=True)
    )
    packet = Packet.of(text, *values, tag=7)
    assert (packet.tag, packet.source) == (7, -1)
    back = packet.values
    assert [
        list(value) if array else value for value, array in zip(back, many, strict=True)
    ] == values


def test_arrays_are_views_that_keep_their_packet():
    given_array = np.arange(1000, dtype="f8")
    packet = Packet.of("%alf %auc", given_array, b"abc")
    numbers, letters = packet.values
    again, _ = packet.values
    assert np.shares_memory(numbers, again)
    assert not numbers.flags.writeable
    del packet, again
    gc.collect()
    other = [Packet.of("%alf", np.full(1000, 7.0)) for _ in range(20)]
    assert np.array_equal(numbers, given_array)
    assert bytes(letters) == b"abc"
    assert len(other) == 20


@pytest.mark.parametrize(
    ("format", "values", "complaint"),
    [
        ("%d", (), "found 0 values, wanted 1"),
        ("%d", (2**31,), "out of bounds|cannot represent"),
        ("%uc", (-1,), "out of bounds|cannot represent"),
        ("%d", (1.5,), "found a number that int32 cannot represent"),
        ("%ad", (np.zeros(3),), "found 1 dimensions of float64, wanted one of int32"),
        ("%alf", (np.zeros((2, 2)),), "found 2 dimensions"),
        ("%alf", (3.0,), "found a float, wanted a sequence"),
        ("%s", ("a\0b",), "zero byte"),
        ("%x", (), "%x"),
    ],
)
def test_values_that_do_not_fit_the_packet_format_are_refused_in_one_line(
    format, values, complaint
):
    with pytest.raises(OverlayError, match=complaint) as refused:
        Packet.of(format, *values)
    assert "\n" not in refused.value.message


def test_back_ends_in_python_are_reduced_on_several_streams(shared_network):
    assert len(shared_network) == 4
    assert [shared_network.name(backend) for backend in range(4)] == ["l:3", "l:4", "l:5", "l:6"]
    streams = {name: shared_network.stream(filter=name) for name in ("sum", "max", "concat")}
    some = shared_network.stream([1, 3], filter="sum")
    assert len({stream.id for stream in [*streams.values(), some]}) == 4
    for stream in (*streams.values(), some):
        stream.send("", tag=OWN)
    own = np.arange(5) + np.arange(4)[:, None]
    wanted = {"sum": own.sum(0), "max": own.max(0), "concat": own.ravel()}
    for name, stream in streams.items():
        packet = stream.receive(seconds=60)
        assert packet.leaves == 4
        assert packet.values[0].tolist() == wanted[name].tolist()
    packet = some.receive(seconds=60)
    assert (packet.leaves, packet.source, packet.values[1]) == (2, 1, 3.0)
    assert packet.values[0].tolist() == own[[1, 3]].sum(0).tolist()


@pytest.mark.parametrize("tag", [OWN, MANY, UNTIL_ENDED])
def test_back_ends_survive_a_stream_that_the_front_end_leaves_early(network, tag):
    """Packets that back-ends still send on the stream are dropped, and the back-ends receive the
    reason of its end."""
    for _ in range(3):
        with network.stream() as stream:
            stream.send("%d", 5_000, tag=tag)
    assert not network.lost
    next_stream = network.stream(filter="concat")
    next_stream.send("", tag=REASONS)
    packet = next_stream.receive(seconds=60)
    assert packet.leaves == 4
    reasons = {reason for text in packet.values[0] for reason in text.split("; ") if reason}
    assert reasons == ({"the front-end has closed the stream"} if tag == UNTIL_ENDED else set())


@pytest.mark.parametrize(
    ("filter", "format", "value", "why"),
    [
        ("sum", "%d", 2**31 - 1, "a sum in '%d' overflows"),
        ("sum", "%s", "a", "found a string"),
        ("bin", "%d", 1, "checksum"),
    ],
)
def test_an_error_ends_only_one_stream_and_that_stream_states_the_reason(
    shared_network, filter, format, value, why
):
    failing, other = shared_network.stream(filter=filter), shared_network.stream(filter="concat")
    failing.send(format, value, tag=ECHO)
    with pytest.raises(OverlayError, match=why):
        failing.receive(seconds=60)
    assert why in failing.ended
    with pytest.raises(OverlayError, match=why):
        failing.send(format, value, tag=ECHO)
    assert not shared_network.lost
    other.send("", tag=OWN)
    assert other.receive(seconds=60).leaves == 4


def test_back_ends_learn_why_a_filter_has_ended_their_stream(network):
    failing, other = network.stream(filter="bin"), network.stream(filter="concat")
    failing.send("", tag=UNTIL_ENDED)
    with pytest.raises(OverlayError, match="checksum"):
        failing.receive(seconds=60)
    other.send("", tag=REASONS)
    packet = other.receive(seconds=60)
    assert packet.leaves == 4
    assert all("checksum" in text for text in packet.values[0])


def test_the_same_packet_goes_down_and_comes_back(shared_network):
    image = np.random.default_rng(1).integers(0, 255, 3_000_000, dtype="u1")
    packet = Packet.of("%auc %s", image, "an image", tag=ECHO)
    with shared_network.stream(sync="none") as stream:
        stream.send(packet)
        back = [stream.receive(seconds=60) for _ in range(4)]
    assert sorted(packet.source for packet in back) == [0, 1, 2, 3]
    assert all(np.array_equal(packet.values[0], image) for packet in back)
    with pytest.raises(OverlayError, match="this Stream is closed"):
        stream.send("")


def test_waves_come_in_order_and_any_stream_is_heard(network):
    stream = network.stream(filter="max")
    stream.send("%d", 500, tag=MANY)
    received = [network.receive(seconds=60) for _ in range(500)]
    assert [packet.values[0] for packet, _ in received] == list(range(500))
    assert {other.id for _, other in received} == {stream.id}


def test_a_receive_without_a_packet_in_time_raises_a_timeout_error(shared_network):
    with (
        shared_network.stream(filter="sum") as stream,
        pytest.raises(OverlayTimeoutError, match="nothing came"),
    ):
        stream.receive(seconds=0.3)
    assert set(shared_network.phases) == {"launch", "tree", "backends"}
    assert 0 < shared_network.phases["backends"] < 60
    assert np.abs(shared_network.skew()).max() < 0.1


def test_a_lost_back_end_is_named_and_the_rest_goes_on_or_stops(network):
    goes_on, stops = network.stream(filter="sum"), network.stream(filter="sum", on_loss="stop")
    goes_on.send("%d", 2, tag=DIE)
    until(lambda: process_events(network) and network.lost, 60)
    assert network.lost == goes_on.missing == [2]
    goes_on.send("", tag=OWN)
    assert goes_on.receive(seconds=60).leaves == 3
    with pytest.raises(OverlayError) as lost:
        stops.receive(seconds=60)
    assert lost.value.code == LOST


def process_events(network):
    """Let the network process its events; return whether it is still usable or has lost a
    back-end."""
    try:
        network.receive(seconds=0.05)
    except OverlayTimeoutError:
        return True
    except OverlayError as error:
        return error.code == LOST
    return True


def test_a_tool_that_has_forked_does_not_turn_over_lost_connections():
    """The child process keeps the sockets open, but waiting takes almost no processor time."""
    with Network("l:0 => l:1 l:2 ;", backend=WORKER) as network:
        stream = network.stream(filter="sum")
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        stream.send("%d", 0, tag=DIE)
        until(lambda: process_events(network) and network.lost, 60)
        before = time.process_time()
        with pytest.raises(OverlayTimeoutError):
            stream.receive(seconds=2)
        assert time.process_time() - before < 0.2
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_slow_back_end_ends_when_the_front_end_closes():
    with start_network() as network:
        network.stream().send("%d", 60, tag=SLOW)
    network.close()
    with pytest.raises(OverlayError) as closed:
        len(network)
    assert closed.value.code == CLOSED


def test_back_ends_that_others_start_attach_by_a_connection_file(tmp_path):
    path = tmp_path / "connection"
    with Network("l:0 => l:1 l:2 ;", connection_file=path) as network:
        assert path.stat().st_mode & 0o777 == 0o600
        others = [subprocess.Popen([*WORKER, str(path), str(number)]) for number in range(2)]
        network.wait(60)
        stream = network.stream(filter="sum")
        stream.send("", tag=OWN)
        assert stream.receive(seconds=60).values[0].tolist() == [1, 3, 5, 7, 9]
    assert [other.wait(60) for other in others] == [0, 0]


def test_threads_have_streams_of_their_own(network):
    network.share()

    def ask(name):
        for _ in range(20):
            with network.stream(filter=name) as stream:
                stream.send("", tag=OWN)
                yield stream.receive(seconds=60).values[0].tolist()

    own = np.arange(5) + np.arange(4)[:, None]
    wanted = {"sum": own.sum(0), "max": own.max(0), "min": own.min(0)}
    with ThreadPoolExecutor() as pool:
        for name, answers in zip(
            wanted, pool.map(lambda name: list(ask(name)), wanted), strict=True
        ):
            assert answers == [wanted[name].tolist()] * 20


def test_back_ends_join_a_running_network(tmp_path):
    path = tmp_path / "connection"
    with Network("l:0 => l:1 l:2 ;", connection_file=path, join=True) as network:
        assert network.lost == [0, 1]
        other = subprocess.Popen([*WORKER, str(path), "1"])
        until(lambda: process_events(network) and network.lost == [0], 60)
        (event,) = network.events()
        assert (event.kind, list(event.backends), event.node) == ("joined", [1], 2)
        stream = network.stream(filter="sum")
        stream.send("", tag=OWN)
        assert stream.receive(seconds=60).values[0].tolist() == [1, 2, 3, 4, 5]
    assert other.wait(60) == 0
    with pytest.raises(OverlayError, match="wanted a connection file"):
        Network("l:0 => l:1 ;", backend=WORKER, join=True)


def test_mistakes_are_told_in_one_line(monkeypatch, tmp_path):
    with pytest.raises(OverlayError, match=r"absent.top"):
        Network(tmp_path / "absent.top", backend=WORKER)
    with pytest.raises(OverlayError, match="wanted the command of the back-ends"):
        Network(TREE)
    with Network("l:0 => l:1 ;", backend=WORKER) as network:
        with pytest.raises(OverlayError, match="found 'never', wanted wait, timeout or none"):
            network.stream(sync="never")
        with pytest.raises(OverlayError, match="nonsense"):
            network.stream(filter="nonsense").receive(seconds=10)
    monkeypatch.setenv("COMMODEL_OVERLAY", str(tmp_path))
    _load_library.cache_clear()
    with pytest.raises(UserError, match=r"no .*liboverlay.so; commodel build overlay builds it"):
        Packet.of("")
    monkeypatch.delenv("COMMODEL_OVERLAY")
    _load_library.cache_clear()


def test_the_example_is_short_and_runs(tmp_path):
    script = ROOT / "examples" / "overlay" / "uptime.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 60
    (tmp_path / "tree.top").write_text(TREE)
    done = subprocess.run(
        [sys.executable, script, "tree.top"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("4 hosts, load average: ")
    assert len(lines) == 5
    assert {line.split()[1] for line in lines[1:]} == {os.uname().nodename}
    wrong = subprocess.run(
        [sys.executable, script, "absent"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("uptime: ")
    assert len(wrong.stderr.splitlines()) == 1
