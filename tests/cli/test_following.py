"""What a user is told of a run that was stopped: on stderr, as what a run prints is its result."""

import signal
from types import SimpleNamespace

import pytest

from commodel.api import snakemake_runs
from commodel.cli._output import Line


def test_who_stops_a_run_is_told_of_jobs_that_may_still_be_in_the_queue(monkeypatch, tmp_path, capsys):
    def stopped(command, log, show, tick, hold):
        show("SLURM run ID: one-1")
        show("SLURM run ID: two-2")
        return 1, signal.SIGINT

    monkeypatch.setattr(snakemake_runs, "run_snakemake", stopped)
    monkeypatch.setattr(snakemake_runs, "cancel", {"one-1": "", "two-2": "no answer"}.get)
    campaign = SimpleNamespace(results=SimpleNamespace(log=lambda name: tmp_path / name), plan=None, hold=None)
    monkeypatch.setattr(snakemake_runs, "Reader", lambda campaign: None)
    with pytest.raises(snakemake_runs.RunStoppedError) as ended:
        snakemake_runs.follow(campaign, [], "run", Line(quiet=True))
    assert ended.value.number == signal.SIGINT
    out, err = capsys.readouterr()
    assert out == ""
    assert "one-1" not in err
    queued, kept = err.splitlines()
    assert queued == "commodel: jobs may still be in Slurm's queue (no answer); once it answers: scancel --name two-2"
    assert kept.startswith("commodel: stopped by Ctrl-C")
