"""Output of running verbs: progress, logs and errors of jobs, and how interrupted runs end."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from commodel.api import snakemake_runs
from commodel.api.snakemake_runs import JobErrors
from commodel.cli import _output
from commodel.cli._output import CopiedStream, ProgressLine, count_progress, show_waiting
from commodel.progress import report_step, report_within

CLEARED = "\r\x1b[K"


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def screen(monkeypatch):
    """Return a function that replaces stderr by a terminal or a file; progress appears after
    `patience` seconds."""

    def make(terminal, patience=0.0):
        monkeypatch.setattr(_output, "PROGRESS_DELAY", patience)
        monkeypatch.setattr(_output, "PLAIN_PROGRESS_DELAY", patience)
        monkeypatch.setattr(_output, "REFRESH_INTERVAL", 0.001)
        monkeypatch.setattr(sys, "stderr", Screen(terminal))
        return sys.stderr

    return make


def test_items_are_counted_on_a_terminal(screen):
    shown = screen(terminal=True)
    for letter in count_progress("abc", "letters"):
        time.sleep(0.01)
        assert letter in "abc"
    assert "letters: 1 of 3" in shown.getvalue()
    assert shown.getvalue().endswith(CLEARED)


def test_the_waiting_line_names_the_activity_and_is_cleared_at_the_end(screen):
    shown, ends = screen(terminal=True), time.monotonic() + 60
    with show_waiting("predicting"):
        while "predicting: 0 s" not in shown.getvalue():
            assert time.monotonic() < ends
    assert shown.getvalue().endswith(CLEARED)


def test_without_a_terminal_long_work_prints_plain_progress_lines(screen):
    shown, ends = screen(terminal=False), time.monotonic() + 60
    with show_waiting("predicting", plain_lines=True), report_within("bcast"):
        report_step("part 2 of 3")
        while not shown.getvalue():
            assert time.monotonic() < ends
        report_step("part 3 of 3")
        time.sleep(0.01)
    assert shown.getvalue() in (
        "predicting: 0 s, bcast\n",
        "predicting: 0 s, bcast, part 2 of 3\n",
        "predicting: 0 s\n",
    )


def test_the_waiting_line_shows_the_current_step(screen):
    shown, ends = screen(terminal=True), time.monotonic() + 60
    with show_waiting("predicting"):
        with report_within("bcast"):
            report_step("part 2 of 3")
            while "predicting: 0 s, bcast, part 2 of 3" not in shown.getvalue():
                assert time.monotonic() < ends
        report_step("what comes next")
        while "predicting: 0 s, what comes next" not in shown.getvalue():
            assert time.monotonic() < ends
    report_step("nobody hears that")
    assert shown.getvalue().endswith(CLEARED)


def test_an_error_comes_through(screen):
    screen(terminal=True)
    with pytest.raises(ValueError, match="no"), show_waiting("predicting"):
        raise ValueError("no")
    assert list(count_progress([], "letters")) == []


@pytest.mark.parametrize(
    ("terminal", "patience"), [(False, 0.0), (True, 600.0)], ids=["nobody looks", "it is quick"]
)
def test_nothing_is_stated(screen, terminal, patience):
    shown = screen(terminal, patience)
    with show_waiting("predicting"):
        assert list(count_progress([1, 2], "numbers")) == [1, 2]
        time.sleep(0.05)
    assert shown.getvalue() == ""


@pytest.mark.parametrize(("name", "value"), [("COMMODEL_JOB", "1"), ("TERM", "dumb")])
def test_jobs_and_dumb_terminals_show_no_progress_line(screen, monkeypatch, name, value):
    """Snakemake jobs share the terminal of Snakemake and therefore print no progress."""
    monkeypatch.setenv(name, value)
    shown = screen(terminal=True)
    with show_waiting("fitting", plain_lines=name == "COMMODEL_JOB"):
        assert list(count_progress([1, 2], "numbers")) == [1, 2]
        time.sleep(0.05)
    assert shown.getvalue() == ""


MISTAKE = "commodel: o.xlsx: found the suffix '.xlsx', wanted .parquet or .csv\n"
PRICE = ("predict", "matrix", "e.yaml", "--params", "p.yaml", "--out", "o.xlsx")


@pytest.fixture
def job(tmp_path):
    (tmp_path / "logs").mkdir()

    def call(*arguments: str) -> subprocess.CompletedProcess:
        environment = os.environ | {"COMMODEL_JOB": "logs/price.log"}
        command = [sys.executable, "-m", "commodel", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return call


def test_a_job_error_is_printed_and_appended_to_the_log(job, tmp_path):
    (tmp_path / "logs/price.log").write_text("before\n")
    done = job(*PRICE)
    assert (done.returncode, done.stderr) == (2, MISTAKE)
    assert (tmp_path / "logs/price.log").read_text() == "before\n" + MISTAKE


def test_the_output_of_a_job_is_printed_and_written_to_the_log(job, tmp_path):
    done = job("show", "operations", "--format", "csv")
    assert done.returncode == 0
    assert done.stdout.startswith("operation,")
    assert (tmp_path / "logs/price.log").read_text() == done.stdout


@pytest.mark.parametrize("where", ["logs", "logs/price.log"])
def test_no_link_is_followed(job, tmp_path, where):
    (tmp_path / "away/logs").mkdir(parents=True)
    (tmp_path / "away/logs/price.log").write_text("precious")
    if where == "logs":
        (tmp_path / where).rmdir()
    (tmp_path / where).symlink_to(tmp_path / "away" / where)
    done = job(*PRICE)
    assert done.returncode == 2
    assert done.stderr.startswith(f"commodel: {where}: found a link, wanted a f")
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "away/logs/price.log").read_text() == "precious"


def test_the_terminal_gets_all_output_even_if_the_disk_of_the_log_is_full():
    screen = io.StringIO()
    with open("/dev/full", "wb", buffering=0) as full:
        print("a µs", file=CopiedStream(screen, full))
    assert screen.getvalue() == "a µs\n"


LOCAL = """\
[Sat Nov 21 11:11:22 2026]
Job 1: measuring local-1n
commodel: no mpiexec found, which platform 'local' needs; see commodel doctor
RuleException:
CalledProcessError in file "workflow/rules/measure.smk", line 26:
Command 'set -euo pipefail;  python -m commodel measure' returned non-zero exit status 2.
[Sat Nov 21 11:11:22 2026]
Error in rule measure:
    message: None
    jobid: 1
