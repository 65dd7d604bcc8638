"""Processes of a batch: `run_launcher` starts a launcher and ends it completely, `describe_failure`
summarizes its output.

No process of a launcher remains when it ends, when it is stopped, or when this process is killed,
even if the process has left the launcher's session (`orphans.py`). The summary is one sentence: a
message of the native programs, else the most informative one of the launcher.
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
from functools import partial
from types import FrameType

from commodel.errors import make_printable
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import MIB, open_file
from commodel.measure.orphans import adopt_orphans

PR_SET_PDEATHSIG = 1  # of Linux's prctl
POLL_SECONDS = 0.5  # seconds between two checks of the running launcher
# seconds from SIGTERM to SIGKILL, in which srun kills its step, also on other nodes
TERMINATION_SECONDS = 10


def run_launcher(
    argv: list[str],
    log: AnyPath,
    watch: Callable[[], str] = lambda: "",
    settings: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run a launcher, and return its exit code, and why it was stopped (empty if it ended by
    itself).

    The launcher has a session of its own, so that Ctrl-C, SIGTERM and `watch` reach every rank. It
    is terminated even if this process is killed. `watch` is called periodically and returns a
    reason to stop, or an empty text. `settings` are environment variables. The user's environment
    overrides them."""
    end_on_termination()  # so that `finally` below is reached
    with log.open("wb") as stream, adopt_orphans() as mark:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env={**(settings or {}), **os.environ, **mark, "OMP_NUM_THREADS": "1"},
            cwd=log.parent.resolve(),
            start_new_session=True,
            preexec_fn=partial(_die_with_parent, os.getpid()),
        )
        try:
            return _wait_for_launcher(process, watch)
        finally:
            _terminate_launcher(process)


def _wait_for_launcher(process: subprocess.Popen, watch: Callable[[], str]) -> tuple[int, str]:
    while True:
        try:
            return process.wait(POLL_SECONDS), ""
        except subprocess.TimeoutExpired:
            stop_reason = watch()
            if stop_reason:
                _terminate_launcher(process)
                return process.returncode, stop_reason


def _terminate_launcher(process: subprocess.Popen) -> None:
    """Terminate the launcher, which forwards SIGTERM, and kill the rest of the group: a stopped
    rank ignores SIGTERM."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATION_SECONDS)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):  # the group has ended
        os.killpg(group, number)


def end_on_termination() -> None:
    """Make SIGTERM raise SystemExit in this process. A second SIGTERM is ignored, so that it does
    not interrupt the clean-up."""

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _die_with_parent(parent: int) -> None:
    """Make the Linux kernel send SIGTERM to this process when its parent ends; end if it has ended
    already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)


# messages of the programs about failures that no case caused
PROGRAM_ERROR = re.compile(r"^error: ", re.MULTILINE)
# Messages of Slurm when it takes nodes away, which may reach the ranks before the driver.
NODE_LOSS = re.compile(r"node[ _]fail|due to (time limit|preemption)", re.IGNORECASE)
# Kinds of sentences, the most informative first: from the programs, on a rank's death, from the
# system, from the launcher.
INFORMATIVE_LINES = (
    re.compile(r"^error: |^([a-z]+/)?[a-z_]+\.c:[0-9]+: "),
    re.compile(r"exit string|on signal|killed|node fail", re.IGNORECASE),
    re.compile(
        r"no such file|permission denied|could not resolve|connection (refused|closed|timed out)|no route to host|"
        r"command not found|was not built with|MPI_Abort",
        re.IGNORECASE,
    ),
    re.compile(r"\berror\b|critical|fatal|unrecognized|unsupported", re.IGNORECASE),
)
PROGRESS_LINE = re.compile(r"case \d+/\d+ ")
SEPARATOR_LINE = re.compile(r"[-=]{20,}$")
UNINFORMATIVE_LINE = re.compile(
    r"Primary job +terminated normally|WARNING|=+ +(BAD|PID|EXIT CODE|CLEANING UP|YOU CAN IGNORE)|\[\S+\] OPAL ERROR"
)
# begin of a line that continues a wrapped sentence
CONTINUED_LINE = re.compile(r"[a-z][a-z-]*([ ,]|\.( |$))")
STACK_LINE = re.compile(r"\w+\(\d+\)\.*: *")  # begin of MPICH's calls, the innermost one last
MAX_LOG_BYTES = 64 * MIB  # bytes of a log that are read
MIN_FREE_BYTES = 4096  # bytes; with less free space, the disk counts as full
DISK_FULL_TEXT = "No space left on device"


def is_disk_full(log: AnyPath) -> bool:
    return shutil.disk_usage(log.parent.resolve()).free < MIN_FREE_BYTES


def read_output(log: AnyPath) -> str:
    """Return the output of a start."""
    with open_file(log) as stream:
        return stream.read(MAX_LOG_BYTES).decode(errors="replace")


def describe_failure(log: AnyPath) -> str:
    """Return why a start failed, in one sentence."""
    sentences = split_sentences(read_output(log)) or [
        DISK_FULL_TEXT if is_disk_full(log) else "it printed nothing"
    ]
    return make_printable(
        next(
            (text for kind in INFORMATIVE_LINES for text in sentences if kind.search(text)),
            sentences[0],
        )
    )


def split_sentences(text: str) -> list[str]:
    """Return the first sentence of each message as one line. If a line ends with a colon, the next
    line belongs to the same message. Messages without information are omitted."""
    messages = [""]
    for line in map(str.strip, text.replace("\0", "").splitlines()):
        if SEPARATOR_LINE.match(line) or PROGRESS_LINE.match(line):
            messages.append("")
        elif not line:
            messages += [] if messages[-1].endswith(":") else [""]
        elif "error stack:" in messages[-1] and (call := STACK_LINE.match(line)):
            innermost = line[call.end() :]
            if innermost:
                messages[-1] = (
                    f"{messages[-1].partition(' error stack:')[0]} error stack: {innermost}"
                )
        elif messages[-1].endswith(":") or (
            messages[-1] and CONTINUED_LINE.match(line) and not INFORMATIVE_LINES[0].match(line)
        ):
            messages[-1] += f" {line}"
        else:
            messages.append(line)
    sentences = [re.split(r"(?<=[a-z)])\. (?=[A-Z])", sentence)[0] for sentence in messages]
    return [
        sentence for sentence in sentences if sentence and not UNINFORMATIVE_LINE.match(sentence)
    ]
