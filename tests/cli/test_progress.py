"""Progress: a line on a terminal once something takes long, nothing elsewhere, and nothing left behind."""

import io
import sys
import time

import pytest

from commodel.cli import _output
from commodel.cli._output import counted, waiting
from commodel.progress import at, within

CLEARED = "\r\x1b[K"


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def screen(monkeypatch):
    """Takes what is printed, as a terminal or not, with so much patience."""

    def make(terminal, patience=0.0):
        monkeypatch.setattr(_output, "PATIENCE", patience)
        monkeypatch.setattr(_output, "PATIENCE_ALOUD", patience)
        monkeypatch.setattr(_output, "REFRESH", 0.001)
        monkeypatch.setattr(sys, "stderr", Screen(terminal))
        return sys.stderr

    return make


def test_items_are_counted_on_a_terminal(screen):
    shown = screen(terminal=True)
    for letter in counted("abc", "letters"):
        time.sleep(0.01)
        assert letter in "abc"
    assert "letters: 1 of 3" in shown.getvalue()
    assert shown.getvalue().endswith(CLEARED)


def test_who_waits_is_told_what_for(screen):
    shown, ends = screen(terminal=True), time.monotonic() + 60
    with waiting("pricing"):
        while "pricing: 0 s" not in shown.getvalue():
            assert time.monotonic() < ends
    assert shown.getvalue().endswith(CLEARED)


def test_where_nobody_looks_what_takes_very_long_leaves_lines(screen):
    shown, ends = screen(terminal=False), time.monotonic() + 60
    with waiting("pricing", aloud=True), within("bcast"):
        at("part 2 of 3")
        while not shown.getvalue():
            assert time.monotonic() < ends
        at("part 3 of 3")
        time.sleep(0.01)
    assert shown.getvalue() in ("pricing: 0 s, bcast\n", "pricing: 0 s, bcast, part 2 of 3\n", "pricing: 0 s\n")


def test_the_line_says_what_the_work_is_at(screen):
    shown, ends = screen(terminal=True), time.monotonic() + 60
    with waiting("pricing"):
        with within("bcast"):
            at("part 2 of 3")
            while "pricing: 0 s, bcast, part 2 of 3" not in shown.getvalue():
                assert time.monotonic() < ends
        at("what comes next")
        while "pricing: 0 s, what comes next" not in shown.getvalue():
            assert time.monotonic() < ends
    at("nobody hears that")
    assert shown.getvalue().endswith(CLEARED)


def test_an_error_comes_through(screen):
    screen(terminal=True)
    with pytest.raises(ValueError, match="no"), waiting("pricing"):
        raise ValueError("no")
    assert list(counted([], "letters")) == []


@pytest.mark.parametrize(("terminal", "patience"), [(False, 0.0), (True, 600.0)], ids=["nobody looks", "it is quick"])
def test_nothing_is_said(screen, terminal, patience):
    shown = screen(terminal, patience)
    with waiting("pricing"):
        assert list(counted([1, 2], "numbers")) == [1, 2]
        time.sleep(0.05)
    assert shown.getvalue() == ""


@pytest.mark.parametrize(("name", "value"), [("COMMODEL_JOB", "1"), ("TERM", "dumb")])
def test_a_line_is_rewritten_only_where_somebody_sees_it(screen, monkeypatch, name, value):
    """Jobs of Snakemake share its terminal, and say nothing of their own there."""
    monkeypatch.setenv(name, value)
    shown = screen(terminal=True)
    with waiting("fitting", aloud=name == "COMMODEL_JOB"):
        assert list(counted([1, 2], "numbers")) == [1, 2]
        time.sleep(0.05)
    assert shown.getvalue() == ""
