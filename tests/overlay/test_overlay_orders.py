"""Processes of both byte orders in one network: a packet written by hand, and trees in which every
link swaps the byte order of all numbers."""

import sys

import pytest

from commodel.platforms.tools import ROOT
from tests.overlay.conftest import kill
from tests.overlay.wire import reduced, sent, turned
from tests.processes import command_name

FORMATS = ["%c", "%uc", "%hd", "%uhd", "%d", "%ud", "%ld", "%uld", "%f", "%lf", "%s"]
FORMATS += ["%ac", "%auhd", "%ad", "%ald", "%af", "%as", "%alf"]
TREE = "h:0 => h:1 h:2 ;\nh:1 => h:3 h:4 ;\nh:2 => h:5 ;\n".replace("h", "127.0.0.1")


@pytest.fixture
def mixed(start):
    launch = f"{sys.executable} -m tests.overlay.turning {{host}}"
    return start(
        TREE, checked=True, DRIVE_LAUNCH=launch, PYTHONPATH=str(ROOT), DRIVE_SILENCE="1000"
    )


def test_the_python_reference_swaps_the_byte_order_of_a_packet():
    text, gap = b"%hd %ald\0", bytes(7)
    big = bytes.fromhex("00000038 1b 02 0009 00000003 fffffffe 0000004000080001") + text + gap
    little = bytes.fromhex("38000000 1b 01 0900 03000000 feffffff 0100080040000000") + text + gap
    big += bytes.fromhex("0102 0000 00000001 0102030405060708")
    little += bytes.fromhex("0201 0000 01000000 0807060504030201")
    assert (turned(big), turned(little)) == (little, big)


def test_values_of_every_type_arrive_from_hosts_of_the_other_order(mixed):
    mixed.execute_ok("open none 2 0 0")
    mixed.execute_ok(f"ask 0 5 3 7 {' '.join(FORMATS)}")
    got = [mixed.execute_ok("recv 0 60") for _ in range(9)]
    for backend in range(3):
        values = [answer["values"] for answer in got if answer["source"] == backend]
        assert values == [sent(5, backend, wave, 7, FORMATS) for wave in range(3)]


@pytest.mark.parametrize("filter", ["sum", "min", "average", "concat"])
def test_filters_between_hosts_of_both_orders(mixed, filter):
    formats = [
        word for word in FORMATS if "s" not in word and (filter != "concat" or word[1] != "a")
    ]
    mixed.execute_ok(f"open {filter} 0 0 0")
    mixed.execute_ok(f"ask 0 6 1 5 {' '.join(formats)}")
    wanted = reduced(filter, [sent(6, backend, 0, 5, formats) for backend in range(3)])
    assert mixed.execute_ok("recv 0 60")["values"] == wanted


def test_control_packets_between_hosts_of_both_orders(mixed):
    mixed.execute_ok("open none 2 0 0")
    assert mixed.execute_ok("echo 0 1000000 3")["same"] == 3  # credits
    assert all(abs(skew) < 1 for skew in mixed.execute_ok("skew 0 3")["seconds"])
    assert len({row[0] for row in mixed.execute_ok("metrics 30")["rows"]}) == 6
    mixed.execute_ok("open concat 0 0 0")
    mixed.execute_ok("ask 1 7 200 1 %ld")
    for wave in range(200):
        if wave == 50:
            kill(
                next(
                    process
                    for process in mixed.processes()
                    if command_name(process) == "overlay-node"
                )
            )
        wanted = [sent(7, backend, wave, 1, ["%ld"])[0] for backend in range(3)]
        assert mixed.execute_ok("recv 1 60")["values"][0] == wanted
    assert mixed.execute_ok("lost 0")["lost"] == []
