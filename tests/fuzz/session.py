"""Run targets for some time: many inputs from a seed, each with limits of processor time and
memory.

An input must end in a value or in a UserError of one line. Otherwise it is kept in build/fuzz, even
if it fails only once or kills this process.
"""

import ast
import re
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from commodel.errors import UserError
from commodel.platforms.tools import ROOT
from tests.fuzz.targets import TARGETS, Target

FAILED_INPUTS = ROOT / "build" / "fuzz"  # inputs that failed: TARGET-SEED-ERROR.txt
ROUND = 20  # inputs between two checks of the time
CPU = 30  # seconds of processor time that one input may take, on a slow machine
MEMORY = 3 << 30  # bytes of address space in addition to those in use


class OutOfTime(BaseException):
    """The limit of processor time. Not an Exception, so that tested code does not catch it."""


def fuzz(name: str, seconds: float, number: int) -> int:
    """Run a target for this time and return the number of inputs. Raise any error but UserError."""
    inputs, until = 0, time.monotonic() + seconds
    while True:
        inputs += run_round(
            TARGETS[name], number, FAILED_INPUTS / f"{name.replace(' ', '-')}-{number}"
        )
        number += 1
        if time.monotonic() > until:
            return inputs


def run_round(target: Target, number: int, kept: Path) -> int:
    inputs = 0
    kept.parent.mkdir(parents=True, exist_ok=True)

    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def run_drawn(given_input) -> None:
        nonlocal inputs
        inputs += 1
        with keep_if_failed(given_input, kept):
            run_input(target, given_input)

    run_drawn()
    return inputs


@contextmanager
def keep_if_failed(given_input: object, kept: Path) -> Iterator[None]:
    """Store the input in a file while it runs. The file remains if the input fails or kills this
    process. For each kind of error, the last and smallest input remains."""
    file = kept.with_name(f"{kept.name}.txt")
    file.write_text(f"{given_input!a}\n")
    try:
        yield
    except BaseException as error:
        file.replace(kept.with_name(f"{kept.name}-{type(error).__name__}.txt"))
        raise
    file.unlink()


def list_failures(since: float) -> list[Path]:
    """Return the files of inputs that have failed or killed the process since this time."""
    return sorted(path for path in FAILED_INPUTS.glob("*.txt") if path.stat().st_mtime >= since)


def replay(path: Path) -> None:
    """Run a kept input again. Raise any error but UserError."""
    names = {name.replace(" ", "-"): name for name in TARGETS}
    stem = max(
        (stem for stem in names if re.match(rf"{re.escape(stem)}-[0-9]", path.name)), key=len
    )
    run_input(TARGETS[names[stem]], ast.literal_eval(path.read_text()))


def run_input(target: Target, given_input: object) -> None:
    with tempfile.TemporaryDirectory() as folder, limits():
        check_outcome(target.run, given_input, Path(folder))


def check_outcome(run: Callable, given_input: object, folder: Path) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns if a number overflows
            run(given_input, folder)
    except UserError as error:
        text = error.format_message()
        assert text.isprintable(), f"more than one printable line: {text!r}"
        assert len(text) < 2000, f"a message of 2000 characters or more: {text!r}"


@contextmanager
def limits() -> Iterator[None]:
    """Limit processor time and memory of the block."""

    def stop(*_) -> None:
        raise OutOfTime(f"more than {CPU} s of processor time")

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    handler = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)
