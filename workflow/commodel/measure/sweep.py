"""One pass over the cases of one start, however often its program has to be started for that.

A case that ends the program badly is marked, and the program is started again for what is left: one bad case costs the
others nothing. What goes wrong before any case began is no case's fault, and ends the batch.
"""

import os
import time
from dataclasses import dataclass

from commodel.errors import UserError
from commodel.files.paths import AnyPath
from commodel.measure.inputs import prepare
from commodel.measure.lastwords import OWN, TAKEN, full, last_words, printed
from commodel.measure.process import run
from commodel.measure.starts import Rig, Start
from commodel.measure.watching import BUDGET, STARTING, TIMEOUT, Watch, case_at, forget_case
from commodel.platforms.controller import refused
from commodel.platforms.stopping import heed_stop
from commodel.results import unmeasured
from commodel.results.attempts import OwnAttempt

EXIT_USER = 2  # of the programs, where the launcher passes it on
IN_A_ROW = 3  # cases that fail with none finished between, before the others of the start are given up
REFUSED = 180.0  # seconds for which Slurm may refuse to start anything: after an outage it learns late what has ended
BETWEEN_STARTS = 5.0  # seconds between two starts then


@dataclass(frozen=True)
class Sweep:
    """What sweeps of a batch share: limits in monotonic seconds, and who keeps the story."""

    rig: Rig
    attempt: OwnAttempt
    limit: float  # that one case may take
    deadline: float  # when measuring stops


def sweep(state: Sweep, start: Start, number: int) -> bool:
    """Measures what is left of a start in a pass. False: the batch's time is over."""
    folder, failures, suspect, waiting = state.rig.pass_folder(number), 0, "", 0.0
    turn = f" in pass {number + 1} of {state.rig.passes}" if state.rig.passes > 1 else ""
    while (left := _left(state.rig, start, number)).rows:
        heed_stop()
        forget_case(folder)
        job = prepare(state.rig, left, number)
        state.attempt.starts_on(state.rig.hosts_of(left))
        watch = Watch(folder, state.limit, state.deadline, state.attempt.sign_of_life)
        settings = {**state.rig.how.settings(os.geteuid()), **state.rig.environment}
        code, stopped = run(state.rig.argv(job), state.rig.log(start), watch, settings)
        case = watch.case if stopped == TIMEOUT else case_at(folder)
        if (
            stopped == TIMEOUT and case in left.ids
        ):  # Open MPI wakes a stopped rank to end it, and it goes on for a while
            (folder / f"{case}.csv").unlink(missing_ok=True)
        unfinished = _left(state.rig, start, number).ids
        advanced = len(unfinished) < len(left.rows)
        nothing_started = not (case or advanced) and refused(printed(state.rig.log(start)))
        if (code or stopped or unfinished) and state.rig.how.end:
            state.rig.how.end(state.rig.starter, nothing_started)
        if not unfinished:
            return True  # how the program ended after its last sample is nobody's loss
        if stopped == BUDGET:
            return False
        if nothing_started and time.monotonic() < (waiting := waiting or time.monotonic() + REFUSED):
            time.sleep(BETWEEN_STARTS)
            continue
        waiting = 0.0
        complaint = last_words(state.rig.log(start))
        refusal = UserError(_failure(start, code, stopped, len(unfinished), complaint, state.rig.log(start)))
        if _not_the_cases_fault(state.rig.log(start), code, case):
            if suspect and not case:  # what cannot even start again was not brought down by a case
                unmeasured.unmark(state.rig.folder, suspect)
            raise refusal
        if case not in unfinished:
            if advanced:
                continue  # it ended between two cases
            raise refusal
        failures = 1 if advanced else failures + 1
        hung = stopped == TIMEOUT
        status = unmeasured.TIMEOUT if hung else unmeasured.CRASH
        reason = f"not done after {state.limit:.3g} s{turn}" if hung else f"ended with code {code}{turn}: {complaint}"
        unmeasured.mark(state.rig.folder, case, status, reason, state.attempt.number)
        suspect = case
        if failures == IN_A_ROW:
            for other in set(unfinished) - {case} - _sampled_before(state.rig, number):
                given_up = f"{unmeasured.GIVEN_UP}: {reason}"
                unmeasured.mark(state.rig.folder, other, status, given_up, state.attempt.number)
            return True
    return True


def _left(rig: Rig, start: Start, number: int) -> Start:
    """The cases of a start that have neither samples of this pass, nor all their samples, nor a marker."""
    measured, marked = unmeasured.finished(rig.folder)
    return start.without(measured | marked | unmeasured.finished(rig.pass_folder(number))[0])


def _sampled_before(rig: Rig, number: int) -> set[str]:
    """The cases with samples of an earlier pass: these are worth more than a marker."""
    return set().union(*(unmeasured.finished(rig.pass_folder(earlier))[0] for earlier in range(number)))


def _not_the_cases_fault(log: AnyPath, code: int, case: str) -> bool:
    """Whether no case can be blamed: none had begun, the program says what else is wrong, nodes are gone, or so is the
    room on the disk, on which a program cannot even say so."""
    text = printed(log)
    return not case or code == EXIT_USER or bool(OWN.search(text) or TAKEN.search(text)) or full(log)


def _failure(start: Start, code: int, stopped: str, lost: int, complaint: str, log: AnyPath) -> str:
    ended = "ran out of time" if stopped in (STARTING, TIMEOUT) else f"ended with code {code}"
    return f"{start.name} {ended}, {lost} of {len(start.rows)} cases not measured: {complaint} (log: {log})"
