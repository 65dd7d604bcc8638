"""Slurm's controller, slurmctld: asks it, and asks again while it is away, which shows in what Slurm's commands print.

Jobs that run go on without it, so whatever needs only its answer waits until it had time to come back.
"""

import re
import sys
import time
from pathlib import Path

from commodel.errors import UserError, one_line
from commodel.platforms import tools
from commodel.platforms.stopping import heed_stop

# What Slurm's commands say when it was not their question that was wrong.
AWAY = re.compile(
    r"contact slurm controller|timed out|connect|zero bytes|standby|(send|receive) failure|temporarily unavailable",
    re.IGNORECASE,
)
ANSWER = 30.0  # seconds for one command; those of Slurm give up sooner
OUTAGE = 900.0  # seconds: a controller that is updated or moved is away for minutes
HICCUP = 5.0  # seconds in which any other refusal may be a passing one
BETWEEN_QUESTIONS = 2.0  # seconds between two questions
WAITING = "commodel: Slurm's controller does not answer; it is asked again for up to {:.0f} minutes: {}"


def ask(program: str | Path, *arguments: str) -> str:
    """What a command of Slurm prints. One that fails is asked again: for long where the controller is away, and the log
    says so; for a moment whatever it says."""
    began, announced = time.monotonic(), False
    while True:
        output, complaint = answer(program, *arguments)
        if not complaint:
            return output
        away = bool(AWAY.search(complaint))
        if time.monotonic() - began >= (OUTAGE if away else HICCUP):
            raise UserError(f"Slurm does not tell what this job was given: {complaint}")
        if away and not announced:
            print(WAITING.format(OUTAGE / 60, complaint), file=sys.stderr, flush=True)
            announced = True
        heed_stop()
        time.sleep(BETWEEN_QUESTIONS)


def refused(log: str) -> bool:
    """Whether Slurm started nothing, by what srun printed: the controller was away, or has not yet heard that the step
    before has ended, as after an outage."""
    errors = [line for line in log.splitlines() if line.startswith("srun: error: ")]
    return any(AWAY.search(line) or "Unable to create step" in line for line in errors)


def answer(program: str | Path, *arguments: str) -> tuple[str, str]:
    """What a command of Slurm prints, and why it failed, empty if it did not."""
    reply = tools.ask([str(program), *arguments], ANSWER)
    complaint = (one_line(reply.errors.strip()) or reply.failure) if reply.failure else ""
    return reply.output + (reply.errors if "--mpi=list" in arguments else ""), complaint


def cancel(name: str) -> str:
    """Cancels all jobs of a name; says why it could not."""
    return answer("scancel", f"--name={name}")[1]
