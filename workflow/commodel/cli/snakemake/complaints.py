"""What of Snakemake's chatter a user wants to see: what jobs complain about, in their own words, and what goes on."""

import re
from collections import deque
from collections.abc import Callable

JOB = re.compile(r"^Job \d+: (.+)$")
LOG = re.compile(r"^Logfile (.+):$")
FENCE = re.compile(r"^=+$")
# Snakemake's own errors: the line after it says what. Of a job that failed that is its command, which helps nobody.
ERROR = re.compile(r"^(?!RuleException|CalledProcessError)\w+(Error|Exception)\b.*:$")
# The Slurm executor's own, of a job that it could not hand in; what sbatch said may go on on the next line.
REFUSED = re.compile(r"^    message: SLURM sbatch failed\. The error message was '(?:sbatch: )?(?:error: )?([^']+)")
NOTHING_NEW = "At least one job did not complete successfully."
OURS = "commodel: "
TRACE = "Traceback (most recent call last):"
LINES_KEPT = 12  # lines, for what fails without a word that is understood here


class Complaints:
    """Takes the lines one by one and shows each complaint once; `stage` is the job that was started last."""

    def __init__(self, show: Callable[[str], None]):
        self.show = show
        self.stage = ""
        self.shown: set[str] = set()
        self.last: deque[str] = deque(maxlen=LINES_KEPT)
        self.log, self.fences = "", 0
        self.expected = ""  # the kind of line that a complaint follows

    def line(self, text: str) -> None:
        self.last.append(text)
        if text.startswith(OURS):
            self._say(text)
        elif self.expected and (text[:1].strip() if self.expected == TRACE else text.strip()):
            who, self.expected = OURS if self.expected == TRACE else "snakemake: ", ""
            if text != NOTHING_NEW:
                self._say(f"{who}{text}")
        elif match := REFUSED.match(text):
            self._say(f"{OURS}sbatch refuses the job: {match[1]}; what a site needs is in profiles/README.md")
        elif match := JOB.match(text):
            self.stage = match[1]
        elif match := LOG.match(text):
            self.log, self.fences = match[1], 0
        elif self.log and FENCE.match(text):  # a fence stands above a log, and one below it
            self.fences += 1
            self.log = self.log if self.fences < 2 else ""
        elif text.startswith(TRACE) or ERROR.match(text):
            self.expected = TRACE if text.startswith(TRACE) else text

    def _say(self, text: str) -> None:
        if text not in self.shown:
            self.shown.add(text)
            self.show(f"{text} (log: {self.log})" if self.log else text)
