"""Slurm's commands fail while its controller is away: they are asked again. The real Slurm is in tests/lab."""

import os
from pathlib import Path

import pytest

from commodel.errors import UserError
from commodel.platforms import slurm
from commodel.platforms.slurm import ask, end_steps, refused

# What Slurm 22.05 prints while slurmctld is killed, or stopped.
KILLED = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
STOPPED = "slurm_load_jobs error: Socket timed out on send/recv operation"
NO_START = "srun: error: Unable to confirm allocation for job 1: Unable to contact slurm controller (connect failure)\n"
NO_START += "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 1\n"


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A command that says each of these complaints once, then answers."""
    monkeypatch.setattr(slurm, "BETWEEN_QUESTIONS", 0.0)

    def make(*complaints: str, name: str = "squeue", answers: str = "n[1-2]") -> Path:
        for number, text in enumerate(complaints):
            (tmp_path / f"{name}.{number}").write_text(text)
        file = tmp_path / name
        file.write_text(
            f'#!/bin/sh\nfor said in "$0".[0-9]*; do [ -e "$said" ] && cat "$said" >&2 && rm "$said" && exit 1; done\n'
            f'echo "$@" >>"$0".asked; echo "{answers}"\n'
        )
        file.chmod(0o755)
        return file

    return make


@pytest.mark.parametrize(("complaints", "lines"), [((KILLED,), 1), ((STOPPED, KILLED), 1), (("something passing",), 0)])
def test_a_question_is_asked_again_until_it_is_answered(command, complaints, lines, capsys):
    assert ask(command(*complaints)) == "n[1-2]\n"
    said = capsys.readouterr().err  # once, however often it is asked
    assert said.count("it is asked again for up to 15 minutes: ") == said.count("\n") == lines


def test_an_outage_is_waited_for_longer_than_a_refusal(command, monkeypatch):
    monkeypatch.setattr(slurm, "HICCUP", -1.0)
    assert ask(command(KILLED)) == "n[1-2]\n"
    with pytest.raises(UserError, match="Invalid job id specified"):
        ask(command("slurm_load_jobs error: Invalid job id specified"))
    monkeypatch.setattr(slurm, "OUTAGE", -1.0)
    with pytest.raises(UserError, match="Unable to contact slurm controller"):
        ask(command(KILLED))


def test_who_waits_for_the_controller_heeds_a_stop(command, monkeypatch, tmp_path):
    (tmp_path / "stop").touch()
    monkeypatch.setenv("COMMODEL_STOP_FILE", str(tmp_path / "stop"))
    with pytest.raises(SystemExit):
        ask(command(KILLED))


def test_a_start_that_slurm_refused_is_known_from_others():
    assert refused(NO_START)
    assert refused("srun: error: Unable to create step for job 2: Memory required by task is not available\n")
    assert not refused("srun: error: n0: task 0: Exited with exit code 1\n")
    assert not refused("pingpong.c:31: connect failed\n")


def test_steps_that_the_controller_has_yet_to_hear_of_are_not_killed(command, monkeypatch):
    """Slurm would take their nodes out of service."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr("commodel.platforms.slurm.time.sleep", lambda seconds: None)
    file = command(answers="7.0")
    folder = file.parent
    command(name="scancel")
    file.write_text('#!/bin/sh\n[ -e "$0.once" ] && echo 7.batch && exit; touch "$0.once"; echo 7.0 7.batch\n')
    end_steps(os.fspath(folder / "srun"), ended=True)
    assert not (folder / "scancel.asked").exists()


def test_steps_are_looked_for_again_when_a_squeue_fails(command, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    folder = command(KILLED, answers="7.batch").parent
    end_steps(os.fspath(folder / "srun"))
    assert (folder / "squeue.asked").read_text() == "--noheader --steps --jobs=7 --format=%i\n"
