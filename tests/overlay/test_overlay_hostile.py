"""Packets, streams of them and topologies that an enemy has edited, fed to each role under the sanitizers; a back-end
that fills its parent's memory; and a network under valgrind."""

import os
import shutil
import socket
import struct
import subprocess
from contextlib import suppress

import pytest

from tests.overlay.building import run_clean
from tests.overlay.conftest import flat, kary
from tests.overlay.frames import DATA, OPEN, WELCOME, frame, hello, received

SEED = int(os.environ.get("FUZZ_SEED", "1"))


@pytest.mark.parametrize("seed", [SEED, pytest.param(SEED + 1, marks=pytest.mark.slow)])
def test_whatever_arrives_is_read_or_refused(checked_programs, seed):
    count = 15_000 if seed == SEED else 500_000
    done = run_clean([checked_programs / "hostile", seed, count])
    assert done.stdout == f"{count} inputs\n"
    assert "sent what is no packet" in done.stderr  # some do reach what they are aimed at
    assert "which is not for here" in done.stderr


def test_parts_that_need_no_network(checked_programs):
    assert run_clean([checked_programs / "parts"]).stderr == ""


def test_a_back_end_that_heeds_no_window_is_lost(start, tmp_path):
    """Its packets are part of no wave as long as the other one is silent."""
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
    tool.good("open sum 0 0 0")
    assert tool.do("any 0")["code"] == "timeout"  # which sends what was opened
    assert {received(member) for member in members} == {(OPEN, 0)}
    packet = frame(DATA, "%ud", struct.pack("=I", 1), source=0, leaves=1)
    with suppress(OSError):
        members[0].sendall(packet * (2 * 256 * 1024 // len(packet)))
    assert tool.lost(1) == [0]
    assert "lost h:1: it sent more than a stream's window" in tool.said()
    for member in members:
        member.close()
    assert tool.end() == 0


@pytest.mark.slow
def test_valgrind_finds_nothing(overlay_programs, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    (tmp_path / "tree").write_text(kary(2, 2))
    commands = (
        "open concat 0 0 0\nask 0 1 3 3 %s %ad %lf %as\nrecv 0 60\nopen none 2 0 0\necho 1 100000 4\nskew 0 5\nquit\n"
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
