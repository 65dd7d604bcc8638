"""The story of a batch: what is written is what is read, and a damaged file costs the story only."""

import json
import os
import platform
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.results.attempts import DAMAGED, DONE, OwnAttempt, read_story
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
    assert replace(own.own, ended=None).how == "died without a word"