Shutting down, this might take some time.
WorkflowError:
At least one job did not complete successfully.
"""
ELSEWHERE = """\
Job 2: measuring c-4n
Job 3: measuring c-2n
Error in rule measure:
    jobid: 2
    log: .snakemake/slurm_logs/rule_measure/c-4n/7.log (check log file(s) for error details)
    external_jobid: 7
Logfile .snakemake/slurm_logs/rule_measure/c-4n/7.log:
======================================
Job 0: measuring c-4n
commodel: player-4r-block1: rank 3 should be on n2, but is on n0
WorkflowError:
At least one job did not complete successfully.
======================================
Error in rule measure:
Logfile .snakemake/slurm_logs/rule_measure/c-2n/8.log: empty file
Error in rule fit:
Traceback (most recent call last):
  File "fit.py", line 1, in fit
    1 / 0
ZeroDivisionError: division by zero
commodel: player-4r-block1: rank 3 should be on n2, but is on n0
"""
REFUSED = """\
WorkflowError in file "Snakefile", line 37:
results/demo: another run of this experiment is at work already: ann on n1, process 7, since 2026-11-21 11:20
  File "Snakefile", line 37, in __onstart
"""
SBATCH = """\
Error in rule measure:
    message: SLURM sbatch failed. The error message was 'sbatch: error: invalid partition specified: nosuch
sbatch: error: Batch job submission failed: Invalid partition name specified'.
    sbatch call:
        sbatch --parsable -p nosuch
    jobid: 3
