"""Attempts of a batch: they are read as written, and a damaged file loses only the attempts.

One process at a time has the lock of a folder; the lock is free again when that process ends, even
by SIGKILL."""

import errno
import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.results.attempts import DAMAGED_OUTCOME, DONE_OUTCOME, OwnAttempt, read_attempts
from commodel.results.campaign import LOCK_VARIABLE, open_lock, read_lock_holder
from tests.results.damages import DAMAGES


def test_attempts_are_read_back_as_written(tmp_path):
    own = OwnAttempt(tmp_path, 60, "4f2a91c-dirty")
    own.record_nodes(["n1", "n2"])
    own.record_nodes(["n2", "n3"])
    own.current_pass = 2
    own.write()
    stored = read_attempts(tmp_path)
    assert stored.attempts == (own.attempt,)
    assert stored.current_pass == 2
    assert stored.modified_at == (tmp_path / "state.json").stat().st_mtime
    assert (stored.last.host, stored.last.pid) == (platform.node(), os.getpid())
    assert (stored.last.commit, stored.last.nodes) == ("4f2a91c-dirty", ("n1", "n2", "n3"))
    assert not stored.last.is_dead
    own.end("error:\nno srun\x1b")
    again = OwnAttempt(tmp_path, None, "")
    assert again.number == 2
    again.end(DONE_OUTCOME)
    first, second = read_attempts(tmp_path).attempts
    assert (first.outcome, second.outcome) == ("error: no srun ", DONE_OUTCOME)
    assert OwnAttempt(tmp_path, None, "").follows_done_attempt
    assert read_attempts(tmp_path).summary == "2 attempts, the last one: done"


def test_where_none_began_there_is_no_story(tmp_path):
    assert read_attempts(tmp_path / "none").attempts == ()
    assert read_attempts(tmp_path).summary == "never started"


def test_keys_that_another_version_writes_are_passed_over(tmp_path):
    OwnAttempt(tmp_path, 60, "").write()
    written = json.loads((tmp_path / "state.json").read_text())
    written["attempts"][0] |= {"attempt": 1, "mood": "good"}
    del written["attempts"][0]["commit"], written["attempts"][0]["nodes"], written["pass"]
    (tmp_path / "state.json").write_text(json.dumps(written | {"weather": "fine"}))
    stored = read_attempts(tmp_path)
    assert (stored.last.pid, stored.last.commit, stored.current_pass) == (os.getpid(), "", 1)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_one_ended_attempt_that_the_writer_keeps(damage, tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(DAMAGES[damage])
    (lost,) = read_attempts(tmp_path).attempts
    assert lost.outcome_text == DAMAGED_OUTCOME
    assert lost.ended == path.stat().st_mtime
    assert read_attempts(tmp_path).summary == f"1 attempt, the last one: {DAMAGED_OUTCOME}"
    own = OwnAttempt(tmp_path, 60, "")
    assert not own.follows_done_attempt
    assert own.count_crashes("case") == 0  # it ended, as far as anybody knows
    own.end(DONE_OUTCOME)
    first, second = read_attempts(tmp_path).attempts
    assert (first, second.outcome) == (lost, DONE_OUTCOME)


@given(st.data())
def test_a_damaged_state_file_still_gives_readable_attempts(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("batch")
    own = OwnAttempt(folder, 60, "c")
    own.end(DONE_OUTCOME)
    whole = (folder / "state.json").read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    junk = data.draw(
        st.binary(max_size=6)
        | st.sampled_from([b"null", b"1e999", b"-1", b"[]", b"{}", b'"', b"true"])
    )
    (folder / "state.json").write_bytes(whole[:at] + junk + whole[at + len(junk) :])
    stored = read_attempts(folder)
    assert stored.last.outcome_text
    assert stored.last.is_dead in (True, False)
    again = OwnAttempt(folder, 60, "c")
    again.write()
    assert read_attempts(folder).attempts[:-1] == stored.attempts


def test_crashes_of_a_case_are_counted_until_cleared(tmp_path):
    for count in range(3):
        own = OwnAttempt(tmp_path, 60, "")
        assert own.count_crashes("case") == count
        own.write()
    assert own.count_crashes("other") == 1  # the same death: it was in that one
    own.clear_crashes("case")
    own.clear_crashes("other")
    own.write()
    assert {attempt.case for attempt in read_attempts(tmp_path).attempts} == {""}
    assert replace(own.attempt, ended=None).outcome_text == "ended without a message"


HOLD = (
    "import sys, time; from pathlib import Path; from commodel.results.campaign import open_lock\n"
)
HOLD += "with open_lock(Path(sys.argv[1]), 'it'): print('held', flush=True); time.sleep(60)"


def test_a_second_run_is_refused_with_the_process_id_of_the_lock_holder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout.readline() == "held\n"
        with (
            pytest.raises(
                UserError, match=f"it is at work already: .+ on .+, process {first.pid}, since 20"
            ),
            open_lock(tmp_path, "it"),
        ):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
    with open_lock(tmp_path, "it"):
        assert (tmp_path / ".holder").exists()


def test_the_lock_holder_can_be_read_without_taking_the_lock(tmp_path):
    assert read_lock_holder(tmp_path) == ""
    with open_lock(tmp_path, "it"):
        assert f"process {os.getpid()}, since" in read_lock_holder(tmp_path)
    assert read_lock_holder(tmp_path) == ""


def test_without_file_locks_concurrent_runs_start_with_a_warning(tmp_path, monkeypatch, capsys):
    def refused(stream, kind):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with open_lock(tmp_path, "it"), open_lock(tmp_path, "it"):
        assert (
            capsys.readouterr().err
            == 2
            * f"commodel: {tmp_path}: no locks on this file system: run only one process at a time in this folder\n"
        )
    assert read_lock_holder(tmp_path) == ""


SHARE = """
import sys, time
from pathlib import Path
from commodel.results.campaign import inherit_lock
stream = inherit_lock(Path(sys.argv[1]))
print("shared" if stream else "not this folder", flush=True)
time.sleep(60 if stream else 0)
"""


def test_a_child_shares_the_hold_until_both_are_gone(tmp_path):
    """No third process gets the lock meanwhile. A file descriptor of another folder's lock is not
    accepted."""
    command = [sys.executable, "-c", SHARE]
    with open_lock(tmp_path, "it") as stream:
        given = {
            "env": os.environ | {LOCK_VARIABLE: str(stream.fileno())},
            "pass_fds": [stream.fileno()],
        }
        stranger = subprocess.run(
            [*command, str(tmp_path.parent)], **given, capture_output=True, text=True, check=True
        )
        assert stranger.stdout == "not this folder\n"
        child = subprocess.Popen(
            [*command, str(tmp_path)], **given, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "shared\n"
    with child:
        with (
            pytest.raises(UserError, match=f"at work already: .+, process {child.pid}, since"),
            open_lock(tmp_path, "it"),
        ):
            pass
        child.kill()
    with open_lock(tmp_path, "it"):
        pass
