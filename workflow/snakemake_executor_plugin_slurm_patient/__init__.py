"""Snakemake's Slurm executor, patient: while Slurm's controller is away it waits, forgets no job,
and heeds Ctrl-C. After a refusal that every other job would meet, it submits none.

Snakemake finds it by the name of this package, and a profile asks for it: `executor:
slurm-patient`. Its options are those of the executor that it extends, with `slurm-patient-` before
them.
"""

import asyncio
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from shlex import quote
from threading import Lock

from snakemake.logging import show_logs
from snakemake_executor_plugin_slurm import Executor as SlurmExecutor
from snakemake_executor_plugin_slurm import ExecutorSettings, common_settings
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

from commodel.platforms.slurm import (
    CONTROLLER_UNREACHABLE,
    NO_SBATCH,
    NOTHING_SUBMITTED,
    OUTAGE_SECONDS,
    RETRY_INTERVAL,
    find_refusal,
    try_slurm,
)

__all__ = ["Executor", "ExecutorSettings", "common_settings"]

UNLISTED = 3  # looks in a row in which Slurm does not know a job that has not been seen to end
# reasons why a job waits
UNAVAILABLE = re.compile(r"ReqNodeNotAvail|NodeDown|UnavailableNodes", re.IGNORECASE)
HELD = re.compile(r"held", re.IGNORECASE)  # JobHeldUser, JobHeldAdmin, launch failed requeued held
SLICE = 0.5  # seconds between two looks whether the run is over
# after the output of a job appeared, and between two looks at the job then
ENDING_SECONDS, ENDING_INTERVAL = 20.0, 2.0