Trying to restart job 3.
"""


def shown(text: str) -> tuple[list[str], JobErrors]:
    lines: list[str] = []
    complaints = JobErrors(lines.append)
    for line in text.splitlines():
        complaints.read_line(line)
    return lines, complaints


def test_a_job_on_this_machine():
    lines, complaints = shown(LOCAL)
    assert lines == [
        "commodel: no mpiexec found, which platform 'local' needs; see commodel doctor"
    ]
    assert complaints.stage == "measuring local-1n"


def test_jobs_elsewhere_and_a_bug():
    lines, _ = shown(ELSEWHERE)
    wrong, log = (
        "rank 3 should be on n2, but is on n0",
        ".snakemake/slurm_logs/rule_measure/c-4n/7.log",
    )
    assert lines == [
        f"commodel: player-4r-block1: {wrong} (log: {log})",
        "commodel: ZeroDivisionError: division by zero",
    ]


def test_a_snakemake_error_is_shown_in_one_line():
    lines, _ = shown(REFUSED)
    assert lines == [f"snakemake: {REFUSED.splitlines()[1]}"]


def test_an_sbatch_refusal_is_shown_once_with_a_hint():
    lines, _ = shown(SBATCH + SBATCH)
    said = (
        "sbatch refuses the job: invalid partition specified: nosuch; see profiles/README.md for "
        "a site's settings"
    )
    assert lines == [f"commodel: {said}"]


def test_the_last_lines_of_unrecognized_output_are_kept():
    lines, complaints = shown("\n".join(f"sbatch: {number}" for number in range(30)))
    assert lines == []
    assert list(complaints.last)[-1] == "sbatch: 29"


def test_a_stopped_run_names_jobs_that_may_still_be_in_the_queue(monkeypatch, tmp_path, capsys):
    def stopped(command, log, show, tick, hold):
        show("SLURM run ID: one-1")
        show("SLURM run ID: two-2")
        return 1, signal.SIGINT

    monkeypatch.setattr(snakemake_runs, "run_snakemake", stopped)
    monkeypatch.setattr(snakemake_runs, "cancel_jobs", {"one-1": "", "two-2": "no answer"}.get)
    campaign = SimpleNamespace(
        results=SimpleNamespace(log=lambda name: tmp_path / name),
        plan=None,
        lock=None,
        folder=tmp_path,
    )
    monkeypatch.setattr(snakemake_runs, "StatusReader", lambda campaign: None)
    with pytest.raises(snakemake_runs.RunStoppedError) as ended:
        snakemake_runs.run_with_display(campaign, [], "run", ProgressLine(quiet=True))
    assert ended.value.number == signal.SIGINT
    out, err = capsys.readouterr()
    assert out == ""
    assert "one-1" not in err
    queued, kept = err.splitlines()
    assert (
        queued
        == "commodel: jobs may still be in Slurm's queue (no answer); once it answers: scancel --name two-2"
    )
    assert kept.startswith("commodel: stopped by Ctrl-C")


def test_answers_that_are_enough_cancel_jobs_in_the_queue(monkeypatch, tmp_path):
    """Batches that wait in the queue are not measured any more."""
    cancelled = []

    def run_snakemake(command, log, show, tick, hold):
        show("SLURM run ID: one-1")
        (tmp_path / "so-far").mkdir()
        data = {"percent": 25, "measured": 3, "lines": ["an answer"], "regret": 0.02}
        (tmp_path / "so-far/answers.json").write_text(json.dumps(data))
        assert tick()
        return 1, 0

    monkeypatch.setattr(snakemake_runs, "run_snakemake", run_snakemake)
    monkeypatch.setattr(snakemake_runs, "cancel_jobs", lambda run: cancelled.append(run) or "")
    monkeypatch.setattr(snakemake_runs, "format_status", lambda *_: "at work")
    campaign = SimpleNamespace(
        results=SimpleNamespace(log=lambda name: tmp_path / name),
        plan=SimpleNamespace(batches=[]),
        lock=None,
        folder=tmp_path,
    )
    reader = SimpleNamespace(campaign=campaign, read=lambda *_: None)
    monkeypatch.setattr(snakemake_runs, "StatusReader", lambda campaign: reader)
    display = ProgressLine(quiet=True)
    code = snakemake_runs.run_with_display(
        campaign, [], "run", display, lambda answers: answers.regret < 0.05
    )
    assert (code, cancelled) == (1, ["one-1"])


def test_a_plan_that_changes_after_the_survey_is_explained_once(monkeypatch, tmp_path, capsys):
    def make_campaign(count):
        plan = SimpleNamespace(batches=[SimpleNamespace(ids=range(count))])
        return SimpleNamespace(
            results=SimpleNamespace(log=lambda name: tmp_path / name),
            plan=plan,
            lock=None,
            folder=tmp_path,
        )

    class Reader:
        campaign = make_campaign(120)

        def __init__(self, campaign):
            pass

        def read(self, lock_holder, now):
            self.campaign = make_campaign(180)

    def run_snakemake(command, log, show, tick, lock):
        tick()
        tick()
        return 0, None

    monkeypatch.setattr(snakemake_runs, "run_snakemake", run_snakemake)
    monkeypatch.setattr(snakemake_runs, "StatusReader", Reader)
    monkeypatch.setattr(snakemake_runs, "format_status", lambda status, stage="": "at work")
    assert (
        snakemake_runs.run_with_display(make_campaign(120), [], "run", ProgressLine(quiet=False))
        == 0
    )
    (line,) = (text for text in capsys.readouterr().err.splitlines() if "survey" in text)
    assert (
        line
        == "after the survey: 180 points and probe cases instead of 120, as probes depend on the levels found"
    )
