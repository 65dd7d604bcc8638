"""What a start that ended badly says of it, in one sentence: the native programs' own words first, else those of what
starts them, which come wrapped, in frames, and among much advice."""

import re
import shutil

from commodel.errors import one_line
from commodel.files.paths import AnyPath
from commodel.files.text import MIB, open_file

OWN = re.compile(r"^error: ", re.MULTILINE)  # what the programs say when it is not the case that is wrong
# Of Slurm, when it takes nodes away: the driver hears of it itself, but perhaps later than its ranks.
TAKEN = re.compile(r"node[ _]fail|due to (time limit|preemption)", re.IGNORECASE)
# The kinds of sentences, those that say most first: of the programs, how a rank died, of the system, of the starter.
TELLING = (
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
    """What a start printed."""
    with open_file(log) as stream:
        return stream.read(LARGEST_LOG).decode(errors="replace")


def last_words(log: AnyPath) -> str:
    """What went wrong with a start."""
    complaints = sentences(printed(log)) or [FULL if full(log) else "it printed nothing"]
    return one_line(next((text for kind in TELLING for text in complaints if kind.search(text)), complaints[0]))


def sentences(text: str) -> list[str]:
    """The first sentence of everything that was said, unwrapped; what follows a colon belongs to it. Without what says
    nothing."""
    spoken = [""]
    for line in map(str.strip, text.replace("\0", "").splitlines()):
        if FRAME.match(line) or PROGRESS.match(line):
            spoken.append("")
        elif not line:
            spoken += [] if spoken[-1].endswith(":") else [""]
        elif "error stack:" in spoken[-1] and (call := STACK.match(line)):
            if innermost := line[call.end() :]:
                spoken[-1] = f"{spoken[-1].partition(' error stack:')[0]} error stack: {innermost}"
        elif spoken[-1].endswith(":") or (spoken[-1] and GOES_ON.match(line) and not TELLING[0].match(line)):
            spoken[-1] += f" {line}"
        else:
            spoken.append(line)
    firsts = [re.split(r"(?<=[a-z)])\. (?=[A-Z])", sentence)[0] for sentence in spoken]
    return [sentence for sentence in firsts if sentence and not HOLLOW.match(sentence)]
