"""A folder is held by one process at a time, and free again when that process is gone, even by a kill -9."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from commodel.errors import UserError
from commodel.results.campaign import HANDED_DOWN, held, hold, holder

HOLD = "import sys, time; from pathlib import Path; from commodel.results.campaign import held\n"
HOLD += "with held(Path(sys.argv[1]), 'it'): print('held', flush=True); time.sleep(60)"


def test_a_second_holder_is_told_who_the_first_is_until_that_is_gone(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=f"it is at work already: .+ on .+, process {first.pid}, since 20"),
            held(tmp_path, "it"),
        ):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
    with held(tmp_path, "it"):
        assert (tmp_path / ".holder").exists()


def test_a_look_says_who_holds_it_and_disturbs_nobody(tmp_path):
    assert holder(tmp_path) == ""
    with held(tmp_path, "it"):
        assert f"process {os.getpid()}, since" in holder(tmp_path)
    assert holder(tmp_path) == ""


def test_where_there_are_no_locks_nobody_is_kept_out_and_that_is_said(tmp_path, monkeypatch, capsys):
    def refused(stream, kind):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with held(tmp_path, "it"), held(tmp_path, "it"):
        assert (
            capsys.readouterr().err
            == 2 * f"commodel: {tmp_path}: no locks here: take care that nobody else works in it\n"
        )
    assert holder(tmp_path) == ""


SHARE = """
import sys, time
from pathlib import Path
from commodel.results.campaign import handed_down
stream = handed_down(Path(sys.argv[1]))
print("shared" if stream else "not this folder", flush=True)
time.sleep(60 if stream else 0)
"""


def test_a_child_shares_the_hold_until_both_are_gone(tmp_path):
    """Nobody slips in between, and nobody is let in by the number of a file that holds something else."""
    command = [sys.executable, "-c", SHARE]
    with hold(tmp_path, "it") as stream:
        given = {"env": os.environ | {HANDED_DOWN: str(stream.fileno())}, "pass_fds": [stream.fileno()]}
        stranger = subprocess.run([*command, str(tmp_path.parent)], **given, capture_output=True, text=True, check=True)
        assert stranger.stdout == "not this folder\n"
        child = subprocess.Popen([*command, str(tmp_path)], **given, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "shared\n"
    with child:
        with pytest.raises(UserError, match=f"at work already: .+, process {child.pid}, since"), held(tmp_path, "it"):
            pass
        child.kill()
    with held(tmp_path, "it"):
        pass
