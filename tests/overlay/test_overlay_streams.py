"""Streams: many at once, over subsets of the back-ends, in each waiting mode, with packets of any
size, and flow control."""

import random

import pytest

from tests.overlay.building import build, run_clean
from tests.overlay.conftest import flat, kary
from tests.overlay.wire import reduced, sent

WAIT_FOR_ALL, TIME_OUT, DO_NOT_WAIT = range(3)


@pytest.mark.parametrize("checked", [False, True])
def test_fifty_streams_at_once(start, checked):
    tool = start(kary(3, 2), checked)
    chance = random.Random(3)
    members = [sorted(chance.sample(range(9), chance.randint(1, 9))) for _ in range(50)]
    names = [chance.choice(("min", "max", "sum", "concat")) for _ in range(50)]
    for stream in range(50):
        tool.execute_ok(f"open {names[stream]} 0 0 0 {' '.join(map(str, members[stream]))}")
    for stream in range(50):
        tool.execute_ok(f"ask {stream} {stream} 3 4 %ad %lf")
    for wave in range(3):
        for stream in chance.sample(range(50), 50):
            answer = tool.execute_ok(f"recv {stream} 30")
            packets = [
                sent(stream, backend, wave, 4, ["%ad", "%lf"]) for backend in members[stream]
            ]
            assert answer["values"] == reduced(names[stream], packets)
            assert answer["leaves"] == len(members[stream])
            assert answer["source"] == members[stream][0]


def test_receiving_from_any_stream_returns_the_stream_number(start):
    tool = start(flat(3))
    for stream in range(10):
        tool.execute_ok("open sum 0 0 0")
        tool.execute_ok(f"ask {stream} {stream} 2 1 %d")
    seen = sorted(tool.execute_ok("any 30")["stream"] for _ in range(20))
    assert seen == sorted([*range(10), *range(10)])
    assert tool.execute("any 0.05")["code"] == "timeout"


def test_streams_close_while_packets_are_under_way(start):
    tool = start(kary(2, 2), checked=True)
    for stream in range(20):
        tool.execute_ok("open none 2 0 0")
        # more than a window: back-ends wait for room that never comes
        tool.execute_ok(f"ask {stream} 1 500 20 %alf")
        tool.execute_ok(f"close {stream}")
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok("ask 20 1 1 1 %d")
    assert tool.execute_ok("recv 20 30")["leaves"] == 4


