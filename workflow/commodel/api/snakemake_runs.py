"""The Snakemake workflow as a process: its command line, its output, and how it is stopped.

`run_with_display` runs the workflow of a campaign and returns Snakemake's exit code. All output of
Snakemake and its jobs goes to a log; a `Display` gets the progress of the campaign and the errors
of jobs, each once."""

import json
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from platformdirs import AppDirs

from commodel.errors import UserError, suggest_name
from commodel.files.safe_paths import AnyPath
from commodel.platforms.slurm import NOTHING_SUBMITTED, STOP_FILE, cancel_jobs
from commodel.results.campaign import LOCK_VARIABLE, Campaign
from commodel.results.interim_answers import Answers, read_so_far
from commodel.results.progress import StatusReader, format_status
from commodel.sources import ROOT


class Display(Protocol):
    """Where a run shows its progress, which later progress replaces, and messages, which stay."""

    def show_progress(self, text: str, last: bool = False) -> None: ...

    def show_message(self, text: str) -> None: ...

    def clear(self) -> None: ...


class RunStoppedError(Exception):
    """A signal stopped the run. Measured cases are kept."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class RunFailedError(UserError):
    """The workflow ended without a report."""

    def __init__(self, code: int) -> None:
        super().__init__("the run ended without a report; the reason is in its log")
        self.exit_code = code  # type: ignore[misc]  # click declares it as that of the class


def make_snakemake_command(
    settings: Mapping[str, Any], cores: int | None, profile: str | None
) -> list[str]:
    """Return the command that runs our workflow in this folder."""
    arguments = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--directory",
        str(Path.cwd()),
    ]
    arguments += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    arguments += ["--nocolor"] if os.environ.get("NO_COLOR") else []
    if profile:
        arguments += ["--profile", find_profile(profile)]
    config_texts = [
        f"{name}={json.dumps(value) if isinstance(value, list) else value}"
        for name, value in settings.items()
        if value is not None
    ]
    return [*arguments, "--config", *config_texts, "--cores", str(cores or "all")]


def find_profile(name: str) -> str:
    """Return the profile to pass to Snakemake: the path of a profile of the project or of commodel,
    else the given path, or the name of a profile of the user or the site."""
    project_profile = find_project_profile(name)
    if project_profile:
        return str(project_profile)
    snakemake_folders = AppDirs("snakemake", "snakemake")
    if any(
        (Path(directory) / name).exists()
        for directory in (
            Path.cwd(),
            snakemake_folders.user_config_dir,
            snakemake_folders.site_config_dir,
        )
    ):
        return name
    own_profiles = [
        path.name
        for path in (ROOT / "profiles").iterdir()
        if path.is_dir() and path.name != "default"
    ]
    raise UserError(f"unknown profile '{name}'; {suggest_name(name, own_profiles)}")


def find_project_profile(name: str) -> Path | None:
    """Return the folder of a profile: that of the project, else that of commodel."""
    folders = (Path.cwd() / "profiles" / name, ROOT / "profiles" / name)
    return next((folder for folder in folders if (folder / "config.yaml").is_file()), None)


JOB_LINE = re.compile(r"^Job \d+: (.+)$")
LOG_LINE = re.compile(r"^Logfile (.+):$")
FENCE_LINE = re.compile(r"^=+$")
# Snakemake's own errors, whose reason is in the next line. Errors of failed jobs only name the
# command there.
ERROR_LINE = re.compile(r"^(?!RuleException|CalledProcessError)\w+(Error|Exception)\b.*:$")
# An error of the Slurm executor about a job that it could not submit; sbatch's message may continue
# in the next line.
SBATCH_REFUSED = re.compile(
    r"^    message: SLURM sbatch failed\. The error message was '(?:sbatch: )?(?:error: )?([^']+)"
)
REPEATED_TEXT = "At least one job did not complete successfully."
OWN_PREFIX = "commodel: "
TRACEBACK = "Traceback (most recent call last):"
MAX_SHOWN_LINES = 12  # last lines, which are shown if a run fails without a recognized error


class JobErrors:
    """Reads the output of Snakemake line by line, and shows each error once. `stage` is the job
    started last. If Slurm refused what all jobs request, `refused` is true."""

    def __init__(self, show: Callable[[str], None]):
        self.show = show
        self.stage = ""
        self.refused = False
        self.shown: set[str] = set()
        self.last: deque[str] = deque(maxlen=MAX_SHOWN_LINES)
        self.log, self.fences = "", 0
        self.expected = ""  # the line after which the error's text is expected; empty: none

    def read_line(self, text: str) -> None:
        self.last.append(text)
        self.refused = self.refused or NOTHING_SUBMITTED in text
        if text.startswith(OWN_PREFIX):
            self._show_once(text)
        elif self.expected and (text[:1].strip() if self.expected == TRACEBACK else text.strip()):
            prefix, self.expected = OWN_PREFIX if self.expected == TRACEBACK else "snakemake: ", ""
            if text != REPEATED_TEXT:
                self._show_once(f"{prefix}{text}")
        elif match := SBATCH_REFUSED.match(text):
            self._show_once(
                f"{OWN_PREFIX}sbatch refuses the job: {match[1]}; see profiles/README.md for a site's settings"
            )
        elif match := JOB_LINE.match(text):
            self.stage = match[1]
        elif match := LOG_LINE.match(text):
            self.log, self.fences = match[1], 0
        elif self.log and FENCE_LINE.match(text):  # a log is printed between two fences
            self.fences += 1
            self.log = self.log if self.fences < 2 else ""
        elif text.startswith(TRACEBACK) or ERROR_LINE.match(text):
            self.expected = TRACEBACK if text.startswith(TRACEBACK) else text

    def _show_once(self, text: str) -> None:
        if text not in self.shown:
            self.shown.add(text)
            self.show(f"{text} (log: {self.log})" if self.log else text)


POLL_INTERVAL = 2.0  # seconds between two progress updates
# seconds that Snakemake has for cancelling its jobs before it is interrupted again
CANCEL_SECONDS = 60.0
KILL_SECONDS = 90.0  # seconds after which it is killed
STOPPING_TEXT = "commodel: stopping: jobs are being cancelled, which may take a minute"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Stop:
    """A signal that this process received, or 0 if it stops the run itself, and when, on the
    monotonic clock."""

    number: int
    when: float


def run_in_terminal(command: list[str]) -> int:
    """Run Snakemake with output to the terminal and return its exit code. It also receives Ctrl-C,
    and cancels its jobs before it ends."""
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def run_snakemake(
    command: list[str],
    log: AnyPath,
    show: Callable[[str], None],
    tick: Callable[[], bool | None],
    hold: IO[str] | None = None,
) -> tuple[int, int]:
    """Return Snakemake's exit code, and the signal that stopped it or 0.

    Snakemake runs in a process group of its own. All output of it and of the jobs of this machine
    is written to `log` and handed line by line to `show`; `tick` is called every POLL_INTERVAL. A
    signal that should end this process, or a `tick` that returns True, interrupts Snakemake, which
    then cancels its jobs; jobs that start later find a stop file. A Snakemake that does not end is
    killed. It shares the lock `hold` of the results folder.
    """
    stop_file = log.with_name(f"{log.stem}.stop")
    stop_file.unlink(missing_ok=True)
    shared = [hold.fileno()] if hold else []
    with log.open("wb", buffering=0) as log_file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ
            | {
                STOP_FILE: os.path.abspath(str(stop_file)),
                LOCK_VARIABLE: "".join(map(str, shared)),
            },
            pass_fds=shared,
            process_group=0,
        )
        with process, _forward_signals(process, stop_file) as (stopped, stop):

            def update() -> None:
                if stopped:
                    if _find_signal(stopped):
                        show(STOPPING_TEXT)
                    if time.monotonic() - stopped[0].when > KILL_SECONDS and process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                if tick() and not stopped:
                    stop(0, None)

            for line in _read_lines(process, update):
                with suppress(OSError):  # the jobs report a full disk
                    log_file.write(line)
                if not stopped:
                    show(line.decode(errors="replace").rstrip("\n"))
    return process.returncode, _find_signal(stopped)


def _find_signal(stopped: Iterable[Stop]) -> int:
    """Return the first signal that this process received; 0 if it stopped the run itself."""
    return next((stop.number for stop in stopped if stop.number), 0)


def _read_lines(process: "subprocess.Popen[bytes]", tick: Callable[[], None]) -> Iterator[bytes]:
    """Yield the lines that a process prints until it ends; its children may keep the pipe open for
    longer."""
    assert process.stdout is not None
    pipe, unfinished, next_tick = process.stdout, b"", 0.0
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        ended = False
        while not ended:
            # before reading: its last output is in the pipe by then
            ended = process.poll() is not None
            if not ended:
                selector.select(POLL_INTERVAL)
            while chunk := pipe.read(1 << 16):
                *lines, unfinished = (unfinished + chunk).splitlines(keepends=True)
                yield from lines
                if unfinished.endswith(b"\n"):
                    yield unfinished
                    unfinished = b""
            if time.monotonic() >= next_tick:
                tick()
                next_tick = time.monotonic() + POLL_INTERVAL
    if unfinished:
        yield unfinished + b"\n"


@contextmanager
def _forward_signals(
    process: subprocess.Popen[bytes], stop_file: AnyPath
) -> Iterator[tuple[list[Stop], Callable[[int, object], None]]]:
    """Forward signals that should stop this process to another process group; ignored ones (nohup)
    stay ignored. Yield those that came, and the function that forwards them.

    A second Ctrl-C within CANCEL_SECONDS is not forwarded: it would end the scancel that the first
    one started. The stop file is written at once: this process may end before its next update, and
    a submitted job may start later."""
    stopped: list[Stop] = []
    last_forwarded = -math.inf

    def stop(number: int, frame: object) -> None:
        nonlocal last_forwarded
        stopped.append(Stop(number, time.monotonic()))
        if time.monotonic() >= last_forwarded + CANCEL_SECONDS and process.poll() is None:
            last_forwarded = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)
        with suppress(OSError, UserError):
            stop_file.touch()

    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    forwarded = {
        number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN
    }
    for number in forwarded:
        signal.signal(number, stop)
    try:
        yield stopped, stop
    finally:
        if process.poll() is None:  # an error of this process's own
            os.killpg(process.pid, signal.SIGINT)
        for number, handler in forwarded.items():
            signal.signal(number, handler)


class ShownAnswers:
    """Shows the first answers of a campaign, each time they change. Those of an earlier run are not
    shown."""

    def __init__(self, folder: AnyPath, show: Callable[[str], None]):
        self.folder = folder
        self.show = show
        self.latest = read_so_far(folder)
        self.shown = self.latest.text if self.latest else ""

    def show_new(self) -> None:
        self.latest = read_so_far(self.folder)
        if self.latest is not None and self.latest.text != self.shown:
            self.show(self.latest.text)
            self.shown = self.latest.text


RUN_ID_LINE = re.compile(r"^SLURM run ID: ([\w-]+)$")
REMAINING_JOBS_TEXT = (
    "commodel: jobs may still be in Slurm's queue ({}); once it answers: scancel --name {}"
)


def run_with_display(
    campaign: Campaign,
    command: list[str],
    name: str,
    display: Display,
    is_enough: Callable[[Answers], bool] | None = None,
) -> int:
    """Run the workflow of a campaign and return Snakemake's exit code; its output is kept in
    NAME.log. The run ends if Slurm refused what all jobs request, or if the first answers are
    enough."""
    reader, errors = StatusReader(campaign), JobErrors(display.show_message)
    answers = ShownAnswers(campaign.folder, display.show_message)
    log = campaign.results.log(name)

    def count_cases() -> int:
        return sum(len(batch.ids) for batch in reader.campaign.plan.batches)

    def tick() -> bool:
        try:
            planned, status = count_cases(), reader.read("", time.time())
            if planned != (count := count_cases()):
                counts = f"{count} points and probe cases instead of {planned}"
                display.show_progress(
                    f"after the survey: {counts}, as probes depend on the levels found", last=True
                )
            display.show_progress(format_status(status, errors.stage))
            answers.show_new()
        except (UserError, OSError):  # a damaged or missing file stops no campaign
            display.clear()
        return ends_early()

    def ends_early() -> bool:
        return bool(is_enough and answers.latest and is_enough(answers.latest))

    slurm_runs: list[str] = []

    def show(text: str) -> None:
        slurm_runs.extend(RUN_ID_LINE.findall(text))
        errors.read_line(text)

    # jobs may run on other machines
    command = [*command, "--quiet", "host", "reason", "--show-failed-logs"]
    code, stopped = run_snakemake(command, log, show, tick, campaign.lock)
    display.clear()
    if stopped or ends_early():
        for run in slurm_runs:
            # Snakemake has tried as well, but may have been killed meanwhile
            failure = cancel_jobs(run)
            if failure:
                display.show_message(REMAINING_JOBS_TEXT.format(failure, run))
    if stopped:
        signal_text = "Ctrl-C" if stopped == signal.SIGINT else signal.Signals(stopped).name
        display.show_message(
            f"commodel: stopped by {signal_text}; measured cases are kept, and the next run continues"
        )
        raise RunStoppedError(stopped)
    if ends_early():
        return code
    if code:
        for text in [] if errors.shown else errors.last:
            display.show_message(text)
        display.show_message(f"commodel: the run failed; its output is in {log}")
        if errors.refused:
            raise RunFailedError(code)  # every other try would be refused too
    else:
        display.show_progress(format_status(reader.read("", time.time())), last=True)
    return code
