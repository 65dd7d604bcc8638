"""Attachment: back-ends started by other programs attach by a connection file; unknown processes
are refused."""

import os
import socket
import stat
import struct
import subprocess
from contextlib import ExitStack, suppress

import pytest

from tests.overlay.conftest import flat, kary
from tests.overlay.wire import SHUTDOWN, WELCOME, exactly, frame, hello, received
from tests.processes import family
from tests.waiting import until


@pytest.fixture
def waiting(start, tmp_path):
    """Return a front-end that waits for back-ends, and its connection file."""
    tool = start(kary(2, 2), up=False, DRIVE_FILE=str(tmp_path / "connection"))
    assert tool.answer()["code"] == "waiting"
    return tool, tmp_path / "connection"


def attach(folder, file, rank, name="PMI_RANK"):
    settings = {"DRIVE_CONNECTION": str(file), name: str(rank)}
    program = [folder / "drive", "back-end"]
    return subprocess.Popen(program, env=os.environ | settings, stderr=subprocess.PIPE, text=True)


def test_back_ends_attach_by_a_connection_file(waiting, overlay_programs):
    tool, file = waiting
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    names = ("PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "OVERLAY_RANK")
    others = [attach(overlay_programs, file, rank, names[rank]) for rank in (3, 1, 0, 2)]
    assert tool.answer()["backends"] == 4
    assert not file.exists()  # whoever kills the front-end from now on
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("ask 0 1 1 1 %s")
    assert [text[:2] for text in tool.execute_ok("recv 0 30")["values"][0]] == [
        "b0",
        "b1",
        "b2",
        "b3",
    ]
    assert tool.end() == 0
    assert [process.wait(timeout=60) for process in others] == [0] * 4


@pytest.mark.parametrize(
    ("text", "address", "stays"), [("no tree", "", True), (flat(2), "0.0.0.0", False)]
)
def test_an_old_connection_file_is_removed_once_a_network_starts(
    start, tmp_path, text, address, stays
):
    """The file may come from a killed front-end that accepts no back-end. A refused topology
    removes no file."""
    file = tmp_path / "connection"
    file.write_text("an older one")
    tool = start(
        text, up=False, DRIVE_FILE=str(file), **({"DRIVE_BIND": address} if address else {})
    )
    assert tool.answer()["code"] == "failed"
    assert tool.end() == 2
    assert file.exists() == stays


def test_files_that_others_may_read_or_that_name_no_rank_are_refused(waiting, overlay_programs):
    tool, file = waiting
    assert "found no back-end 4" in attach(overlay_programs, file, 4).communicate(timeout=60)[1]
    assert "found no rank" in attach(overlay_programs, file, "x").communicate(timeout=60)[1]
    file.chmod(0o644)
    assert (
        "that no other user can read"
        in attach(overlay_programs, file, 1).communicate(timeout=60)[1]
    )
    file.unlink()
    os.mkfifo(file, 0o600)
    assert (
        "wanted a connection file" in attach(overlay_programs, file, 1).communicate(timeout=60)[1]
    )
    tool.kill()


def test_strangers_are_refused_and_told_of(waiting, overlay_programs, tmp_path):
    tool, file = waiting
    _, token, *rows = file.read_text().splitlines()
    secret = bytes.fromhex(token.split()[1])
    _, host, port, node = rows[0].split()
    inputs = {
        "its token is wrong": hello(bytes(32), int(node)),
        "its token is wrong ": hello(secret[:-1] + bytes([secret[-1] ^ 1]), int(node)),
        "it is of another version": hello(secret, int(node), version=2),
        "its bytes are in an order that is none": hello(secret, int(node), order=0x01040203),
        "it does not speak this protocol": b"GET / HTTP/1.1\r\n" + bytes(60),
        "no such process is expected": hello(secret, 6),
        "it left before it said who it is": b"overlay",
    }
    for why, sent in inputs.items():
        # It may be refused before it has said all.
        with socket.create_connection((host, int(port)), timeout=60) as stranger, suppress(OSError):
            stranger.sendall(sent)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == b"", why
    until(
        lambda: (
            tool.read_stderr().count("refused a connection from 127.0.0.1 port ") == len(inputs)
        ),
        60,
    )
    for why in inputs:
        assert f": {why.strip()}\n" in tool.read_stderr()
    with ExitStack() as silent:  # any number of those that say nothing holds nobody up
        for _ in range(100):
            silent.enter_context(socket.create_connection((host, int(port)), timeout=60))
        others = [attach(overlay_programs, file, rank) for rank in range(4)]
        assert tool.answer()["backends"] == 4
    assert tool.end() == 0
    for process in others:
        process.communicate(timeout=60)


WELCOMED = frame(
    WELCOME, "%ud %ud %d %lf %ud %as", struct.pack("=IIiIdIII", 0, 1, 0, 0, 20.0, 1 << 18, 0, 0)
)
ENDED = frame(SHUTDOWN)


@pytest.mark.parametrize(
    ("sent", "code", "complaint"),
    [
        (WELCOMED + ENDED, 0, ""),
        (WELCOMED, 0, ""),
        (ENDED, 3, "the parent has refused this process: it ends"),
        (b"", 3, "the parent has refused this process: it closed the connection"),
    ],
    ids=["welcome and the end", "welcome", "the end", "nothing"],
)
def test_a_back_end_without_a_welcome_exits_with_the_reason(
    overlay_programs, sent, code, complaint
):
    with socket.create_server(("127.0.0.1", 0)) as parent:
        settings = {"OVERLAY_ATTACH": f"127.0.0.1 {parent.getsockname()[1]} 1 {'0' * 64}"}
        command = [overlay_programs / "drive", "back-end"]
        child = subprocess.Popen(
            command, env=os.environ | settings, stderr=subprocess.PIPE, text=True
        )
        connection, _ = parent.accept()
        with connection:
            assert exactly(connection, len(hello(b"0" * 32, 1)))[:7] == b"overlay"
            connection.sendall(sent)
        _, said = child.communicate(timeout=60)
    assert (child.returncode, said) == (code, complaint and f"back-end: {complaint}\n")


def test_a_back_end_attaching_while_the_network_ends_is_refused(start, tmp_path):
    file = tmp_path / "connection"
    tool = start(flat(3), up=False, DRIVE_FILE=str(file), DRIVE_START="1")
    assert tool.answer()["code"] == "waiting"
    _, token, *rows = file.read_text().splitlines()
    secret, (_, host, port, _) = bytes.fromhex(token.split()[1]), rows[0].split()
    with (
        socket.create_connection((host, int(port)), timeout=60) as member,
        socket.create_connection((host, int(port)), timeout=60) as late,
    ):
        member.sendall(hello(secret, 1))
        assert received(member)[:2] == (WELCOME, 0)
        assert received(member)[0] == SHUTDOWN  # and it still holds the network's end up
        with suppress(OSError):
            late.sendall(hello(secret, 2))
            assert late.recv(1) == b""
    assert tool.answer()["code"] == "failed"
    assert tool.end() == 2
    assert "nobody is expected any more" in tool.read_stderr()


@pytest.mark.parametrize("topology", [flat(2), kary(2, 2)])
def test_only_the_named_address_listens(start, tmp_path, topology):
    tool = start(
        topology, up=False, DRIVE_FILE=str(tmp_path / "connection"), DRIVE_BIND="127.0.0.3"
    )
    assert tool.answer()["code"] == "waiting"
    rows = [row.split() for row in (tmp_path / "connection").read_text().splitlines()[2:]]
    assert {row[1] for row in rows} == {"127.0.0.3"}
    port = rows[0][2]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=60)
    tool.kill()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "::ffff:0.0.0.0", "no.such.host.invalid"])