def test_waiting_for_all_holds_a_wave_until_the_slowest(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open sum 0 0 0")
    tool.execute_ok("tell 0 sleep 0.5 2")
    tool.execute_ok("ask 0 1 1 1 %d")
    assert tool.execute("recv 0 0.05")["code"] == "timeout"
    assert tool.execute_ok("recv 0 30")["leaves"] == 4


def test_a_stream_without_waiting_forwards_each_packet_at_once(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open none 2 0 0")
    tool.execute_ok("tell 0 sleep 1 2")
    tool.execute_ok("ask 0 9 2 2 %as")
    quick = [tool.execute_ok("recv 0 30") for _ in range(6)]
    assert {answer["source"] for answer in quick} == {0, 1, 3}
    late = [tool.execute_ok("recv 0 30") for _ in range(2)]
    assert {answer["source"] for answer in late} == {2}
    assert [late[wave]["values"] for wave in range(2)] == [
        sent(9, 2, wave, 2, ["%as"]) for wave in range(2)
    ]


def test_a_stream_timeout_forwards_early_packets_and_late_ones_afterwards(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open concat 1 0.1 0")
    tool.execute_ok("tell 0 sleep 2 2")
    tool.execute_ok("ask 0 9 1 1 %ld")
    first, rest = tool.execute_ok("recv 0 30"), []
    while sum(answer["leaves"] for answer in [first, *rest]) < 4:
        rest.append(tool.execute_ok("recv 0 30"))
    assert rest, "the slow back-end was waited for"
    assert rest[-1]["source"] == 2
    got = sorted(x for answer in [first, *rest] for x in answer["values"][0])
    assert got == sorted(sent(9, backend, 0, 1, ["%ld"])[0] for backend in range(4))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 4096, 65535, 65536, 1 << 20, 16 << 20])
def test_packets_of_any_size_are_echoed_unchanged(start, size):
    tool = start("h:0 => h:1 h:2 ;\nh:2 => h:3 h:4 ;\n")
    tool.execute_ok("open none 2 0 0")
    for _ in range(2):
        assert tool.execute_ok(f"echo 0 {size} 3")["same"] == 3


def test_packets_above_256_mib_are_refused_before_sending(start):
    tool = start(flat(1))
    tool.execute_ok("open none 2 0 0")
    answer = tool.execute(f"echo 0 {300 << 20} 1")
    assert answer["code"] == "failed"
    assert "wanted at most 256 MiB" in answer["error"]
    assert tool.execute_ok("echo 0 5 1")["same"] == 1


def test_flow_control_blocks_senders_while_the_front_end_does_not_receive(start):
    """1000 packets of 64 KiB, half of them received, fill no process: senders block until the
    receiver reads."""
    tool = start(kary(2, 2), DRIVE_WINDOW=str(128 << 10))
    tool.execute_ok("open none 2 0 0 0 2")
    tool.execute_ok("open sum 0 0 0 1 3")
    tool.execute_ok("open sum 0 0 0")
    assert tool.execute_ok("flood 0 500 65536")["kib"] < 32 << 10
    tool.execute_ok("ask 1 1 1 1 %d")  # another stream on the same links is not behind it
    assert tool.execute_ok("recv 1 30")["leaves"] == 2
    for process in tool.processes():
        with open(f"/proc/{process}/status") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        assert peak < 64 << 10, f"process {process} grew to {peak} KiB"
    tool.execute_ok("close 0")  # its senders, which wait for room in it, go on
    tool.execute_ok("ask 2 1 1 1 %d")
    assert tool.execute_ok("recv 2 30")["leaves"] == 4


def test_one_slow_back_end_holds_a_stream_of_waves_not_memory(start):
    tool = start(flat(4), DRIVE_WINDOW=str(64 << 10))
    tool.execute_ok("open none 0 0 0")
    tool.execute_ok("tell 0 sleep 1 3")
    # 40 MB from the quick ones, while the slow one sleeps
    answer = tool.execute_ok("flood 0 300 32768")
    assert answer["waves"] == 300
    assert answer["kib"] < 32 << 10


def test_waves_follow_one_another_in_order(start):
    tool = start(kary(3, 2), checked=True)
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("ask 0 5 300 1 %lf")
    for wave in range(300):
        assert tool.execute_ok("recv 0 30")["values"][0] == [
            sent(5, backend, wave, 1, ["%lf"])[0] for backend in range(9)
        ]


def test_wrong_members_are_refused(start):
    tool = start(flat(3))
    assert "found the back-end 3, wanted 0 to 2" in tool.execute("open sum 0 0 0 1 3")["error"]
    assert "found the back-end 1 twice" in tool.execute("open sum 0 0 0 1 1")["error"]
    assert "more than 0 seconds" in tool.execute("open sum 1 0 0")["error"]


RACES = "-O1 -g -fsanitize=thread"


@pytest.mark.parametrize("flags", ["-O2", pytest.param(RACES, marks=pytest.mark.slow)])
def test_threads_use_streams_of_their_own(tmp_path, flags):
    build(tmp_path, flags, ["threads"])
    (tmp_path / "tree").write_text(kary(2, 2))
    command = [tmp_path / "threads", tmp_path / "tree", 4, 10]
    done = run_clean(["setarch", "-R", *command] if flags == RACES else command)
    assert (done.stdout, done.stderr) == ("0 failures\n", "")


@pytest.mark.slow
def test_a_million_waves_do_not_increase_memory(start):
    tool = start(kary(2, 2))
    tool.execute_ok("open sum 0 0 0")
    for _ in range(3):
        tool.execute_ok("flood 0 100000 8")  # queues have been as long as they get

    def memory():
        kib = {}
        for process in tool.processes():
            with open(f"/proc/{process}/status") as status:
                kib[process] = next(
                    int(line.split()[1]) for line in status if line.startswith("VmRSS")
                )
        return kib

    before = memory()
    for _ in range(10):
        assert tool.execute_ok("flood 0 100000 8")["waves"] == 100000
    after = memory()
    assert all(after[process] <= before[process] + 1024 for process in before), (before, after)
