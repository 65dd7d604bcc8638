"""The patient executor keeps every job that has not been seen to end, whatever the one that it extends does."""

import asyncio
from types import SimpleNamespace

import pytest
from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

from snakemake_executor_plugin_slurm_patient import UNLISTED, Executor

AWAY = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


class Slurm:
    """What squeue says, which jobs the extended executor sees end, and what it is told to report."""

    def __init__(self):
        self.listed, self.complaint, self.ends = "", "", ()
        self.succeeded, self.cancelled, self.said = [], [], []


@pytest.fixture
def slurm(monkeypatch):
    made = Slurm()

    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            if job.external_jobid in made.ends:
                self.report_job_success(job)
        return
        yield  # none: as when all its questions failed

    def cancel_jobs(self, active_jobs):
        if made.complaint:
            raise WorkflowError("Unable to cancel jobs with scancel")
        made.cancelled += [job.external_jobid for job in active_jobs]

    def answer(program, *arguments):
        return ("", made.complaint) if made.complaint else (made.listed, "")

    monkeypatch.setattr(SlurmExecutor, "__init__", lambda self, workflow, logger: None)
    monkeypatch.setattr(SlurmExecutor, "check_active_jobs", check_active_jobs)
    monkeypatch.setattr(SlurmExecutor, "cancel_jobs", cancel_jobs)
    monkeypatch.setattr(SlurmExecutor, "get_status_command", lambda self: "squeue")
    monkeypatch.setattr(SlurmExecutor, "report_job_submission", lambda *arguments: None)
    monkeypatch.setattr(
        SlurmExecutor, "report_job_success", lambda self, job: made.succeeded.append(job.external_jobid)
    )
    monkeypatch.setattr("snakemake_executor_plugin_slurm_patient.answer", answer)
    return made


@pytest.fixture
def look(slurm):
    """Looks at the jobs that are left once more, and returns their numbers."""
    executor = Executor(None, None)
    executor.logger = SimpleNamespace(warning=slurm.said.append, error=slurm.said.append)
    executor.run_uuid = "run"
    left = [SubmittedJobInfo(None, number) for number in ("1", "2", "3")]
    for job in left:
        executor.report_job_submission(job)

    async def once():
        return [job async for job in executor.check_active_jobs(left)]

    def numbers() -> list[str]:
        left[:] = asyncio.run(once())
        return [job.external_jobid for job in left]

    numbers.executor = executor
    return numbers


def test_no_job_is_forgotten_in_an_outage(slurm, look):
    slurm.complaint = AWAY
    assert [look() for _ in range(5)] == [["1", "2", "3"]] * 5
    slurm.complaint, slurm.listed, slurm.ends = "", "1\n2\n3\n", ("2",)
    assert look() == ["1", "3"]
    away, back = slurm.said
    assert away.startswith("commodel: Slurm's controller does not answer since ")
    assert AWAY in away
    assert back.startswith("commodel: Slurm's controller answers again")


def test_jobs_that_could_not_be_asked_about_are_kept(slurm, look):
    slurm.listed = "1\n2\n3_[1-4]\n"
    assert [look() for _ in range(2 * UNLISTED)][-1] == ["1", "2", "3"]
    assert slurm.succeeded == slurm.said == []


def test_a_job_that_slurm_has_forgotten_ends(slurm, look):
    """In an outage of the network it may end and leave the queue unseen; whether it ended well its files tell."""
    slurm.listed = "1\n3\n"
    assert [look() for _ in range(UNLISTED)] == [["1", "2", "3"]] * (UNLISTED - 1) + [["1", "3"]]
    assert slurm.succeeded == ["2"]


def test_who_cannot_cancel_says_how_to_do_it_later(slurm, look):
    look.executor.cancel_jobs([])  # all are being asked about at this moment
    assert slurm.cancelled == ["1", "2", "3"]
    slurm.complaint = AWAY
    look.executor.cancel_jobs([])
    assert slurm.said[-1].endswith("once Slurm answers again: scancel --name run")


def test_what_slurm_says_of_a_job_that_it_killed_is_shown(slurm, look, monkeypatch, tmp_path):
    """The job's own log is empty then."""
    monkeypatch.setattr(SlurmExecutor, "report_job_error", lambda self, job, msg: slurm.said.append(msg))
    log = tmp_path / "7.log"
    log.write_text("slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n")
    look.executor.report_job_error(SubmittedJobInfo(None, "2"), msg="failed", aux_logs=[str(log)])
    failed, shown = slurm.said
    assert failed == "failed"
    assert shown.splitlines()[0] == f"Logfile {log}:"
    assert shown.splitlines()[2] == log.read_text().strip()
    slurm.listed = "1\n3\n"
    assert look() == ["1", "3"]
