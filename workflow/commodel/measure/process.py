"""Processes of a batch: `run` starts a launcher and ends it completely, `describe_failure` summarizes its output.

Nothing remains of a launcher when it ends, is stopped, or its parent dies. The summary is one sentence: the native
programs' messages first, else those of the launcher, which are wrapped, framed, and among much advice.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from commodel.errors import one_line
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, open_file

LOOK = 0.5  # seconds between two looks at what is running
GRACE = 10  # seconds to end after SIGTERM: srun kills its step in that time, also on other nodes


def run(
    argv: list[str], log: AnyPath, watch: Callable[[], str] = lambda: "", settings: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a launcher, and return its exit code, and why it was stopped (empty if it ended by itself).

    It has a session of its own, so that Ctrl-C, SIGTERM and `watch` reach every rank. It is terminated even if this
    process is killed. `watch` is called periodically and returns a reason to stop. `settings` are environment
    variables, which the user's own override.
    """
    end_on_termination()  # so that `finally` below is reached
    with log.open("wb") as stream:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env={**(settings or {}), **os.environ, "OMP_NUM_THREADS": "1"},
            cwd=log.parent.resolve(),
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            return _ended(process, watch)
        finally:
            _end(process)


def _ended(process: subprocess.Popen, watch: Callable[[], str]) -> tuple[int, str]:
    while True:
        try:
            return process.wait(LOOK), ""
        except subprocess.TimeoutExpired:
            if why := watch():
                _end(process)
                return process.returncode, why


def _end(process: subprocess.Popen) -> None:
    """Terminate the launcher, which forwards SIGTERM, and kill the rest of the group: a stopped rank ignores
    SIGTERM."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # nothing is left of it
        os.killpg(group, number)


def end_on_termination() -> None:
    """Make SIGTERM end this process as an exception does, once: a second one does not interrupt the clean-up."""

    def end(number, frame):
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _die_with_parent() -> None:
    """Ask the Linux kernel to send this process SIGTERM when its parent is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1: PR_SET_PDEATHSIG


OWN = re.compile(r"^error: ", re.MULTILINE)  # messages of the programs about failures that no case caused
# Messages of Slurm when it takes nodes away, which may reach the ranks before the driver.
TAKEN = re.compile(r"node[ _]fail|due to (time limit|preemption)", re.IGNORECASE)
# Kinds of sentences, the most informative first: of the programs, of a rank's death, of the system, of the launcher.
INFORMATIVE = (
    re.compile(r"^error: |^([a-z]+/)?[a-z_]+\.c:[0-9]+: "),
    re.compile(r"exit string|on signal|killed|node fail", re.IGNORECASE),
    re.compile(
        r"no such file|permission denied|could not resolve|connection (refused|closed|timed out)|no route to host|"
        r"command not found|was not built with|MPI_Abort",
        re.IGNORECASE,
    ),
    re.compile(r"\berror\b|critical|fatal|unrecognized|unsupported", re.IGNORECASE),
)
PROGRESS = re.compile(r"case \d+/\d+ ")
FRAME = re.compile(r"[-=]{20,}$")
HOLLOW = re.compile(
    r"Primary job +terminated normally|WARNING|=+ +(BAD|PID|EXIT CODE|CLEANING UP|YOU CAN IGNORE)|\[\S+\] OPAL ERROR"
)
CONTINUATION = re.compile(r"[a-z][a-z-]*([ ,]|\.( |$))")  # begin of the next line of a wrapped sentence
STACK = re.compile(r"\w+\(\d+\)\.*: *")  # begin of MPICH's calls, the innermost one last
MAX_LOG = 64 * MIB  # the part of a log that is read
DISK_BLOCK = 4096  # bytes: with less free space, the disk is full
FULL = "No space left on device"


def full(log: AnyPath) -> bool:
    return shutil.disk_usage(log.parent.resolve()).free < DISK_BLOCK


def printed(log: AnyPath) -> str:
    """Return the output of a start."""
    with open_file(log) as stream:
        return stream.read(MAX_LOG).decode(errors="replace")


def describe_failure(log: AnyPath) -> str:
    """Return why a start failed, in one sentence."""
    complaints = split_sentences(printed(log)) or [FULL if full(log) else "it printed nothing"]
    return one_line(next((text for kind in INFORMATIVE for text in complaints if kind.search(text)), complaints[0]))


def split_sentences(text: str) -> list[str]:
    """Return the first sentence of each message, unwrapped; text after a colon belongs to it. Empty messages are
    omitted."""
    spoken = [""]
    for line in map(str.strip, text.replace("\0", "").splitlines()):
        if FRAME.match(line) or PROGRESS.match(line):
            spoken.append("")
        elif not line:
            spoken += [] if spoken[-1].endswith(":") else [""]
        elif "error stack:" in spoken[-1] and (call := STACK.match(line)):
            if innermost := line[call.end() :]:
                spoken[-1] = f"{spoken[-1].partition(' error stack:')[0]} error stack: {innermost}"
        elif spoken[-1].endswith(":") or (spoken[-1] and CONTINUATION.match(line) and not INFORMATIVE[0].match(line)):
            spoken[-1] += f" {line}"
        else:
            spoken.append(line)
    firsts = [re.split(r"(?<=[a-z)])\. (?=[A-Z])", sentence)[0] for sentence in spoken]
    return [sentence for sentence in firsts if sentence and not HOLLOW.match(sentence)]
