"""Packets with tags: a process without the token cannot join, nor change, drop or repeat a
packet."""

import hashlib
import hmac
import os
import socket
import struct
from contextlib import suppress

import pytest

from tests.overlay.conftest import flat, kary, kill
from tests.overlay.wire import (
    DATA,
    HEADER,
    OTHER,
    OWN,
    WELCOME,
    exactly,
    frame,
    hello,
    sent,
    siphash,
)
from tests.processes import command_name
from tests.waiting import until

NONCE, TAG = 16, 16


def mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


class Member:
    """A back-end inside this test: an independent implementation of the protocol."""

    def __init__(self, host: str, port: str, token: bytes, node: int, by: str = OWN) -> None:
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        nonce, own = exactly(self.socket, NONCE), os.urandom(NONCE)
        unsigned = hello(own + bytes(32 - NONCE), node, by=by)
        signed = hello(own + mac(token, b"hello\0", nonce, unsigned)[: 32 - NONCE], node, by=by)
        self.socket.sendall(signed)
        self.up, self.down = (
            mac(token, direction, nonce, signed) for direction in (b"up\0", b"down\0")
        )
        self.sent = self.received = 0

    def receive(self) -> int:
        head = exactly(self.socket, HEADER.size)
        rest = exactly(self.socket, HEADER.unpack(head)[0] - HEADER.size)
        tag = exactly(self.socket, TAG)
        assert tag == siphash(self.down, struct.pack("<Q", self.received) + head + rest)
        self.received += 1
        return HEADER.unpack(head)[1]

    def tagged(self, packet: bytes, number: int | None = None) -> bytes:
        number = self.sent if number is None else number
        self.sent = number + 1
        return packet + siphash(self.up, struct.pack("<Q", number) + packet)


@pytest.mark.parametrize(
    ("length", "tag"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
    ],
)
def test_siphash_matches_the_reference_test_vectors(length, tag):
    assert siphash(bytes(range(16)), bytes(range(length))).hex() == tag


@pytest.fixture
def joined(start, tmp_path):
    """Yield a front-end with two back-ends that run in this test, and these back-ends."""
    file = tmp_path / "connection"
    tool = start(flat(2), up=False, checked=True, DRIVE_FILE=str(file), DRIVE_TAGS="1")
    assert tool.answer()["code"] == "waiting"
    _, token, *rows = file.read_text().splitlines()
    assert token.endswith(" tags")
    secret, (_, host, port, _) = bytes.fromhex(token.split()[1]), rows[0].split()
    with socket.create_connection((host, int(port)), timeout=60) as stranger, suppress(OSError):
        assert len(exactly(stranger, NONCE)) == NONCE
        stranger.sendall(hello(secret, 1))  # who has seen a hello of another network
        assert stranger.recv(1) == b""
    until(lambda: "its token is wrong" in tool.read_stderr(), 60)
    members = [Member(host, port, secret, node, by) for node, by in ((1, OWN), (2, OTHER))]
    assert [member.receive() for member in members] == [WELCOME] * 2
    assert tool.answer()["backends"] == 2
    tool.execute_ok("open sum 2 0 0")
    tool.execute("any 0")
    yield tool, members
    for member in members:
        member.socket.close()


PACKET = frame(DATA, "%ud", struct.pack("=I", 7), source=0, leaves=1, number=1)


def test_packets_with_the_right_tags_arrive(joined):
    tool, (member, _) = joined
    for _ in range(3):
        member.socket.sendall(member.tagged(PACKET))
        assert tool.execute_ok("recv 0 60")["values"] == [7]


@pytest.mark.parametrize("how", ["no tag", "changed", "left out", "repeated", "another one's"])
def test_packets_with_wrong_tags_lose_their_sender_and_no_one_else(joined, how):
    tool, (member, other) = joined
    first = member.tagged(PACKET)
    member.socket.sendall(first)
    assert tool.execute_ok("recv 0 60")["values"] == [7]
    changed = frame(DATA, "%ud", struct.pack("=I", 8), source=0, leaves=1, number=2)
    wrong = {
        "no tag": PACKET * 2,
        "changed": changed + member.tagged(PACKET)[-TAG:],
        "left out": member.tagged(PACKET, 2),
        "repeated": first,
        "another one's": other.tagged(PACKET, 1),
    }
    member.socket.sendall(wrong[how])
    assert tool.wait_for_losses(1) == [0]
    assert "its authentication tag is wrong" in tool.read_stderr()
    other.sent = 0
    good = frame(DATA, "%ud", struct.pack(OTHER + "I", 9), source=1, leaves=1, number=1, by=OTHER)
    other.socket.sendall(other.tagged(good))
    assert tool.execute_ok("recv 0 60")["values"] == [9]


@pytest.mark.parametrize("checked", [False, True])
def test_a_tree_with_tags_does_all_that_others_do(start, checked):
    tool = start(kary(2, 3), checked, DRIVE_TAGS="1")
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("open none 2 0 0")
    assert tool.execute_ok("echo 1 3000000 8")["same"] == 8  # frames in many pieces
    tool.execute_ok("ask 0 5 300 1 %ld")
    for wave in range(300):
        if wave == 100:
            kill(
                next(
                    process
                    for process in tool.processes()
                    if command_name(process) == "overlay-node"
                )
            )
        wanted = [sent(5, backend, wave, 1, ["%ld"])[0] for backend in range(8)]
        assert tool.execute_ok("recv 0 60")["values"][0] == wanted
    assert tool.execute_ok("lost 0")["lost"] == []
    assert tool.end() == 0
