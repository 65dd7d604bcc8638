"""A process of a batch: its output, its end, and what its last lines say about a failure.

Runs a launcher so that nothing of it is left when it ends, is stopped, or its parent dies.

What a start that ended badly says of it, in one sentence: the native programs' own words first, else those of what
starts them, which come wrapped, in frames, and among much advice.
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
    """Runs a launcher in a session of its own, so that Ctrl-C, a termination and `watch` reach every rank; and so that
    the launcher is terminated even if this process is killed outright. `watch` is asked again and again whether to go
    on: what it says is why not. `settings` are in its environment where the user has set nothing else. Returns the
    launcher's code, and that word, empty if it ended by itself."""
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
    """The launcher passes SIGTERM on, but a stopped rank does not hear it: what is left of the group is killed."""
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
    """SIGTERM ends this process as an exception does, once: what it then cleans up is not cut short by a second."""

    def end(number, frame):
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def _die_with_parent() -> None:
    """Linux: the kernel sends this process SIGTERM when its parent is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1: PR_SET_PDEATHSIG


OWN = re.compile(r"^error: ", re.MULTILINE)  # what the programs say when it is not the case that is wrong
# Of Slurm, when it takes nodes away: the driver hears of it itself, but perhaps later than its ranks.
TAKEN = re.compile(r"node[ _]fail|due to (time limit|preemption)", re.IGNORECASE)
# The kinds of sentences, those that say most first: of the programs, how a rank died, of the system, of the starter.
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
GOES_ON = re.compile(r"[a-z][a-z-]*([ ,]|\.( |$))")  # how the next line of a wrapped sentence begins
STACK = re.compile(r"\w+\(\d+\)\.*: *")  # how MPICH's calls begin, the innermost one last
LARGEST_LOG = 64 * MIB  # of a log: what comes after it is not looked at
DISK_BLOCK = 4096  # bytes: where less is free, the disk is full
FULL = "No space left on device"


def full(log: AnyPath) -> bool:
    return shutil.disk_usage(log.parent.resolve()).free < DISK_BLOCK


def printed(log: AnyPath) -> str:
    """Return what a start printed."""
    with open_file(log) as stream:
        return stream.read(LARGEST_LOG).decode(errors="replace")


def last_words(log: AnyPath) -> str:
    """Return what went wrong with a start."""
    complaints = sentences(printed(log)) or [FULL if full(log) else "it printed nothing"]
    return one_line(next((text for kind in INFORMATIVE for text in complaints if kind.search(text)), complaints[0]))


def sentences(text: str) -> list[str]:
    """Return the first sentence of everything that was said, unwrapped; what follows a colon belongs to it. Without
    what says nothing."""
    spoken = [""]
    for line in map(str.strip, text.replace("\0", "").splitlines()):
        if FRAME.match(line) or PROGRESS.match(line):
            spoken.append("")
        elif not line:
            spoken += [] if spoken[-1].endswith(":") else [""]
        elif "error stack:" in spoken[-1] and (call := STACK.match(line)):
            if innermost := line[call.end() :]:
                spoken[-1] = f"{spoken[-1].partition(' error stack:')[0]} error stack: {innermost}"
        elif spoken[-1].endswith(":") or (spoken[-1] and GOES_ON.match(line) and not INFORMATIVE[0].match(line)):
            spoken[-1] += f" {line}"
        else:
            spoken.append(line)
    firsts = [re.split(r"(?<=[a-z)])\. (?=[A-Z])", sentence)[0] for sentence in spoken]
    return [sentence for sentence in firsts if sentence and not HOLLOW.match(sentence)]