def test_every_address_and_none_are_refused(start, address):
    tool = start(flat(2), up=False, DRIVE_BIND=address)
    error = tool.answer()["error"]
    assert f"'{address}'" in error
    assert "every address of this machine" in error or "cannot listen" in error
    assert tool.end() == 2


def test_no_process_listens_once_the_network_is_complete(start):
    tool = start(flat(2))
    listening = subprocess.run(["ss", "-tlnpH"], capture_output=True, text=True, check=False)
    if listening.returncode:
        pytest.skip("no ss here")
    for process in family(tool.process.pid):
        assert f"pid={process}," not in listening.stdout


def test_back_ends_join_a_running_network_and_replace_lost_ones(start, tmp_path, overlay_programs):
    file = tmp_path / "connection"
    tool = start(kary(2, 2), up=False, checked=True, DRIVE_FILE=str(file), DRIVE_JOIN="1")
    assert tool.answer()["code"] == "waiting"
    assert tool.answer()["backends"] == 4
    assert tool.execute_ok("lost 0")["lost"] == [0, 1, 2, 3]
    tool.execute_ok("open sum 0 0 0")
    assert tool.execute("recv 0 10")["code"] == "lost"
    others = {}

    def join(rank, lost):
        others[rank] = attach(overlay_programs, file, rank)
        until(lambda: tool.execute("any 0.05") and tool.execute_ok("lost 0")["lost"] == lost, 60)

    join(2, [0, 1, 3])
    join(0, [1, 3])
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("ask 1 1 1 1 %s")
    assert [text[:2] for text in tool.execute_ok("recv 1 30")["values"][0]] == ["b0", "b2"]
    join(1, [3])
    tool.execute_ok("ask 1 2 1 1 %s")  # it is no part of what was opened before
    assert tool.execute_ok("recv 1 30")["leaves"] == 2
    join(3, [])
    others[2].kill()
    others[2].wait()
    assert tool.wait_for_losses(1) == [2]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    join(2, [])
    tool.execute_ok("open concat 0 0 0")
    tool.execute_ok("ask 2 1 1 1 %s")
    assert [text[:2] for text in tool.execute_ok("recv 2 30")["values"][0]] == [
        "b0",
        "b1",
        "b2",
        "b3",
    ]
    # refused: it is there
    assert "found no" not in attach(overlay_programs, file, 1).communicate(timeout=90)[1]
    assert "no such process is expected" in tool.read_stderr()
    assert tool.end() == 0
    assert not file.exists()
    assert [process.wait(timeout=60) for process in others.values()] == [0] * 4