class Executor(SlurmExecutor):
    def __init__(self, workflow, logger):
        self.complaint = ""  # of the last squeue; empty: the controller answers
        self.silent_since = ""  # the time of day
        # jobs that have not ended, as far as is known
        self.handed_in: dict[str, SubmittedJobInfo] = {}
        self.unlisted: Counter[str] = Counter()
        # jobs of which it was reported that they wait for nodes or are held
        self.waiting: set[str] = set()
        self.written: dict[str, float] = {}  # when the output of a job appeared
        self.refusal = ""  # why no further job is submitted
        self.submitting = Lock()  # so that none is while Slurm refuses another
        super().__init__(workflow, logger)

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        """Submit jobs in the order of their priority, in which Slurm then starts them."""
        super().run_jobs(sorted(jobs, key=lambda job: -job.priority))

    def run_job(self, job: JobExecutorInterface) -> None:
        """Submit a job once the controller answers, unless Slurm has refused what all jobs
        request."""
        with self.submitting:
            if not shutil.which("sbatch"):
                self._refuse(NO_SBATCH)
            end = time.monotonic() + OUTAGE_SECONDS
            while not self.refusal and self._is_away() and time.monotonic() < end:
                time.sleep(RETRY_INTERVAL)
            self._check_account(job)
            if self.refusal:
                self._report_job_error_threadsafe(SubmittedJobInfo(job), self.refusal)
                return
            # the extended executor has no resource for it
            nodes = job.resources.get("nodelist")
            if nodes:
                job.resources.slurm_extra = (
                    f"{job.resources.get('slurm_extra', '')} --nodelist={quote(nodes)}".strip()
                )
            super().run_job(job)

    def format_job_exec(self, job: JobExecutorInterface) -> str:
        """Return the command of a job. The executor of job steps would start another Snakemake: by
        srun, or without it where the rule starts MPI programs. There one Snakemake does
        (`__main__.py`)."""
        command = super().format_job_exec(job)
        if "mpi" not in job.resources:
            return command
        command = command.replace(f" {self.additional_general_args()} ", " ", 1)
        return command.replace(" -m snakemake ", f" -m {__package__} ", 1)

    def _is_away(self) -> bool:
        return self._listed() is None and bool(CONTROLLER_UNREACHABLE.search(self.complaint))

    def _check_account(self, job: JobExecutorInterface) -> None:
        """Refuse an account that Slurm's accounting does not have. The extended executor would
        print a traceback."""
        if self.refusal or not job.resources.get("slurm_account"):
            return
        try:
            next(self.get_account_arg(job))
        except (WorkflowError, OSError) as error:
            self._refuse(find_refusal(str(error)))

    def _report_job_error_threadsafe(self, job_info: SubmittedJobInfo, msg: str) -> None:
        self._refuse(find_refusal(msg))
        super()._report_job_error_threadsafe(job_info, f"{self.refusal}. " if self.refusal else msg)

    def _refuse(self, message: str) -> None:
        """Submit no further job, and print why, if there is a message."""
        if self.refusal or not message:
            return
        self.refusal = message if message == NO_SBATCH else f"sbatch refuses the job: {message}"
        hint = "" if message == NO_SBATCH else "; see profiles/README.md for a site's settings"
        self.logger.error(f"commodel: {self.refusal}; {NOTHING_SUBMITTED}{hint}")

    def report_job_submission(self, job_info: SubmittedJobInfo, register_job: bool = True) -> None:
        self.handed_in[job_info.external_jobid] = job_info
        super().report_job_submission(job_info, register_job)

    def report_job_success(self, job_info: SubmittedJobInfo) -> None:
        self.handed_in.pop(job_info.external_jobid, None)
        super().report_job_success(job_info)

    def report_job_error(
        self, job_info: SubmittedJobInfo, msg=None, aux_logs=(), **details
    ) -> None:
        """With what Slurm's log says. Snakemake's option for that ends at the first log that is
        empty, as the job's own is where Slurm has killed it."""
        self.handed_in.pop(job_info.external_jobid, None)
        super().report_job_error(job_info, msg, **details)
        for log in aux_logs:
            self.logger.error("\n".join(show_logs([log])))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncIterator[SubmittedJobInfo]:
        """Yield the jobs that still run.

        The extended executor forgets the jobs that it could not ask about, and waits for ever for
        those that Slurm has forgotten. Files of these show how they ended, which Snakemake checks.
        """
        listed = self._listed() if active_jobs else set()
        if listed is not None:
            async for _ in super().check_active_jobs(active_jobs):
                pass
        for job in active_jobs:
            number = job.external_jobid
            if number not in self.handed_in:
                continue
            if listed is not None and self.get_status_command() == "squeue":
                self.unlisted[number] = (
                    0 if number.partition("_")[0] in listed else self.unlisted[number] + 1
                )
            if self.unlisted[number] == UNLISTED:
                self.logger.warning(
                    f"Slurm does not know job {number} any more; whether it ended well, its files tell"
                )
                self.report_job_success(job)
            else:
                yield job

    def _listed(self) -> set[str] | None:
        """Return the numbers of this run's jobs that Slurm knows; None while it does not answer,
        printed once."""
        asked = ("--noheader", "--states=all", f"--name={self.run_uuid}", "--format=%i %r")
        output, self.complaint = try_slurm("squeue", *asked)
        if self.complaint and not self.silent_since:
            self.silent_since = time.strftime("%H:%M")
            since = f"does not answer since {self.silent_since} ({self.complaint})"
            self.logger.warning(f"commodel: Slurm's controller {since}; jobs go on; waiting")
        elif self.silent_since and not self.complaint:
            self.logger.warning(
                f"commodel: Slurm's controller answers again; it did not since {self.silent_since}"
            )
            self.silent_since = ""
        if self.complaint:
            return None
        reasons = dict(
            line.split(maxsplit=1) for line in output.splitlines() if len(line.split()) > 1
        )
        for number, reason in reasons.items():
            self._report_wait(number, reason)
        return {line.split()[0].partition("_")[0] for line in output.splitlines() if line.strip()}

    def _report_wait(self, number: str, reason: str) -> None:
        """Report once that a job is held, or waits for surveyed nodes that are down or drained, and
        what the user can do."""
        if number in self.waiting or number not in self.handed_in:
            return
        job = self.handed_in[number].job
        if HELD.search(reason):
            text = f"is held; Slurm says {reason.strip()}; to continue: scontrol release {number}"
        elif UNAVAILABLE.search(reason) and job.resources.get("nodelist"):
            text = (
                f"waits for {job.resources.nodelist}, whose network was surveyed; Slurm says {reason.strip()}; "
                f"if nodes stay away: delete {', '.join(job.input.network)}, or run with --no-survey"
            )
        else:
            return
        self.waiting.add(number)
        self.logger.warning(f"commodel: job {number} {text}")

    async def sleep(self) -> None:
        """Until the next look, but not beyond the end of the run, which waits for this. A job whose
        output is there ends soon: the next look is not minutes later, as of a job that runs for
        hours."""
        start = time.monotonic()
        end = start + (
            5 * RETRY_INTERVAL if self.complaint else self.next_seconds_between_status_checks
        )
        while self.wait and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, SLICE))
            if not self.complaint and self._is_ending():
                end = min(end, start + ENDING_INTERVAL)

    def _is_ending(self) -> bool:
        """Return whether the output of a job has appeared of late."""
        now, jobs = time.monotonic(), {number: info.job for number, info in self.handed_in.items()}
        for number, job in jobs.items():
            if number not in self.written and all(os.path.exists(path) for path in job.output):
                self.written[number] = now
        return any(
            now - self.written.get(number, -ENDING_SECONDS) < ENDING_SECONDS for number in jobs
        )

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        """Also those that are being asked about at this moment."""
        try:
            super().cancel_jobs(list(self.handed_in.values()))
        except WorkflowError as error:
            self.logger.error(
                f"commodel: {error}; once Slurm answers again: scancel --name {self.run_uuid}"
            )
