"""Two seconds of fuzzing, shared by all targets, and the files of inputs that fail.

The first seed is `SEED`. Every target gets at least one input."""

import ast
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import strategies as st

from commodel.platforms.tools import ROOT
from tests.fuzz import overlay, session
from tests.fuzz.session import fuzz, list_failures, replay
from tests.fuzz.targets import TARGETS, Target

SECONDS = float(os.environ.get("FUZZ_SECONDS", "2"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_ends_in_a_value_or_in_an_error_of_one_line(name, monkeypatch, request):
    if name == "overlay packets":  # use the program that the tests of overlay networks build
        program = request.getfixturevalue("checked_programs") / "hostile"
        monkeypatch.setattr(overlay, "program", lambda: program)
    assert fuzz(name, SECONDS / len(TARGETS), SEED) > 0


def fails(given_input, folder):
    if len(given_input) > 2:
        raise KeyError(given_input)


def test_a_failing_input_is_kept_and_can_be_replayed(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "FAILED_INPUTS", tmp_path / "kept")
    monkeypatch.setitem(TARGETS, "made up", Target(st.text(), fails))
    with pytest.raises(KeyError):
        fuzz("made up", 0, 7)
    (kept,) = list_failures(since=0.0)
    assert kept.name == "made-up-7-KeyError.txt"
    assert kept.read_text() == "'000'\n"  # the smallest input that fails
    with pytest.raises(KeyError):
        replay(kept)
    assert not list(kept.parent.glob("*-7.txt"))


def test_an_input_that_fails_only_once_is_kept(tmp_path, monkeypatch):
    inputs = []

    def fails_once(given_input, folder):
        inputs.append(given_input)
        if len(inputs) == 5:
            raise ZeroDivisionError

    monkeypatch.setattr(session, "FAILED_INPUTS", tmp_path / "kept")
    monkeypatch.setitem(TARGETS, "made up", Target(st.binary(max_size=9), fails_once))
    with pytest.raises(Exception, match=r".*"):
        fuzz("made up", 0, 3)
    (kept,) = list_failures(since=0.0)
    assert ast.literal_eval(kept.read_text()) == inputs[4]


KILLED = """
import os, signal
from tests.fuzz import session
from tests.fuzz.targets import TARGETS, Target
from hypothesis import strategies as st
session.FAILED_INPUTS = session.Path("kept").absolute()
TARGETS["deadly"] = Target(st.just(b"x"), lambda *_: os.kill(os.getpid(), signal.SIGKILL))
session.fuzz("deadly", 0, 5)
"""


def test_an_input_that_kills_the_process_is_kept(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()} == {
        "deadly-5.txt": "b'x'\n"
    }
