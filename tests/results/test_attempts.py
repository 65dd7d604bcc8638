"""The story of a batch: what is written is what is read, and a damaged file costs the story only.

A folder is held by one process at a time, and free again when that process is gone, even by a kill -9.
"""

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
from commodel.results.attempts import DAMAGED, DONE, OwnAttempt, read_story
from commodel.results.campaign import HANDED_DOWN, held, hold, holder
from tests.results.damages import DAMAGES


def test_what_is_written_is_read(tmp_path):
    own = OwnAttempt(tmp_path, 60, "4f2a91c-dirty")
    own.starts_on(["n1", "n2"])
    own.starts_on(["n2", "n3"])
    own.turn = 2
    own.write()
    story = read_story(tmp_path)
    assert story.attempts == (own.own,)
    assert story.turn == 2
    assert story.written == (tmp_path / "state.json").stat().st_mtime
    assert (story.last.host, story.last.pid) == (platform.node(), os.getpid())
    assert (story.last.commit, story.last.nodes) == ("4f2a91c-dirty", ("n1", "n2", "n3"))
    assert not story.last.gone
    own.end("error:\nno srun\x1b")
    again = OwnAttempt(tmp_path, None, "")
    assert again.number == 2
    again.end(DONE)
    first, second = read_story(tmp_path).attempts
    assert (first.outcome, second.outcome) == ("error: no srun ", DONE)
    assert OwnAttempt(tmp_path, None, "").after_all_was_done
    assert read_story(tmp_path).end == "2 attempts, the last one: done"


def test_where_none_began_there_is_no_story(tmp_path):
    assert read_story(tmp_path / "none").attempts == ()
    assert read_story(tmp_path).end == "never started"


def test_keys_that_another_version_writes_are_passed_over(tmp_path):
    OwnAttempt(tmp_path, 60, "").write()
    written = json.loads((tmp_path / "state.json").read_text())
    written["attempts"][0] |= {"attempt": 1, "mood": "good"}
    del written["attempts"][0]["commit"], written["attempts"][0]["nodes"], written["pass"]
    (tmp_path / "state.json").write_text(json.dumps(written | {"weather": "fine"}))
    story = read_story(tmp_path)
    assert (story.last.pid, story.last.commit, story.turn) == (os.getpid(), "", 1)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_one_ended_attempt_that_the_writer_keeps(damage, tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(DAMAGES[damage])
    (lost,) = read_story(tmp_path).attempts
    assert lost.how == DAMAGED
    assert lost.ended == path.stat().st_mtime
    assert read_story(tmp_path).end == f"1 attempt, the last one: {DAMAGED}"
    own = OwnAttempt(tmp_path, 60, "")
    assert not own.after_all_was_done
    assert own.died_in("case") == 0  # it ended, as far as anybody knows
    own.end(DONE)
    first, second = read_story(tmp_path).attempts
    assert (first, second.outcome) == (lost, DONE)


@given(st.data())
def test_whatever_is_in_the_file_it_is_a_story(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("batch")
    own = OwnAttempt(folder, 60, "c")
    own.end(DONE)
    whole = (folder / "state.json").read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    junk = data.draw(st.binary(max_size=6) | st.sampled_from([b"null", b"1e999", b"-1", b"[]", b"{}", b'"', b"true"]))
    (folder / "state.json").write_bytes(whole[:at] + junk + whole[at + len(junk) :])
    story = read_story(folder)
    assert story.last.how
    assert story.last.gone in (True, False)
    again = OwnAttempt(folder, 60, "c")
    again.write()
    assert read_story(folder).attempts[:-1] == story.attempts


def test_a_case_that_attempts_died_in_is_counted_until_it_is_forgiven(tmp_path):
    for count in range(3):
        own = OwnAttempt(tmp_path, 60, "")
        assert own.died_in("case") == count
        own.write()
    assert own.died_in("other") == 1  # the same death: it was in that one
    own.forgive("case")
    own.forgive("other")
    own.write()
    assert {attempt.case for attempt in read_story(tmp_path).attempts} == {""}
    assert replace(own.own, ended=None).how == "ended without a message"


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
